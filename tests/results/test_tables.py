"""Tables of scores made by hand, and what counts as a person."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from stormproof.results.models import models_table
from stormproof.results.score import Scores

from stormproof.metrics.metric import Measure, measured, measures
from stormproof.results.aggregates import aggregates, grid_of
from stormproof.results.tables import as_csv, flat_numbers, grid_table, summary_table
from stormproof.results.truths import Truths

CONDITIONS = ("clean", *(f"psf_blur@{s}" for s in (1, 2, 3)), *(f"fog@{s}" for s in range(1, 6)))
VALUES = {text: 0.8 if text.startswith("psf") else 0.4 for text in CONDITIONS} | {"clean": 0.9}


def scores(missing: tuple[str, ...] = ()) -> Scores:
    named = SimpleNamespace(name="net"), SimpleNamespace(name="set")
    record: Any = SimpleNamespace(model=named[0], dataset=named[1], images=3, metric="AP")
    held = {text: value for text, value in VALUES.items() if text not in missing}
    found = {} if missing else {"AP": aggregates("AP", grid_of(held, CONDITIONS))}
    return Scores(record, {"AP": held}, {}, found, missing)


def columns(table: Any) -> dict[str, list[str]]:
    return {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}


def test_the_mean_of_a_row_is_over_its_own_severities() -> None:
    shown = columns(grid_table(scores()))
    assert dict(zip(shown["corruption"], shown["mean"], strict=True)) == {
        "clean": "90.0", "psf_blur": "80.0", "fog": "40.0"
    }  # fmt: skip
    assert shown["4"] == ["", "–", "40.0"]
    assert columns(summary_table(scores())) == {
        "measure": ["AP"], "P": ["90.0"], "mPC": ["60.0"], "rPC": ["66.7"]
    }  # fmt: skip


def test_a_partial_grid_has_no_means() -> None:
    shown = columns(grid_table(scores(missing=("fog@2",))))
    assert dict(zip(shown["corruption"], shown["mean"], strict=True)) == {
        "clean": "90.0", "psf_blur": "", "fog": ""
    }  # fmt: skip
    assert shown["2"] == ["", "80.0", "–"]


def test_several_models_show_the_mean_of_conditions_that_have_no_name() -> None:
    suite, some = scores(), scores()
    for one in (suite, some):
        one.record.conditions = CONDITIONS
    assert "mean" not in columns(models_table({"suite": suite}))
    some.aggregates["AP"] = aggregates("AP", grid_of(VALUES, CONDITIONS), named=False)
    shown = columns(models_table({"suite": suite, "some": some}))
    assert (shown["mPC"], shown["mean"]) == (["60.0", ""], ["", "55.0"])


def test_trackers_and_spreadsheets_get_numbers_by_name() -> None:
    flat = flat_numbers(scores())
    assert flat["AP/fog@3"] == 0.4
    assert flat["AP/mPC"] == pytest.approx(0.6)
    assert "AP/by_corruption" not in flat
    assert as_csv(scores()).splitlines()[1:3] == ["clean,,,,AP,0.9", "psf_blur@1,psf_blur,1,,AP,0.8"]


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (("car", "person"), 1),
        (("Pedestrian", "Car"), 0),
        (("PERSON",), 0),
        (("rider", "people", "man", "cyclist"), None),
        (("person sitting", "persons"), None),
        ((), None),
    ],
)
def test_people_are_the_classes_called_person_or_pedestrian(
    classes: tuple[str, ...], label: int | None
) -> None:
    dataset: Any = SimpleNamespace(classes=classes)
    assert Truths(dataset, 0, 0).person == label


def test_measures_are_listed_by_section() -> None:
    names = list(measures())
    order = ["AP", "VOC07 AP50", "mask AP", "mIoU", "E", "ADR", "FPPI", "flaws CBWO"]
    assert sorted(order, key=names.index) == order
    with pytest.raises(ValueError, match="two measures are called 'AP'"):
        measured("boxes", Measure("AP", "again", section="boxes"))
    with pytest.raises(ValueError, match="in one of the sections"):
        measured("boxes", Measure("new", "nowhere", section="attic"))
