"""Performance under corruption (*michaelis*, section 2.1). Scores keep their unit; rPC is a fraction."""

from __future__ import annotations

from stormproof.core.errors import IncompleteGrid
from stormproof.corruptions.suites import KAMANN, MICHAELIS, ONE_DATASET_ONLY, Groups
from stormproof.metrics.aggregate import aggregate
from stormproof.metrics.degradation import without_strong_noise
from stormproof.metrics.grid import Grid, Score, mean
from stormproof.metrics.metric import ratio


@aggregate("any", "P", column="P")
def p(grid: Grid) -> Score:
    """Performance on clean data."""
    return grid.clean


@aggregate("scores", "mPC", column="mPC")
def mpc(grid: Grid) -> Score:
    """Mean performance under corruption: over severities, then over corruptions (*michaelis*, Eq. 1).

    >>> mpc(Grid.of({f"fog@{s}": 0.1 * s for s in range(1, 6)}))
    0.3
    """
    return mean(mpc_by_corruption(grid).values())


@aggregate("scores", "rPC", column="rPC")
def rpc(grid: Grid) -> Score:
    """Relative performance under corruption, mPC / P (*michaelis*, Eq. 2); NaN if the clean score is 0."""
    return ratio(mpc(grid), p(grid))


@aggregate("scores", "by_corruption")
def mpc_by_corruption(grid: Grid) -> dict[str, Score]:
    """The mean over severities of each corruption."""
    grid.require_complete()
    return {name: mean(grid.levels(name)) for name in grid.corruptions}


@aggregate("scores", "by_severity")
def mpc_by_severity(grid: Grid) -> dict[int, Score]:
    """mPC at each severity."""
    grid.require_complete()
    return {severity: mpc(grid.at_severity(severity)) for severity in grid.severities}


@aggregate("scores", "rPC_by_severity")
def rpc_by_severity(grid: Grid) -> dict[int, Score]:
    """rPC at each severity."""
    return {severity: ratio(value, p(grid)) for severity, value in mpc_by_severity(grid).items()}


def mpc_by_group(grid: Grid, groups: Groups = MICHAELIS) -> dict[str, Score]:
    """mPC over each group of corruptions; every corruption of a group must be in the grid."""
    return {name: mpc(grid.over(members)) for name, members in groups.items()}


def rpc_by_group(grid: Grid, groups: Groups = MICHAELIS) -> dict[str, Score]:
    """rPC over each group of corruptions."""
    return {name: ratio(value, p(grid)) for name, value in mpc_by_group(grid, groups).items()}


@aggregate("scores", "by_group_michaelis")
def _mpc_michaelis(grid: Grid) -> dict[str, Score]:
    return mpc_by_group(grid, complete_groups(grid, MICHAELIS))


@aggregate("scores", "rPC_by_group_michaelis")
def _rpc_michaelis(grid: Grid) -> dict[str, Score]:
    return rpc_by_group(grid, complete_groups(grid, MICHAELIS))


# kamann's Figs. 10 and 11 leave out corruptions that only one dataset has.
_CATEGORIES: Groups = {
    name: tuple(member for member in members if member not in ONE_DATASET_ONLY)
    for name, members in KAMANN.items()
}


@aggregate("scores", "by_group_kamann")
def _mpc_kamann(grid: Grid) -> dict[str, Score]:
    averaged = without_strong_noise(grid)
    return mpc_by_group(averaged, complete_groups(averaged, _CATEGORIES))


@aggregate("scores", "rPC_by_group_kamann")
def _rpc_kamann(grid: Grid) -> dict[str, Score]:
    averaged = without_strong_noise(grid)
    return rpc_by_group(averaged, complete_groups(averaged, _CATEGORIES))


@aggregate("reference", "delta_P", column="ΔP")
def delta_p(grid: Grid, reference: Grid) -> Score:
    """P minus the reference's (*michaelis*, section 3.2)."""
    return p(grid) - p(reference)


@aggregate("reference", "delta_mPC", column="ΔmPC")
def delta_mpc(grid: Grid, reference: Grid) -> Score:
    """mPC minus the reference's."""
    return mpc(grid) - mpc(reference)


def complete_groups(grid: Grid, groups: Groups) -> Groups:
    """The groups whose corruptions are all in the grid."""
    present = {*grid.corruptions}
    complete = {name: members for name, members in groups.items() if present >= {*members}}
    if not complete:
        raise IncompleteGrid(("every group",), len(groups))
    return complete
