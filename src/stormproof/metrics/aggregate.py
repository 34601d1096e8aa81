"""Aggregates: numbers computed from all conditions of a run. A function is declared where it is defined, and
`stormproof score` finds it.

    @aggregate("scores", "mPC", column="mPC")
    def mpc(grid: Grid) -> float: ...

The declaration says what the function takes:

- "any": a grid, which may contain only the clean score
- "scores": a complete grid of a measure where more is better
- "errors": a complete grid of a measure where less is better
- "sequence": a grid of conditions along α and the clean score
- "reference": two complete grids of scores, a run's and its reference's
- "error reference": two complete grids of errors, likewise

If the function raises `IncompleteGrid`, because it needs further cells, the run has no such aggregate. Scores
may be arrays with an entry per replicate; a function that does not work on arrays is called once per
replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from stormproof.core.errors import IncompleteGrid
from stormproof.core.loading import load_package
from stormproof.metrics.grid import Grid

Value = Any  # a score, or scores by name; see `grid.Score`
Function = TypeVar("Function", bound=Callable[..., Value])
INPUTS = ("any", "scores", "errors", "sequence", "reference", "error reference")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of grids, its name among the aggregates, and its column in the summary, if it has one."""

    given: str
    name: str
    column: str | None
    function: Callable[..., Value]

    def of(self, *grids: Grid) -> Value:
        """Its value for grids of numbers, or of arrays of replicates."""
        lengths = {len(v) for grid in grids for v in grid.scores.values() if isinstance(v, np.ndarray)}
        try:
            return self.function(*grids)
        except IncompleteGrid:
            raise
        except (TypeError, ValueError):
            if not lengths:
                raise
        return _stacked([self._alone(grids, row) for row in range(lengths.pop())])

    def _alone(self, grids: tuple[Grid, ...], row: int) -> Value:
        """Its value for one replicate; None if the replicate lacks a cell, as one of few images may."""
        try:
            return self.function(*(grid.replicate(row) for grid in grids))
        except IncompleteGrid:
            return None


def _stacked(rows: list[Value]) -> Value:
    names = next((list(row) for row in rows if isinstance(row, Mapping)), None)
    if names is None:
        return np.array([np.nan if row is None else row for row in rows], np.float64)
    return {name: _stacked([None if row is None else row.get(name) for row in rows]) for name in names}


_DECLARED: list[Aggregate] = []


def aggregate(given: str, name: str, *, column: str | None = None) -> Callable[[Function], Function]:
    """Declare a function as an aggregate of one of `INPUTS`."""
    if given not in INPUTS or name in {declared.name for declared in _DECLARED}:
        raise ValueError(f"aggregate {name!r} of {given!r}: give a unique name and one of {INPUTS}")

    def register(function: Function) -> Function:
        _DECLARED.append(Aggregate(given, name, column, function))
        return function

    return register


def aggregates_of(*given: str) -> list[Aggregate]:
    """Every aggregate of these inputs: in the order of `INPUTS`, then by the file that declares it."""
    load_package("stormproof.metrics")
    found = [declared for declared in _DECLARED if declared.given in given]
    return sorted(found, key=lambda a: (INPUTS.index(a.given), a.function.__module__))
