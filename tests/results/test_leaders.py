"""A name for the highest or lowest of several numbers is printed only where it is more than chance."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.results.interval import LEADING, draws
from stormproof.results.leaders import leaders, standouts
from stormproof.results.weights import half_weights

IMAGES, SETS = 40, 300
HALVES = half_weights([f"{k}.png" for k in range(IMAGES)]).astype(float)


def drawn_means(
    rng: np.random.Generator, truth: np.ndarray
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """The means of corruptions over new images, and their draws: an image's difficulty is common to all."""
    images = truth[:, None] + rng.normal(0, 0.2, IMAGES) + rng.normal(0, 0.1, (len(truth), IMAGES))
    halves = images @ HALVES.T / HALVES.sum(axis=1)
    means = {f"c{k}": float(row.mean()) for k, row in enumerate(images)}
    return means, {name: draws(np.r_[means[name], half]) for name, half in zip(means, halves, strict=True)}


@pytest.mark.parametrize("count", [2, 3, 4, 8, 15])
def test_equal_corruptions_are_seldom_named(count: int) -> None:
    rng = np.random.default_rng(count)
    named = sum(
        bool(standouts(*drawn_means(rng, np.full(count, 0.4)), highest=False, images=IMAGES))
        for _ in range(SETS)
    )
    assert named / SETS <= (0.075 if count == 2 else 0.03)  # 5 % of two, give or take 2.5 points in 300 sets


def test_named_corruptions_hold_the_extreme_in_nine_halves_of_ten() -> None:
    rng = np.random.default_rng(7)
    shares = []
    for _ in range(200):
        values, drawn = drawn_means(rng, 0.4 + 0.02 * np.arange(10))
        names = standouts(values, drawn, highest=False, images=IMAGES)
        if names:
            lowest = np.argmin(np.stack([drawn[name][LEADING:] for name in values]), axis=0)
            shares.append(np.isin(lowest, [list(values).index(name) for name in names]).mean())
    assert len(shares) > 20
    assert np.quantile(shares, 0.05) >= 0.9


def test_the_true_worst_is_almost_always_among_those_named() -> None:
    rng = np.random.default_rng(5)
    truth = 0.4 + 0.005 * np.arange(8)
    kept = sum("c0" in leaders(*drawn_means(rng, truth), highest=False, images=IMAGES) for _ in range(SETS))
    assert kept / SETS >= 0.97


def test_a_corruption_far_below_the_others_is_named() -> None:
    values, drawn = drawn_means(np.random.default_rng(1), np.array([0.1, 0.4, 0.41, 0.42]))
    assert standouts(values, drawn, highest=False, images=IMAGES) == ["c0"]
    assert "c0" not in leaders(values, drawn, highest=True, images=IMAGES)


def test_nothing_stands_out_where_spread_is_unknown() -> None:
    unknown = np.full(LEADING + 200, np.nan)
    assert leaders({"a": 0.1, "b": 0.9}, {"a": unknown, "b": unknown}, highest=True) == ["b", "a"]
