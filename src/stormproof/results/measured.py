"""`Scores`: a run's numbers as a notebook wants them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stormproof.core.errors import IncompleteGrid, UnknownName
from stormproof.core.frameworks import framework
from stormproof.results import tables
from stormproof.results.score import Scores as AllScores


@dataclass(frozen=True, repr=False, eq=False)
class Measured:
    """One measure: a number per condition, and what follows from all of them."""

    name: str
    values: dict[str, float]
    aggregates: dict[str, Any]
    over: str

    def __getitem__(self, condition: str) -> float:
        if condition not in self.values:
            raise UnknownName("condition of the run", condition, self.values, "")
        return self.values[condition]

    @property
    def p(self) -> float:
        """The clean score."""
        return self._total("P")

    @property
    def mpc(self) -> float:
        """Mean performance under corruption, over the conditions of the benchmark or suite."""
        return self._total("mPC")

    @property
    def rpc(self) -> float:
        """mPC relative to the clean score."""
        return self._total("rPC")

    @property
    def mce(self) -> float:
        """Mean corruption error, for measures of which less is better."""
        return self._total("mCE")

    @property
    def mean(self) -> float:
        """The mean over the corrupted conditions, whichever they are."""
        corrupted = [value for text, value in self.values.items() if text != "clean"]
        return sum(corrupted) / len(corrupted) if corrupted else math.nan

    def _total(self, name: str) -> float:
        if name not in self.aggregates:
            raise IncompleteGrid((f"{name} of {self.name} over {self.over or 'a benchmark or suite'}",), 1)
        return float(self.aggregates[name])

    def __repr__(self) -> str:
        shown = {key: self.aggregates[key] for key in ("P", "mPC", "rPC", "mCE") if key in self.aggregates}
        numbers = ", ".join(f"{key} {100 * value:.1f}" for key, value in shown.items())
        return f"<{self.name}{f' over {self.over}' if self.over else ''}: {numbers or len(self.values)}>"


@dataclass(frozen=True, repr=False, eq=False)
class Scores:
    """A run's scores by measure: `scores["AP50"].rpc`; without a name, those of the headline measure.

    `all` holds everything: per class, groups, sets of conditions.
    """

    all: AllScores

    def __getitem__(self, measure: str) -> Measured:
        if measure not in self.all.by_measure:
            raise UnknownName("measure", measure, self.all.by_measure, f"There are {', '.join(self)}.")
        totals = self.all.aggregates.get(measure, {})
        return Measured(measure, self.all.by_measure[measure], totals, self.all.over)

    def __iter__(self) -> Iterator[str]:
        return iter(self.all.by_measure)

    def __len__(self) -> int:
        return len(self.all.by_measure)

    @property
    def headline(self) -> Measured:
        """The measure that tables print first."""
        return self[self.all.headline]

    @property
    def p(self) -> float:
        return self.headline.p

    @property
    def mpc(self) -> float:
        return self.headline.mpc

    @property
    def rpc(self) -> float:
        return self.headline.rpc

    def to_frame(self) -> Any:
        """A tidy pandas table: condition, corruption, severity, class, measure, value."""
        pandas = framework("pandas", extra="notebook")
        frame = pandas.DataFrame(tables.tidy(self.all), columns=tables.COLUMNS)
        return frame.astype({"severity": "Float64"})

    def plot(self, measure: str | None = None, *, ax: Any = None) -> Any:
        """The measure by corruption: a dot per severity, their mean, and the clean score as a line."""
        from stormproof.results.plotting import plot

        return plot(self.all, measure or self.all.headline, ax)

    def __repr__(self) -> str:
        model, dataset = self.all.record.model.name, self.all.record.dataset.name
        return f"<scores of {model} on {dataset}: {self.headline!r}, {len(self)} measures>"
