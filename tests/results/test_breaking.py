"""Breaking points of scores whose crossing is known."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption
from stormproof.results.breaking import Answer, Observed, breaking_point, crossing, parse_axis, search

RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.02, 400)


def seen(score: float) -> Observed:
    return Observed(score, np.concatenate([[score] * 2, score + NOISE]))


def sigmoid(strength: float) -> float:
    return 0.6 / (1 + math.exp(2 * (strength - 3)))


def test_the_crossing_lies_between_its_neighbours_on_a_line():
    assert crossing(np.array([1.0, 3.0]), np.array([0.5, 0.3]), 0.45) == pytest.approx(1.5)


def test_a_rise_is_levelled_before_the_crossing_is_sought():
    fit_at_half = crossing(np.array([1.0, 2, 3, 4]), np.array([0.5, 0.3, 0.4, 0.1]), 0.36)
    assert fit_at_half == pytest.approx(1 + (0.5 - 0.36) / (0.5 - 0.35))


@pytest.mark.parametrize(
    ("clean", "scores", "answer"),
    [
        (0.3, [0.25, 0.2], Answer.CLEAN),
        (0.6, [0.35, 0.2], Answer.WEAKEST),
        (0.6, [0.55, 0.45], Answer.NEVER),
        (0.6, [0.55, 0.2], Answer.BREAKS),
    ],
)
def test_gives_each_answer(clean, scores, answer):
    found = breaking_point(seen(clean), {k + 1.0: seen(s) for k, s in enumerate(scores)}, 0.4)
    assert found.answer is answer
    assert (found.strength is not None) == (answer is Answer.BREAKS)


def test_a_search_finds_the_crossing_and_confirms_it():
    asked: list[float] = []

    def look(strengths):
        asked.extend(strengths)
        return {s: seen(sigmoid(s)) for s in strengths}

    found = search(look, seen(0.6), [1.0, 2.0, 3.0, 4.0, 5.0], 0.4, tolerance=0.1)
    true = 3 + math.log(0.6 / 0.4 - 1) / 2
    assert found.strength == pytest.approx(true, abs=0.05)
    assert found.low < true < found.high
    assert found.confirmed
    assert len(asked) <= 12
    assert len(asked) == len(set(asked))


def test_the_interval_says_when_the_range_ends_before_it():
    found = breaking_point(seen(0.6), {1.0: seen(0.5), 2.0: seen(0.395)}, 0.4)
    assert found.answer is Answer.BREAKS
    assert found.high == math.inf


def test_the_interval_holds_95_percent_of_the_crossings_on_halves():
    """On a line that loses 0.2 a step, a half whose scores are n higher crosses n / 0.2 later."""
    found = breaking_point(seen(0.9), {1.0: seen(0.6), 3.0: seen(0.2)}, 0.4)
    later = (NOISE - NOISE.mean()) / 0.2
    ends = np.quantile(2 + later, [0.025, 0.975], method="inverted_cdf")
    assert (found.low, found.high) == pytest.approx(tuple(ends))


def test_the_fit_does_not_rise_above_the_clean_score():
    found = breaking_point(seen(0.45), {1.0: seen(0.65), 3.0: seen(0.25)}, 0.4)
    assert found.strength == pytest.approx(1.5)  # from 0.45, not from 0.65


def test_the_range_of_a_parameter_is_searched_by_equal_factors():
    axis = parse_axis("haze", "visibility=500..20")
    assert [axis.value(strength) for strength in axis.first] == [500, 223.6, 100, 44.72, 20]


@pytest.mark.parametrize(
    "over",
    ["visibility=5e..20", "visibility=...20", "visibility=20..+", "visibility=0..20", "visibility=20..20"],
)
def test_a_range_whose_ends_are_no_positive_numbers_is_refused(over: str) -> None:
    with pytest.raises(InvalidOption, match=f"^--over {re.escape(over)}: both ends must be numbers above 0"):
        parse_axis("haze", over)


def test_a_score_above_clean_counts_as_clean():
    found = breaking_point(seen(0.38), {1.0: seen(0.5), 2.0: seen(0.2)}, 0.4)
    assert found.answer is Answer.CLEAN


def test_replicates_without_objects_are_left_out():
    """Of very few images a replicate may hold none: it has no score and no crossing."""
    falling = {1.0: 0.6, 3.0: 0.2}

    def with_holes(score, holes):
        return Observed(score, np.concatenate([[score] * 2, np.where(np.arange(40) < holes, np.nan, score)]))

    for holes, span, breaks in ((3, (2.0, 2.0), 1.0), (30, (-np.inf, np.inf), math.nan)):
        found = breaking_point(
            with_holes(0.7, holes), {s: with_holes(v, holes) for s, v in falling.items()}, 0.4
        )
        assert found.strength == pytest.approx(2.0)
        assert (found.low, found.high) == pytest.approx(span)
        assert found.breaks == pytest.approx(breaks, nan_ok=True)


def test_images_without_any_object_are_refused():
    nothing = Observed(np.nan, np.full(5, np.nan))
    with pytest.raises(InvalidOption, match="none of them shows an object"):
        breaking_point(nothing, {1.0: nothing, 2.0: nothing}, 0.4)
