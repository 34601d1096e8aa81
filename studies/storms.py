"""Scores of networks and draws for their intervals, as `python -m training storm` writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from stormproof.metrics.metric import ratio
from stormproof.results.interval import LEADING, draws, interval_around
from stormproof.results.scores import Scores

sys.path.append(str(Path(__file__).resolve().parents[1] / "docs"))
from parts import from_to

Drawn: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """A number in points, and its draws, from which its interval follows (`results.interval`)."""

    estimate: float
    drawn: Drawn
    images: int

    def __sub__(self, other: Value) -> Value:
        return Value(self.estimate - other.estimate, self.drawn - other.drawn, self.images)

    @cached_property
    def interval(self) -> tuple[float, float]:
        found = interval_around(self.estimate, self.drawn, images=self.images)
        return found.low, found.high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.estimate:.1f} ± {(high - low) / 2:.1f}"

    @property
    def signed(self) -> str:
        """A difference and its interval."""
        return from_to(self.estimate, *self.interval)


def mean(values: Iterable[Value]) -> Value:
    chosen = list(values)
    return Value(
        float(np.mean([v.estimate for v in chosen])),
        np.mean([v.drawn for v in chosen], axis=0),
        chosen[0].images,
    )


@dataclass(frozen=True)
class Spread:
    """How far seeds scatter: the standard deviation of one seed, from `freedom` degrees of freedom.

    It is pooled over networks, because two seeds of one network say little about its own scatter.
    """

    deviation: float
    freedom: int

    @classmethod
    def of(cls, groups: Iterable[Sequence[float]]) -> Spread:
        """The spread within groups; each holds the numbers of one network, by seed."""
        rows = [np.asarray(group, float) for group in groups if len(group) > 1]
        freedom = sum(len(row) - 1 for row in rows)
        return cls(float(np.sqrt(sum(np.square(row - row.mean()).sum() for row in rows) / freedom)), freedom)

    def half_width(self, *seeds: int) -> float:
        """Of the 95 % interval of a difference between means over so many seeds, or of one such mean."""
        quantile = float(student.ppf(0.975, self.freedom))
        return quantile * self.deviation * float(np.sqrt(sum(1 / n for n in seeds)))


def half_width(value: Value, spread: Spread, *seeds: int) -> float:
    """Of the interval for new scenes and new seeds."""
    low, high = value.interval
    return float(np.hypot((high - low) / 2, spread.half_width(*seeds)))


@dataclass(frozen=True)
class Trained:
    """One trained network: its score under every condition."""

    per_condition: dict[str, Value]

    def mean(self, conditions: Sequence[str]) -> Value:
        return mean(self.per_condition[condition] for condition in conditions)

    def relative(self, conditions: Sequence[str]) -> Value:
        """The mean in % of the clean score."""
        found, clean = self.mean(conditions), self.per_condition["clean"]
        drawn = ratio(100 * found.drawn, clean.drawn)  # NaN where a half has no object of the measure
        return Value(ratio(100 * found.estimate, clean.estimate), drawn, found.images)


def mean_network(seeds: Sequence[Trained]) -> Trained:
    """The mean over seeds under every condition."""
    return Trained({text: mean(one.per_condition[text] for one in seeds) for text in seeds[0].per_condition})


def by_name(networks: Mapping[str, Trained]) -> dict[str, list[Trained]]:
    """Networks named NAME-SEED, gathered by name."""
    gathered: dict[str, list[Trained]] = {}
    for name, one in networks.items():
        gathered.setdefault(name.rpartition("-")[0], []).append(one)
    return gathered


def read(path: Path, measure: str) -> dict[str, Trained]:
    """The networks of a file that have a measure, in per cent."""
    with np.load(path) as kept:
        conditions, images = kept["conditions"].tolist(), len(kept["ids"])
        found = {}
        for key in kept.files:
            name, _, what = key.partition("/")
            if what != measure:
                continue
            scores, rest = kept[key].astype(float), kept[f"{key}/drawn"].astype(float)
            found[name] = Trained({
                condition: _value(score, halves, images, condition)
                for condition, score, halves in zip(conditions, scores, rest, strict=True)
            })  # fmt: skip
    return found


def _value(score: float, kept: Drawn, images: int, condition: str) -> Value:
    optimism, *halves = kept.tolist()
    drawn = draws(np.array([score, *halves]), optimism, clean=condition == "clean")
    return Value(100 * score, 100 * drawn, images)


def write(path: Path, scores: Mapping[str, Scores], measures: Sequence[str]) -> None:
    """Write scores of runs with intervals, by network; `read` reads them."""
    first = next(iter(scores.values()))
    conditions = list(first.per_condition[measures[0]])
    arrays = {"conditions": np.array(conditions), "ids": np.arange(first.units or first.images)}
    for name, one in scores.items():
        for measure in measures:
            cells, spread = one.per_condition[measure], one.spread(measure)
            arrays[f"{name}/{measure}"] = np.array([cells[text] for text in conditions], np.float32)
            drawn = [[cells[text] - spread[text][0], *spread[text][LEADING:]] for text in conditions]
            arrays[f"{name}/{measure}/drawn"] = np.array(drawn, np.float16)
    np.savez_compressed(path, **arrays)


def grid(names: Iterable[str], severities: Sequence[int] = range(1, 6)) -> list[str]:
    return [f"{name}@{severity}" for name in names for severity in severities]
