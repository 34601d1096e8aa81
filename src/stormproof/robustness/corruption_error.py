"""Corruption error (*liu*, section 3.3): grids of object errors E instead of scores, so lower is better.

There is no reference model. Errors keep their unit (fractions or percent).
"""

from __future__ import annotations

from collections.abc import Mapping

from stormproof.errors import IncompleteGrid
from stormproof.robustness.aggregate import aggregate
from stormproof.robustness.grid import Grid
from stormproof.robustness.performance import mpc, mpc_by_corruption


@aggregate("errors", "CE")
def ce(errors: Grid) -> dict[str, float]:
    """CE per corruption: the mean of E over severities (*liu*, Eq. 3)."""
    return mpc_by_corruption(errors)


@aggregate("errors", "mCE", column="mCE")
def mce(errors: Grid) -> float:
    """The mean of CE over corruptions (*liu*, Eq. 4)."""
    return mpc(errors)


@aggregate("errors", "change")
def mce_change(errors: Grid) -> float:
    """mCE minus the clean error: what corruption adds (*liu*, Table 4).

    >>> mce_change(Grid.of({"clean": 40.0, **{f"fog@{s}": 50.0 + s for s in range(1, 6)}}))
    13.0
    """
    return mce(errors) - errors.clean


def cross_scenario(grids: Mapping[tuple[str, str], Grid]) -> dict[tuple[str, str], float]:
    """Change of mCE by (scenario trained for, scenario tested on), for every pair of the scenarios given."""
    scenarios = list(dict.fromkeys(name for pair in grids for name in pair))
    pairs = [(trained, tested) for trained in scenarios for tested in scenarios]
    holes = [
        f"trained for {trained}, tested on {tested}"
        for trained, tested in pairs
        if (trained, tested) not in grids
    ]
    if holes:
        raise IncompleteGrid(holes, len(pairs))
    return {pair: mce_change(grids[pair]) for pair in pairs}


def enhancement_change(plain: Grid, enhanced: Grid) -> dict[str, float]:
    """CE with an enhancement minus CE without, per corruption (*liu*, Table 5): positive is worse.

    Of grids of scores it is the change of the mean score, and positive is better.
    """
    with_it, without = ce(enhanced), ce(plain)
    holes = sorted(with_it.keys() ^ without.keys())
    if holes:
        raise IncompleteGrid(
            (f"{name} {'plain' if name in with_it else 'enhanced'}" for name in holes),
            len(with_it.keys() | without.keys()),
        )
    return {name: with_it[name] - without[name] for name in without}
