"""Degradation relative to a reference model (*kamann*, section 5.1), as fractions: a CD of 1.09 is 109 %."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from stormproof.corruptions.suites import KAMANN, MICHAELIS, ONE_DATASET_ONLY, Groups
from stormproof.metrics.aggregate import aggregate
from stormproof.metrics.grid import Grid, Score, mean, require_same
from stormproof.metrics.metric import mean_of_known, ratio

NOISE_SEVERITIES = (1, 2, 3)  # stronger noise leaves too little mIoU to compare
# Fig. 11 leaves out JPEG compression: its CD, 107 to 133 %, differs from that of other digital corruptions.


@dataclass(frozen=True, slots=True)
class Degradation:
    """D = 1 − score: on clean data, and per corruption as the mean over its severities."""

    clean: Score
    corrupted: Mapping[str, Score]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and population standard deviation over the `count` corruptions of a category that have a value."""

    mean: Score
    std: Score
    count: int


def degradation(grid: Grid) -> Degradation:
    """D of a grid of scores in [0, 1]; of noise, only severities 1 to 3 count.

    >>> clear = Grid.of({"clean": 0.8, **{f"snow@{s}": 0.3 for s in range(1, 6)}})
    >>> {name: round(d, 3) for name, d in degradation(clear).corrupted.items()}
    {'snow': 0.7}
    """
    cut = without_strong_noise(grid)
    cut.require_complete()
    return Degradation(1 - grid.clean, {name: 1 - mean(cut.levels(name)) for name in cut.corruptions})


def without_strong_noise(grid: Grid) -> Grid:
    """The grid without severities 4 and 5 of noise, which *kamann* leaves out of every mean."""
    kept = (
        c
        for c in grid.expected
        if c.corruption not in KAMANN["noise"] or c.whole_severity in (None, *NOISE_SEVERITIES)
    )
    return Grid(grid.scores, tuple(kept))


def cd(model: Degradation, reference: Degradation) -> dict[str, Score]:
    """Corruption degradation Σ_s D / Σ_s D_ref per corruption; below 1, the model is the more robust one."""
    require_same(model.corrupted, reference.corrupted, "of the model", "of the reference")
    return {name: ratio(d, reference.corrupted[name]) for name, d in model.corrupted.items()}


def rcd(model: Degradation, reference: Degradation, *, least: float = 0.01) -> dict[str, Score]:
    """Relative CD, Σ_s (D_s − D_clean) / Σ_s (D_s,ref − D_clean,ref): the loss over the reference's loss.

    NaN where the reference loses no more than `least` (one point of mIoU), since the ratio is then arbitrary.
    The formula as printed subtracts D_clean only once from the whole sum, which contradicts the paper's own
    Fig. 10d (docs/adr/0018).
    """
    require_same(model.corrupted, reference.corrupted, "of the model", "of the reference")
    return {
        name: ratio(d - model.clean, reference.corrupted[name] - reference.clean, least)
        for name, d in model.corrupted.items()
    }


def mean_over(values: Mapping[str, Score], *, without: Collection[str] = ()) -> Score:
    """The mean over the corruptions that have a value (*kamann*'s Fig. 10 leaves out `psf_blur`)."""
    return _spread(values[name] for name in values if name not in without).mean


def _declare(name: str, rule: Callable[[Degradation, Degradation], dict[str, Score]]) -> None:
    """Declare CD or rCD by corruption, their mean, and the spread in each category."""

    @aggregate("reference", name)
    def by_corruption(grid: Grid, reference: Grid) -> dict[str, Score]:
        return rule(degradation(grid), degradation(reference))

    @aggregate("reference", f"m{name}", column=name)
    def over_all(grid: Grid, reference: Grid) -> Score:
        return mean_over(by_corruption(grid, reference), without=ONE_DATASET_ONLY)

    @aggregate("reference", f"{name}_by_category")
    def by_category_of(grid: Grid, reference: Grid) -> dict[str, dict[str, Score]]:
        spreads = category_spreads(by_corruption(grid, reference))
        return {name: asdict(spread) for name, spread in spreads.items()}


_declare("CD", cd)
_declare("rCD", rcd)


def category_spreads(values: Mapping[str, Score]) -> dict[str, Spread]:
    """CD or rCD of every category with a value, as in the bars of *kamann*'s Figs. 12, 15 and 16.

    Fig. 11 alone leaves out JPEG compression, as its caption says.
    """
    spreads = by_category(values, categories_of(values))
    return {name: spread for name, spread in spreads.items() if spread.count}


def categories_of(corruptions: Collection[str]) -> Groups:
    """The categories of the paper that has most of these corruptions; in a tie, *kamann*'s."""

    def known(groups: Groups) -> int:
        return sum(name in members for name in corruptions for members in groups.values())

    return max((KAMANN, MICHAELIS), key=known)


def by_category(
    values: Mapping[str, Score], categories: Groups = KAMANN, *, without: Collection[str] = ()
) -> dict[str, Spread]:
    """Mean and standard deviation per category, over the corruptions that have a value (Fig. 11)."""
    return {
        category: _spread(values[name] for name in members if name in values and name not in without)
        for category, members in categories.items()
    }


def _spread(values: Iterable[Score]) -> Spread:
    table = np.array(list(values), np.float64)
    if not len(table):
        return Spread(np.nan, np.nan, 0)
    known = ~np.isnan(table)
    middle = np.asarray(mean_of_known(table, axis=0))
    squares = np.where(known, (table - middle) ** 2, 0.0)
    std = np.sqrt(ratio(squares.sum(axis=0), known.sum(axis=0)))
    count = int(known.reshape(len(table), -1).any(axis=1).sum())
    return Spread(_number(middle), _number(std), count)


def _number(value: Score) -> Score:
    return value if np.ndim(value) else float(value)
