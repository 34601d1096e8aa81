"""What a dataset contains, and everything that is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import DatasetError, StormproofError
from stormproof.core.files import is_file
from stormproof.core.sample import Context, Instances, SemanticMap, Truth
from stormproof.datasets.dataset import Dataset


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where: a file or sample, and the record in it."""

    where: str
    what: str


@dataclass
class Survey:
    """Counts over the images that were inspected."""

    name: str
    images: int
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    looked_at: int = 0
    missing_files: int = 0
    labels: Counter[str] = field(default_factory=Counter)  # kind of label → images that have it
    context: Counter[str] = field(default_factory=Counter)  # kind of context → images that have it
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    objects: Counter[str] = field(default_factory=Counter)  # class → objects that count
    pixels: Counter[str] = field(default_factory=Counter)  # semantic class → pixels
    excused: int = 0  # crowds and ignored regions
    outside: int = 0  # boxes that reach beyond their image, as some datasets intend
    problems: list[Problem] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)  # of the inspected images

    def summary(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "name": self.name,
            "images": self.images,
            "looked_at": self.looked_at,
            "missing_files": self.missing_files,
            "classes": list(self.classes),
            "semantic_classes": list(self.semantic_classes),
            "labels": dict(self.labels),
            "context": dict(self.context),
            "sizes": [{"height": h, "width": w, "images": n} for (h, w), n in sorted(self.sizes.items())],
            "objects": {name: self.objects[name] for name in self.classes},
            "excused": self.excused,
            "outside": self.outside,
            "pixels": {name: self.pixels[name] for name in self.semantic_classes},
            "problems": [{"where": problem.where, "what": problem.what} for problem in self.problems],
        }


def survey(dataset: Dataset, indices: Iterable[int], *, step: Callable[[], object] = lambda: None) -> Survey:
    """Inspect the truth and size of some images, without decoding pixels."""
    found = _begin(dataset)
    for index in indices:
        with _noting(found, dataset.ids[index]):
            _add_truth(found, dataset.truth(index), dataset.size(index))
        step()
    return found


def check(dataset: Dataset, *, step: Callable[[], object] = lambda: None) -> Survey:
    """Read every image with its truth and context, and note every problem."""
    found = _begin(dataset)
    for index, name in enumerate(dataset.ids):
        with _noting(found, name):
            sample = dataset[index]
            _add_truth(found, sample.truth, (sample.image.shape[0], sample.image.shape[1]))
            _add_context(found, sample.context)
        step()
    return found


def evenly_spread(count: int, most: int) -> list[int]:
    """At most `most` indices from 0 to count − 1, evenly spread.

    >>> evenly_spread(10, 4)
    [0, 3, 6, 9]
    >>> evenly_spread(10, 1)
    [0]
    """
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / max(most - 1, 1)) for i in range(most)]


def problems_of(error: StormproofError) -> list[Problem]:
    """The problems that an error reports."""
    if not isinstance(error, DatasetError):
        return [Problem("", str(error))]
    return [Problem(each.where, each.problem) for each in (error, *error.others)]


def _begin(dataset: Dataset) -> Survey:
    found = Survey(dataset.name, len(dataset), dataset.classes, dataset.semantic_classes)
    found.missing_files = sum(not is_file(image) for image in _image_files(dataset))
    return found


def _image_files(dataset: Dataset) -> Sequence[Path]:
    """The image files of a dataset, in the order of ids."""
    images = getattr(dataset, "images", ())
    return images if isinstance(images, tuple) else ()


@contextmanager
def _noting(found: Survey, name: str) -> Iterator[None]:
    """Turn an error about one image into a problem, so that the other images are still inspected."""
    found.looked_at += 1
    if name in found.ids:
        found.problems.append(Problem(f"sample {name!r}", "the id occurs twice."))
    found.ids.add(name)
    try:
        yield
    except StormproofError as error:
        for problem in problems_of(error):
            found.problems.append(Problem(problem.where or f"sample {name!r}", problem.what))


def _add_truth(found: Survey, truth: Truth, size: tuple[int, int]) -> None:
    found.sizes[size] += 1
    if truth.instances is not None:
        _add_instances(found, truth.instances, size)
    if truth.semantic is not None:
        found.labels["semantic"] += 1
        _add_pixels(found, truth.semantic)
    if truth.panoptic is not None:
        found.labels["panoptic"] += 1


def _add_instances(found: Survey, instances: Instances, size: tuple[int, int]) -> None:
    found.labels["boxes"] += 1
    if instances.masks is not None:
        found.labels["masks"] += 1
    excused = instances.crowd | instances.ignore
    found.excused += len(np.unique(instances.boxes[excused], axis=0))  # one region may excuse every class
    for label in instances.labels[~excused]:
        found.objects[found.classes[label]] += 1
    height, width = size
    low, high = instances.boxes[:, :2], instances.boxes[:, 2:]
    # A pixel of tolerance: formats that count from 1, or round, may exceed the edge by one.
    found.outside += int(((low < -1).any(axis=1) | (high > [width + 1, height + 1]).any(axis=1)).sum())


def _add_pixels(found: Survey, semantic: SemanticMap) -> None:
    counts = np.bincount(semantic.labels.ravel())
    for value in np.flatnonzero(counts):
        if value != semantic.ignore:
            found.pixels[found.semantic_classes[value]] += int(counts[value])


def _add_context(found: Survey, context: Context) -> None:
    for name in ("depth", "disparity", "camera", "right"):
        found.context[name] += getattr(context, name) is not None
