"""What one run says: the names, scores and conclusions that every section reads.

A run folder gives one, and so does a paper's published table. Names come through `plain` here, once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.metrics.grid import Grid
from stormproof.metrics.measure import measures
from stormproof.metrics.sequences import split
from stormproof.report.text import plain
from stormproof.results.aggregates import MEAN
from stormproof.results.sets import ConditionSet
from stormproof.results.store.record import RunRecord

NAMED = ("mPC", "mCE")  # means over a benchmark or suite
Numbers = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model on a dataset, as numbers.

    `scores` are by measure and condition, `per_class` by measure, condition and class, as fractions.
    `quality` is how far each condition takes the images from the clean ones. A published table that
    averages over severities has no scores but the clean one, and `aggregates` alone. `aggregates` are those
    of the first of the `sets`.
    """

    name: str
    model: str
    dataset: str
    images: int | None
    headline: str
    scores: Numbers
    aggregates: Mapping[str, Mapping[str, Any]]
    per_class: Mapping[str, Numbers] = field(default_factory=dict)
    quality: Numbers = field(default_factory=dict)
    roc: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    lost: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # people, by condition
    intervals: Numbers = field(default_factory=dict)  # measure → P, mPC … → half of its 95 % interval
    sets: Sequence[tuple[ConditionSet, Mapping[str, Mapping[str, Any]]]] = ()  # of conditions, by measure
    estimate: Mapping[str, Any] | None = None  # of a run of part of the grid
    tags: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    record: RunRecord | None = None
    folder: Path | None = None
    citation: str = ""

    @property
    def conditions(self) -> list[Condition]:
        """Every corrupted condition that has a score."""
        texts = dict.fromkeys(text for row in self.scores.values() for text in row)
        return [c for c in map(Condition.parse, texts) if not c.is_clean]

    def score(self, measure: str, condition: str = "clean") -> float:
        """A score, NaN where there is none."""
        return self.scores.get(measure, {}).get(condition, math.nan)

    def total(self, measure: str, name: str) -> Any:
        """What follows from all conditions: 'mPC', 'by_corruption' …; None if the grid does not allow it."""
        return self.aggregates.get(measure, {}).get(name)

    def mean(self, measure: str) -> Any:
        """The mean under corruption: mPC or mCE of a benchmark or suite, else of the conditions there are."""
        return mean_of(self.aggregates.get(measure, {}))

    def by_corruption(self, measure: str) -> dict[str, float]:
        """The mean over severities of each corruption (of errors: CE); none where the grid is incomplete."""
        return dict(self.total(measure, "by_corruption") or self.total(measure, "CE") or {})

    def mean_name(self, measure: str) -> str:
        """What that mean is called: 'mPC' and 'mCE' are of a benchmark or a suite alone."""
        named = next((name for name in NAMED if self.total(measure, name) is not None), None)
        return named or f"mean over {len(self.averaged(measure))} conditions"

    def averaged(self, measure: str) -> frozenset[str]:
        """The conditions that mean is over; those along α are followed, not averaged."""
        first = self.sets[0][0].conditions if self.sets else ()
        levels, _ = split(self.grid(measure))
        return frozenset(str(c) for c in levels.expected if not first or str(c) in first)

    def grid(self, measure: str) -> Grid:
        """A measure's grid over the conditions of the run; empty where the run lacks the measure."""
        expected = self.record.conditions if self.record else tuple(self.scores.get(measure, {}))
        return Grid.of(dict(self.scores.get(measure, {})), conditions=map(Condition.parse, expected))

    def complete(self, measure: str) -> bool:
        """Whether a measure has a score for clean and for every condition."""
        try:
            grid = self.grid(measure)
            grid.require_complete()
        except IncompleteGrid:
            return False
        return math.isfinite(self.score(measure))


def mean_of(found: Mapping[str, Any]) -> Any:
    """The mean among a measure's aggregates; none where the grid does not allow one."""
    return next((found[name] for name in (*NAMED, MEAN) if found.get(name) is not None), None)


def told_apart(subjects: Sequence[Subject]) -> list[Subject]:
    """Subjects with names of their own: the model's, with as much more as tells them apart."""
    names = [subject.model for subject in subjects]
    for more in (_dataset, _enhanced, _folder):
        names = [
            f"{name}{more(s)}" if names.count(name) > 1 else name
            for name, s in zip(names, subjects, strict=True)
        ]
    names = [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return [replace(subject, name=plain(name)) for subject, name in zip(subjects, names, strict=True)]


def _enhanced(subject: Subject) -> str:
    enhance = subject.record.model.enhance if subject.record else ()
    return f" + {', '.join(enhance)}" if enhance else ""


def _dataset(subject: Subject) -> str:
    return f" on {subject.dataset}"


def _folder(subject: Subject) -> str:
    return f" ({subject.folder.name})" if subject.folder else ""


def subject_from(
    found: Mapping[str, Any], record: RunRecord | None = None, folder: Path | None = None
) -> Subject:
    """The subject of a run's kept scores (`scores.json`)."""
    numbers = {
        measure: {text: _number(v) for text, v in row.items()} for measure, row in found["scores"].items()
    }
    return Subject(
        name=plain(found["model"]),
        model=plain(found["model"]),
        dataset=plain(found["dataset"]),
        images=found["images"],
        headline=found["headline"],
        scores={measure: row for measure, row in numbers.items() if measure in measures()},
        aggregates={measure: _numbers(row) for measure, row in found["aggregates"].items()},
        per_class={
            measure: {
                text: {plain(name): _number(v) for name, v in row.items()} for text, row in cells.items()
            }
            for measure, cells in found.get("per_class", {}).items()
        },
        quality={text: _numbers(row) for text, row in (found.get("quality") or {}).items()},
        roc={text: kinds["ROC"] for text, kinds in (found.get("curves") or {}).items() if "ROC" in kinds},
        lost={text: list(rows) for text, rows in (found.get("lost") or {}).items()},
        sets=[
            (
                ConditionSet(each["name"], tuple(each["conditions"]), each["of"]),
                {measure: _numbers(row) for measure, row in each["aggregates"].items()},
            )
            for each in found.get("sets", ())
        ],
        missing=tuple(map(plain, found.get("missing", ()))),
        tags={plain(key): plain(value) for key, value in found.get("tags", {}).items()},
        record=record,
        folder=folder,
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON's null is a number that does not exist."""
    return {
        key: _numbers(value) if isinstance(value, Mapping) else _number(value) for key, value in row.items()
    }
