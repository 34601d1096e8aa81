"""Grids: a score for every condition. A grid knows which conditions it should have and which it lacks.

A score is a number, or an array with one entry per replicate: every aggregate works on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any, Self

import numpy as np

from stormproof.core.condition import CLEAN, SEVERITIES, Condition
from stormproof.core.condition import grid as every_cell
from stormproof.core.errors import IncompleteGrid, InvalidCondition

Score = Any  # a float, or an array of replicates


def mean(values: Iterable[Score]) -> Score:
    """The mean of numbers, or the elementwise mean of arrays."""
    every = list(values)
    return fmean(every) if all(isinstance(value, float | int) for value in every) else np.mean(every, axis=0)


@dataclass(frozen=True, eq=False)
class Grid:
    """Scores (or errors) of one model on one set, by condition.

    `expected` lists the corrupted conditions that aggregates are over; the clean score is separate. A cell
    without a finite score is missing, and aggregates refuse the grid.

    >>> half = Grid.of({"clean": 0.4, "fog@1": 0.3, "fog@2": 0.2})
    >>> half.missing
    ('fog@3', 'fog@4', 'fog@5')
    """

    scores: Mapping[Condition, Score]
    expected: tuple[Condition, ...]

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Score] | Mapping[Condition, Score],
        *,
        conditions: Iterable[Condition] | None = None,
    ) -> Self:
        """From scores by condition, or by its string.

        `conditions`, such as a suite's, are the conditions of the complete grid; other scores are not used.
        Without them, every corruption seen must have severities 1 to 5; conditions with parameters imply no
        others, and composed conditions are not part of the grid: means are over single corruptions.
        """
        parsed: dict[Condition, Score] = {}
        for key, score in scores.items():
            condition = Condition.parse(key) if isinstance(key, str) else key
            if condition in parsed:
                raise InvalidCondition(f"{condition} has two scores: {parsed[condition]} and {score}.")
            parsed[condition] = score
        wanted = _complete(parsed) if conditions is None else conditions
        return cls(parsed, tuple(dict.fromkeys(c for c in wanted if not c.is_clean)))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, int, float]]) -> Self:
        """From (corruption, severity, score); severity 0 is clean, and may occur repeatedly if it agrees."""
        scores: dict[Condition, float] = {}
        for corruption, severity, score in rows:
            condition = Condition.of(corruption, severity) if severity else CLEAN
            if scores.setdefault(condition, score) != score:
                raise InvalidCondition(f"{condition} has two scores: {scores[condition]} and {score}.")
        return cls.of(scores)

    def over(self, corruptions: Iterable[str]) -> Self:
        """The same scores with only the conditions of these corruptions expected."""
        known = self._series
        chosen = [c for name in corruptions for c in known.get(name) or every_cell([name], _levels(name))]
        return type(self)(self.scores, tuple(chosen))

    def at_severity(self, severity: int) -> Self:
        """The same scores with only the conditions of one severity expected."""
        return type(self)(self.scores, tuple(c for c in self.expected if c.whole_severity == severity))

    def replicate(self, row: int) -> Self:
        """The grid of one replicate, for scores that are arrays."""
        return type(self)({c: float(values[row]) for c, values in self.scores.items()}, self.expected)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Every expected condition without a score, as a string."""
        return tuple(str(c) for c in self.expected if not self._has(c))

    def require_complete(self) -> None:
        """Raise `IncompleteGrid`, which names every missing cell, if the grid is incomplete."""
        if self.missing or not self.expected:
            raise IncompleteGrid(self.missing or ("every corrupted condition",), len(self.expected))

    @property
    def clean(self) -> Score:
        """The score without corruption."""
        if not self._has(CLEAN):
            raise IncompleteGrid((str(CLEAN),), len(self.expected) + 1)
        return self.scores[CLEAN]

    @property
    def corruptions(self) -> tuple[str, ...]:
        """The corruptions, and their variants that have parameters in addition to a severity."""
        return tuple(self._series)

    @property
    def severities(self) -> tuple[int, ...]:
        return tuple(sorted({c.whole_severity for c in self.expected if c.whole_severity}))

    def levels(self, corruption: str) -> tuple[Score, ...]:
        """The scores of one corruption, in the order of `expected`."""
        self.require_complete()
        return tuple(self.scores[c] for c in self._series.get(corruption, ()))

    @cached_property
    def _series(self) -> dict[str, list[Condition]]:
        """Conditions by corruption; if it has severities, a condition given by parameters is separate."""
        graded = {c.series for c in self.expected if c.whole_severity is not None}
        series: dict[str, list[Condition]] = {}
        for c in self.expected:
            separate = c.whole_severity is None and c.series in graded
            series.setdefault(str(c) if separate else c.series, []).append(c)
        return series

    def _has(self, condition: Condition) -> bool:
        score = self.scores.get(condition, math.nan)
        return math.isfinite(score) if isinstance(score, float) else bool(np.isfinite(score).any())


def require_same(a: Mapping[str, float], b: Mapping[str, float], of_a: str, of_b: str) -> None:
    """Raise `IncompleteGrid` unless two columns have the same keys; `of_a` and `of_b` describe them."""
    holes = sorted(a.keys() ^ b.keys())
    if holes:
        names = (f"{key} {of_b if key in a else of_a}" for key in holes)
        raise IncompleteGrid(names, len(a.keys() | b.keys()))


def _levels(corruption: str) -> tuple[int, ...]:
    """The severities of a corruption: five unless it declares fewer."""
    from stormproof.corruptions import CORRUPTIONS  # imported late: it loads compilers that few grids need

    known = CORRUPTIONS.get(corruption)
    return known.severities if known and known.severities else SEVERITIES


@lru_cache(maxsize=1024)  # studies make thousands of grids of the same conditions
def _grade(corruption: str, levels: tuple[int, ...]) -> tuple[Condition, ...]:
    return every_cell([corruption], levels)


def _complete(conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions of the smallest complete grid that has these."""
    implied: dict[Condition, None] = {}
    graded: set[str] = set()
    for condition in conditions:
        name = condition.corruption
        if condition.is_composed:
            continue
        if not name or not condition.whole_severity or condition.params:
            implied[condition] = None
        elif name not in graded:
            graded.add(name)
            implied.update(dict.fromkeys(_grade(name, _levels(name))))
    return list(implied)
