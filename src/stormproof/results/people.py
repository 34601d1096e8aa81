"""People in a run (*pezzementi*): curves at fixed sensitivities, worst images, contextual corruptions
predicted from simple ones, and how much haze and defocus affect people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption, InvalidTruth, UnknownName
from stormproof.core.sample import Floats
from stormproof.corruptions import find
from stormproof.corruptions.needs import usable_depth
from stormproof.corruptions.recipes.mutators import blur_radius
from stormproof.corruptions.suites import SUITES
from stormproof.imaging import Field
from stormproof.metrics.inputs import Objects
from stormproof.metrics.prediction import PAIRS, Predicted, predict_pairs
from stormproof.metrics.roc import People, Roc, Worsening, roc, worst_people
from stormproof.results.run import Run
from stormproof.results.scoring import iter_inputs
from stormproof.results.sets import same_condition


@dataclass(frozen=True, eq=False)
class PeopleRun:
    """A run's people by condition."""

    run: Run
    found: dict[str, People]

    def at(self, condition: str) -> People:
        """The people under a condition, which may be given by severity or by parameters."""
        text = same_condition(condition, self.found)
        if text is None:
            listed = f"It has {', '.join(self.found)}."
            raise UnknownName("condition of the run", condition, self.found, listed)
        return self.found[text]

    def curve(self, condition: str, *, iou: float = 0.5) -> Roc:
        """Detection rate against FPPI under a condition (Fig. 5)."""
        people = self.at(condition)
        return roc(people.truth, people.found, iou=iou)

    def rates(self, condition: str) -> tuple[Floats, Floats]:
        """Detection rate and FPPI reached, by IoU and by the sensitivities of the clean images."""
        once = np.ones((1, len(self.run.readable)))
        rates, fppi = self.at(condition).rates(once, self.found["clean"].sensitivities(once))
        return rates[0], fppi[0]

    def adr(self, condition: str) -> float:
        """The average detection rate, a fraction."""
        return float(self.rates(condition)[0].mean())

    def worst(self, condition: str, *, count: int) -> list[Worsening]:
        """The images that a condition harms most (Fig. 6)."""
        return worst_people(self.found["clean"], self.at(condition), count=count)


def open_people(run: Run) -> PeopleRun:
    """The people of a run, which must include the clean images."""
    if "clean" not in run.conditions:
        raise IncompleteGrid(("clean",), len(run.conditions))
    run.check()
    run.require_complete("score")
    by_condition = {
        text: metric_input.people
        for text, metric_input in iter_inputs(run, "all", run.conditions)
        if isinstance(metric_input, Objects) and metric_input.people is not None
    }
    if not by_condition:
        raise InvalidOption(f"{run.record.dataset.name} has no class of people.")
    return PeopleRun(run, {text: by_condition[text] for text in run.conditions if text in by_condition})


def predict_contextual(runs: Sequence[PeopleRun]) -> dict[str, Predicted]:
    """Normalised ADR under defocus and haze from blur and blending, one system left out (Fig. 7)."""
    wanted = [text for text in (runs[0].found if runs else ()) if text == "clean" or _is_paired(text)]
    shared = [text for text in wanted if all(text in run.found for run in runs)]
    predicted = predict_pairs({_name(runs, k): {t: run.adr(t) for t in shared} for k, run in enumerate(runs)})
    if not predicted:
        pairs = " and ".join(f"{name} with {simple}" for name, simple in PAIRS.items())
        raise InvalidOption(
            f"The runs share no pair to predict ({pairs}); run --conditions mutators,contextual."
        )
    return predicted


def _is_paired(condition: str) -> bool:
    return Condition.parse(condition).corruption in {*PAIRS, *PAIRS.values()}


def _name(runs: Sequence[PeopleRun], k: int) -> str:
    names = [each.run.record.model.name for each in runs]
    return names[k] if names.count(names[k]) == 1 else f"{names[k]} ({k + 1})"


def levels(contextual: str) -> tuple[float, ...]:
    """The magnitudes of the simple mutator that a contextual one resembles, and 0 for almost none."""
    simple = (c for c in SUITES["mutators"] if c.corruption == PAIRS[contextual])
    return (0.0, *(float(value) for c in simple for _, value in c.params if not isinstance(value, str)))


def amount(condition: Condition, depth: Field) -> Field:
    """How strong a contextual condition is at each pixel: σ of the blur in pixels, or the weight of grey."""
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


def histograms(people: PeopleRun) -> dict[str, Floats]:
    """For each contextual condition of a run the shares of `levels` inside people's boxes (Fig. 8).

    Every person counts once, however large, as in detection rates.
    """
    conditions = {text: Condition.parse(text) for text in people.found}
    conditions = {text: c for text, c in conditions.items() if c.corruption in PAIRS}
    if not conditions:
        raise InvalidOption(
            f"The run contains no haze or defocus conditions (found: {', '.join(people.found)})."
        )
    truth = people.found["clean"].truth
    counts = ~truth.excused
    inside: dict[str, list[Floats]] = {text: [] for text in conditions}
    for index, name in zip(people.run.readable, people.run.ids, strict=True):
        boxes = truth.boxes[counts & (truth.image == truth.position.get(name))]
        if not len(boxes):
            continue
        sample = people.run.dataset[index]
        depth = usable_depth(sample.context.depth, sample.image.shape[:2], "The histogram")
        for text, condition in conditions.items():
            amounts, steps = amount(condition, depth), levels(condition.corruption or "")
            inside[text] += [shares(part, steps) for box in boxes if (part := _inside(amounts, box)).size]
    if not any(inside.values()):
        raise InvalidTruth("No image of the run has a person that counts.")
    return {text: np.mean(parts, axis=0) for text, parts in inside.items()}


def _inside(field: Field, box: Floats) -> Field:
    x1, y1, x2, y2 = (max(round(float(v)), 0) for v in box)
    return field[y1:y2, x1:x2]
