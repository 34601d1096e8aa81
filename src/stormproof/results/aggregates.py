"""What the papers conclude from all conditions of a run; only ever from complete grids."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.metrics.aggregate import aggregates_of
from stormproof.metrics.grid import Grid
from stormproof.metrics.measure import measures
from stormproof.metrics.sequences import split

Aggregates = dict[str, Any]


def grid_of(scores: Mapping[str, float], conditions: tuple[str, ...]) -> Grid:
    """A measure's scores as a grid over the run's conditions."""
    return Grid.of(dict(scores), conditions=map(Condition.parse, conditions))


MEAN = "mean"  # of the conditions there are, where they are no benchmark or suite


def aggregates(name: str, grid: Grid, *, named: bool = True) -> Aggregates:
    """Every aggregate of one measure that its grid allows; none that would have to guess.

    One number over all conditions has its name (mPC, rPC, mCE) where the conditions have one, those of a
    benchmark or suite; else it is a mean over the conditions there are.
    """
    measure = measures()[name]
    levels, along = split(grid)  # a mean over sixty points of six curves would say nothing
    parts = {"any": grid}
    if measure.aggregate and levels.expected and not levels.missing:
        parts["scores" if measure.higher else "errors"] = levels
    if measure.aggregate and along.expected and not along.missing:
        parts["sequence"] = along
    found: Aggregates = {}
    for declared in aggregates_of(*parts):
        with suppress(IncompleteGrid):  # a cell it needs, most often clean, is not there
            value = declared.function(parts[declared.given])
            if named or declared.given == "any" or not isinstance(value, float):
                found[declared.name] = value
    if not named and ("scores" in parts or "errors" in parts):
        found[MEAN] = fmean(levels.scores[condition] for condition in levels.expected)
    return found


def against(name: str, grid: Grid, reference: Grid, *, named: bool = True) -> Aggregates:
    """Every aggregate of one measure of a run beside that of a reference run.

    One number over all conditions is left out where the conditions have no name, as in `aggregates`.
    """
    measure = measures()[name]
    grid, reference = split(grid)[0], split(reference)[0]
    if not measure.aggregate or grid.missing or reference.missing:
        return {}
    found: Aggregates = {}
    for declared in aggregates_of("reference" if measure.higher else "error reference"):
        with suppress(IncompleteGrid):  # a group that the run does not hold, or a grid without clean
            value = declared.function(grid, reference)
            if named or declared.name == "delta_P" or not isinstance(value, float):
                found[declared.name] = value
    return found
