"""What a view says about hand-made scores."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from report.conftest import subject
from stormproof.errors import InvalidOption, UnknownName
from stormproof.report.elements import View
from stormproof.report.grouping import grouped
from stormproof.report.page import as_json
from stormproof.report.view import make_view


def rows_of(view: View, figure: str) -> list[dict[str, object]]:
    return [dict(row) for f in view.figures() if f.id == figure for row in f.rows]


def test_the_sentence_says_what_hurts_most_least_and_where_half_is_lost() -> None:
    # fog keeps 0.34 of 0.4 on average, snow 0.22; snow@4 is 0.16, below half.
    assert make_view([subject()]).sentences[0] == (
        "net keeps 70 % of its clean AP under corruption (40.0 clean, 28.0 on average): "
        "snow hurts most (55 % left), fog least (85 % left). It falls below half of its clean score "
        "under snow from severity 4."
    )


def test_the_summary_has_the_papers_numbers() -> None:
    view = make_view([subject()])
    line = dict(zip(view.summary.columns, view.summary.rows[0], strict=True))
    assert (line["P"], line["conditions"], line["images"]) == (40.0, 10, 500)
    assert line["mPC"] == pytest.approx(28.0)
    assert line["rPC"] == pytest.approx(70.0)


def test_the_grid_is_there_absolute_and_relative() -> None:
    cells = {(*r["pick"], r["y"], r["x"]): r["v"] for r in rows_of(make_view([subject()]), "grid")}  # type: ignore[misc]
    assert cells["net", "absolute", "snow", "5"] == pytest.approx(10.0)
    assert cells["net", "relative to clean", "snow", "5"] == pytest.approx(25.0)
    assert len(cells) == 20


def test_curves_begin_at_the_clean_score() -> None:
    rows = rows_of(make_view([subject()]), "corruptions")
    fog = {r["x"]: r["y"] for r in rows if r["panel"] == "fog"}
    assert fog[0.0] == 40.0
    assert fog[5.0] == pytest.approx(30.0)


def test_an_incomplete_run_has_no_mean() -> None:
    whole = subject()
    scores = {text: value for text, value in whole.scores["AP"].items() if text != "snow@5"}
    broken = replace(whole, scores={"AP": scores}, aggregates={}, missing=("snow@5 (3 of 500 images)",))
    view = make_view([broken])
    line = dict(zip(view.summary.columns, view.summary.rows[0], strict=True))
    assert line["mPC"] is None
    assert "incomplete" in str(line["conditions"])
    assert "no mean under corruption" in view.sentences[0]
    assert any("snow@5" in notice for notice in view.notices)


def test_equal_names_are_told_apart() -> None:
    first, second = subject(), subject()
    view = make_view([first, replace(second, dataset="other")])
    assert [row[0] for row in view.summary.rows] == ["net on toy", "net on other"]
    assert any("different images" in notice for notice in view.notices)


def test_runs_without_the_measure_are_named() -> None:
    view = make_view([subject(), subject("map", "mIoU")], measure="AP")
    assert any("map" in notice and "no AP" in notice for notice in view.notices)


def test_tags_average_the_runs_that_share_them() -> None:
    tagged = [
        replace(subject("a", clean=0.4), tags={"backbone": "r50"}),
        replace(subject("b", clean=0.6), tags={"backbone": "r50"}),
        replace(subject("c", clean=0.8), tags={"backbone": "r101"}),
    ]
    view = make_view(tagged)
    assert view.tags == ("backbone",)
    figure = next(f for f in view.figures() if f.id == "corruptions")
    start = {r["series"]: r["y"] for r in figure.grouped["backbone"] if r["panel"] == "fog" and r["x"] == 0}
    assert start == {"r50": pytest.approx(50.0), "r101": pytest.approx(80.0)}


def test_a_scatter_is_averaged_on_both_axes() -> None:
    rows = [{"x": 1.0, "y": 2.0, "series": "a"}, {"x": 3.0, "y": 4.0, "series": "b"}]
    assert grouped(rows, {"a": "g", "b": "g"}) == [{"x": 2.0, "y": 3.0, "series": "g", "runs": 2}]


def test_rmse_and_arrows() -> None:
    quality = {
        f"{name}@{s}": {"rmse": 10.0 * s, "snr": 20.0 - s} for name in ("fog", "snow") for s in range(1, 6)
    }
    view = make_view([subject("a", quality=quality), subject("b", quality=quality, clean=0.8)])
    fog = next(r for r in rows_of(view, "rmse") if r["label"] == "fog")
    assert fog["x"] == 30.0
    assert fog["y"] == pytest.approx(85.0)
    assert fog["y2"] == pytest.approx(100 * 0.74 / 0.8)
    assert {r["x"] for r in rows_of(view, "snr")} == {19.0, 18.0, 17.0, 16.0, 15.0}


def test_no_quality_no_section() -> None:
    assert not rows_of(make_view([subject()]), "rmse")


def test_alpha_sequences_by_size_mode_and_space() -> None:
    sizes = ("AP", "APs", "APm", "APl")

    def styled(name: str, drop: float) -> object:
        texts = {f"style[alpha={a},on=objects,space=feature]": 0.4 - drop * a for a in (0.5, 1)}
        texts |= {"style[alpha=0.5,on=objects,space=pixel]": 0.39}
        scores = {m: {"clean": 0.4, **texts} for m in sizes}
        return replace(subject(name), scores=scores, aggregates={})

    view = make_view([styled("a", 0.1), styled("b", 0.2)])  # type: ignore[list-item]
    rows = rows_of(view, "alpha")
    picked = {(*r["pick"], r["panel"], r["series"], r["x"]): r["y"] for r in rows}  # type: ignore[misc]
    assert picked["boxes", "relative", "objects", "feature", "rAP", "a", 1.0] == pytest.approx(75.0)
    # pixel space begins at clean and ends where feature space ends
    assert picked["boxes", "absolute", "objects", "pixel", "APs", "a", 0.0] == 40.0
    assert picked["boxes", "absolute", "objects", "pixel", "APs", "a", 1.0] == pytest.approx(30.0)
    distance = {(r["x"], r["y"]): r["v"] for r in rows_of(view, "distances") if r["pick"][2] == "feature"}  # type: ignore[index]
    assert distance["a", "a"] == 0.0
    assert distance["a", "b"] == pytest.approx((0.125**2 + 0.25**2) ** 0.5)


def test_unknown_measure_and_reference_are_named() -> None:
    with pytest.raises(UnknownName, match="AP51"):
        make_view([subject()], measure="AP51")
    with pytest.raises(UnknownName, match="nobody"):
        make_view([subject()], reference="nobody")
    with pytest.raises(InvalidOption, match="at least one run"):
        make_view([])


def test_the_json_is_for_machines() -> None:
    content = json.loads(as_json(make_view([subject()])))
    assert content["version"] == 1
    assert content["summary"]["rows"][0][3] == 40.0
    assert {section["id"] for section in content["sections"]} >= {"grid", "curves"}
