"""Sections of scores made by hand: order, signs and which of two a number belongs to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.toy_scores import toy_scores
from stormproof.core.table import Table
from stormproof.report.elements import Figure, Kind, View
from stormproof.report.sections import calibration, clips
from stormproof.report.sections.camera import _enhancements
from stormproof.report.sections.severity import breaking_points
from stormproof.report.view import make_view
from stormproof.results.scores import Scores


def at_3(name: str, clean: float = 0.5, measure: str = "AP", **means: float) -> Scores:
    row = {"clean": clean, **{f"{each}@{s}": value for each, value in means.items() for s in (3, 4)}}
    return toy_scores(name, per_condition={measure: row}, conditions=tuple(row))


def figure(view: View, name: str) -> Figure:
    return next(each for each in view.figures() if each.id == name)


def table(view: View, name: str) -> Table:
    return next(each for each in view.tables() if each.id == name)


@pytest.mark.parametrize("measure", ["AP", "E"])
def test_what_hurts_most_is_the_first_row_of_the_grid(measure: str) -> None:
    """Of scores that is the lowest, of errors the highest; clean is last."""
    view = make_view([at_3("net", 0.4, measure, fog=0.3, snow=0.1, frost=0.2)])
    order = [*dict.fromkeys(row["y"] for row in figure(view, "grid").rows)]
    rising = ["snow", "frost", "fog"]
    assert order == [*(rising if measure == "AP" else rising[::-1]), "clean"]
    assert figure(view, "grid").title.endswith("the lowest first" if measure == "AP" else "the highest first")


@pytest.mark.parametrize(("measure", "unit", "top"), [("E", "error", 100.0), ("FPPI", "value", None)])
def test_the_colours_of_what_has_no_highest_value_end_at_the_highest_shown(
    measure: str, unit: str, top: float | None
) -> None:
    found = figure(make_view([at_3("net", 0.4, measure, fog=0.5, snow=0.6)]), "grid")
    assert found.top == top
    assert found.note == f"Colours show the {unit} itself: brighter is worse."


@pytest.mark.parametrize(("measure", "better"), [("AP", "Positive"), ("E", "Negative")])
def test_the_note_of_a_difference_says_which_sign_is_better(measure: str, better: str) -> None:
    view = make_view(
        [at_3("a", 0.4, measure, fog=0.3, snow=0.1), at_3("b", 0.4, measure, fog=0.35, snow=0.1)]
    )
    found = figure(view, "difference")
    assert found.note == f"{better} is better than a."
    cells = {(row["y"], row["x"]): row["v"] for row in found.rows}
    assert cells["fog", "3"] == pytest.approx(5.0), "b less a"


def test_a_difference_on_the_map_is_that_of_the_numbers_in_the_table() -> None:
    """Of 24.16 and 22.84 the difference is 1.32, but whoever reads 24.2 and 22.8 finds 1.4."""
    view = make_view([at_3("a", fog=0.2416, snow=0.1), at_3("b", fog=0.2284, snow=0.1)])
    shown = {(row["y"], row["x"]): (row["v"], row["shade"]) for row in figure(view, "difference").rows}
    assert shown["fog", "3"] == (-1.4, pytest.approx(-1.32))


def test_the_class_that_keeps_least_is_the_first_row() -> None:
    held = {"clean": {"cat": 0.8, "dog": 0.4, "cow": 0.5}, "fog@3": {"cat": 0.2, "dog": 0.3, "cow": 0.25}}
    made = toy_scores(per_condition={"AP": {"clean": 0.5, "fog@3": 0.25}}, conditions=("clean", "fog@3"))
    view = make_view(
        [toy_scores(per_condition=made.per_condition, conditions=made.conditions, per_class={"AP": held})]
    )
    rows = figure(view, "classes").rows
    assert [(row["y"], row["v"]) for row in rows] == [
        ("cat", pytest.approx(25.0)), ("cow", pytest.approx(50.0)), ("dog", pytest.approx(75.0)),
    ]  # fmt: skip


def test_of_many_runs_the_one_that_keeps_most_is_the_first_row() -> None:
    runs = [at_3(f"net {k}", 0.5, fog=0.05 * (k + 1), snow=0.05 * (k + 1)) for k in range(8)]
    first = make_view(runs).first
    assert first is not None
    assert first.kind is Kind.HEAT
    assert [*dict.fromkeys(row["y"] for row in first.rows)] == [f"net {k}" for k in range(7, -1, -1)]
    cells = {(row["y"], row["x"]): row["v"] for row in first.rows}
    assert cells["net 0", "all corruptions"] == pytest.approx(10.0)


def test_what_breaks_first_is_shown_first_and_what_breaks_fourth_is_not() -> None:
    cells = {"clean": 0.4}
    for name, half_at in (("fog", 4.5), ("snow", 1.5), ("frost", 3.5), ("contrast", 2.5)):
        cells |= {f"{name}@{s}": max(0.0, 0.4 - 0.2 * s / half_at) for s in range(1, 6)}
    found = breaking_points([toy_scores(per_condition={"AP": cells}, conditions=tuple(cells))], "AP")
    assert [(row["x"], row["y"]) for row in found.rows] == [
        ("snow", pytest.approx(1.5)), ("contrast", pytest.approx(2.5)), ("frost", pytest.approx(3.5)),
    ]  # fmt: skip


def test_a_run_that_never_breaks_counts_as_breaking_beyond_the_last_severity() -> None:
    """Fog breaks both runs at 4, together 8; snow breaks one at 0.67 and the other never, together 6.67."""
    fog = {f"fog@{s}": 0.4 - 0.05 * s for s in range(1, 6)}
    rows = [{"clean": 0.4, **fog, **{f"snow@{s}": value for s in range(1, 6)}} for value in (0.1, 0.39)]
    runs = [
        toy_scores(f"net {k}", per_condition={"AP": row}, conditions=tuple(row)) for k, row in enumerate(rows)
    ]
    assert [row["x"] for row in breaking_points(runs, "AP").rows] == ["snow", "fog", "fog"]


def errors(
    name: str, clean: float, *, dataset: str = "toy", tags: dict[str, str] | None = None, **means: float
) -> Scores:
    made = at_3(name, clean, "E", **means)
    ap = {text: 1 - value for text, value in made.per_condition["E"].items()}
    return toy_scores(
        name,
        per_condition={"AP": ap, "E": made.per_condition["E"]},
        conditions=made.conditions,
        dataset=dataset,
        tags=tags or {},
    )


def of_model(scores: Scores, *enhance: str) -> Scores:
    """The scores as if of a run of one model, with enhancements, which are part of a model's name."""
    model = SimpleNamespace(name="+".join(("net", *enhance)), enhance=enhance, spec="net.onnx")
    record: Any = SimpleNamespace(name=scores.name, model=model)
    return toy_scores(
        scores.name, per_condition=scores.per_condition, conditions=scores.conditions, record=record
    )


def test_an_enhancement_that_lowers_errors_has_a_negative_change() -> None:
    plain = of_model(errors("plain", 0.2, fog=0.5, snow=0.6))
    helped = of_model(errors("helped", 0.2, fog=0.4, snow=0.65), "clahe")
    (found,) = _enhancements([plain, helped])
    changes = {row[2]: row[3] for row in found.rows}
    assert (changes["fog"], changes["snow"]) == pytest.approx((-10.0, 5.0))
    assert {row[:2] for row in found.rows} == {("helped", "clahe")}
    assert "Positive is worse" in found.note


CHANGES = (("day", "day", 0.3), ("day", "night", 0.5), ("night", "day", 0.4), ("night", "night", 0.25))


def test_scenarios_say_what_a_model_was_trained_for_and_what_it_was_tested_on() -> None:
    """Trained by day, fog costs 30 points at night and 10 by day."""
    runs = [
        errors(
            f"{trained} on {tested}",
            0.2,
            dataset=tested,
            tags={"trained": trained, "detector": "yolo"},
            fog=worse,
        )
        for trained, tested, worse in CHANGES
    ]
    rows = {row[:3]: row[3] for row in table(make_view(runs), "scenarios").rows}
    assert rows == {
        ("yolo", "day", "day"): pytest.approx(10.0),
        ("yolo", "day", "night"): pytest.approx(30.0),
        ("yolo", "night", "day"): pytest.approx(20.0),
        ("yolo", "night", "night"): pytest.approx(5.0),
    }


def test_the_filmstrip_shows_the_conditions_that_flicker_most() -> None:
    flicker = {
        "clean": 0.9,
        "fog@1": 0.1,
        "fog@3": 0.5,
        "snow@1": 0.3,
        "snow@3": 0.4,
        "frost@1": float("nan"),
    }
    run: Any = SimpleNamespace(scores=SimpleNamespace(per_condition={"flicker": flicker}))
    assert clips._conditions(run) == ["fog@3", "snow@1", "snow@3"], "in the run's order"


def test_a_reliability_diagram_shows_the_weakest_a_middle_and_the_strongest_severity() -> None:
    row = {"clean": 0.5, **{f"fog@{s}": 0.4 for s in range(1, 6)}}
    bins = {"score": [0.5], "precision": [0.4], "low": [0.3], "high": [0.5], "detections": [200.0]}
    cells = {name: dict(row) for name in ("AP", *calibration.COLUMNS)}
    scores = toy_scores(
        per_condition=cells, conditions=tuple(row), details={"reliability": dict.fromkeys(row, bins)}
    )
    drawn = figure(make_view([scores]), "reliability").rows
    assert [*dict.fromkeys(each["series"] for each in drawn)] == ["perfect", "clean", "1", "3", "5"]
    (clean,) = [each for each in drawn if each["series"] == "clean"]
    assert (clean["x"], clean["y"]) == (50.0, 40.0)
