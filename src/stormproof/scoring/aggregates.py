"""What the papers conclude from all conditions of a run; only ever from complete grids."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from stormproof.condition import Condition
from stormproof.errors import IncompleteGrid
from stormproof.metrics.measure import measures
from stormproof.robustness.aggregate import aggregates_of
from stormproof.robustness.grid import Grid

Aggregates = dict[str, Any]


def grid_of(scores: Mapping[str, float], conditions: tuple[str, ...]) -> Grid:
    """A measure's scores as a grid over the run's conditions."""
    return Grid.of(dict(scores), conditions=map(Condition.parse, conditions))


def aggregates(name: str, grid: Grid) -> Aggregates:
    """Every aggregate of one measure that its grid allows; none that would have to guess."""
    measure = measures()[name]
    given = ["any"]
    if measure.aggregate and grid.expected and not grid.missing:
        given.append("scores" if measure.higher else "errors")
    found: Aggregates = {}
    for declared in aggregates_of(*given):
        with suppress(IncompleteGrid):  # a cell it needs, most often clean, is not there
            found[declared.name] = declared.function(grid)
    return found


def against(name: str, grid: Grid, reference: Grid) -> Aggregates:
    """One measure of a run beside that of a reference run: all there is to compare, or nothing."""
    measure = measures()[name]
    if not measure.higher or not measure.aggregate or grid.missing or reference.missing:
        return {}
    try:
        return {declared.name: declared.function(grid, reference) for declared in aggregates_of("reference")}
    except IncompleteGrid:
        return {}
