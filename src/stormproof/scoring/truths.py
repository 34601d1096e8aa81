"""What the dataset says about the images of a run, moved where a condition moves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stormproof.condition import Condition
from stormproof.corruptions import find, truth_under
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.records import DetectionTruth
from stormproof.sample import Instances

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

    @cached_property
    def has_masks(self) -> bool:
        """Whether every object has a mask."""
        return len(self.still) > 0 and all(mask is not None for mask in self.still.masks)

    @cached_property
    def person(self) -> int | None:
        """The label of people, if the dataset has them."""
        return next((i for i, name in enumerate(self.classes) if name.lower() in PEOPLE), None)

    def _laid_out(self, condition: Condition) -> DetectionTruth:
        return DetectionTruth.of(self._objects(condition), self.classes)

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
        place = np.array([self.classes.index(c) if c in self.classes else -1 for c in self.dataset.classes])
        kept = np.flatnonzero(place[objects.labels] >= 0)
        masks = None if objects.masks is None else tuple(objects.masks[i] for i in kept.tolist())
        return Instances(
            objects.boxes[kept], place[objects.labels[kept]], masks, objects.crowd[kept],
            objects.ignore[kept], objects.area[kept], objects.ids[kept],
        )  # fmt: skip


def moves(condition: Condition) -> bool:
    """Whether a condition moves the truth along with the pixels."""
    return condition.corruption is not None and find(condition.corruption).moves_labels(condition)


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
