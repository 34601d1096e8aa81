"""Where all images agree, a verdict still knows that others may not: no interval of [0, 0] decides."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption
from stormproof.results import verdicts
from stormproof.results.aggregates import bound_interval
from stormproof.results.interval import Interval, interval_around, paired_differences, unseen_share
from stormproof.results.requirements import parse
from stormproof.results.verdicts import Outcome, judge
from stormproof.results.weights import require_replicates

HALVES = 200


def alike(images: int, **cells: float) -> Any:
    """Scores of a run in which every half has the same value of each measure, clean and in fog."""
    rows = {name.replace("_", " "): dict.fromkeys(("clean", "fog@3"), value) for name, value in cells.items()}
    drawn = {name: {t: np.full(HALVES + 2, v) for t, v in row.items()} for name, row in rows.items()}
    return SimpleNamespace(
        per_condition=rows, conditions=("clean", "fog@3"), headline=next(iter(rows)), units=images,
        name="alike", units_of=lambda _: images, classes=("car",), clips=None,
        over=SimpleNamespace(whole=True, covered=()), per_class={},
        replicates=SimpleNamespace(per_condition=drawn),
    )  # fmt: skip


REQUIRED = {
    "loss": {"metric": "AP", "condition": "fog@3", "at_most_loss": 0.01},
    "drop": {"metric": "AP", "condition": "fog@3", "at_most_drop": 0},
    "small drop": {"metric": "AP", "condition": "fog@3", "at_most_drop": 0.01},
    "count": {"metric": "FP per image", "condition": "fog@3", "at_most": 0.5},
    "fraction": {"metric": "AP", "condition": "fog@3", "at_least": 0.99},
}


@pytest.mark.parametrize("name", REQUIRED)
def test_three_equal_images_pass_no_requirement(name: str) -> None:
    scores = alike(3, AP=1.0, FP_per_image=0.0)
    (verdict,) = judge([parse({"id": "R", **REQUIRED[name]}, "r")], scores, scores)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.interval.high - verdict.interval.low > 0.5


@pytest.mark.parametrize("name", REQUIRED)
def test_a_thousand_equal_images_pass_requirements_with_a_margin(name: str) -> None:
    scores = alike(1000, AP=1.0, FP_per_image=0.0)
    (verdict,) = judge([parse({"id": "R", **REQUIRED[name]}, "r")], scores, scores)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if name == "drop" else Outcome.PASS)


def test_equal_images_pass_wrongly_with_a_chance_of_2_5_percent() -> None:
    """A change that hurts a share of all images, and a requirement of just less: how often nobody sees it."""
    rng = np.random.default_rng(0)
    for images in (50, 200, 1000):
        share = unseen_share(images)
        unseen = (rng.random((20_000, images)) < share).sum(axis=1) == 0
        assert unseen.mean() == pytest.approx(0.025, abs=0.004)
    assert unseen_share(1000) == pytest.approx(-math.log(0.025) / 1000, rel=0.003)


def test_paired_differences_that_never_vary_are_not_certain() -> None:
    found = paired_differences({"fog": 0.0}, {"fog": np.zeros(HALVES + 2)}, images=100)["fog"]
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.0362, 0.0362), abs=1e-4)
    assert found.p == 1
    counts = paired_differences({"fog": 0.0}, {"fog": np.zeros(HALVES + 2)}, images=100, most=100.0)["fog"]
    assert counts.interval.high == pytest.approx(3.62, abs=0.01)


def test_the_interval_of_few_counts_equals_poissons() -> None:
    """Two false alarms on 100 images: the mean is known to 0.0024 … 0.072 (Garwood 1936)."""
    shown = Interval(0.02, -0.008, 0.048, math.sqrt(0.02 / 100), images=100)
    assert bound_interval(shown, "FP per image", "P").high == pytest.approx(0.0722, abs=1e-4)
    assert bound_interval(shown, "FP per image", "P").low == 0


def test_the_interval_of_a_fraction_near_its_end_equals_a_binomials() -> None:
    low = Interval(0.02, -0.008, 0.048, 0.01, images=100).of_fraction()
    assert (low.low, low.high) == pytest.approx((0.0, 0.0704), abs=1e-4)  # 2 of 100
    assert low.chance_below(0.07) > 0.025 > low.chance_below(0.071)
    high = Interval(0.98, 0.96, 1.0, 0.01, images=100).of_fraction()
    assert (high.low, high.high) == pytest.approx((1 - 0.0704, 1.0), abs=1e-4)
    many = Interval(0.05, 0.03, 0.07, 0.01, images=1000).of_fraction()  # 475 trials have this spread
    assert many.high == pytest.approx(0.0736, abs=1e-3)
    middle = Interval(0.5, 0.4, 0.6, 0.05, images=100)
    assert middle.of_fraction() == middle


def test_fewer_than_fifty_images_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "FEWEST", 50)
    for images, outcomes in ((49, {Outcome.INCONCLUSIVE}), (50, {Outcome.PASS, Outcome.FAIL})):
        scores = alike(images, AP=0.5)
        asked = [parse({"id": f"R{k}", "metric": "AP", "condition": "fog@3", "at_least": k / 10}, "r")
                 for k in (1, 9)]  # fmt: skip
        judged = judge(asked, scores)
        assert {verdict.outcome for verdict in judged} == outcomes
        assert ("49 are too few, 50 are needed" in judged[0].text) == (images == 49)
        assert ("Fewer than 50 images, or clips, decide nothing" in verdicts.how_sure(judged)) == (
            images < 50
        )


def test_few_halves_widen_an_interval_and_fewer_than_fifty_are_refused() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.5, 0.1, 62)
    drawn[:2] = 0.5
    assert (
        interval_around(0.5, drawn, images=1000).high == interval_around(0.5, drawn, images=60).high
    )  # 59 degrees of freedom
    assert interval_around(0.5, drawn, images=30).high > interval_around(0.5, drawn, images=60).high
    with pytest.raises(InvalidOption, match="2 replicates are too few for an interval; use at least 50"):
        require_replicates(2)
