"""Cards of the worst images: their order, their words, and what counts as found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.metrics.fates import confident, is_same
from stormproof.report.make import spread
from stormproof.report.worst import Loss, each_image_once, table, worst_first
from stormproof.results.scores import Scores
from stormproof.results.worst import ImageErrors, ImageLoss


def scored(name: str, clean: list[float], fog: list[float]) -> Scores:
    errors = ImageErrors(("a", "b"), {"clean": np.array(clean), "fog@3": np.array(fog)})
    return replace(toy_scores(name), image_errors=errors)


def test_of_several_runs_the_largest_rise_comes_first() -> None:
    first, second = scored("one", [0.1, 0.2], [0.3, 0.9]), scored("two", [0.1, 0.9], [0.6, 0.95])
    listed = worst_first([first, second])
    assert [(scores.name, loss.image) for scores, loss in listed] == [
        ("one", "b"), ("two", "a"), ("one", "a"), ("two", "b"),
    ]  # fmt: skip
    assert [(scores.name, loss.image) for scores, loss in each_image_once(listed)] == [
        ("one", "b"),
        ("two", "a"),
    ]


def test_the_browser_shows_images_that_every_run_could_read() -> None:
    """b suffers most in the first run, which is alone in having read it; then c, then a."""
    first = ImageErrors(("a", "b", "c"), {"clean": np.zeros(3), "fog@3": np.array([0.1, 0.9, 0.5])})
    second = ImageErrors(("a", "c"), {"clean": np.zeros(2), "fog@3": np.array([0.2, math.nan])})
    assert spread([first], 3) == ["b", "c", "a"]
    assert spread([first, second], 4) == ["c", "a"]
    only_clean = ImageErrors(("b", "a"), {"clean": np.zeros(2)})
    assert spread([first, only_clean], 4) == ["b", "a"]


def test_no_image_is_shown_of_runs_on_clean_images_only() -> None:
    assert spread([ImageErrors(("a", "b"), {"clean": np.zeros(2)})], 4) == []
    assert spread([], 4) == []


def words(measure: str, clean: float, error: float) -> str:
    scores = replace(toy_scores(measure=measure), metric=measure)
    return Loss(scores, ImageLoss("a", "fog@3", error, clean), 0.5).words


def test_a_card_shows_the_score_from_clean_to_corrupted() -> None:
    assert "The AP of this image alone falls from 90 to 20 % (SSIM to the clean image 0.50)" in words(
        "AP", 0.1, 0.8
    )
    assert "The E of this image alone rises from 10 to 80 %" in words("E", 0.1, 0.8)
    assert "The AP of this image alone is 20 %" in words("AP", math.nan, 0.8)


def test_the_table_has_the_error_before_and_after() -> None:
    found = table([Loss(toy_scores(), ImageLoss("a", "fog@3", 0.8, 0.1), 0.5)])
    line = dict(zip(found.columns, found.rows[0], strict=True))
    assert (line["error clean (%)"], line["error (%)"], line["rise (points)"]) == pytest.approx((10, 80, 70))


def test_a_rise_is_the_difference_of_the_errors_as_they_are_printed() -> None:
    scores = scored("a", [0.1], [0.1])
    (row,) = table([Loss(scores, ImageLoss("0", "fog@3", 0.70006, 0.29994), 0.5)]).rows
    assert row[5] == 40.02  # 70.01 and 29.99; 40.012 unrounded
    (alone,) = table([Loss(scores, ImageLoss("0", "fog@3", 0.7, math.nan), 0.5)]).rows
    assert alone[5] == 70.0


def thing(*box: float, name: str = "car", **more: Any) -> dict[str, Any]:
    return {"box": box, "name": name, **more}


def test_a_box_that_overlaps_by_one_half_finds_its_object() -> None:
    assert is_same(thing(0, 0, 10, 10), thing(0, 0, 10, 5))
    assert not is_same(thing(0, 0, 10, 10), thing(0, 0, 10, 4.9))
    assert not is_same(thing(0, 0, 10, 10), thing(0, 0, 10, 10, name="bus"))


def test_a_prediction_with_a_score_of_0_3_counts() -> None:
    some = [thing(0, 0, 1, 1, score=score) for score in (0.29, 0.3, 0.31)]
    assert confident(some) == some[1:]
