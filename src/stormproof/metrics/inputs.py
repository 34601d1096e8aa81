"""The input of metrics for one condition: ground truth and predictions of all images, and how they match.

Each kind of match is computed once, when a metric first needs it, for all metrics and all rows of weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np
from scipy import sparse

from stormproof.core import forms
from stormproof.core.forms import Form, form
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.core.threads import cached
from stormproof.metrics.calibration import Tuned
from stormproof.metrics.cocomatching import Matches, match_boxes, match_masks
from stormproof.metrics.lrp import TAU, Located, locate
from stormproof.metrics.metric import Scored, Weights, metrics_of
from stormproof.metrics.object_error import MatchingRule, ObjectErrors, object_errors
from stormproof.metrics.precision import Judged
from stormproof.metrics.records import Detections, DetectionTruth, select
from stormproof.metrics.roc import People
from stormproof.metrics.voc import judge_by_devkit

UNKNOWN_CLASS = "(no class of the dataset)"


class RunReader(Protocol):
    """What a form may ask a run for when it collects the input of metrics. Labels are the dataset's.

    `images` is how many images are scored; `map_classes` are the classes of maps, `scored_maps` the labels of
    those that are scored, `map_labels` the dataset's label of each class of the model's maps, −1 for none.
    `things` marks the classes of maps with countable objects. `person` is the label of people among objects.
    """

    @property
    def images(self) -> int: ...
    @property
    def rule(self) -> MatchingRule: ...
    @property
    def map_classes(self) -> tuple[str, ...]: ...
    @property
    def scored_maps(self) -> tuple[int, ...]: ...
    @property
    def map_labels(self) -> Ints: ...
    @property
    def things(self) -> Bools: ...
    @property
    def person(self) -> int | None: ...
    @property
    def has_masks(self) -> bool:
        """Whether both predictions and objects have masks."""

    def pixel_counts(
        self, columns: tuple[str, str, str]
    ) -> Iterator[tuple[str, tuple[Ints, Ints, Ints], Ints]]:
        """By condition: the three columns of counts, entry by entry, and the image of each entry."""

    def by_image(self, column: str) -> Iterator[tuple[str, Floats | None]]:
        """By condition: images × the numbers of a column, all of one length; 0 for an image without any, None
        if no image has any."""

    def objects(
        self, *, masks: bool = False, forms: Sequence[str] = ()
    ) -> Iterator[tuple[str, DetectionTruth, Detections]]:
        """By condition, the clean one first: objects and detections, with masks and with the arrays of some
        forms in their `data`. A detection of no class of the dataset has a label one above its last."""


class MetricInput(ABC):
    """Base class of the inputs."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The inputs (`metric.INPUTS`) that it is."""

    @property
    @abstractmethod
    def scored_names(self) -> tuple[str, ...]:
        """The names of the classes that are scored."""

    @abstractmethod
    def of_images(self, chosen: Ints) -> Self:
        """The same with the chosen images only, renumbered; an image may be chosen twice."""

    def repeated(self, times: Ints) -> Self:
        """The same with every image repeated `times` times."""
        return self.of_images(np.repeat(np.arange(len(times)), np.asarray(times, np.int64)))

    def scored(self, weights: Weights) -> Scored:
        """The numbers of every metric that takes this input, for every row of weights."""
        total = Scored({})
        for declared in metrics_of(*self.kinds):
            total |= declared.score(self, weights)
        return total


@dataclass(frozen=True, eq=False)
class Objects(MetricInput):
    """Objects and detections of one condition.

    A detection of a class that the dataset lacks has a label one above the dataset's last. Average precision
    ignores it; for the object error it is a box of a wrong class. `person` is the label of people.
    Sensitivities are fixed on `clean`, the people of the clean images, score thresholds on `tuned`, the
    detections of the clean images. `scored_masks` says whether masks are scored too, `is_clean` whether these
    are the clean images.
    """

    truth: DetectionTruth
    found: Detections
    rule: MatchingRule = field(default_factory=MatchingRule)
    person: int | None = None
    clean: People | None = None
    scored_masks: bool = False
    tuned: Tuned | None = None
    is_clean: bool = False

    @cached
    def named(self) -> Detections:
        """The detections of classes that the dataset has."""
        return self._selected(self.found.labels < len(self.truth.classes))

    @cached
    def named_boxes(self) -> Detections:
        """The detections of classes that the dataset has, without masks."""
        return self._boxes_only(self.named)

    @cached
    def boxes(self) -> Matches:
        """COCO's matches of boxes."""
        return match_boxes(self.truth, self.named_boxes)

    @staticmethod
    def counting(truth: DetectionTruth) -> Bools:
        """The objects that `located` judges."""
        return ~truth.excused

    @cached
    def located(self) -> Located:
        """Boxes matched to objects at IoU 0.5 or more."""
        return locate(self.truth, self.named_boxes, TAU)

    @cached
    def touching(self) -> Located:
        """Boxes matched to objects at any overlap."""
        return locate(self.truth, self.named_boxes, 0.0)

    @cached
    def tuning(self) -> Tuned:
        """The detections on which score thresholds are fixed; without clean images, the condition's own."""
        return Tuned(self.located, self.touching) if self.tuned is None else self.tuned

    @cached
    def masks(self) -> Matches:
        """COCO's matches of masks."""
        return match_masks(self.truth, self.named)

    @cached
    def voc(self) -> Judged:
        """The VOC devkit's verdicts."""
        return judge_by_devkit(self.truth, self.named_boxes)

    @cached
    def errors(self) -> ObjectErrors:
        """The error and the symptom of every object (*liu*)."""
        known = replace(self.truth, classes=(*self.truth.classes, UNKNOWN_CLASS))
        return object_errors(known, self._boxes_only(self.found), rule=self.rule)

    @cached
    def people(self) -> People | None:
        """The people and the detections of people; None if the dataset has no such class."""
        if self.person is None:
            return None
        truth = select(self.truth, np.flatnonzero(self.truth.labels == self.person))
        detections = self._boxes_only(self._selected(self.found.labels == self.person))
        return People(
            replace(truth, classes=(truth.classes[self.person],), labels=np.zeros_like(truth.labels)),
            replace(detections, labels=np.zeros_like(detections.labels)),
        )

    @property
    def scored_names(self) -> tuple[str, ...]:
        return self.truth.classes

    def of_images(self, chosen: Ints) -> Objects:
        clean = None if self.clean is None else self.clean.of_images(chosen)
        tuned = None if self.tuned is None else self.tuned.of_images(chosen, len(self.truth.ids))
        truth, detections = self.truth.of_images(chosen), self.found.of_images(chosen)
        return replace(self, truth=truth, found=detections, clean=clean, tuned=tuned)

    def repeated(self, times: Ints) -> Objects:
        several = super().repeated(times)
        width = len(str(len(several.truth.ids)))
        # Each copy gets an id of its own. Only digits are added, since numeric ids decide ties of scores.
        ids = tuple(f"{name}{k:0{width}}" for k, name in enumerate(several.truth.ids))
        return replace(several, truth=replace(several.truth, ids=ids))

    @property
    def kinds(self) -> tuple[str, ...]:
        people = self.people is not None and self.clean is not None and self.people.shown and self.clean.shown
        federated = self.truth.federated is not None
        optional = {"masks": self.scored_masks, "people": people, "clips": self.truth.in_clips}
        optional |= {"federated": federated, "federated masks": federated and self.scored_masks}
        return ("boxes", *(kind for kind, provided in optional.items() if provided))

    def _selected(self, kept: Bools) -> Detections:
        return self.found if kept.all() else select(self.found, np.flatnonzero(kept))

    @staticmethod
    def _boxes_only(detections: Detections) -> Detections:
        return replace(detections, masks=()) if detections.masks else detections


@dataclass(frozen=True, eq=False)
class Maps(MetricInput):
    """Numbers of pixels of one condition by image, true class and predicted class.

    `confusions` is images × (true class, predicted class), flattened; the last row and column of each matrix
    are for classes that the dataset lacks. Means are over the labels in `kept`. `confidences` is images × the
    sums of `metrics.map_calibration`, or None if the model reports no confidence.
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
        """From counts of pixels; a predicted class that the dataset lacks is −1."""
        side = len(classes) + 1
        cell = truth * side + np.where(predicted < 0, len(classes), predicted)
        table = sparse.csr_array((pixels.astype(np.float64), (image, cell)), shape=(images, side * side))
        return cls(table, tuple(classes), tuple(kept), confidences)

    def counts(self, weights: Weights) -> Floats:
        """The confusion matrix of each row of weights: replicates × true × predicted."""
        side = len(self.classes) + 1
        return np.asarray((self.confusions.T @ weights.T.astype(np.float64)).T).reshape(-1, side, side)

    @property
    def scored_names(self) -> tuple[str, ...]:
        return tuple(self.classes[label] for label in self.kept)

    def of_images(self, chosen: Ints) -> Maps:
        sums = None if self.confidences is None else self.confidences[chosen]
        return replace(self, confusions=self.confusions[chosen], confidences=sums)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("maps",) if self.confidences is None else ("maps", "confidences")


@dataclass(frozen=True, eq=False)
class Segments(MetricInput):
    """Matched and unmatched segments of one condition, as `metrics.panoptic.match_segments` counts them.

    `table` is images × (sum of IoU, TP, FP, FN) × classes. Means are over the labels in `kept`; `things`
    marks the classes with countable objects.
    """

    table: Floats
    classes: tuple[str, ...]
    kept: tuple[int, ...]
    things: Bools

    @property
    def scored_names(self) -> tuple[str, ...]:
        return tuple(self.classes[label] for label in self.kept)

    def of_images(self, chosen: Ints) -> Segments:
        return replace(self, table=self.table[chosen])

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("segments",)


def _collect_objects(reader: RunReader) -> Iterator[tuple[str, Objects]]:
    """The objects of every condition; what the clean images fix is passed to the others."""
    clean = tuned = None
    for text, truth, detections in reader.objects(masks=reader.has_masks):
        objects = Objects(truth, detections, reader.rule, reader.person, clean, reader.has_masks, tuned)
        if text == "clean":
            clean, tuned = objects.people, Tuned(objects.located, objects.touching)
            objects = replace(objects, clean=clean, tuned=tuned, is_clean=True)
        yield text, objects


OBJECTS = form(
    Form(
        forms.OBJECTS, "objects", collect=_collect_objects,
        inputs=("boxes", "masks", "people", "clips", "federated", "federated masks"),
    ),
    __name__,
)  # fmt: skip
