"""The numbers behind every figure, against computations of their own from the cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import nnls
from scipy.stats import t as student

from helpers.scored_models import MODELS
from helpers.toy_scores import toy_scores
from stormproof.corruptions.suites import KAMANN, KAMANN_19, MICHAELIS
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.comparison import change_table, changes_of, compare_view, verdict
from stormproof.report.elements import Figure, View
from stormproof.report.sentences import change, share_kept
from stormproof.report.sources import run_scores
from stormproof.report.view import make_view
from stormproof.report.worst import LISTED, each_image_once, table, worst_first
from stormproof.results.run import Run
from stormproof.results.scores import Replicates, Scores
from stormproof.results.worst import worst_images

Vector = npt.NDArray[np.float64]
NOISE = KAMANN["noise"]
COUNT = 200  # halves of the images that replicates are of
OPTIMISM = 0.004


def drawn_around(value: float, rng: np.random.Generator, spread: float) -> Vector:
    """What intervals follow from: the score less its optimism, then the score on random halves."""
    return np.concatenate([[value - OPTIMISM] * 2, value + rng.normal(0, spread, COUNT)])


def span(estimate: float, drawn: Vector, images: int = 500) -> tuple[Any, Any]:
    """The 95 % interval by its definition: Student's t times the halves' deviation, optimism at one end."""
    known = drawn[2:][np.isfinite(drawn[2:])]
    reach = float(student.ppf(0.975, min(images, len(drawn) - 2) - 1)) * known.std(ddof=1)
    optimism = estimate - drawn[0]
    low, high = estimate - reach - max(0.0, optimism), estimate + reach + max(0.0, -optimism)
    return pytest.approx(100 * low), pytest.approx(100 * high)


def severities(corruption: str) -> range:
    return range(1, 4 if corruption == "psf_blur" else 6)


def cells(names: Sequence[str], seed: int, clean: float = 0.7) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    found = {"clean": clean}
    return found | {f"{n}@{s}": clean * float(rng.uniform(0.2, 0.95)) for n in names for s in severities(n)}


def scored(
    name: str, names: Sequence[str], seed: int, measure: str = "mIoU", spread: float = 0.0, **more: Any
) -> Scores:
    """Random scores of corruptions, with replicates around them if asked for."""
    held = cells(names, seed, more.pop("clean", 0.7))
    replicates = None
    if spread:
        rng = np.random.default_rng(seed + 100)
        drawn = {text: drawn_around(value, rng, spread) for text, value in held.items()}
        replicates = Replicates({measure: drawn}, {})
    made = toy_scores(name, per_condition={measure: held}, conditions=tuple(held), replicates=replicates)
    return Scores(**{**{f: getattr(made, f) for f in made.__dataclass_fields__}, **more})


def figure(view: View, name: str) -> Figure:
    return next(f for f in view.figures() if f.id == name)


def keyed(view: View, name: str, *keys: str) -> dict[Any, float]:
    """The value of every row of a figure by some of its keys."""
    value = "v" if any("v" in row for row in figure(view, name).rows) else "y"
    rows = figure(view, name).rows
    found = {tuple(row.get(key) for key in keys): row[value] for row in rows}
    assert len(found) == len(rows)  # no two marks at one place
    return found


def mean(scores: Scores, name: str, levels: Sequence[int] | None = None) -> float:
    row = next(iter(scores.per_condition.values()))
    return float(np.mean([row[f"{name}@{s}"] for s in levels or severities(name)]))


def degraded(scores: Scores, name: str) -> float:
    """1 − score, the mean over severities; of noise the first three (*kamann*, section 5.1)."""
    return 1 - mean(scores, name, [1, 2, 3] if name in NOISE else None)


def lost(scores: Scores, name: str) -> float:
    return degraded(scores, name) - (1 - scores.score("mIoU"))


@pytest.fixture(scope="module")
def pair() -> tuple[Scores, Scores]:
    return scored("base", KAMANN_19, 1), scored("net", KAMANN_19, 2, clean=0.8)


@pytest.fixture(scope="module")
def beside(pair: tuple[Scores, Scores]) -> View:
    return make_view(pair)


def test_cd_and_rcd_of_every_corruption_by_hand(pair: tuple[Scores, Scores], beside: View) -> None:
    base, net = pair
    found = keyed(beside, "cd-corruptions", "panel", "x", "series")
    for name in KAMANN_19:
        assert found["CD", name, "net"] == pytest.approx(100 * degraded(net, name) / degraded(base, name))
        assert found["rCD", name, "net"] == pytest.approx(100 * lost(net, name) / lost(base, name))
        assert found["rCD", name, "base"] == pytest.approx(100)


def test_mean_cd_and_rcd_leave_psf_blur_out(pair: tuple[Scores, Scores], beside: View) -> None:
    base, net = pair
    names = [name for name in KAMANN_19 if name != "psf_blur"]
    panels = {
        "CD": 100 * np.mean([degraded(net, n) / degraded(base, n) for n in names]),
        "rCD": 100 * np.mean([lost(net, n) / lost(base, n) for n in names]),
    }
    rows = {(row["panel"], row["series"]): row for row in figure(beside, "cd-clean").rows}
    table = next(t for t in beside.tables() if t.id == "cd")
    for i, (panel, expected) in enumerate(panels.items()):
        assert rows[panel, "net"]["y"] == pytest.approx(expected)
        assert rows[panel, "net"]["x"] == pytest.approx(80)
        assert table.rows[1][1 + i] == pytest.approx(expected)


def test_bars_of_categories_hold_all_their_corruptions(pair: tuple[Scores, Scores], beside: View) -> None:
    """*kamann*, Figs. 12, 15 and 16; the error bar is one standard deviation to either side."""
    base, net = pair
    rows = {(r["panel"], r["x"], r["series"]): r for r in figure(beside, "cd-categories").rows}
    for category, members in KAMANN.items():
        for panel, number in (("CD", degraded), ("rCD", lost)):
            values = [100 * number(net, n) / number(base, n) for n in members]
            row = rows[panel, category, "net"]
            assert row["y"] == pytest.approx(np.mean(values))
            assert (row["high"] - row["low"]) / 2 == pytest.approx(np.std(values))


def test_score_and_report_have_one_definition_of_a_category(
    pair: tuple[Scores, Scores], beside: View
) -> None:
    from stormproof.results.aggregates import against

    base, net = pair
    found = against("mIoU", net.per_condition["mIoU"], base.per_condition["mIoU"], net.over)
    for row in figure(beside, "cd-categories").rows:
        if row["series"] == "net":
            spread = found[f"{row['panel']}_by_category"][row["x"]]
            assert row["y"] == pytest.approx(100 * spread["mean"])
            assert row["high"] - row["y"] == pytest.approx(100 * spread["std"])


def test_radar_and_groups_by_severity_by_hand(pair: tuple[Scores, Scores], beside: View) -> None:
    _, net = pair
    radar = keyed(beside, "radar", "x", "series")
    curves = keyed(beside, "groups-kamann", "panel", "x", "series")
    assert radar["clean", "net"] == curves["blur", 0.0, "net"] == pytest.approx(80)
    for category, members in KAMANN.items():
        kept = [name for name in members if name != "psf_blur"]
        levels = {name: [1, 2, 3] if name in NOISE else None for name in kept}  # as kamann's set is averaged
        assert radar[category, "net"] == pytest.approx(100 * np.mean([mean(net, n, levels[n]) for n in kept]))
    at_2 = [net.score("mIoU", f"{name}@2") for name in KAMANN["weather"]]
    assert curves["weather", 2.0, "net"] == pytest.approx(100 * np.mean(at_2))
    michaelis = make_view([scored("a", [n for m in MICHAELIS.values() for n in m], 3, "AP")])
    group = keyed(michaelis, "groups-michaelis", "panel", "x")
    row = michaelis.sections and figure(michaelis, "corruptions").rows
    at_4 = [r["y"] for r in row if r["x"] == 4.0 and r["panel"] in MICHAELIS["digital"]]
    assert group["digital", 4.0] == pytest.approx(np.mean(at_4))
    assert len(at_4) == 4


def test_grid_absolute_relative_and_means_by_hand(pair: tuple[Scores, Scores], beside: View) -> None:
    _, net = pair
    found = keyed(beside, "grid", "pick", "panel", "y", "x")
    shades = {(r["panel"], r["y"], r["x"]): r["shade"] for r in figure(beside, "grid").rows}
    value = net.score("mIoU", "fog@4")
    assert found[("absolute",), "net", "fog", "4"] == pytest.approx(100 * value)
    assert found[("relative to clean",), "net", "fog", "4"] == pytest.approx(100 * value / 0.8)
    assert shades["net", "fog", "4"] == pytest.approx(100 * value / 0.8)
    noise = mean(net, "gaussian_noise", [1, 2, 3])
    assert found[("absolute",), "net", "gaussian_noise", "mean"] == pytest.approx(100 * noise)
    order = list(dict.fromkeys(row["y"] for row in figure(beside, "grid").rows))
    assert order[-1] == "clean"
    harm = [np.mean([v for (_, y, _), v in shades.items() if y == name]) for name in order[:-1]]
    assert harm == sorted(harm)


def test_the_share_kept_by_group_has_its_interval() -> None:
    names = [name for members in MICHAELIS.values() for name in members]
    net = scored("net", names, 4, "AP", spread=0.01)
    rows = {row["x"]: row for row in figure(make_view([net]), "kept").rows}
    assert net.replicates is not None
    drawn = net.replicates.per_condition["AP"]
    for group, members in {"all corruptions": names, **MICHAELIS}.items():
        texts = [f"{n}@{s}" for n in members for s in range(1, 6)]
        value = np.mean([net.score("AP", text) for text in texts]) / net.score("AP")
        spread = np.mean([drawn[text] for text in texts], axis=0) / drawn["clean"]
        row = rows[group]
        assert row["y"] == pytest.approx(100 * value)
        assert (row["low"], row["high"]) == span(value, spread)


def test_the_summary_has_whole_intervals() -> None:
    names = [name for members in MICHAELIS.values() for name in members]
    net = scored("net", names, 5, "AP", spread=0.01)
    summary = make_view([net]).summary
    line = dict(zip(summary.columns, summary.rows[0], strict=True))
    assert net.replicates is not None
    drawn = net.replicates.per_condition["AP"]
    low, high = span(net.score("AP"), drawn["clean"])
    assert [float(end) for end in str(line["95 % of P"]).split(" – ")] == [
        pytest.approx(low.expected, abs=0.05), pytest.approx(high.expected, abs=0.05),
    ]  # fmt: skip
    assert {"95 % of mPC", "95 % of rPC"} <= {*line}
    assert "95 % of P" not in make_view([toy_scores()]).summary.columns


def test_rmse_is_in_grey_levels_and_snr_in_decibels(runs: dict[str, Path]) -> None:
    """Against the pixels: the mean over images of √(mean squared change), and of 10 log₁₀ of the ratio."""
    opened = Run(runs["boxes"])
    scores = run_scores(opened)
    view = make_view([scores])
    text = "gaussian_noise@4"
    rmse, snr = [], []
    for name in opened.ids:
        clean, noisy = (opened.sample(name, c).image.astype(np.float64) for c in ("clean", text))
        error = np.mean((noisy - clean) ** 2)
        rmse.append(math.sqrt(error))
        snr.append(10 * math.log10(np.mean(clean**2) / error))
    quality = scores.details["quality"][text]
    assert quality["rmse"] == pytest.approx(np.mean(rmse), rel=1e-6)
    assert quality["snr"] == pytest.approx(np.mean(snr), rel=1e-6)
    value = 100 * scores.score("AP", text)
    assert any(
        row["x"] == pytest.approx(np.mean(snr)) and row["y"] == pytest.approx(value)
        for row in figure(view, "snr").rows
    )
    noise = next(row for row in figure(view, "rmse").rows if row["label"] == "gaussian_noise")
    levels = [scores.details["quality"][f"gaussian_noise@{s}"]["rmse"] for s in range(1, 6)]
    assert noise["x"] == pytest.approx(np.mean(levels))


def test_worst_images_are_those_of_the_run(runs: dict[str, Path]) -> None:
    opened = Run(runs["boxes"])
    scores = run_scores(opened)
    listed = worst_first([scores])
    assert [loss for _, loss in listed[:LISTED]] == opened.worst(LISTED)
    errors = scores.image_errors
    assert errors is not None
    rises = [
        float(values[i] - errors.by_condition["clean"][i])
        for text, values in errors.by_condition.items()
        if text != "clean"
        for i in range(len(errors.ids))
    ]
    assert [loss.rise for _, loss in listed] == pytest.approx(sorted(rises, reverse=True))
    shown = each_image_once(listed)
    assert len({loss.image for _, loss in shown}) == len(shown)
    assert [loss for _, loss in shown][:1] == worst_images(scores, 1)
    assert table([]).columns[3:6] == ("error clean (%)", "error (%)", "rise (points)")


def test_classes_relative_to_their_own_clean_score() -> None:
    per_class = {
        text: {"cat": 0.5 * value, "dog": value} for text, value in toy_scores().per_condition["AP"].items()
    }
    view = make_view([toy_scores(per_class={"AP": per_class})])
    found = keyed(view, "classes", "y", "x")
    assert found["cat", "snow"] == found["dog", "snow"] == pytest.approx(100 * 0.22 / 0.4)
    lines = {row[1]: row for row in next(t for t in view.tables() if t.id == "classes").rows}
    assert lines["cat"][2:] == ("–", pytest.approx(20.0), "–", pytest.approx(100 * 0.28 / 0.4))


def test_a_class_with_few_objects_keeps_no_share() -> None:
    per_class = {
        text: {"cat": value, "dog": value} for text, value in toy_scores().per_condition["AP"].items()
    }
    details = {"objects": {"clean": {"cat": 9, "dog": 10}}}
    view = make_view([toy_scores(per_class={"AP": per_class}, details=details)])
    assert {name for name, _ in keyed(view, "classes", "y", "x")} == {"dog"}
    lines = {row[1]: row for row in next(t for t in view.tables() if t.id == "classes").rows}
    assert (lines["cat"][2], lines["dog"][2]) == (9, 10)
    assert math.isnan(lines["cat"][-1])
    assert lines["dog"][-1] == pytest.approx(100 * 0.28 / 0.4)


def objects(name: str, error: float) -> Scores:
    """A detector with errors and flaws: fog adds 0.02 a severity to E; flaws are counts."""
    made = toy_scores(name)
    texts = [*made.per_condition["AP"]]
    errors = {text: error if text == "clean" else error + 0.02 * int(text[-1]) for text in texts}
    flaws = {f"flaws {kind}": dict.fromkeys(texts, float(i)) for i, kind in enumerate(FLAW_NAMES)}
    return toy_scores(name, per_condition={**made.per_condition, "E": errors, **flaws})


FLAW_NAMES = ("CBWO", "WBCO", "WBWO", "PMD", "MD")


def test_errors_and_flaws_of_objects_by_hand() -> None:
    view = make_view([objects("a", 0.3), objects("b", 0.5)])
    points = {row["series"]: (row["x"], row["y"]) for row in figure(view, "map-mce").rows}
    assert points["b"] == (pytest.approx(40.0), pytest.approx(100 * (0.5 + 0.02 * 3)))
    shares = keyed(view, "flaws", "pick", "x", "series")
    for i, kind in enumerate(FLAW_NAMES):
        assert shares[("snow",), "a", kind] == pytest.approx(100 * i / 10)
    row = next(t for t in view.tables() if t.id == "ce").rows[0]
    assert row[1:] == tuple(pytest.approx(v) for v in (30.0, 36.0, 36.0, 36.0))


def test_detection_rates_and_lost_people_by_hand() -> None:
    curve = {
        "fppi": [0.0, 0.1, 1.0],
        "rate": [0.1, 0.2, 0.6],
        "marks_fppi": [0.1] * 9,
        "marks_rate": [0.25] * 9,
    }
    required = {"6": (2.0, None), "7": (0.01, 1.0), "8": (0.01, None)}  # 6 was no use when clean either
    gone = {"fog@5": [{"id": name, "before": a, "after": b} for name, (a, b) in required.items()]}
    made = toy_scores()
    rates = {"clean": 0.5, "fog@5": 0.4}
    view = make_view(
        [
            toy_scores(
                per_condition={**made.per_condition, "ADR": rates},
                details={"roc": {"clean": curve}, "lost": gone},
            )
        ]
    )
    rows = figure(view, "roc").rows
    assert [(row["x"], row["y"], row.get("mark", False)) for row in rows] == [
        (0.1, 20.0, False), (1.0, 60.0, False),
        *((0.1, 25.0, f"1 in {images}") for images in (1000, 100, 10)),
    ]  # fmt: skip  # a logarithmic axis has no 0
    adr = {row[0]: row[1] for row in next(t for t in view.tables() if t.id == "adr").rows}
    assert (adr["clean"], adr["fog@5"]) == (50.0, 40.0)
    people = next(t for t in view.tables() if t.id == "lost").rows
    assert [row[0] for row in people] == ["8", "7", "6"]  # never found again comes first
    assert people[1][5] == pytest.approx(2.0)


def test_predictions_of_contextual_scores_by_hand() -> None:
    """Leave one model out, non-negative least squares without intercept, on scores over clean ones."""
    rng = np.random.default_rng(9)
    simple = [f"gaussian_blur[sigma={s}]" for s in (1, 2)]
    target = "defocus[focus=2,kappa=2]"
    models = {name: rng.uniform(0.2, 0.5, 4) for name in "abcd"}
    made = []
    for name, (first, second, third, clean) in models.items():
        row = {"clean": clean + 0.4, simple[0]: first, simple[1]: second, target: third}
        row = {text: float(value) for text, value in row.items()}
        made.append(toy_scores(name, per_condition={"AP": row}, conditions=tuple(row)))
    view = make_view(made)
    found = {row["series"]: row for row in figure(view, "prediction").rows}
    table = {s.name: np.array([s.score("AP", t) / s.score("AP") for t in (*simple, target)]) for s in made}
    for name in models:
        others = np.array([table[other] for other in models if other != name])
        weights, _ = nnls(others[:, :2], others[:, 2])
        assert found[name]["x"] == pytest.approx(100 * table[name][2])
        assert found[name]["y"] == pytest.approx(100 * table[name][:2] @ weights)
    every = np.array(list(table.values()))
    overall, _ = nnls(every[:, :2], every[:, 2])
    shown = keyed(view, "weights", "x", "y")
    assert [shown[text, target] for text in simple] == pytest.approx(overall)


def test_correlates_gains_on_clean_and_corrupted_images() -> None:
    some = [scored(name, ["fog", "snow"], seed, "AP", clean=c) for name, seed, c in
            (("a", 1, 0.3), ("b", 2, 0.5), ("c", 3, 0.6))]  # fmt: skip
    view = make_view(some, reference="a")
    rows = {row["series"]: row for row in figure(view, "carry-over").rows}
    under = {
        s.name: 100 * np.mean([v for t, v in s.per_condition["AP"].items() if t != "clean"]) for s in some
    }
    assert {name: row["y"] for name, row in rows.items()} == pytest.approx(under)
    pearson = np.corrcoef([30, 50, 60], [under[n] for n in "abc"])[0, 1]
    assert f"Pearson {pearson:.2f}" in figure(view, "carry-over").note
    gains = {row[0]: row[1:] for row in next(t for t in view.tables() if t.id == "gains").rows}
    printed = round(round(under["c"], 1) - round(under["a"], 1), 1)  # as who subtracts them finds it
    assert gains["c"] == (30.0, printed)


def two(spread: float = 0.0) -> tuple[Scores, Scores]:
    """Snow hurt the first most, and hurts the second least; fog stays, contrast takes snow's place."""
    made = []
    for seed, (name, levels) in enumerate(
        {
            "old": {"snow": 0.1, "fog": 0.2, "contrast": 0.3},
            "new": {"snow": 0.4, "fog": 0.2, "contrast": 0.1},
        }.items()
    ):
        row = {"clean": 0.5, **{f"{n}@{s}": v for n, v in levels.items() for s in range(1, 6)}}
        rng = np.random.default_rng(seed)
        drawn = {text: drawn_around(value, rng, spread) for text, value in row.items()}
        replicates = Replicates({"AP": drawn}, {}) if spread else None
        made.append(toy_scores(name, per_condition={"AP": row}, conditions=tuple(row), replicates=replicates))
    return made[0], made[1]


def test_changes_and_their_ranks_by_hand() -> None:
    old, new = two()
    rows = {row[0]: dict(zip(("before", "after", "change", "old", "new", "moved"), row[1:], strict=True))
            for row in change_table(old, new, "AP", changes_of(old, new, "AP")).rows}  # fmt: skip
    assert (rows["snow"]["before"], rows["snow"]["after"]) == (pytest.approx(10.0), pytest.approx(40.0))
    assert rows["snow"]["change"] == pytest.approx(30.0)
    # Rank 1 hurts most: snow falls from rank 1 to rank 3, contrast rises from 3 to 1, fog stays.
    assert [rows["snow"][key] for key in ("old", "new", "moved")] == [1, 3, 2]
    assert [rows["contrast"][key] for key in ("old", "new", "moved")] == [3, 1, -2]
    assert rows["fog"]["moved"] == 0
    assert rows["mean"]["change"] == pytest.approx(3.3)  # 23.3 less 20.0


def test_the_headline_of_a_comparison_is_that_of_its_table(runs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "few"
    words = {"conditions": ["fog,gaussian_noise"], "engine": "local", "out": str(other)}
    run(
        make_config({"model": f"{MODELS}:few_boxes", "data": Run(runs["boxes"]).record.dataset.spec, **words})
    )
    first, second = (run_scores(Run(folder), interval=True) for folder in (runs["boxes"], other))
    view = compare_view(first, second, measure="AP")
    lines = {row[0]: row for row in view.summary.rows}
    mean_line = lines["mean"]
    said = f"and by {mean_line[3]:+z.1f} (95 %: {mean_line[4]:+z.1f} to {mean_line[5]:+z.1f}, "
    assert said in view.sentences[0]
    assert view.first is not None
    bars = {row["x"]: row for row in view.first.rows}
    assert bars["fog"]["y"] == lines["fog"][3]
    # Independently: the paired replicates of the mean over the ten conditions.
    assert first.replicates is not None
    assert second.replicates is not None
    drawn = [
        np.mean([r.per_condition["AP"][t] for t in first.conditions if t != "clean"], axis=0)
        for r in (first.replicates, second.replicates)
    ]
    assert first.images is not None
    moved = (mean_line[2] - mean_line[1]) / 100  # type: ignore[operator]
    found = span(moved, drawn[1] - drawn[0], first.images)
    assert (mean_line[4], mean_line[5]) == found
    assert mean_line[4] < mean_line[5]  # type: ignore[operator]


def test_the_verdict_names_the_difference_and_its_interval() -> None:
    old, new = two(spread=0.01)
    found = change(old, new, "AP", share_kept)
    assert found is not None
    assert old.replicates is not None
    assert new.replicates is not None
    kept = [
        np.mean([s.per_condition["AP"][t] for t in old.conditions if t != "clean"], axis=0)
        / s.per_condition["AP"]["clean"]
        for s in (old.replicates, new.replicates)
    ]
    ends = span((0.7 - 0.6) / 3 / 0.5, kept[1] - kept[0])
    assert (100 * found.interval.low, 100 * found.interval.high) == ends
    said = make_view([old, new]).sentences[0]
    assert "new scores higher than old under corruption: AP 23.3 against 20.0, +3.3 (95 %: " in said
    interval = f"(95 %: {ends[0].expected:+.0f} to {ends[1].expected:+.0f}, clear)"
    assert f"new keeps more of its clean score: 47 % against 40 %, +7 {interval}." in said
    with pytest.raises(Exception, match="published numbers have no images"):
        verdict(old, new, "AP", changes_of(old, new, "AP"))  # made by hand: no run, so nothing to pair
