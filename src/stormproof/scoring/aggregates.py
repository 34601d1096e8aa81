"""What the papers conclude from all conditions of a run; only ever from complete grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormproof.condition import Condition
from stormproof.errors import IncompleteGrid
from stormproof.robustness.corruption_error import ce, mce, mce_change
from stormproof.robustness.degradation import as_averaged, cd, degradation, mean_over, rcd
from stormproof.robustness.grid import Grid
from stormproof.robustness.groups import KAMANN, MICHAELIS, ONE_DATASET_ONLY, Groups
from stormproof.robustness.performance import (
    mpc,
    mpc_by_corruption,
    mpc_by_group,
    mpc_by_severity,
    p,
    rpc,
    rpc_by_group,
    rpc_by_severity,
)
from stormproof.scoring.measures import MEASURES

Aggregates = dict[str, Any]


def grid_of(scores: Mapping[str, float], conditions: tuple[str, ...]) -> Grid:
    """A measure's scores as a grid over the run's conditions."""
    return Grid.of(dict(scores), conditions=map(Condition.parse, conditions))


def aggregates(name: str, grid: Grid) -> Aggregates:
    """Every aggregate of one measure that its grid allows; none that would have to guess."""
    measure = MEASURES[name]
    if not measure.aggregate or not grid.expected or grid.missing:
        return _clean_only(grid)
    if not measure.higher:
        return {**_clean_only(grid), "CE": ce(grid), "mCE": mce(grid), **_allowed("change", mce_change, grid)}
    found: Aggregates = {
        **_allowed("P", p, grid),
        "mPC": mpc(grid),
        **_allowed("rPC", rpc, grid),
        "by_corruption": mpc_by_corruption(grid),
        "by_severity": mpc_by_severity(grid),
        **_allowed("rPC_by_severity", rpc_by_severity, grid),
    }
    for paper, groups, averaged in (("michaelis", MICHAELIS, grid), ("kamann", KAMANN, as_averaged(grid))):
        whole = _whole(groups, averaged)
        if whole:
            found[f"by_group_{paper}"] = mpc_by_group(averaged, whole)
            found |= _allowed(f"rPC_by_group_{paper}", lambda g, w=whole: rpc_by_group(g, w), averaged)
    return found


def _whole(groups: Groups, grid: Grid) -> Groups:
    """The groups that a grid holds, each without the lens that only Cityscapes has if the grid lacks it."""
    held = {*grid.corruptions}
    found = {name: tuple(m for m in members if m in held) for name, members in groups.items()}
    return {name: found[name] for name in groups if {*groups[name]} - {*found[name]} <= ONE_DATASET_ONLY}


def against(name: str, grid: Grid, reference: Grid) -> Aggregates:
    """One measure of a run beside that of a reference run: gains, CD and rCD."""
    if not MEASURES[name].higher or not MEASURES[name].aggregate or grid.missing or reference.missing:
        return {}
    try:
        mine, theirs = degradation(grid), degradation(reference)
        own, relative = cd(mine, theirs), rcd(mine, theirs)
        gains = {"delta_P": p(grid) - p(reference), "delta_mPC": mpc(grid) - mpc(reference)}
    except IncompleteGrid:
        return {}
    return {"CD": own, "mCD": mean_over(own), "rCD": relative, "mrCD": mean_over(relative), **gains}


def _clean_only(grid: Grid) -> Aggregates:
    return _allowed("P", p, grid)


def _allowed(name: str, aggregate: Any, grid: Grid) -> Aggregates:
    """An aggregate under its name, or nothing where a cell it needs (most often clean) is not there."""
    try:
        return {name: aggregate(grid)}
    except IncompleteGrid:
        return {}
