"""What a view says about hand-made scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from helpers.toy_scores import toy_scores, weather_scores
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.table import Table
from stormproof.metrics.published import measured_change
from stormproof.report.charts import prepare_rows, spec_of, with_labels
from stormproof.report.comparison import compare_view
from stormproof.report.elements import Axis, View
from stormproof.report.page import as_json
from stormproof.report.sources import scores_of
from stormproof.report.terminal import tell_scores
from stormproof.report.view import group_rows, make_view, only_grouped
from stormproof.results.interval import LEADING
from stormproof.results.scores import Replicates, Scores


def rows_of(view: View, figure: str) -> list[dict[str, object]]:
    return [dict(row) for f in view.figures() if f.id == figure for row in f.rows]


def test_the_sentence_says_what_hurts_most_least_and_where_half_is_lost() -> None:
    # fog keeps 0.34 of 0.4 on average, snow 0.22; snow@4 is 0.16, below half.
    assert make_view([toy_scores()]).sentences[0] == (
        "net keeps 70 % of its clean AP under corruption (40.0 clean, 28.0 on average). "
        "Snow hurts most (55 % left), fog least (85 % left). It falls below half of its clean score "
        "under snow from severity 4."
    )


def noisy(name: str, means: dict[str, float], noise: float, *, clean: float = 0.6, seed: int = 0) -> Scores:
    """Scores under corruptions at severity 3, whose halves vary independently by `noise`."""
    cells = {"clean": clean} | {f"{each}@3": value for each, value in means.items()}
    rng = np.random.default_rng(seed)
    drawn = {
        text: np.r_[[value] * LEADING, value + rng.normal(0, noise, 200)] for text, value in cells.items()
    }
    made = toy_scores(name, per_condition={"AP": cells}, conditions=tuple(cells))
    return replace(made, replicates=Replicates({"AP": drawn}, {}))


MEANS = {"fog": 0.40, "snow": 0.41, "frost": 0.50, "contrast": 0.51}


def test_what_hurts_most_is_named_only_beyond_chance() -> None:
    clear, none = (make_view([noisy("net", MEANS, noise)]).sentences[0] for noise in (0.01, 0.2))
    assert "Fog (67 % left) and snow (68 % left) hurt most. It stays clearly above half" in clear
    assert "No corruption clearly hurts most; on these images, fog (67 % left), snow (68 % left) and" in none
    assert "It falls clearly below half of its clean score nowhere." in none


def test_half_is_lost_only_where_that_is_clear() -> None:
    means = {"fog": 0.20, "snow": 0.29, "frost": 0.50}
    sure, unsure = (make_view([noisy("net", means, noise)]).sentences[0] for noise in (0.001, 0.03))
    assert sure.endswith("falls clearly below half of its clean score under fog and snow at severity 3.")
    assert unsure.endswith("falls clearly below half of its clean score under fog at severity 3.")


def test_runs_that_do_not_differ_clearly_are_not_ranked() -> None:
    means = {"a": 0.40, "b": 0.41, "c": 0.30}
    clear, unclear = (
        make_view([noisy(n, dict.fromkeys(MEANS, means[n]), noise, seed=ord(n)) for n in means]).sentences[0]
        for noise in (0.01, 0.3)
    )
    assert clear.startswith("Of 3 comparable runs, b (41.0) and a (40.0) score highest under corruption, in")
    assert unclear == (
        "Of 3 comparable runs, none is clearly better under corruption, in AP: b (41.0), a (40.0) and "
        "c (30.0). Which keeps most of its clean score is not clear (50 to 68 %)."
    )


def test_an_unclear_difference_claims_no_direction() -> None:
    said = make_view([noisy("a", MEANS, 0.2), noisy("b", MEANS, 0.2, seed=1)]).sentences[0]
    assert said.startswith("No clear difference between a and b under corruption: AP 45.5 against 45.5, ")
    assert "No clear difference in the share of the clean score that is kept: a 76 %, b 76 %" in said
    assert "keeps more" not in said


def test_half_is_lost_from_a_severity_only_if_lower_ones_were_run() -> None:
    cells = {"clean": 0.4, "fog@3": 0.1, "fog@4": 0.05, "snow@1": 0.1, "frost@2": 0.3, "frost@3": 0.1}
    said = make_view([toy_scores(per_condition={"AP": cells}, conditions=tuple(cells))]).sentences[0]
    assert said.endswith(
        "half of its clean score under snow from severity 1, fog at severity 3, frost from severity 3."
    )


def test_a_run_without_an_object_to_find_says_so() -> None:
    cells = {"clean": math.nan, "fog@3": math.nan}
    view = make_view([toy_scores(per_condition={"AP": cells}, conditions=tuple(cells))])
    assert view.sentences == ("net has no AP: no image shows anything that it could find.",)


def test_runs_over_other_classes_are_not_ranked() -> None:
    def knowing(name: str, *classes: str) -> Scores:
        return replace(toy_scores(name), per_class={"AP": {"clean": dict.fromkeys(classes, 0.4)}})

    view = make_view([knowing("all", "cat", "dog"), knowing("both", "cat", "dog"), knowing("cats", "cat")])
    assert view.apart == ("cats: its scores are over other classes (1, not 2).",)
    compared = compare_view(knowing("all", "cat", "dog"), knowing("cats", "cat"))
    assert (
        "all is scored over 2 of the dataset's classes, cats over 1 (they differ in dog)"
        in compared.notices[0]
    )
    assert not compare_view(knowing("a", "cat"), knowing("b", "cat")).notices


def test_the_summary_has_the_papers_numbers() -> None:
    # fog and frost keep 0.34 of 0.4, snow 0.22, brightness all of it
    view = make_view([weather_scores()])
    line = dict(zip(view.summary.columns, view.summary.rows[0], strict=True))
    assert line["P"] == 40.0
    assert view.summary.title == "AP of runs on toy, 500 images, 20 conditions"
    assert line["mPC"] == pytest.approx((34 + 34 + 22 + 40) / 4)
    assert line["rPC"] == pytest.approx(100 * 32.5 / 40)
    assert "mPC: mean under corruption, over weather" in view.summary.note


def under_severity_3(name: str = "net", clean: float = 0.4) -> Scores:
    """A run under two conditions that are no suite."""
    cells = {"clean": clean, "fog@3": clean - 0.1, "snow@3": clean - 0.2}
    return toy_scores(name, per_condition={"AP": cells}, conditions=tuple(cells))


def test_conditions_of_no_suite_have_a_mean_that_is_not_called_mpc() -> None:
    view = make_view([under_severity_3(), under_severity_3("other", 0.6)])
    line = dict(zip(view.summary.columns, view.summary.rows[0], strict=True))
    assert line["mean over 2 conditions"] == pytest.approx(25.0)
    assert line["% of P left"] == pytest.approx(62.5)
    assert "mPC" not in view.summary.columns
    assert view.sentences[0].startswith(
        "other scores higher than net under corruption: AP 45.0 against 25.0, +20.0. On clean images, other "
        "scores higher: 60.0 against 40.0, +20.0. other "
        "keeps more of its clean score: 75 % against 62 %, +13."
    )


def test_a_suite_and_other_conditions_keep_columns_of_their_own() -> None:
    view = make_view([weather_scores(), under_severity_3("other")])
    lines = {str(row[0]): dict(zip(view.summary.columns, row, strict=True)) for row in view.summary.rows}
    assert lines["net"]["mPC"] == pytest.approx(32.5)
    assert lines["net"]["mean over 2 conditions"] is None
    assert lines["other"]["mPC"] is None
    assert view.sentences[0].startswith("No two of these runs can be compared")
    assert view.apart == ("other: its mean is over another set of 2 conditions.",)


def test_several_sets_of_conditions_have_a_line_each() -> None:
    whole = weather_scores()
    cells = {**whole.per_condition["AP"], "contrast@3": 0.2}
    view = make_view([replace(whole, per_condition={"AP": cells}, conditions=tuple(cells))])
    table = next(t for t in view.tables() if t.id == "sets")
    assert [row[:2] for row in table.rows] == [("net", "weather (20 conditions)"), ("net", "1 condition")]
    assert [row[4] for row in table.rows] == [pytest.approx(81.25), pytest.approx(50.0)]


def test_every_severity_has_its_detection_rate_curve() -> None:
    curve = {"fppi": [0.1, 1.0], "rate": [0.2, 0.6], "marks_fppi": [0.1] * 9, "marks_rate": [0.2] * 9}
    texts = ("clean", "fog@1", "fog@5")
    made = toy_scores(details={"roc": dict.fromkeys(texts, curve)})
    cells = {**made.per_condition, "ADR": dict.fromkeys(texts, 0.5)}
    rows = rows_of(make_view([replace(made, per_condition=cells)]), "roc")
    assert list(dict.fromkeys(row["pick"] for row in rows)) == [("clean", ""), ("fog", "5"), ("fog", "1")]
    marks = [row["mark"] for row in rows if "mark" in row]
    assert marks == ["1 in 1000", "1 in 100", "1 in 10"] * 3


def test_one_severity_makes_no_curve() -> None:
    view = make_view([under_severity_3()])
    assert rows_of(view, "grid")
    assert not rows_of(view, "corruptions")


def test_labels_do_not_overlap_or_are_left_out() -> None:
    crowd = [{"x": 10.0 + 0.01 * i, "y": 90.0, "label": f"a_long_name_{i:02}"} for i in range(40)]
    placed = [row for row in with_labels(crowd, Axis("x", zero=True), Axis("y", zero=True)) if "lx" in row]
    assert 3 < len(placed) < len(crowd)
    spots = [(row["lx"], row["ly"]) for row in placed]
    for i, (x, y) in enumerate(spots):
        for other, at in spots[:i]:  # 13 letters of 0.62 % of the width each, lines 4.5 % of the height
            assert abs(x - other) >= 13 * 0.0062 * 10 or abs(y - at) >= 0.045 * 90 - 1e-9


def test_curves_begin_at_the_clean_score() -> None:
    rows = rows_of(make_view([toy_scores()]), "corruptions")
    fog = {r["x"]: r["y"] for r in rows if r["panel"] == "fog"}
    assert fog[0.0] == 40.0
    assert fog[5.0] == pytest.approx(30.0)


def test_an_incomplete_run_has_no_mean() -> None:
    whole = toy_scores()
    cells = {text: value for text, value in whole.per_condition["AP"].items() if text != "snow@5"}
    broken = replace(whole, per_condition={"AP": cells}, missing=("snow@5 (3 of 500 missing)",))
    view = make_view([broken])
    line = dict(zip(view.summary.columns, view.summary.rows[0], strict=True))
    assert line["mPC"] is None
    assert "incomplete" in str(line["conditions"])
    assert "no mean under corruption" in view.sentences[0]
    assert any("snow@5" in notice for notice in view.notices)


def test_distinguishes_equal_names() -> None:
    first, second = toy_scores(), toy_scores()
    view = make_view([first, replace(second, dataset="other")])
    assert [row[0] for row in view.summary.rows] == ["net on toy", "net on other"]
    assert view.apart == ("net on other: it was run on other images.",)


def test_runs_without_the_measure_are_named() -> None:
    view = make_view([toy_scores(), toy_scores("map", "mIoU")], measure="AP")
    assert view.apart == ("map: it has no AP, only mIoU.",)
    assert {r["panel"] for r in rows_of(view, "grid")} == {"net (AP)", "map (mIoU)"}
    assert any(said.startswith("map keeps 70 % of its clean mIoU") for said in view.sentences)


def test_tags_average_the_runs_that_share_them() -> None:
    tagged = [
        toy_scores("a", clean=0.4, tags={"backbone": "r50"}),
        toy_scores("b", clean=0.6, tags={"backbone": "r50"}),
        toy_scores("c", clean=0.8, tags={"backbone": "r101"}),
    ]
    view = make_view(tagged)
    assert view.tags == ("backbone",)
    figure = next(f for f in view.figures() if f.id == "corruptions")
    start = {r["series"]: r["y"] for r in figure.grouped["backbone"] if r["panel"] == "fog" and r["x"] == 0}
    assert start == {"r50": pytest.approx(50.0), "r101": pytest.approx(80.0)}


def test_a_scatter_is_averaged_on_both_axes() -> None:
    rows = [{"x": 1.0, "y": 2.0, "series": "a"}, {"x": 3.0, "y": 4.0, "series": "b"}]
    assert group_rows(rows, {"a": "g", "b": "g"}) == [{"x": 2.0, "y": 3.0, "series": "g", "runs": 2}]


def test_plots_the_share_kept_over_rmse_with_arrows_between_two_runs() -> None:
    quality = {
        f"{name}@{s}": {"rmse": 10.0 * s, "snr": 20.0 - s} for name in ("fog", "snow") for s in range(1, 6)
    }
    view = make_view(
        [
            toy_scores("a", details={"quality": quality}),
            toy_scores("b", details={"quality": quality}, clean=0.8),
        ]
    )
    fog = next(r for r in rows_of(view, "rmse") if r["label"] == "fog")
    assert fog["x"] == 30.0
    assert fog["y"] == pytest.approx(85.0)
    assert fog["y2"] == pytest.approx(100 * 0.74 / 0.8)
    assert {r["x"] for r in rows_of(view, "snr")} == {19.0, 18.0, 17.0, 16.0, 15.0}


def test_a_corruption_under_which_a_run_has_no_score_has_no_arrow() -> None:
    """As precision has none where nothing is predicted."""
    quality = {f"{name}@{s}": {"rmse": 10.0 * s} for name in ("fog", "snow") for s in range(1, 6)}
    first, second = (toy_scores(name, details={"quality": quality}) for name in "ab")
    silent = replace(second, per_condition={"AP": {**second.per_condition["AP"], "fog@5": math.nan}})
    figure = next(f for f in make_view([first, silent]).figures() if f.id == "rmse")
    arrows = {row["label"]: "y2" in row for row in prepare_rows(figure, figure.rows)}
    assert arrows == {"fog": False, "snow": True}


def test_two_runs_on_one_dataset_are_overlaid_by_snr_and_three_stand_beside_each_other() -> None:
    quality = {f"{name}@{s}": {"snr": 20.0 - s} for name in ("fog", "snow") for s in range(1, 6)}
    runs = [toy_scores(name, details={"quality": quality}) for name in ("clean", "noisy", "third")]
    two, three = make_view(runs[:2]), make_view(runs)
    assert {r["dash"] for r in rows_of(two, "snr")} == {"clean", "noisy"}
    assert not any("panel" in r for r in rows_of(two, "snr"))
    assert {r["panel"] for r in rows_of(three, "snr")} == {"clean", "noisy", "third"}
    figure = next(f for f in two.figures() if f.id == "snr")
    encoding = str(spec_of(figure))
    assert encoding.count("'strokeDash': {'field': 'dash'") == 1  # of lines alone: dots hide dashes
    assert "'color': {'field': 'series'" in encoding


def test_a_published_grid_is_drawn_over_an_rmse_that_was_measured_here() -> None:
    runs = [
        scores
        for training in ("standard", "combined")
        for scores in scores_of(f"published:michaelis/pascal_voc/detection/{training}")
    ]
    figure = next(f for f in make_view(runs).figures() if f.id == "rmse")
    assert "wrap around" in figure.note
    known = measured_change("pascal_voc")
    for row in figure.rows:
        levels = [known[f"{row['label']}@{s}"]["rmse"] for s in range(1, 6)]
        assert row["x"] == pytest.approx(np.mean(levels))
        assert row["y"] < row["y2"]  # training on stylized images too helps against all of them
    assert len(figure.rows) == 15
    assert not rows_of(make_view(scores_of("published:michaelis/pascal_voc/detection/standard")), "snr")


def test_without_image_quality_there_is_no_section() -> None:
    assert not rows_of(make_view([toy_scores()]), "rmse")


def styled(name: str, drop: float) -> Scores:
    """Scores along α of painted objects, in feature space and once in pixel space."""
    texts = {f"style[alpha={a},on=objects,space=feature]": 0.4 - drop * a for a in (0.5, 1)}
    texts |= {"style[alpha=0.5,on=objects,space=pixel]": 0.39}
    cells = {m: {"clean": 0.4, **texts} for m in ("AP", "APs", "APm", "APl")}
    return toy_scores(name, per_condition=cells, conditions=("clean", *texts))


def test_prints_alpha_sequences_without_a_grid_of_severities() -> None:
    told = tell_scores({"a": styled("a", 0.1)}, every_measure=False)
    printed = [what.id for how, what in told if how == "table" and isinstance(what, Table)]
    assert "grid" not in printed
    assert len(printed) == 2  # the scores at a glance, and rAP by α


def test_plots_alpha_sequences_by_size_mode_and_space() -> None:
    view = make_view([styled("a", 0.1), styled("b", 0.2)])
    rows = rows_of(view, "alpha")
    picked = {(*r["pick"], r["panel"], r["series"], r["x"]): r["y"] for r in rows}  # type: ignore[misc]
    assert picked["boxes", "relative", "objects", "feature", "rAP", "a", 1.0] == pytest.approx(75.0)
    # pixel space begins at clean and ends where feature space ends
    assert picked["boxes", "absolute", "objects", "pixel", "APs", "a", 0.0] == 40.0
    assert picked["boxes", "absolute", "objects", "pixel", "APs", "a", 1.0] == pytest.approx(30.0)
    both = {(r["series"], r["x"]): r["y"] for r in rows_of(view, "spaces") if r["panel"] == "rAP"}
    assert both["a, feature space", 1.0] == pytest.approx(75.0)
    assert both["a, pixel space", 0.0] == 100.0
    assert both["b, pixel space", 0.5] == pytest.approx(97.5)
    distance = {(r["x"], r["y"]): r["v"] for r in rows_of(view, "distances") if r["pick"][2] == "feature"}  # type: ignore[index]
    assert distance["a", "a"] == 0.0
    assert distance["a", "b"] == pytest.approx((0.125**2 + 0.25**2) ** 0.5)


def test_unknown_measure_and_reference_are_named() -> None:
    with pytest.raises(UnknownName, match="AP51"):
        make_view([toy_scores()], measure="AP51")
    with pytest.raises(UnknownName, match="nobody"):
        make_view([toy_scores()], reference="nobody")
    with pytest.raises(InvalidOption, match="at least one run"):
        make_view([])


def test_runs_without_tags_cannot_be_grouped() -> None:
    with pytest.raises(UnknownName, match="Tags that tell these runs apart: none"):
        only_grouped(make_view([toy_scores("a"), toy_scores("b")]), "backbone")


def test_the_json_of_a_view_has_a_version_a_summary_and_sections() -> None:
    content = json.loads(as_json(make_view([toy_scores()])))
    assert content["version"] == 1
    assert content["summary"]["rows"][0][1] == 40.0
    assert {section["id"] for section in content["sections"]} >= {"grid", "curves"}


@pytest.mark.parametrize("text", ["fog@3+jpeg_compression@3", "gaussian_noise@5"])
def test_a_run_without_a_corruption_that_counts_for_degradation_has_a_view(text: str) -> None:
    cells = {"clean": 0.4, text: 0.2}
    view = make_view([replace(toy_scores(), per_condition={"AP": cells}, conditions=tuple(cells))])
    assert view.sections
    assert not rows_of(view, "cd-clean")
