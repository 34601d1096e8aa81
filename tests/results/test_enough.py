"""How many images would decide: the number, how often it does, and the words."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stormproof.report.sentences import more_images
from stormproof.results.enough import LIKELY, MOST, Levels, advice, images_to_decide
from stormproof.results.interval import Difference, Interval
from stormproof.results.looks import Look, Spent
from stormproof.results.requirements import parse
from stormproof.results.verdicts import Outcome, Verdict, _more, how_sure


def seen(distance: float, images: int = 100, optimism: float = 0.0) -> Interval:
    return Interval(distance, distance - 2, distance + 2, 1.0, optimism, images)


@pytest.mark.parametrize("distance", [0.6, 1.0, 1.5, 1.9, -1.2])
def test_the_number_decides_in_80_percent_if_any_true_value_is_as_likely(distance: float) -> None:
    """Normal estimates: the true value given the first 100 images, then the rest of the images."""
    number = images_to_decide(seen(distance), 0.0, 100)
    assert number is not None
    rng = np.random.default_rng(0)
    true = rng.normal(distance, 1.0, 100_000)
    rest = true + rng.normal(0, math.sqrt(100 / (number - 100)), len(true))
    estimate = (100 * distance + (number - 100) * rest) / number
    decided = np.abs(estimate) > 1.96 * math.sqrt(100 / number)
    assert decided.mean() == pytest.approx(LIKELY, abs=0.02)


def test_more_images_are_needed_nearer_to_the_bound_at_stricter_levels_and_with_optimism() -> None:
    far, near = (images_to_decide(seen(distance), 0.0, 100) for distance in (1.8, 1.0))
    strict = images_to_decide(seen(1.8), 0.0, 100, lambda images: Levels(0.001, 0.001))
    high = images_to_decide(seen(1.8, optimism=0.5), 0.0, 100)
    assert sorted([near or 0, far or 0])[0] == far
    assert sorted([high or 0, far or 0, strict or 0]) == [far, high, strict]
    assert images_to_decide(seen(1.8, optimism=-0.5), 0.0, 100) == far  # it moves the other end


def test_gives_no_number_where_it_would_mean_nothing() -> None:
    assert images_to_decide(seen(0.4), 0.0, 100) is None
    assert images_to_decide(seen(1.0, images=8), 0.0, 8) is None
    assert images_to_decide(replace(seen(1.0), se=math.nan), 0.0, 100) is None
    assert images_to_decide(replace(seen(1.0), se=0.0), 0.0, 100) is None
    assert images_to_decide(seen(0.6, images=5000), 0.0, 5000) == math.inf


def scores_of(images: int, of: int) -> Any:
    dataset = SimpleNamespace(images=of)
    return SimpleNamespace(record=SimpleNamespace(images=images, dataset=dataset))


def test_the_words_say_how_to_add_images() -> None:
    assert advice(340.0, scores_of(100, 500)) == (
        "About 340 images like these would decide in three of four cases (the dataset has 500): "
        "repeat the run's command with --limit 340."
    )
    assert advice(3400.0, scores_of(100, 500)) == (
        "About 3,400 images like these would decide in three of four cases; "
        "the dataset has only 500 (100 of them were run)."
    )
    assert advice(3400.0, scores_of(500, 500)).endswith("the dataset has only 500.")
    assert advice(math.inf, scores_of(500, 500)).startswith(f"More than {MOST:,} images")
    assert advice(None, scores_of(100, 500)) == ""


def difference(distance: float, holm: float) -> Difference:
    return Difference(seen(distance), holm, holm)


def test_only_a_difference_that_is_not_clear_needs_more_images() -> None:
    assert more_images(difference(2.5, 0.01), scores_of(100, 900)) == ""
    assert more_images(None, scores_of(100, 900)) == ""
    assert "--limit 250" in more_images(difference(1.9, 0.06), scores_of(100, 900))


def test_a_requirement_that_is_inconclusive_says_how_many_images() -> None:
    scores, look = scores_of(100, 5000), Look(images=100, requirements="a" * 32)
    asked = parse({"id": "R", "metric": "AP", "condition": "clean", "at_least": 0.45}, "r")
    interval = Interval(0.5, 0.36, 0.64, 0.04, images=100)
    open_ = Verdict(asked, Outcome.INCONCLUSIVE, interval, 0.05, 0.9, 0.9, 1, Spent(100, 5000, level=1e-5))
    planned = replace(open_, look=Spent(100, 5000, planned=2000, level=1e-4))
    numbers = [int(_more(each, scores, look, []).rpartition(" ")[2].rstrip(".")) for each in (planned, open_)]
    assert 100 < numbers[0] < numbers[1] <= 5000  # without a plan, a part is judged more strictly
    spent = replace(open_, look=Spent(100, 5000, planned=100))  # all planned images are judged
    assert _more(spent, scores, look, []) == ""
    assert _more(replace(open_, outcome=Outcome.PASS), scores, look, []) == ""
    assert _more(replace(open_, doubt="not calibrated"), scores, look, []) == ""
    told = replace(open_, more="About 340.")
    assert told.text.endswith(". About 340.")
    assert told.as_dict()["more_images"] == "About 340."
    assert how_sure([told]).endswith("R: About 340.")
