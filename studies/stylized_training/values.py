"""Numbers of the trained networks: every aggregate with its replicates, means over seeds, and gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stormproof.results.run import Run

TRAININGS = ("standard", "stylized", "combined")


class Value(NamedTuple):
    """A number in points, and what was drawn for it: less its optimism, then on halves of the images."""

    estimate: float
    replicates: np.ndarray

    def less(self, other: Value) -> Value:
        """Paired: the same images weigh alike in both."""
        return Value(self.estimate - other.estimate, self.replicates - other.replicates)


Values = Mapping[str, Value]  # by the aggregate's flat name: rPC, by_severity/3 …
Trained = Mapping[tuple[str, int], Mapping[str, Values]]  # training and seed → measure → values


def measured(run: Path, measures: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Every aggregate and cell of a run, by measure."""
    scores = Run(run).score(interval=True)
    found = {}
    for measure in measures:
        point, drawn = scores.values(measure), scores.spread(measure)
        found[measure] = {name: Value(100 * point[name], 100 * drawn[name]) for name in drawn}
    return found


def mean(values: Sequence[Value]) -> Value:
    """Over seeds, whose replicates weigh the same images alike."""
    estimates, replicates = zip(*values, strict=True)
    return Value(float(np.mean(estimates)), np.mean(replicates, axis=0))


def seeds_of(found: Trained) -> list[int]:
    return sorted({seed for _, seed in found})


def pooled(found: Trained, training: str, measure: str, name: str) -> Value:
    return mean([found[training, seed][measure][name] for seed in seeds_of(found)])


def gain(found: Trained, training: str, seeds: Sequence[int], measure: str, name: str) -> Value:
    """What a training has over the standard one of the same seed, the mean over seeds."""
    return mean([found[training, s][measure][name].less(found["standard", s][measure][name]) for s in seeds])


def relative(found: Trained, training: str, corruption: str) -> Value:
    """AP under a corruption in % of clean, the mean over seeds."""
    each = []
    for seed in seeds_of(found):
        cells = found[training, seed]["AP"]
        under, clean = cells[f"by_corruption/{corruption}"], cells["P"]
        each.append(Value(100 * under.estimate / clean.estimate, 100 * under.replicates / clean.replicates))
    return mean(each)
