"""People in a run (*pezzementi*): curves at fixed sensitivities, worst images, contextual from simple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption, UnknownName
from stormproof.metrics.prediction import PAIRS, Predicted, normalise, predict_from_its_pair
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import (
    DetectionRates,
    Roc,
    Sensitivities,
    Worsening,
    detection_rates,
    fix_sensitivities,
    roc,
    worst_images,
)
from stormproof.models.classes import match_classes
from stormproof.results.measures import people
from stormproof.results.reading import RunRows
from stormproof.results.store.completeness import unreadable_images
from stormproof.results.store.record import RunRecord, read_record
from stormproof.results.store.reopen import dataset_of
from stormproof.results.truths import Truths, only


@dataclass(frozen=True, eq=False)
class PeopleRun:
    """A run's people: truth and detections of that one class, by condition."""

    record: RunRecord
    truths: Truths
    found: dict[str, Detections]
    label: int

    @cached_property
    def sensitivities(self) -> Sensitivities:
        """Fixed on the clean images."""
        return fix_sensitivities(self.truth("clean"), self.detections("clean"))

    def truth(self, condition: str) -> DetectionTruth:
        return only(self.truths.under(Condition.parse(condition)), self.label)

    def detections(self, condition: str) -> Detections:
        if condition not in self.found:
            listed = f"It has {', '.join(self.found)}."
            raise UnknownName("condition of the run", condition, self.found, listed)
        return self.found[condition]

    def curve(self, condition: str, *, iou: float = 0.5) -> Roc:
        """Detection rate against FPPI under a condition (Fig. 5)."""
        return roc(self.truth(condition), self.detections(condition), iou=iou)

    def rates(self, condition: str) -> DetectionRates:
        """At the sensitivities of the clean images."""
        return detection_rates(self.truth(condition), self.detections(condition), self.sensitivities)

    def worst(self, condition: str, *, count: int) -> list[Worsening]:
        """The images a condition harms most (Fig. 6)."""
        return worst_images(
            self.truth(condition), self.detections("clean"), self.detections(condition), count=count
        )


def open_people(run: Path, *, data: str | None = None) -> PeopleRun:
    """The people of a run folder, which must hold the clean images, too."""
    record = read_record(run)
    if "clean" not in record.conditions:
        raise IncompleteGrid(("clean",), len(record.conditions))
    unreadable = frozenset(unreadable_images(run, record))
    truths = Truths(dataset_of(record, data), record.images, record.seed, unreadable=unreadable)
    label = truths.person
    if label is None:
        raise InvalidOption(f"{record.dataset.name} has no class of people.")
    match = match_classes(record.model.classes, truths.dataset.classes)
    rows = RunRows(run, record).detections(record.conditions, match, truths.still.position, masks=False)
    return PeopleRun(record, truths, {text: people(found, label) for text, found in rows}, label)


def predict_contextual(runs: Sequence[PeopleRun]) -> dict[str, Predicted]:
    """Normalised ADR under defocus and haze from blur and blending, one system left out (Fig. 7)."""
    wanted = [text for text in (runs[0].found if runs else ()) if text == "clean" or _has_part(text)]
    shared = [text for text in wanted if all(text in run.found for run in runs)]
    scores = normalise({_name(runs, k): {t: run.rates(t).adr for t in shared} for k, run in enumerate(runs)})
    told = {name: predict_from_its_pair(scores, name) for name in PAIRS}
    found = {name: each for name, each in told.items() if each is not None}
    if not found:
        pairs = " and ".join(f"{name} with {simple}" for name, simple in PAIRS.items())
        raise InvalidOption(
            f"The runs share no pair to predict ({pairs}); run --conditions mutators,contextual."
        )
    return found


def _has_part(condition: str) -> bool:
    return Condition.parse(condition).corruption in {*PAIRS, *PAIRS.values()}


def _name(runs: Sequence[PeopleRun], k: int) -> str:
    names = [run.record.model.name for run in runs]
    return names[k] if names.count(names[k]) == 1 else f"{names[k]} ({k + 1})"
