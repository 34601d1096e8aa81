"""Intervals by hand: the normal one, the percentile one, and Holm's correction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stormproof.results import verdicts
from stormproof.results.interval import Interval, around, holm, paired, percentile
from stormproof.results.requirements import parse
from stormproof.results.verdicts import Outcome


def test_an_interval_is_two_standard_errors_wide_on_either_side() -> None:
    found = around(0.5, np.array([0.4, 0.6, 0.5]))
    assert found.se == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.5 - 0.195996, 0.5 + 0.195996), abs=1e-6)
    assert found.half_width == pytest.approx(0.195996, abs=1e-6)
    assert around(0.4, np.array([0.4, 0.6, 0.5])).bias == pytest.approx(0.1)  # told, never subtracted


def test_a_difference_spans_the_middle_of_its_replicates() -> None:
    found = percentile(100.0, np.arange(1.0, 200.0))  # of 199, the fifth from either end
    assert (found.low, found.high) == pytest.approx((5, 195))


def test_replicates_that_mostly_have_no_value_say_nothing() -> None:
    assert np.isnan(around(0.5, np.array([0.4, 0.6, np.nan, np.nan, np.nan])).low)
    assert np.isnan(percentile(0.5, np.array([0.4, np.nan, np.nan])).high)


def test_a_single_image_has_no_spread() -> None:
    """Its score is the same in every replicate that has it: no standard error of 0 is claimed."""
    found = around(0.5, np.full(20, 0.5), images=1)
    assert found.estimate == 0.5
    assert np.isnan([found.low, found.high, found.se, found.bias]).all()
    assert around(0.5, np.full(20, 0.5), images=2).se == 0


def test_holm_steps_down_and_never_falls() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


def test_no_difference_is_never_clear() -> None:
    still = paired({"fog": 0.0, "snow": 0.3}, {"fog": np.zeros(9), "snow": np.full(9, 0.3)})
    assert not still["fog"].clear
    assert still["snow"].clear


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        ({"at_least": 0.39}, Outcome.PASS),
        ({"at_least": 0.45}, Outcome.INCONCLUSIVE),  # below 0.5
        ({"at_least": 0.55}, Outcome.INCONCLUSIVE),
        ({"at_least": 0.61}, Outcome.FAIL),
        ({"at_most_loss": 0.61}, Outcome.PASS),
        ({"at_most_loss": 0.55}, Outcome.INCONCLUSIVE),
        ({"at_most_loss": 0.39}, Outcome.FAIL),
    ],
)
def test_a_verdict_needs_the_whole_interval(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, float], outcome: Outcome
) -> None:
    monkeypatch.setattr(verdicts, "_asked", lambda *_: Interval(0.5, 0.4, 0.6, 0.05))
    scores: Any = None  # which are not looked at
    row = {"id": "R", "metric": "AP", "condition": "fog@3", **asked}
    assert verdicts.judge(parse(row, "r"), scores).outcome is outcome
