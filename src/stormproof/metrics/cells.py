"""The input of a metric for one condition: truth and predictions of all images, and how they match.

Each matching is computed once, when a metric first needs it, for all metrics and all rows of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.calibration import Tuned
from stormproof.metrics.cocomatching import Matches, match_boxes, match_masks
from stormproof.metrics.lrp import TAU, Located, locate
from stormproof.metrics.metric import Scored, Weights, metrics_of
from stormproof.metrics.object_error import MatchingRule, ObjectErrors, object_errors
from stormproof.metrics.precision import Judged
from stormproof.metrics.records import Detections, DetectionTruth, taken
from stormproof.metrics.roc import People
from stormproof.metrics.voc import judged_voc

UNKNOWN_CLASS = "(no class of the dataset)"


@dataclass(frozen=True, eq=False)
class Objects:
    """Truth and detections of one condition.

    Detections of classes that the dataset lacks have the label after its last. Average precision ignores
    them; to the object error they are boxes of a wrong class. `person` is the label of people. Sensitivities
    are fixed on `clean`, the people of the clean images, score thresholds on `tuned`, all their detections.
    `scored_masks` says that masks are scored too.
    """

    truth: DetectionTruth
    found: Detections
    rule: MatchingRule = field(default_factory=MatchingRule)
    person: int | None = None
    clean: People | None = None
    scored_masks: bool = False
    tuned: Tuned | None = None

    @cached_property
    def named(self) -> Detections:
        """The detections of classes that the dataset has."""
        return self._chosen(self.found.labels < len(self.truth.classes))

    @cached_property
    def named_boxes(self) -> Detections:
        """The detections of classes that the dataset has, without masks."""
        return self._boxes_only(self.named)

    @cached_property
    def boxes(self) -> Matches:
        """COCO's matches of boxes."""
        return match_boxes(self.truth, self.named_boxes)

    @cached_property
    def located(self) -> Located:
        """Boxes with the objects they found at IoU 0.5 or more."""
        return locate(self.truth, self.named_boxes, TAU)

    @cached_property
    def touching(self) -> Located:
        """Boxes with the objects they found at any overlap."""
        return locate(self.truth, self.named_boxes, 0.0)

    @cached_property
    def masks(self) -> Matches:
        """COCO's matches of masks."""
        return match_masks(self.truth, self.named)

    @cached_property
    def voc(self) -> Judged:
        """The VOC devkit's verdicts."""
        return judged_voc(self.truth, self.named_boxes)

    @cached_property
    def errors(self) -> ObjectErrors:
        """*liu*'s error and symptom of every object."""
        known = replace(self.truth, classes=(*self.truth.classes, UNKNOWN_CLASS))
        return object_errors(known, self._boxes_only(self.found), rule=self.rule)

    @cached_property
    def people(self) -> People | None:
        """Truth and detections of people; None if the dataset has no such class."""
        if self.person is None:
            return None
        found = self._boxes_only(self._chosen(self.found.labels == self.person))
        found = replace(found, labels=np.zeros(len(found), np.int64))
        return People(only(self.truth, self.person), found)

    def of_images(self, chosen: Ints) -> Objects:
        """The chosen images, renumbered; an image may be chosen twice."""
        clean = None if self.clean is None else self.clean.of_images(chosen)
        tuned = None if self.tuned is None else self.tuned.of_images(chosen, len(self.truth.ids))
        truth, found = self.truth.of_images(chosen), self.found.of_images(chosen)
        return replace(self, truth=truth, found=found, clean=clean, tuned=tuned)

    def repeated(self, times: Ints) -> Objects:
        """Every image repeated `times` times, each copy under its own name."""
        several = self.of_images(np.repeat(np.arange(len(times)), np.asarray(times, np.int64)))
        width = len(str(len(several.truth.ids)))
        # Only digits are added: if the names are numbers, tied scores are ordered by them.
        ids = tuple(f"{name}{k:0{width}}" for k, name in enumerate(several.truth.ids))
        return replace(several, truth=replace(several.truth, ids=ids))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of metrics that fit."""
        people = self.people is not None and self.clean is not None and self.people.shown and self.clean.shown
        fits = {"masks": self.scored_masks, "people": people, "clips": self.truth.in_clips}
        return ("boxes", *(kind for kind, fit in fits.items() if fit))

    def scored(self, weights: Weights) -> Scored:
        """The numbers of every metric that fits."""
        return _scored(self, weights)

    def _chosen(self, kept: Bools) -> Detections:
        return self.found if kept.all() else taken(self.found, np.flatnonzero(kept))

    @staticmethod
    def _boxes_only(found: Detections) -> Detections:
        return replace(found, masks=()) if found.masks else found


@dataclass(frozen=True, eq=False)
class Maps:
    """Pixels of one condition by image, true and predicted class.

    `confusions` are images × (true class, predicted class); both have one more entry, for classes that the
    dataset lacks. Means are over the labels in `kept`. `confidences` are images × the sums of
    `metrics.map_calibration`; None if the model gives no confidence.
    """

    confusions: sparse.csr_array
    classes: tuple[str, ...]
    kept: tuple[int, ...]
    confidences: Floats | None = None

    @classmethod
    def of(
        cls, image: Ints, truth: Ints, predicted: Ints, pixels: Ints, *,
        images: int, classes: Sequence[str], kept: Sequence[int], confidences: Floats | None = None,
    ) -> Maps:  # fmt: skip
        """From counts of pixels; a predicted class of −1 has no name in the dataset."""
        side = len(classes) + 1
        cell = truth * side + np.where(predicted < 0, len(classes), predicted)
        table = sparse.csr_array((pixels.astype(np.float64), (image, cell)), shape=(images, side * side))
        return cls(table, tuple(classes), tuple(kept), confidences)

    def counts(self, weights: Weights) -> Floats:
        """The confusion matrix of each row of weights: replicates × true × predicted."""
        side = len(self.classes) + 1
        return np.asarray((self.confusions.T @ weights.T.astype(np.float64)).T).reshape(-1, side, side)

    def of_images(self, chosen: Ints) -> Maps:
        """The chosen images; an image may be chosen twice."""
        sums = None if self.confidences is None else self.confidences[chosen]
        return replace(self, confusions=self.confusions[chosen], confidences=sums)

    def repeated(self, times: Ints) -> Maps:
        """Every image repeated `times` times."""
        return self.of_images(np.repeat(np.arange(len(times)), np.asarray(times, np.int64)))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of metrics that fit."""
        return ("maps",) if self.confidences is None else ("maps", "confidences")

    def scored(self, weights: Weights) -> Scored:
        """The numbers of every metric that fits."""
        return _scored(self, weights)


@dataclass(frozen=True, eq=False)
class Segments:
    """Matched and unmatched segments of one condition, as `metrics.panoptic.match_segments` counts them.

    `table` is images × (sum of IoU, TP, FP, FN) × classes. Means are over the labels `kept`; `things` says
    which of all classes have objects to count.
    """

    table: Floats
    classes: tuple[str, ...]
    kept: tuple[int, ...]
    things: Bools

    def of_images(self, chosen: Ints) -> Segments:
        """The same of some images, which may come twice."""
        return replace(self, table=self.table[chosen])

    def repeated(self, times: Ints) -> Segments:
        """The same with every image as often as `times` says."""
        return self.of_images(np.repeat(np.arange(len(times)), np.asarray(times, np.int64)))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of metrics that fit."""
        return ("segments",)

    def scored(self, weights: Weights) -> Scored:
        """The numbers of every metric that fits."""
        return _scored(self, weights)


def _scored(cell: Objects | Maps | Segments, weights: Weights) -> Scored:
    total = Scored({})
    for declared in metrics_of(*cell.kinds):
        total |= declared.score(cell, weights)
    return total


def only(truth: DetectionTruth, label: int) -> DetectionTruth:
    """The objects of one class, as a separate truth."""
    chosen = taken(truth, np.flatnonzero(truth.labels == label))
    return replace(chosen, classes=(truth.classes[label],), labels=np.zeros(len(chosen), np.int64))
