"""Aggregates: numbers computed from all conditions of a run.

A decorator declares them where they are defined, and `stormproof score` computes them:

    @aggregate("scores", "mPC", column="mPC")
    def mpc(grid: Grid) -> float: ...

The first argument names the function's input:

- "any": a grid, which may contain only the clean score
- "scores": a complete grid of a measure where higher is better
- "errors": a complete grid of a measure where lower is better
- "sequence": a grid of stylized conditions, by strength α, with the clean score
- "reference": two complete grids of scores, a run's and its reference's
- "error reference": two complete grids of errors, likewise

If the function raises `IncompleteGrid` because it needs further conditions, the aggregate is left out. Scores
may be arrays with an entry per replicate; a function that does not work on arrays is called once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from stormproof.core import extensions
from stormproof.core.errors import IncompleteGrid
from stormproof.core.registry import Registry
from stormproof.metrics.grid import Grid

Value = Any  # a score, or scores by name; see `grid.Score`
Function = TypeVar("Function", bound=Callable[..., Value])
INPUTS = ("any", "scores", "errors", "sequence", "reference", "error reference")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of grids, the aggregate's name, and its column in the summary, if it has one."""

    given: str
    name: str
    column: str | None
    function: Callable[..., Value]

    def of(self, *grids: Grid) -> Value:
        """The aggregate of grids of numbers, or of arrays of replicates."""
        lengths = {len(v) for grid in grids for v in grid.scores.values() if isinstance(v, np.ndarray)}
        try:
            return self.function(*grids)
        except IncompleteGrid:
            raise
        except (TypeError, ValueError):
            if not lengths:
                raise
        return _stack([self._of_replicate(grids, row) for row in range(lengths.pop())])

    def _of_replicate(self, grids: tuple[Grid, ...], row: int) -> Value:
        """The aggregate of one replicate; None if a condition lacks a score, as it may with few images."""
        try:
            return self.function(*(grid.replicate(row) for grid in grids))
        except IncompleteGrid:
            return None


def _stack(rows: list[Value]) -> Value:
    names = next((list(row) for row in rows if isinstance(row, Mapping)), None)
    if names is None:
        return np.array([np.nan if row is None else row for row in rows], np.float64)
    return {name: _stack([None if row is None else row.get(name) for row in rows]) for name in names}


AGGREGATES: Registry[Aggregate] = Registry(
    extensions.AGGREGATES,
    "stormproof.metrics",
    order=lambda one: (INPUTS.index(one.given), one.function.__module__),
)


def aggregate(given: str, name: str, *, column: str | None = None) -> Callable[[Function], Function]:
    """Declare a function as an aggregate; `given` is one of `INPUTS`."""
    if given not in INPUTS:
        raise ValueError(f"the aggregate {name!r} reads one of {INPUTS}, not {given!r}")

    def register(function: Function) -> Function:
        AGGREGATES.add(name, Aggregate(given, name, column, function), module=function.__module__)
        return function

    return register


def aggregates_of(*given: str) -> list[Aggregate]:
    """Every aggregate of these inputs, sorted by input, then by the file that declares it."""
    return [declared for declared in AGGREGATES.values() if declared.given in given]
