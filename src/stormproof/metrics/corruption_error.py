"""Corruption error (*liu*, section 3.3): grids of object errors E instead of scores, so lower is better.

There is no reference model. Errors keep their unit (fractions or percent).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stormproof.core.errors import IncompleteGrid, InvalidOption
from stormproof.corruptions.suites import LIU
from stormproof.metrics.aggregate import aggregate
from stormproof.metrics.grid import Grid, Score, require_same
from stormproof.metrics.performance import complete_groups, mpc, mpc_by_corruption, mpc_by_group


@aggregate("errors", "CE")
def ce(errors: Grid) -> dict[str, Score]:
    """CE per corruption: the mean of E over severities (*liu*, Eq. 3)."""
    return mpc_by_corruption(errors)


@aggregate("errors", "mCE", column="mCE")
def mce(errors: Grid) -> Score:
    """The mean of CE over corruptions (*liu*, Eq. 4)."""
    return mpc(errors)


@aggregate("errors", "change")
def mce_change(errors: Grid) -> Score:
    """mCE minus the clean error: the increase under corruption (*liu*, Table 4).

    >>> mce_change(Grid.of({"clean": 40.0, **{f"fog@{s}": 50.0 + s for s in range(1, 6)}}))
    13.0
    """
    return mce(errors) - errors.clean


@aggregate("errors", "CE_by_group_liu")
def ce_by_group(errors: Grid) -> dict[str, Score]:
    """The mean of CE over the faults of optics, sensor, processor and board (*liu*, Table 2)."""
    return mpc_by_group(errors, complete_groups(errors, LIU))


@dataclass(frozen=True, slots=True)
class ErrorDifference:
    """Two-sided t-tests of CE under every fault against the clean error, over a number of detectors.

    `t` treats all values as independent, as the paper does; `paired` pairs each detector's CE with its own
    clean error. With a single detector the clean error has no spread, so `t` is NaN.
    """

    t: float
    p: float
    paired: float
    paired_p: float
    increase: float
    detectors: int


def corruption_matters(grids: Sequence[Grid]) -> ErrorDifference:
    """Whether CE differs from the clean error over detectors and faults (*liu*, section 4.2)."""
    if not grids:
        raise InvalidOption("There is no run to test; give at least one.")
    from scipy.stats import ttest_ind, ttest_rel  # imported late: it takes a second

    pairs = [(value, grid.clean) for grid in grids for value in ce(grid).values()]
    corrupted, clean = [c for c, _ in pairs], [grid.clean for grid in grids]
    nan = float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for equal columns the statistic is NaN or infinite, and shown so
        independent = ttest_ind(corrupted, clean) if len(clean) > 1 else None
        paired = ttest_rel(corrupted, [c for _, c in pairs]) if len(pairs) > 1 else None
    return ErrorDifference(
        *((nan, nan) if independent is None else (float(independent.statistic), float(independent.pvalue))),
        *((nan, nan) if paired is None else (float(paired.statistic), float(paired.pvalue))),
        sum(mce_change(grid) for grid in grids) / len(grids),
        len(grids),
    )


def cross_scenario(grids: Mapping[tuple[str, str], Grid]) -> dict[tuple[str, str], float]:
    """The change of mCE by (scenario trained for, scenario tested on); every combination is required."""
    trained_for = dict.fromkeys(trained for trained, _ in grids)
    tested_on = dict.fromkeys(tested for _, tested in grids)
    pairs = [(trained, tested) for trained in trained_for for tested in tested_on]
    holes = [
        f"trained for {trained}, tested on {tested}"
        for trained, tested in pairs
        if (trained, tested) not in grids
    ]
    if holes:
        raise IncompleteGrid(holes, len(pairs))
    return {pair: mce_change(grids[pair]) for pair in pairs}


@aggregate("error reference", "delta_CE")
def _delta_ce(errors: Grid, reference: Grid) -> dict[str, Score]:
    return enhancement_change(reference, errors)


@aggregate("error reference", "delta_CE_by_group_liu")
def _delta_ce_by_group(errors: Grid, reference: Grid) -> dict[str, Score]:
    theirs = ce_by_group(reference)
    return {group: value - theirs[group] for group, value in ce_by_group(errors).items()}


@aggregate("error reference", "delta_mCE", column="ΔmCE")
def delta_mce(errors: Grid, reference: Grid) -> Score:
    """mCE minus the reference's: the effect of an enhancement; positive is worse (*liu*, Table 5)."""
    return mce(errors) - mce(reference)


@aggregate("error reference", "delta_E", column="ΔE")
def delta_clean(errors: Grid, reference: Grid) -> Score:
    """The clean error minus the reference's."""
    return errors.clean - reference.clean


def enhancement_change(plain: Grid, enhanced: Grid) -> dict[str, Score]:
    """CE with an enhancement minus CE without it, per corruption (*liu*, Table 5).

    Positive is worse, as in the paper's text (the caption of its table says the opposite). For grids of
    scores it is the change of the mean score, and positive is better.
    """
    with_it, without = ce(enhanced), ce(plain)
    require_same(with_it, without, "enhanced", "plain")
    return {name: with_it[name] - without[name] for name in without}
