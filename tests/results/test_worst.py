"""The images that suffer most: by how much their error rises, not by the error itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from stormproof.results.scores import Scores
from stormproof.results.worst import ImageErrors, worst_images


def scored(errors: dict[str, list[float]], quality: dict[str, float] | None = None) -> Scores:
    """Errors of the images a, b, … by condition, and how far conditions change pixels."""
    ids = tuple("abcdef"[: len(next(iter(errors.values())))])
    row = dict.fromkeys(errors, 0.5)
    made = Scores("net", "toy", len(ids), {"AP": row}, tuple(row))
    held = ImageErrors(ids, {text: np.array(values) for text, values in errors.items()})
    rmse = {text: {"rmse": value} for text, value in (quality or {}).items()}
    return replace(made, image_errors=held, details={"quality": rmse})


def listed(scores: Scores, count: int = 9) -> list[tuple[str, str]]:
    return [(loss.image, loss.condition) for loss in worst_images(scores, count)]


def test_an_image_that_was_hard_when_clean_is_not_the_worst() -> None:
    """a goes from 0.9 to 0.95, b from 0.1 to 0.6, c from 0.5 to 0.3."""
    scores = scored({"clean": [0.9, 0.1, 0.5], "fog@3": [0.95, 0.6, 0.3]})
    found = worst_images(scores, 9)
    assert [loss.image for loss in found] == ["b", "a", "c"]
    assert [loss.rise for loss in found] == pytest.approx([0.5, 0.05, -0.2])
    assert (found[0].clean, found[0].error) == (0.1, 0.6)
    assert scores.image_errors is not None
    assert scores.image_errors.rise("fog@3") == pytest.approx([0.05, 0.5, -0.2])


def test_without_clean_images_the_error_itself_counts() -> None:
    assert listed(scored({"fog@3": [0.95, 0.6, 0.99]})) == [("c", "fog@3"), ("a", "fog@3"), ("b", "fog@3")]


def test_among_equals_the_condition_that_changes_pixels_least_comes_first() -> None:
    errors = {"clean": [0.0], "fog@1": [1.0], "snow@1": [1.0], "frost@1": [1.0], "blur@1": [1.0]}
    scores = scored(errors, {"fog@1": 30.0, "snow@1": 10.0, "frost@1": math.nan})
    assert [condition for _, condition in listed(scores)] == ["snow@1", "fog@1", "blur@1", "frost@1"]


def test_images_without_truth_are_left_out() -> None:
    assert listed(scored({"clean": [0.1, math.nan], "fog@1": [0.3, math.nan]})) == [("a", "fog@1")]
    assert listed(scored({"clean": [0.1, 0.2, 0.1], "fog@1": [0.3, 0.9, 0.4]}), 2) == [
        ("b", "fog@1"),
        ("c", "fog@1"),
    ]
