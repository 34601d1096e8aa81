"""The surface between points: it finds a known line, its band contains it, and it knows when to stop."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from stormproof.core.errors import MissingExtra
from stormproof.core.sample import Floats
from stormproof.results.surface import (
    MET,
    MISSED,
    OPEN,
    Points,
    Surface,
    first_places,
    fit_surface,
    grid_places,
)

IMAGES, THRESHOLD = 80, 0.4
GRID = grid_places(21)


def of_images(places: Floats, offsets: Floats) -> Floats:
    """The score of each image at each place: lost at an offset of its own as x + 1.5 y grows."""
    strength = places[:, 0] + 1.5 * places[:, 1]
    return np.asarray(0.8 / (1 + np.exp((strength[:, None] - 1.1 - offsets) / 0.2)))


def observed(places: Floats, offsets: Floats, halves: Floats) -> Points:
    table = of_images(places, offsets)
    none = np.zeros(len(places))
    return Points(places, table.mean(axis=1), table @ halves.T / halves.sum(axis=1), none, none, IMAGES)


def sampled(seed: int, budget: int = 21) -> tuple[Surface, Floats, Floats]:
    """A surface sampled as a map samples it, with the scores of these images and of all images."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, 0.25, IMAGES)
    halves = rng.integers(0, 2, (100, IMAGES)).astype(np.float64)
    places = first_places(columns_only=False)
    surface = fit_surface(observed(places, offsets, halves))
    while len(places) < budget:
        following = surface.following(GRID, THRESHOLD, 4)
        if not len(following):
            break
        places = np.vstack([places, following])
        surface = fit_surface(observed(places, offsets, halves))
    everyone = rng.normal(0, 0.25, 20_000)
    return surface, of_images(GRID, offsets).mean(axis=1), of_images(GRID, everyone).mean(axis=1)


@pytest.mark.slow
def test_the_band_contains_the_true_line() -> None:
    """Simulated at length: docs/maps.md. Zones are wrong nowhere, and most of the plane is decided."""
    for seed in range(2):
        surface, here, true = sampled(seed)
        estimate = surface.estimate(GRID, THRESHOLD)
        zones = estimate.zones
        assert not ((zones == MET) & (true < THRESHOLD)).any()
        assert not ((zones == MISSED) & (true >= THRESHOLD)).any()
        assert np.mean(zones == OPEN) < 0.45
        near = np.abs(here - THRESHOLD) < 0.1
        assert np.abs(estimate.score - here)[near].max() < 0.03


def test_points_are_chosen_near_the_line() -> None:
    rng = np.random.default_rng(1)
    offsets, halves = rng.normal(0, 0.05, IMAGES), rng.integers(0, 2, (100, IMAGES)).astype(np.float64)
    surface = fit_surface(observed(first_places(columns_only=False), offsets, halves))
    chosen = surface.following(GRID, THRESHOLD, 4)
    assert len(chosen) == 4
    assert np.abs(of_images(chosen, offsets).mean(axis=1) - THRESHOLD).mean() < 0.2
    assert len({tuple(place) for place in chosen.tolist()}) == 4


def test_no_point_is_chosen_where_only_images_are_lacking() -> None:
    rng = np.random.default_rng(1)
    offsets, halves = rng.normal(0, 0.5, IMAGES), rng.integers(0, 2, (100, IMAGES)).astype(np.float64)
    surface = fit_surface(observed(grid_places(9), offsets, halves))
    assert not len(surface.following(GRID, THRESHOLD, 4))


def test_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
    rng = np.random.default_rng(0)
    points = observed(first_places(columns_only=False), rng.normal(size=IMAGES), np.ones((60, IMAGES)))
    with pytest.raises(MissingExtra, match=r"pip install '(stormproof|\.)\[map\]'"):
        fit_surface(points)
