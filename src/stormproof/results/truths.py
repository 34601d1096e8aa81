"""The truth that a run is scored against: objects and maps of some classes, moved if a condition moves them.

Scores are over the classes that model and dataset share, unless some are named: a pedestrian detector on COCO
would otherwise be averaged over 79 classes that it cannot find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.forms import OBJECTS
from stormproof.core.sample import Bools, Instances, Ints, Truth
from stormproof.core.text import same_name
from stormproof.corruptions import truth_under
from stormproof.corruptions.chain import moves_labels
from stormproof.corruptions.geometry import select
from stormproof.datasets.attributes import with_distances
from stormproof.datasets.dataset import Dataset, abilities, identity_of
from stormproof.metrics.inputs import Objects
from stormproof.metrics.lvis import with_regions
from stormproof.metrics.records import Detections, DetectionTruth, keep_judgeable
from stormproof.metrics.stability import steps
from stormproof.metrics.task import Task, all_tasks
from stormproof.models.classes import NO_CLASS, ClassMatch, match_classes
from stormproof.results import rows
from stormproof.results.store.schema import MAP_COLUMNS

if TYPE_CHECKING:
    from stormproof.results.run import Run

PEOPLE = ("person", "pedestrian")
ALL = "all"
# Classes to score: names in a list or separated by commas; "all"; None: those that model and dataset share.
ClassSelection = Sequence[str] | str | None


def chosen_classes(model: Sequence[str], dataset: Sequence[str], asked: ClassSelection) -> tuple[str, ...]:
    """The dataset's classes to score, in its order; of those asked for, the ones it has.

    >>> chosen_classes(["pedestrian"], ["car", "person"], None)
    ('person',)
    """
    if asked == ALL:
        return tuple(dataset)
    if asked is not None:
        wanted = {same_name(name, dataset) for name in class_names(asked)}
        return tuple(name for name in dataset if name in wanted)
    shared = {*match_classes(model, dataset).labels}
    return tuple(name for label, name in enumerate(dataset) if label in shared)


def chosen_labels(dataset: Sequence[str], chosen: Sequence[str]) -> tuple[int, ...]:
    """The labels of the chosen classes."""
    return tuple(label for label, name in enumerate(dataset) if name in chosen)


def check_classes(asked: ClassSelection, *known: Sequence[str]) -> None:
    """Refuse a class that the dataset does not have."""
    if asked is None or asked == ALL:
        return
    every = tuple(dict.fromkeys(name for classes in known for name in classes))
    for name in class_names(asked):
        if same_name(name, every) is None:
            raise UnknownName("class of the dataset", name, every, f"Classes: {', '.join(every)}.")
    if not class_names(asked):
        raise InvalidOption("--classes is empty; give some, such as person,car, or all.")


def class_names(asked: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in (asked.split(",") if isinstance(asked, str) else asked) if name.strip()
    )


def restrict_to(match: ClassMatch, chosen: Sequence[str]) -> ClassMatch:
    """The match restricted to some of the dataset's classes; predictions of others have no class."""
    place = {name: i for i, name in enumerate(chosen)}
    labels = (
        NO_CLASS if label == NO_CLASS else place.get(match.dataset[label], NO_CLASS) for label in match.labels
    )
    return ClassMatch(match.model, tuple(chosen), tuple(labels))


@dataclass(frozen=True, eq=False)
class Truths:
    """The truth of the first `images` images, except those that could not be read: the objects of the chosen
    classes, or of all."""

    dataset: Dataset
    images: int
    seed: int
    chosen: tuple[str, ...] | None = None
    unreadable: frozenset[int] = frozenset()  # left out of every condition
    distances: bool = False  # whether depth maps are read to know how far objects are

    @classmethod
    def of_run(cls, run: Run, asked: ClassSelection = None) -> Truths:
        """The objects of the classes asked for, in the images that the run could read."""
        chosen = chosen_classes(run.record.model.classes, run.dataset.classes, asked)
        return cls(run.dataset, run.record.images, run.record.seed, chosen, frozenset(run.unreadable))

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that labels of this truth index."""
        return self.dataset.classes if self.chosen is None else self.chosen

    @cached_property
    def still(self) -> DetectionTruth:
        """The truth under conditions that do not move it, laid out once for all of them."""
        return self._laid_out(Condition())

    def under(self, condition: Condition) -> DetectionTruth:
        """The truth under a condition."""
        return self._laid_out(condition) if moves_labels(condition) else self.still

    @property
    def has_objects(self) -> bool:
        return bool(self.dataset.classes) and self.dataset.truth(0).instances is not None

    def answered_by(self, run: Run) -> bool:
        """Whether the run's model predicts objects, and there are objects of these classes to find."""
        answered = run.has_objects or not any(run.has(name) for name in MAP_COLUMNS)
        return answered and self.has_objects and bool(self.classes)

    def carry(self, form: str) -> bool:
        """Whether objects have the array of a form."""
        return form in self.still.data

    @cached_property
    def has_masks(self) -> bool:
        """Whether every object has a mask."""
        return len(self.still) > 0 and all(mask is not None for mask in self.still.masks)

    @cached_property
    def person(self) -> int | None:
        """The label of people, if the dataset has them."""
        return next((i for i, name in enumerate(self.classes) if name.lower() in PEOPLE), None)

    def _laid_out(self, condition: Condition) -> DetectionTruth:
        known = abilities(self.dataset).all_objects()
        if known is None or moves_labels(condition) or self.distances:
            truth = DetectionTruth.of(self._objects(condition), self.classes)
        else:
            owners, objects = known
            place = np.full(len(self.dataset), -1)
            place[self._readable] = np.arange(len(self._readable))
            kept = np.flatnonzero((place[owners] >= 0) & (self._places[objects.labels] >= 0))
            ids = [self.dataset.ids[index] for index in self._readable]
            truth = DetectionTruth.of_columns(
                ids, place[owners[kept]], self._choose(objects, kept), self.classes
            )
        federated = abilities(self.dataset).federated
        if federated is not None:
            classes = [self.dataset.classes.index(name) for name in self.classes]
            masks = any(mask is not None for mask in truth.masks)
            sizes = [self.dataset.size(index) if masks else None for index in self._readable]
            truth = with_regions(truth, federated.of(self._readable, classes), sizes)
        frames = abilities(self.dataset).frames
        if not frames:
            return truth
        clip, step = steps([frames.get(name) for name in truth.ids])
        return replace(truth, clip=clip, step=step)

    @property
    def _readable(self) -> list[int]:
        return [index for index in range(self.images) if index not in self.unreadable]

    def _objects(self, condition: Condition) -> Iterator[tuple[str, Instances]]:
        nothing = Instances(np.zeros((0, 4)), np.zeros(0, np.int64))
        for index in self._readable:
            name, truth = self.dataset.ids[index], self.dataset.truth(index)
            if self.distances:
                truth = self._with_distances(index, truth)
            if moves_labels(condition):
                size = self.dataset.size(index)
                identity = identity_of(self.dataset, index)
                truth = truth_under(truth, size, condition, seed=self.seed, image_id=identity)
            yield name, self._of_classes(truth.instances or nothing)

    def _with_distances(self, index: int, truth: Truth) -> Truth:
        objects = truth.instances
        if objects is None or not np.isnan(objects.distance).any():
            return truth
        depth = self.dataset[index].context.depth
        return truth if depth is None else replace(truth, instances=with_distances(objects, depth))

    def _of_classes(self, objects: Instances) -> Instances:
        if self.classes == self.dataset.classes:
            return objects
        return self._choose(objects, np.flatnonzero(self._places[objects.labels] >= 0))

    def _choose(self, objects: Instances, kept: Ints) -> Instances:
        """Some of the objects, their labels numbered by `classes`."""
        return replace(select(objects, kept), labels=self._places[objects.labels[kept]])

    @cached_property
    def _places(self) -> Ints:
        """For each of the dataset's labels, its label among `classes`; −1 for classes not chosen."""
        known = {name: place for place, name in enumerate(self.classes)}
        return np.array([known.get(name, -1) for name in self.dataset.classes], np.int64)


def judging_task(run: Run, truths: Truths) -> Task:
    """The task by which the objects of a run are judged one by one: the first that it has the arrays for."""
    return next(
        each
        for each in all_tasks()
        if each.objects is not None
        and (each.form.name == OBJECTS or (run.has(each.form.scored_by) and truths.carry(each.form.name)))
    )


def counting_objects(run: Run, truths: Truths) -> Bools:
    """The objects of the clean images that are judged."""
    judged = judging_task(run, truths).objects
    assert judged is not None
    counting: Bools = judged.counting(truths.still)
    return counting


def iter_judged(run: Run, truths: Truths, conditions: Sequence[str]) -> Iterator[tuple[str, Objects]]:
    """The objects of each condition, to be judged one by one."""
    task = judging_task(run, truths)
    assert task.objects is not None
    for text, truth, detections in iter_matches(run, truths, conditions, masks=False, forms=task.carried):
        yield text, task.objects(truth, detections)


def iter_matches(
    run: Run, truths: Truths, conditions: Sequence[str], *, masks: bool, forms: Sequence[str] = ()
) -> Iterator[tuple[str, DetectionTruth, Detections]]:
    """Truth and detections of each condition, clean first, with labels that index the scored classes."""
    match = restrict_to(match_classes(run.record.model.classes, truths.dataset.classes), truths.classes)
    clean_first = sorted(conditions, key=lambda text: text != "clean")
    place = truths.still.position
    for text, detections in rows.detections(run, clean_first, match, place, masks=masks, forms=forms):
        truth = truths.under(Condition.parse(text))
        yield text, truth, keep_judgeable(detections, truth)
