"""Tables and sentences of a comparison: signs, order, and what is called clear."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.core.table import cell_text
from stormproof.report.comparison import (
    Change,
    change_table,
    changes_of,
    compare_view,
    image_table,
    verdict,
)
from stormproof.report.sections import FEW_OBJECTS
from stormproof.results.interval import Difference, Interval
from stormproof.results.scores import Scores
from stormproof.results.worst import ImageErrors


def falling(name: str, *, clean: float = 0.5, measure: str = "AP", **by_severity: float) -> Scores:
    """A run that loses, or gains, so much a severity under each corruption."""
    row = {"clean": clean}
    row |= {f"{each}@{s}": clean + step * s for each, step in by_severity.items() for s in range(1, 6)}
    return toy_scores(name, per_condition={measure: row}, conditions=tuple(row))


def table_of(scores: tuple[Scores, Scores], name: str) -> list[tuple[object, ...]]:
    found = next(t for t in compare_view(*scores).tables() if t.id == name)
    return [tuple(row) for row in found.rows]


def with_classes(name: str, fog: dict[str, float], clean: float) -> Scores:
    """Classes under fog at every severity, and another score when clean."""
    made = falling(name, fog=-0.02, snow=-0.04)
    cells = {text: dict(fog) for text in made.conditions if text.startswith("fog")}
    return replace(made, per_class={"AP": {"clean": dict.fromkeys(fog, clean), **cells}})


def test_changes_of_classes_begin_with_the_one_that_lost_most() -> None:
    old = with_classes("old", {"cat": 0.3, "dog": 0.2, "cow": 0.1}, clean=0.9)
    new = with_classes("new", {"cat": 0.1, "dog": 0.6, "cow": 0.15}, clean=0.1)
    rows = table_of((old, new), "class-changes")
    assert [row[0] for row in rows] == ["cat", "cow", "dog"]
    assert rows[0][2:] == pytest.approx((30.0, 10.0, -20.0)), "corrupted conditions only"
    assert rows[2][2:] == pytest.approx((20.0, 60.0, 40.0))


def test_changes_of_classes_of_few_objects_are_left_out() -> None:
    old, new = (with_classes(name, {"cat": 0.3, "dog": 0.2}, clean=0.9) for name in ("old", "new"))
    old = replace(old, details={"objects": {"clean": {"cat": FEW_OBJECTS, "dog": FEW_OBJECTS - 1}}})
    assert [row[:2] for row in table_of((old, new), "class-changes")] == [("cat", FEW_OBJECTS)]


def test_classes_count_conditions_that_both_runs_hold() -> None:
    old = with_classes("old", {"cat": 0.4}, clean=0.9)
    new = with_classes("new", {"cat": 0.5}, clean=0.9)
    more = {text: {"cat": 0.0} for text in ("frost@1", "frost@2")}
    cells = {"AP": {**old.per_condition["AP"], "frost@1": 0.1, "frost@2": 0.1}}
    old = replace(
        old,
        per_condition=cells,
        conditions=tuple(cells["AP"]),
        per_class={"AP": {**old.per_class["AP"], **more}},
    )
    assert table_of((old, new), "class-changes")[0][2:] == pytest.approx((40.0, 50.0, 10.0))


def sure(estimate: float, low: float, high: float, holm: float) -> Difference:
    return Difference(Interval(estimate, low, high, 0.01), holm, holm)


def changed(*, higher: bool = True) -> tuple[Scores, Scores, list[Change]]:
    """Snow got clearly worse, fog clearly better, frost and contrast within chance."""
    sign = 1 if higher else -1
    measure = "AP" if higher else "E"
    old = falling("old", measure=measure, snow=0, fog=0, frost=0, contrast=0)
    points = {"snow": -8.0, "contrast": -9.0, "frost": 2.0, "rain": 1.0, "fog": 12.0}
    clear = {"snow", "fog", "rain"}
    found = [Change("clean", 50.0, 51.0), Change("mean", 50.0, 50.5)]
    for name, moved in sorted(points.items(), key=lambda pair: pair[1]):
        by = sign * moved
        known = sure(by / 100, by / 100 - 0.03, by / 100 + 0.05, 0.01 if name in clear else 0.4)
        found.append(Change(name, 50.0, 50.0 + by, known))
    return old, replace(old, label="new", model="new"), found


def test_a_change_shows_its_interval_and_whether_it_is_significant() -> None:
    old, new, changes = changed()
    found = change_table(old, new, "AP", changes)
    lines = {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}
    snow, frost = lines["snow"], lines["frost"]
    assert (snow["change"], snow["95 % from"], snow["to"]) == pytest.approx((-8.0, -11.0, -3.0))
    assert (frost["change"], frost["95 % from"], frost["to"]) == pytest.approx((2.0, -1.0, 7.0))
    assert {name: line["clear"] for name, line in lines.items()} == {
        "clean": None, "mean": None, "contrast": "no", "snow": "yes", "rain": "yes", "frost": "no",
        "fog": "yes",
    }  # fmt: skip


def test_a_change_is_that_of_the_printed_numbers() -> None:
    """Of 50.04 and 61.16 the difference is 11.12, but whoever reads 50.0 and 61.2 finds 11.2."""
    old, new = with_classes("old", {"cat": 0.5004}, 0.5004), with_classes("new", {"cat": 0.6116}, 0.6116)
    for made, score in ((old, 0.5004), (new, 0.6116)):
        made.per_condition["AP"].update(dict.fromkeys(made.conditions, score))
    view = compare_view(old, new)
    tables = {table.id: table for table in view.tables() if table.id in ("changes", "class-changes")}
    assert len(tables) == 2
    for table in tables.values():
        place = next(i for i, name in enumerate(table.columns) if name.startswith("change"))
        for row in table.rows:
            before, after, change = map(cell_text, row[place - 2 : place + 1])
            assert f"{float(after) - float(before):.1f}" == change == "11.2"
        assert "A change is the difference of the two numbers as they are printed." in table.note
    assert "AP changes by +11.2 on clean images and by +11.2 under corruption" in view.sentences[0]


@pytest.mark.parametrize("higher", [True, False])
def test_only_clear_changes_are_counted_and_the_largest_of_them_is_named(higher: bool) -> None:
    """An error that falls is a change for the better."""
    old, new, changes = changed(higher=higher)
    said = verdict(old, new, "AP" if higher else "E", changes)
    named = re.search(r"(\d) of 5 corruptions got clearly better \((.*)\), (\d) clearly worse \((.*)\)", said)
    assert named is not None, said
    assert (named[1], named[3]) == ("2", "1")
    assert named[2].removeprefix("most ").startswith("fog")
    assert named[4].removeprefix("most ") == "snow"


def test_a_clear_change_that_is_printed_as_zero_is_sorted_and_counted() -> None:
    old, new = falling("old", fog=0.0, snow=0.0), falling("new", fog=0.0001, snow=-0.0001)
    found = [(change.name, change.points) for change in changes_of(old, new, "AP")[2:]]
    assert found == [("snow", 0.0), ("fog", 0.0)]
    changes = []
    for name, gap in (("clean", 0.0), ("mean", 0.0), ("snow", -3e-4), ("fog", 3e-4)):
        sure = Difference(Interval(gap, gap - 1e-4, gap + 1e-4, 5e-5), 0.0, 0.0)
        changes.append(Change(name, 50.0, 50.0 + 100 * gap, sure))
    said = verdict(old, new, "AP", changes)
    assert "1 of 2 corruptions got clearly better (fog), 1 clearly worse (snow)" in said


@pytest.mark.parametrize(
    ("measure", "worst_first"), [("AP", ["snow", "fog", "frost"]), ("E", ["frost", "fog", "snow"])]
)
def test_changes_run_from_worse_to_better(measure: str, worst_first: list[str]) -> None:
    old = falling("old", measure=measure, clean=0.3, snow=0.0, fog=0.0, frost=0.0)
    new = falling("new", measure=measure, clean=0.3, snow=-0.02, fog=0.01, frost=0.03)
    names = [change.name for change in changes_of(old, new, measure)]
    assert names == ["clean", "mean", *worst_first]


def test_the_change_of_a_severity_is_after_minus_before() -> None:
    old, new = falling("old", fog=-0.02, snow=-0.02), falling("new", fog=-0.05, snow=-0.01)
    figure = next(f for f in compare_view(old, new).figures() if f.id == "change-severity")
    rows = {(row["series"], row["x"]): row["y"] for row in figure.rows}
    assert rows["fog", 4] == pytest.approx(-12.0)
    assert rows["snow", 4] == pytest.approx(4.0)


def test_images_that_got_better_are_among_those_that_changed_most() -> None:
    """a falls by 60 points under fog and rises by 20 under snow; b rises by 10 everywhere; c stays."""
    first = ImageErrors(
        ("b", "c", "a"), {"fog@1": np.array([0.1, 0.2, 0.9]), "snow@1": np.array([0.1, 0.2, 0.3])}
    )
    second = ImageErrors(
        ("b", "c", "a"), {"fog@1": np.array([0.2, 0.2, 0.3]), "snow@1": np.array([0.2, 0.2, 0.5])}
    )
    found = image_table(toy_scores("x"), toy_scores("y"), first, second)
    assert [row[0] for row in found.rows] == ["a", "b", "c"]
    assert found.rows[0][1] == pytest.approx(-20.0)
    assert found.rows[0][2:] == ("fog@1", pytest.approx(-60.0))
    assert found.rows[1][1:] == (pytest.approx(10.0), "fog@1", pytest.approx(10.0))


def test_two_runs_along_alpha_are_compared_by_part_and_size() -> None:
    """Stylized conditions are points of a curve, not a corruption with severities."""

    def styled(name: str, factor: float) -> Scores:
        texts = {"clean": 1.0, **{f"style[alpha={a},space=feature]": 1 - factor * a for a in (0, 0.5, 1)}}
        texts |= {f"style[alpha={a},on=background,space=feature]": 1.0 for a in (0, 0.5, 1)}
        cells = {m: {text: 0.4 * share for text, share in texts.items()} for m in ("AP", "APl")}
        return Scores(name, "set", 9, cells, tuple(texts))

    view = compare_view(styled("old", 0.5), styled("new", 0.25))
    assert "left at α = 1 (feature space, image) changes by +25.0 points" in view.sentences[0]
    rows = {row[:4]: row[4:] for row in view.summary.rows}
    assert rows["rAPl", "feature", "image", 0.5] == pytest.approx((75, 87.5, 12.5))
