"""Degradation against a reference model (*kamann*, section 5.1). All are fractions: CD 1.09 is 109 %."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev

from stormproof.corruptions.groups import KAMANN, ONE_DATASET_ONLY, Groups
from stormproof.metrics.aggregate import aggregate
from stormproof.metrics.grid import Grid, require_same

NOISE_SEVERITIES = (1, 2, 3)  # beyond the third, noise leaves too little to compare


@dataclass(frozen=True, slots=True)
class Degradation:
    """D = 1 − score: on clean data, and per corruption as the mean over its severities."""

    clean: float
    corrupted: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and (population) standard deviation of the `count` corruptions of a category that have a value."""

    mean: float
    std: float
    count: int


def degradation(grid: Grid, *, noise: Collection[str] = KAMANN["noise"]) -> Degradation:
    """D of a grid of scores in [0, 1]; corruptions in `noise` count with severities 1 to 3 only.

    >>> clear = Grid.of({"clean": 0.8, **{f"snow@{s}": 0.3 for s in range(1, 6)}})
    >>> {name: round(d, 3) for name, d in degradation(clear).corrupted.items()}
    {'snow': 0.7}
    """
    cut = as_averaged(grid, noise=noise)
    cut.require_complete()
    return Degradation(1 - grid.clean, {name: 1 - fmean(cut.levels(name)) for name in cut.corruptions})


def as_averaged(grid: Grid, *, noise: Collection[str] = KAMANN["noise"]) -> Grid:
    """The grid without the severities of noise that *kamann* leaves out of every mean."""
    kept = (
        c for c in grid.expected if c.corruption not in noise or c.rung is None or c.rung in NOISE_SEVERITIES
    )
    return Grid(grid.scores, tuple(kept))


def cd(model: Degradation, reference: Degradation) -> dict[str, float]:
    """Corruption degradation Σ_s D / Σ_s D_ref per corruption; below 1 is more robust than the reference."""
    require_same(model.corrupted, reference.corrupted, "of the model", "of the reference")
    return {name: _ratio(d, reference.corrupted[name], 0.0) for name, d in model.corrupted.items()}


def rcd(model: Degradation, reference: Degradation, *, least: float = 0.01) -> dict[str, float]:
    """Relative CD, Σ_s (D_s − D_clean) / Σ_s (D_s,ref − D_clean,ref): the loss against the reference's loss.

    NaN where the reference loses less than `least` (one point of mIoU): a ratio of tenths says nothing.
    The printed formula would subtract D_clean once from the whole sum; read so it contradicts the paper's
    own Fig. 10d (docs/adr/0021).
    """
    require_same(model.corrupted, reference.corrupted, "of the model", "of the reference")
    return {
        name: _ratio(d - model.clean, reference.corrupted[name] - reference.clean, least)
        for name, d in model.corrupted.items()
    }


def mean_over(values: Mapping[str, float], *, without: Collection[str] = ()) -> float:
    """The mean over corruptions that have a value (*kamann*'s Fig. 10 leaves out `psf_blur`)."""
    return _spread(values[name] for name in values if name not in without).mean


def _declare(name: str, rule: Callable[[Degradation, Degradation], dict[str, float]]) -> None:
    """CD and rCD alike: by corruption, their mean, and their spread in each category."""

    @aggregate("reference", name)
    def by_corruption(grid: Grid, reference: Grid) -> dict[str, float]:
        return rule(degradation(grid), degradation(reference))

    @aggregate("reference", f"m{name}", column=name)
    def mean(grid: Grid, reference: Grid) -> float:
        return mean_over(by_corruption(grid, reference), without=ONE_DATASET_ONLY)

    @aggregate("reference", f"{name}_by_category")
    def spread(grid: Grid, reference: Grid) -> dict[str, dict[str, float]]:
        return _spreads(by_corruption(grid, reference))


_declare("CD", cd)
_declare("rCD", rcd)


def _spreads(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Mean, standard deviation and count of every category that any corruption of the grid belongs to."""
    found = by_category(values, without=ONE_DATASET_ONLY)
    return {name: asdict(spread) for name, spread in found.items() if spread.count}


def by_category(
    values: Mapping[str, float], categories: Groups = KAMANN, *, without: Collection[str] = ()
) -> dict[str, Spread]:
    """Mean and standard deviation per category, over its corruptions that have a value (Fig. 11)."""
    return {
        category: _spread(values[name] for name in members if name in values and name not in without)
        for category, members in categories.items()
    }


def _spread(values: Iterable[float]) -> Spread:
    kept = [value for value in values if not math.isnan(value)]
    return Spread(fmean(kept), pstdev(kept), len(kept)) if kept else Spread(math.nan, math.nan, 0)


def _ratio(above: float, below: float, least: float) -> float:
    return above / below if below > least else math.nan
