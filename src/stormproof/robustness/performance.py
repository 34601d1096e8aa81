"""Performance under corruption (*michaelis*, section 3.3). Scores keep their unit; rPC is a fraction."""

from __future__ import annotations

from statistics import fmean

from stormproof.robustness.grid import Grid
from stormproof.robustness.groups import MICHAELIS, Groups


def p(grid: Grid) -> float:
    """Performance on clean data."""
    return grid.clean


def mpc(grid: Grid) -> float:
    """Mean performance under corruption: over severities, then over corruptions (*michaelis*, Eq. 1).

    >>> mpc(Grid.of({f"fog@{s}": 0.1 * s for s in range(1, 6)}))
    0.3
    """
    grid.require_complete()
    return fmean(fmean(grid.levels(name)) for name in grid.corruptions)


def rpc(grid: Grid) -> float:
    """Relative performance under corruption, mPC / P (*michaelis*, Eq. 2); NaN if the clean score is 0."""
    return _relative(mpc(grid), p(grid))


def mpc_by_corruption(grid: Grid) -> dict[str, float]:
    """The mean over severities of each corruption."""
    grid.require_complete()
    return {name: fmean(grid.levels(name)) for name in grid.corruptions}


def mpc_by_group(grid: Grid, groups: Groups = MICHAELIS) -> dict[str, float]:
    """mPC within each group of corruptions; every corruption of a group must be in the grid."""
    return {name: mpc(grid.over(members)) for name, members in groups.items()}


def mpc_by_severity(grid: Grid) -> dict[int, float]:
    """mPC at each severity alone."""
    grid.require_complete()
    return {severity: mpc(grid.at_severity(severity)) for severity in grid.severities}


def rpc_by_group(grid: Grid, groups: Groups = MICHAELIS) -> dict[str, float]:
    """rPC within each group."""
    return {name: _relative(value, p(grid)) for name, value in mpc_by_group(grid, groups).items()}


def rpc_by_severity(grid: Grid) -> dict[int, float]:
    """rPC at each severity alone."""
    return {severity: _relative(value, p(grid)) for severity, value in mpc_by_severity(grid).items()}


def _relative(value: float, clean: float) -> float:
    return value / clean if clean else float("nan")
