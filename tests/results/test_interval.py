"""Intervals by hand: standard error, optimism, probabilities, and Holm's correction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stormproof.results import verdicts
from stormproof.results.aggregates import bound_interval
from stormproof.results.interval import (
    Interval,
    draws,
    holm,
    interval_around,
    paired_differences,
    unseen_share,
)
from stormproof.results.requirements import parse
from stormproof.results.verdicts import Outcome

HALVES = [0.4, 0.6, 0.5] * 400  # so many that their number does not matter
SE = float(np.std(HALVES, ddof=1))


def test_an_interval_reaches_two_standard_errors_to_either_side() -> None:
    found = interval_around(0.5, np.array([0.5, 0.5, *HALVES]))
    assert found.se == pytest.approx(SE)
    assert (found.low, found.high) == pytest.approx((0.5 - 1.961945 * SE, 0.5 + 1.961945 * SE), abs=1e-6)
    assert found.half_width == pytest.approx(1.961945 * SE, abs=1e-6)  # 1,199 degrees of freedom


def test_few_images_widen_an_interval_by_students_t() -> None:
    found = interval_around(0.5, np.array([0.5, 0.5, *HALVES]), images=5)
    assert found.high == pytest.approx(0.5 + SE * 2.776445)
    assert found.images == 5


def test_optimism_moves_one_end_and_never_the_estimate() -> None:
    plain = interval_around(0.5, np.array([0.5, 0.5, *HALVES]))
    high = interval_around(0.5, np.array([0.47, 0.48, *HALVES]))
    assert (high.estimate, high.high, high.optimism) == pytest.approx((0.5, plain.high, 0.03))
    assert high.low == pytest.approx(plain.low - 0.03)
    low = interval_around(0.5, np.array([0.52, 0.53, *HALVES]))  # an error that is too low on few images
    assert (low.low, low.high) == pytest.approx((plain.low, plain.high + 0.03))


def test_optimism_is_estimated_from_halves_where_the_metric_states_none() -> None:
    assert draws(np.array([0.4, *HALVES])).tolist() == pytest.approx([0.3, 0.3, *HALVES])
    assert draws(np.array([0.4, *HALVES]), 0.02).tolist() == pytest.approx([0.38, 0.38, *HALVES])
    assert draws(np.array([0.1, *HALVES]))[:2] == pytest.approx([0.01, 0.01])  # never all of it


def test_a_relative_bound_subtracts_only_what_is_certain() -> None:
    """Optimism of the clean score makes a share of it look too low: too much of it is on the unsafe side."""
    clean = draws(np.array([0.5, *HALVES]), 0.1, clean=True)
    fog = draws(np.array([0.4, *HALVES]), 0.1)
    assert clean[:2].tolist() == pytest.approx([0.4, 0.42])
    assert fog[:2].tolist() == pytest.approx([0.3, 0.3])
    assert interval_around(0.5, clean).optimism == pytest.approx(0.1)  # all of it, for the score itself
    assert interval_around(0.8, fog / clean).optimism == pytest.approx(0.8 - 0.3 / 0.42)
    assert interval_around(0.1, clean - fog).optimism == pytest.approx(-0.02)  # a loss may be larger


@pytest.mark.parametrize("optimism", [-0.05, 0.0, 0.05])
@pytest.mark.parametrize("images", [3, 60, None])
def test_probabilities_and_intervals_agree(optimism: float, images: int | None) -> None:
    """An end of the interval is where the chance of an estimate as far away is 2.5 %."""
    found = interval_around(0.5, np.array([0.5 - optimism] * 2 + HALVES), images=images)
    assert found.chance_above(found.low) == pytest.approx(0.025)
    assert found.chance_below(found.high) == pytest.approx(0.025)
    for shift in np.linspace(-0.6, 0.6, 25).tolist():
        drawn = np.array([*[shift - optimism] * 2, *(np.array(HALVES) - 0.5 + shift)])
        one = paired_differences({"fog": shift}, {"fog": drawn}, images=images)["fog"]
        assert one.clear == (one.interval.low > 0 or one.interval.high < 0), shift


def test_replicates_that_mostly_lack_a_value_give_no_interval() -> None:
    assert np.isnan(interval_around(0.5, np.array([0.5, 0.5, 0.4, 0.6, np.nan, np.nan, np.nan])).low)
    assert np.isnan(interval_around(0.5, np.array([0.5, 0.5, 0.4, np.nan, np.nan])).high)


def test_a_single_image_has_no_spread() -> None:
    """Its score is the same in every replicate that has it: no standard error of 0 is claimed."""
    found = interval_around(0.5, np.full(21, 0.5), images=1)
    assert found.estimate == 0.5
    assert np.isnan([found.low, found.high, found.se, found.optimism]).all()
    assert interval_around(0.5, np.full(21, 0.5), images=2).se == 0


def test_holm_steps_down_and_never_falls() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


def test_no_difference_is_never_clear() -> None:
    still = paired_differences(
        {"fog": 0.0, "snow": 0.3}, {"fog": np.zeros(9), "snow": np.full(9, 0.3)}, images=60
    )
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
    monkeypatch.setattr(verdicts, "_interval", lambda *_: Interval(0.5, 0.4, 0.6, 0.1 / 1.96))
    scores: Any = SimpleNamespace(units=None, clips=None, classes=())  # which are not looked at
    row = {"id": "R", "metric": "AP", "condition": "fog@3", **asked}
    assert verdicts.judge([parse(row, "r")], scores)[0].outcome is outcome


def test_one_of_many_requirements_fails_only_beyond_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 requirements that are all just met, one falls 2 standard errors short in 4 of 10 runs."""
    known = {f"R{k}": Interval(0.5, 0.402, 0.598, 0.05) for k in range(20)}
    known["R3"] = Interval(0.39, 0.292, 0.488, 0.05)  # 2.2 standard errors below 0.5
    monkeypatch.setattr(verdicts, "_interval", lambda r, *_: known[r.id])
    rows = [{"id": name, "metric": "AP", "condition": "fog@3", "at_least": 0.5} for name in known]
    scores: Any = SimpleNamespace(units=None, clips=None, classes=())
    judged = {v.requirement.id: v for v in verdicts.judge([parse(row, "r") for row in rows], scores)}
    alone = verdicts.judge([parse(rows[3], "r")], scores)[0]
    assert alone.outcome is Outcome.FAIL
    assert alone.p == alone.holm == pytest.approx(0.0139, abs=1e-4)
    assert judged["R3"].outcome is Outcome.INCONCLUSIVE
    assert judged["R3"].p == alone.p
    assert judged["R3"].holm == pytest.approx(20 * alone.p)
    assert judged["R3"].text.endswith("; alone it would fail, but 20 are judged together")
    assert judged["R3"].as_dict()["together"] == 20
    known["R3"] = Interval(0.3, 0.202, 0.398, 0.05)
    assert verdicts.judge([parse(row, "r") for row in rows], scores)[3].outcome is Outcome.FAIL
    assert "any of the 20 requirements" in verdicts.how_sure(list(judged.values()))
    assert "not controlled jointly" in verdicts.how_sure(list(judged.values()))
    assert "2.5 %" in verdicts.how_sure([alone])
    assert "jointly" not in verdicts.how_sure([alone])


@pytest.mark.parametrize("images", [3, 50, 1000])
def test_a_share_of_unseen_images_is_missed_in_2_5_percent_of_sets(images: int) -> None:
    assert (1 - unseen_share(images)) ** images == pytest.approx(0.025)


@pytest.mark.parametrize("measure", ["joint offset px", "joint offset nose px"])
def test_distances_in_pixels_may_exceed_what_an_image_can_count(measure: str) -> None:
    far = bound_interval(Interval(140.0, 120.0, 160.0, 10.0, images=200), measure, "P")
    assert far.low == 120
    assert far.high >= 160
    counts = bound_interval(Interval(95.0, 80.0, 110.0, 7.5, images=200), "FP per image", "P")
    assert counts.high == 100
