"""Measures that are no fractions, such as pixels: their numbers stand in their own unit on every page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.plugins import TIPS
from helpers.toy_scores import toy_scores
from stormproof.core.table import Table
from stormproof.corruptions.plugins import load_plugins
from stormproof.metrics.metric import Measure
from stormproof.report.comparison import compare_view
from stormproof.report.decision import decision
from stormproof.report.view import make_view
from stormproof.results.interval import Interval
from stormproof.results.scores import Replicates, Scores
from stormproof.results.worst import ImageErrors

TEXTS = ("clean", "fog@1", "fog@2", "snow@1", "snow@2")
PIXELS = (1.0, 2.0, 4.0, 3.0, 7.0)  # the mean over the conditions is 4


@pytest.fixture(autouse=True)
def pointing(tmp_path: Path) -> None:
    """The task of docs/adding/task.md, whose headline is in pixels."""
    (tmp_path / "tips.py").write_text(TIPS)
    load_plugins([str(tmp_path / "tips.py")])


def pointer(name: str = "net", factor: float = 1.0, *, spread: float = 0.1) -> Scores:
    rng = np.random.default_rng(0)
    errors = {text: factor * value for text, value in zip(TEXTS, PIXELS, strict=True)}
    classes = {
        text: {"cock": value, "arrow": 0.0 if text == "clean" else 1.0} for text, value in errors.items()
    }
    drawn = {
        text: np.concatenate([[value, value], value + rng.normal(0, spread, 200)])
        for text, value in errors.items()
    }
    around = {"clean": {"cock": Interval(factor, 0.8, 1.2, 0.1)}}
    return replace(
        toy_scores(name, "tip error", per_condition={"tip error": errors}, conditions=TEXTS),
        per_class={"tip error": classes},
        image_errors=ImageErrors(("a", "b"), {text: np.array([value, 0]) for text, value in errors.items()}),
        replicates=Replicates({"tip error": drawn}, {"tip error": around}),
    )


def table_of(tables: list[Table], name: str) -> list[dict[str, object]]:
    (table,) = (table for table in tables if table.id == name)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_first_table_has_a_mean_and_its_interval_in_pixels() -> None:
    view = make_view([pointer()])
    (line,) = table_of(view.tables(), "summary")
    assert line["mean over 4 conditions"] == pytest.approx(4)
    low, high = map(float, str(line["95 % of the mean"]).split(" – "))
    assert low < 4 < high < 5
    assert view.summary.note.startswith("Shares in per cent, lower is better")


def test_both_first_tables_print_one_interval_of_a_mean() -> None:
    scores = pointer(spread=20.0)
    (line,) = table_of(make_view([scores]).tables(), "summary")
    table = decision([scores], "tip error")
    shown = dict(zip(table.columns, table.rows[0], strict=True))["under corruption"]
    assert shown == f"4.0 ({line['95 % of the mean']})"
    assert "(0.0 – " in str(shown), "no error is below 0"


def test_errors_of_classes_are_not_relative_to_clean() -> None:
    view = make_view([pointer()])
    cock, arrow = table_of(view.tables(), "classes")
    assert (cock["clean tip error"], cock["95 % interval"]) == (pytest.approx(1), "0.8 to 1.2")
    assert cock["tip error under corruption"] == pytest.approx(4)
    assert (arrow["clean tip error"], arrow["tip error under corruption"]) == (0, pytest.approx(1))
    (figure,) = (figure for figure in view.figures() if figure.id == "classes")
    assert [row["y"] for row in figure.rows] == ["cock", "cock", "arrow", "arrow"], "the highest error first"
    assert {row["x"]: row["v"] for row in figure.rows if row["y"] == "cock"} == {"fog": 3, "snow": 5}
    assert (figure.value, figure.top) == ("tip error", None)


def test_changes_of_classes_and_images_are_in_pixels() -> None:
    old, new = (replace(pointer(name, factor), replicates=None) for name, factor in (("old", 1), ("new", 2)))
    tables = compare_view(old, new).tables()
    first = table_of(tables, "class-changes")[0]
    assert (first["class"], first["old"], first["new"], first["change"]) == ("arrow", 1, 1, 0)
    first = table_of(tables, "image-changes")[0]
    assert (first["change of error, + is worse"], first["change there"]) == (pytest.approx(3.4), 7)


def test_python_shows_them_in_pixels_too() -> None:
    assert repr(pointer()["tip error"]) == "<tip error: P 1.0>"


def test_an_error_that_is_a_fraction_stays_in_per_cent() -> None:
    assert Measure("miss", "share of misses", "boxes", higher=False).scale == 100
    view = make_view([toy_scores()])
    assert view.summary.note.startswith("In per cent, higher is better")
