"""How much haze and defocus happen to people (*pezzementi*, Fig. 8): blend and blur inside their boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, InvalidTruth
from stormproof.core.sample import Floats
from stormproof.corruptions import find
from stormproof.corruptions.needs import needed
from stormproof.corruptions.recipes.contextual import blur_radius
from stormproof.corruptions.suites import MUTATORS
from stormproof.imaging import Field
from stormproof.metrics.prediction import PAIRS
from stormproof.results.people import PeopleRun


def levels(contextual: str) -> tuple[float, ...]:
    """The magnitudes of the simple mutator that a contextual one resembles, and 0 for hardly any."""
    simple = (c for c in MUTATORS if c.corruption == PAIRS[contextual])
    return (0.0, *(float(value) for c in simple for _, value in c.params if not isinstance(value, str)))


def amount(condition: Condition, depth: Field) -> Field:
    """What a contextual condition does at each pixel: σ of the blur in pixels, or the weight of the grey."""
    values = {
        key: float(value) for key, value in find(condition.corruption or "").parameters(condition).items()
    }
    if condition.corruption == "defocus":
        return blur_radius(depth, **values)
    return np.asarray(1 - np.exp(-np.float32(values["beta"]) * depth), np.float32)


def shares(amounts: Field, magnitudes: Sequence[float]) -> Floats:
    """The share of the pixels nearest to each magnitude.

    >>> shares(np.array([0.1, 0.2, 0.9], np.float32), (0.0, 0.5, 1.0)).round(2).tolist()
    [0.67, 0.0, 0.33]
    """
    between = (np.asarray(magnitudes[1:]) + np.asarray(magnitudes[:-1])) / 2
    bins = np.searchsorted(between, amounts.ravel(), side="right")
    return np.asarray(np.bincount(bins, minlength=len(magnitudes)) / max(amounts.size, 1), np.float64)


def histograms(run: PeopleRun) -> dict[str, Floats]:
    """For each contextual condition of a run the shares of `levels` inside people's boxes.

    Every person counts once, however large: detection rates count people, too.
    """
    conditions = {text: Condition.parse(text) for text in run.found}
    conditions = {text: c for text, c in conditions.items() if c.corruption in PAIRS}
    if not conditions:
        raise InvalidOption(f"The run has no haze and no defocus, only {', '.join(run.found)}.")
    truth = run.truth("clean")
    counts = ~truth.excused
    people: dict[str, list[Floats]] = {text: [] for text in conditions}
    for index, name in enumerate(run.truths.dataset.ids[: run.truths.images]):
        boxes = truth.boxes[counts & (truth.image == truth.position.get(name))]
        if not len(boxes):
            continue
        sample = run.truths.dataset[index]
        depth = needed("depth", "The histogram", sample.image, sample.context)
        for text, condition in conditions.items():
            amounts, steps = amount(condition, depth), levels(condition.corruption or "")
            people[text] += [shares(inside, steps) for box in boxes if (inside := _inside(amounts, box)).size]
    if not any(people.values()):
        raise InvalidTruth("No image of the run has a person that counts.")
    return {text: np.mean(found, axis=0) for text, found in people.items()}


def _inside(field: Field, box: Floats) -> Field:
    x1, y1, x2, y2 = (max(round(float(v)), 0) for v in box)
    return field[y1:y2, x1:x2]
