"""Aggregates of scores made by hand: their intervals end where their values can."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.condition import grid
from stormproof.corruptions.suites import SUITES
from stormproof.results.scores import Replicates, Scores

WEATHER = ("clean", *map(str, SUITES["weather"]))


def scored(clean: float, corrupted: float) -> Scores:
    row = {text: clean if text == "clean" else corrupted for text in WEATHER}
    rng = np.random.default_rng(0)
    drawn = {text: value + np.r_[0, 0, rng.normal(0, 0.05, 200)] for text, value in row.items()}
    return Scores("net", "toy", 400, {"AP": row}, WEATHER, replicates=Replicates({"AP": drawn}, {}))


def test_a_share_of_the_clean_score_may_exceed_it_and_so_may_its_interval() -> None:
    found = scored(0.5, 0.55).intervals("AP")["rPC"]
    assert found.estimate == pytest.approx(1.1)
    assert found.high > 1.1


def test_the_interval_of_a_score_ends_at_one() -> None:
    found = scored(0.97, 0.97).intervals("AP")
    assert found["P"].high == found["fog@1"].high == 1.0
    assert found["P"].low < 0.97


def test_a_mean_is_over_corruptions_and_then_over_severities() -> None:
    made = scored(0.5, 0.4)
    cells = {**made.per_condition["AP"], **dict.fromkeys(map(str, grid(("fog",))), 0.2)}
    totals = Scores("net", "toy", 400, {"AP": cells}, WEATHER).aggregates["AP"]
    assert totals["mPC"] == pytest.approx((3 * 0.4 + 0.2) / 4)
    assert totals["rPC"] == pytest.approx((3 * 0.4 + 0.2) / 4 / 0.5)
    assert totals["by_corruption"]["fog"] == pytest.approx(0.2)
