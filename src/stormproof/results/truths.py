"""What the dataset says about the images of a run, moved where a condition moves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.sample import Instances, Ints
from stormproof.corruptions import find, truth_under
from stormproof.corruptions.geometry import select
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.models.classes import match_classes
from stormproof.results.classes import Asked, chosen_classes, narrowed
from stormproof.results.reading import RunRows
from stormproof.results.store.completeness import unreadable_images
from stormproof.results.store.contents import has_objects, has_values
from stormproof.results.store.record import RunRecord

PEOPLE = ("person", "pedestrian")


@dataclass(frozen=True, eq=False)
class Truths:
    """The truth of the first `images` images, but for those that could not be read: the objects of some
    classes, of all if none are named."""

    dataset: Dataset
    images: int
    seed: int
    chosen: tuple[str, ...] | None = None
    unreadable: frozenset[int] = frozenset()  # left out of every condition

    @classmethod
    def of_run(cls, run: Path, record: RunRecord, dataset: Dataset, asked: Asked = None) -> Truths:
        """What a run is scored against: the objects of the classes asked for, in the images it could read."""
        chosen = chosen_classes(record.model.classes, dataset.classes, asked)
        unreadable = frozenset(unreadable_images(run, record))
        return cls(dataset, record.images, record.seed, chosen, unreadable)

    @property
    def classes(self) -> tuple[str, ...]:
        """What labels are numbered by here."""
        return self.dataset.classes if self.chosen is None else self.chosen

    @cached_property
    def still(self) -> DetectionTruth:
        """The truth wherever nothing moves: laid out once for all those conditions."""
        return self._laid_out(Condition())

    def under(self, condition: Condition) -> DetectionTruth:
        """The truth under a condition."""
        return self._laid_out(condition) if moves(condition) else self.still

    @property
    def has_objects(self) -> bool:
        return bool(self.dataset.classes) and self.dataset.truth(0).instances is not None

    def answered_in(self, run: Path) -> bool:
        """Whether a run's model answers with objects of these classes; one of label maps alone does not."""
        answered = has_objects(run) or not has_values(run, "semantic_runs")
        return answered and self.has_objects and bool(self.classes)

    @cached_property
    def has_masks(self) -> bool:
        """Whether every object has a mask."""
        return len(self.still) > 0 and all(mask is not None for mask in self.still.masks)

    @cached_property
    def person(self) -> int | None:
        """The label of people, if the dataset has them."""
        return next((i for i, name in enumerate(self.classes) if name.lower() in PEOPLE), None)

    def _laid_out(self, condition: Condition) -> DetectionTruth:
        known = getattr(self.dataset, "every_object", lambda: None)()
        if known is None or moves(condition):
            return DetectionTruth.of(self._objects(condition), self.classes)
        owners, objects = known
        readable = [index for index in range(self.images) if index not in self.unreadable]
        place = np.full(len(self.dataset), -1)
        place[readable] = np.arange(len(readable))
        kept = np.flatnonzero((place[owners] >= 0) & (self._places[objects.labels] >= 0))
        ids = [self.dataset.ids[index] for index in readable]
        return DetectionTruth.of_columns(ids, place[owners[kept]], self._taken(objects, kept), self.classes)

    def _objects(self, condition: Condition) -> Iterator[tuple[str, Instances]]:
        nothing = Instances(np.zeros((0, 4)), np.zeros(0, np.int64))
        for index in range(self.images):
            if index in self.unreadable:
                continue
            name, truth = self.dataset.ids[index], self.dataset.truth(index)
            if moves(condition):
                size = self.dataset.size(index)
                truth = truth_under(truth, size, condition, seed=self.seed, image_id=name)
            yield name, self._of_classes(truth.instances or nothing)

    def _of_classes(self, objects: Instances) -> Instances:
        if self.classes == self.dataset.classes:
            return objects
        return self._taken(objects, np.flatnonzero(self._places[objects.labels] >= 0))

    def _taken(self, objects: Instances, kept: Ints) -> Instances:
        """Some of the objects, their labels numbered by `classes`."""
        return replace(select(objects, kept), labels=self._places[objects.labels[kept]])

    @cached_property
    def _places(self) -> Ints:
        """What each of the dataset's labels is here; −1 for classes that were not chosen."""
        known = {name: place for place, name in enumerate(self.classes)}
        return np.array([known.get(name, -1) for name in self.dataset.classes], np.int64)


def moves(condition: Condition) -> bool:
    """Whether a condition moves the truth along with the pixels."""
    return condition.corruption is not None and find(condition.corruption).moves_labels(condition)


def met(
    rows: RunRows, record: RunRecord, truths: Truths, conditions: Sequence[str], *, masks: bool
) -> Iterator[tuple[str, DetectionTruth, Detections]]:
    """Truth and detections of each condition in the labels of the classes scored; the clean images first."""
    match = narrowed(match_classes(record.model.classes, truths.dataset.classes), truths.classes)
    clean_first = sorted(conditions, key=lambda text: text != "clean")
    for text, found in rows.detections(clean_first, match, truths.still.position, masks=masks):
        yield text, truths.under(Condition.parse(text)), found


def only(truth: DetectionTruth, label: int) -> DetectionTruth:
    """The objects of one class, as a set of its own."""
    kept = np.flatnonzero(truth.labels == label)
    return DetectionTruth(
        truth.ids, (truth.classes[label],), truth.image[kept], truth.boxes[kept],
        np.zeros(len(kept), np.int64), truth.crowd[kept], truth.ignore[kept], truth.area[kept],
        tuple(truth.masks[i] for i in kept.tolist()), truth.sides[kept],
    )  # fmt: skip


def with_stranger(truth: DetectionTruth) -> DetectionTruth:
    """The truth with one class more, which no object has: that of detections the dataset has no name for."""
    return replace(truth, classes=(*truth.classes, "(no class of the dataset)"))
