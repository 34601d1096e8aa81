"""What a run is scored by. A metric's own file declares its measures, and `stormproof score` finds them.

    @measured("boxes", Measure("AP50", "AP at IoU 0.5", section="boxes"))
    def _score(truth: DetectionTruth, found: Detections) -> Scored: ...

What the function is given depends on what it measures:

- "boxes": truth, detections of the dataset's classes
- "every box": truth, all detections (those of classes the dataset lacks have a label of their own, the
  last), the matching rule of object errors
- "masks": truth, detections of the dataset's classes, with masks
- "maps": `Confusion` of all pixels, class names; its last row and column stand for classes the dataset lacks
- "people": truth and detections of people, sensitivities fixed on the clean images
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stormproof.core.discovery import load
from stormproof.core.sample import Floats

INPUTS = ("maps", "boxes", "every box", "masks", "people")
# Every list of measures is in this order.
SECTIONS = ("boxes", "masks", "maps", "objects", "people", "flaws")


@dataclass(frozen=True, slots=True)
class Measure:
    """How a number is read: what it is in words, where it is listed, whether more is better."""

    name: str
    words: str
    section: str
    higher: bool = True
    fraction: bool = True  # printed as a percentage
    aggregate: bool = True  # whether a mean over conditions says anything


@dataclass(frozen=True, slots=True)
class Scored:
    """One condition's numbers by measure, and those that exist per class, per image, or along a curve."""

    numbers: Mapping[str, float]
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    per_image: Mapping[str, Floats] = field(default_factory=dict)  # in the order of the truth's ids
    curves: Mapping[str, Mapping[str, list[float]]] = field(default_factory=dict)

    def __or__(self, other: Scored) -> Scored:
        return Scored(
            {**self.numbers, **other.numbers},
            {**self.per_class, **other.per_class},
            {**self.per_image, **other.per_image},
            {**self.curves, **other.curves},
        )


def mean_present(values: Floats) -> float:
    """The mean over the classes that have a value, which is what protocols average; NaN if none has."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else float("nan")


Scorer = Callable[..., Scored]
_DECLARED: list[tuple[str, Scorer, tuple[Measure, ...]]] = []


def measured(given: str, *measures: Measure) -> Callable[[Scorer], Scorer]:
    """Declare the measures that a function computes from one of `INPUTS`."""
    if given not in INPUTS or any(measure.section not in SECTIONS for measure in measures):
        raise ValueError(f"measures are of {INPUTS}, in one of the sections {SECTIONS}")
    taken = {measure.name for _, _, others in _DECLARED for measure in others}
    for measure in measures:
        if measure.name in taken:
            raise ValueError(f"two measures are called {measure.name!r}")

    def register(scorer: Scorer) -> Scorer:
        _DECLARED.append((given, scorer, measures))
        return scorer

    return register


def measures() -> dict[str, Measure]:
    """Every measure by name: by section, then by the file that declares it."""
    found = [measure for _, _, measures in _declared() for measure in measures]
    return {measure.name: measure for measure in sorted(found, key=lambda m: SECTIONS.index(m.section))}


def score_with(given: str, *inputs: object) -> Scored:
    """The numbers of every measure that is computed from these inputs."""
    total = Scored({})
    for kind, scorer, _ in _declared():
        if kind == given:
            total |= scorer(*inputs)
    return total


def _declared() -> list[tuple[str, Scorer, tuple[Measure, ...]]]:
    """In an order that does not depend on who imported what first."""
    load("stormproof.metrics")
    return sorted(_DECLARED, key=lambda entry: entry[1].__module__)
