"""Surveys of datasets: what they contain, and every problem in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import DatasetError, InvalidTruth, StormproofError, counted
from stormproof.core.files import is_file
from stormproof.core.imagefile import image_header
from stormproof.core.sample import Truth
from stormproof.datasets.annotation_checks import (
    Finding,
    Gravity,
    ImageFacts,
    Inspected,
    check_annotations,
    stray_masks,
)
from stormproof.datasets.chosen import ChosenImages
from stormproof.datasets.dataset import Dataset, FileDataset, abilities
from stormproof.datasets.image_files import file_content, has_files, image_path

_FIRST_IMAGES = 64  # images inspected before a run begins


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where: a file or sample, and the record in it."""

    where: str
    what: str


@dataclass
class Inspection:
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
    problems: list[Problem] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # warnings and notes about the annotations
    depth_remark: str = ""  # which images have doubtful depth
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
            "depth_remark": self.depth_remark,
            "sizes": [{"height": h, "width": w, "images": n} for (h, w), n in sorted(self.sizes.items())],
            "objects": {name: self.objects[name] for name in self.classes},
            "excused": self.excused,
            "pixels": {name: self.pixels[name] for name in self.semantic_classes},
            "problems": [{"where": problem.where, "what": problem.what} for problem in self.problems],
            "findings": [{"level": str(finding.level), "what": finding.what} for finding in self.findings],
        }


def survey(
    dataset: Dataset, indices: Sequence[int], *, step: Callable[[], object] = lambda: None
) -> Inspection:
    """Inspect the truth and size of some images, without decoding pixels."""
    inspection, facts = _new_survey(dataset), {}
    for index in indices:
        with _noting(inspection, dataset.ids[index]):
            truth = dataset.truth(index)
            facts[index] = facts_of(dataset, index, truth)
            _add_truth(inspection, truth, dataset.size(index), facts[index])
        step()
    return _with_findings(inspection, dataset, facts)


def check(dataset: Dataset, *, step: Callable[[], object] = lambda: None) -> Inspection:
    """Read every image with its truth and context, and note every problem."""
    inspection, facts = _new_survey(dataset), {}
    for index, name in enumerate(dataset.ids):
        with _noting(inspection, name):
            sample = dataset[index]
            facts[index] = facts_of(dataset, index, sample.truth)
            size = (sample.image.shape[0], sample.image.shape[1])
            _add_truth(inspection, sample.truth, size, facts[index])
            for kind in ("depth", "disparity", "camera", "right"):
                inspection.context[kind] += getattr(sample.context, kind) is not None
        if index not in facts:  # the image cannot be read, but perhaps its labels can
            with suppress(StormproofError, OSError):
                facts[index] = facts_of(dataset, index, dataset.truth(index))
        step()
    return _with_findings(inspection, dataset, facts)


def first_findings(dataset: Dataset, images: int) -> list[Finding]:
    """Likely errors in the annotations of at most 64 of the first `images` images, found quickly.

    Images that cannot be read are left out: the run itself names them.
    """
    facts = {}
    for index in evenly_spread(images, _FIRST_IMAGES):
        with suppress(StormproofError, OSError):
            facts[index] = facts_of(dataset, index, dataset.truth(index))
    return [one for one in _findings(dataset, facts) if one.level is not Gravity.note]


def facts_of(dataset: Dataset, index: int, truth: Truth) -> ImageFacts:
    """What the annotation checks need to know about an image; only the header of its file is read.

    Labels that name no class are refused: nothing could be counted by class.
    """
    stored, orientation = _header(dataset, index)
    stated, turned = _stated_size(dataset, index)
    objects, semantic = truth.objects, truth.semantic
    pixels, void = None, 0
    if semantic is not None:
        pixels = dict(enumerate(np.bincount(semantic.labels.ravel()).tolist()))
        void = pixels.pop(semantic.ignore, 0)
        pixels = {value: count for value, count in pixels.items() if count}
    _refuse_unnamed(objects.labels.tolist(), dataset.classes, "an object has label", "class")
    if dataset.semantic_classes:  # without names, label maps are not scored
        _refuse_unnamed(pixels or (), dataset.semantic_classes, "the label map holds", "semantic class")
    return ImageFacts(
        id=dataset.ids[index],
        size=stated or dataset.size(index),
        labelled=truth.instances is not None or bool(truth.maps),
        boxes=objects.boxes,
        labels=objects.labels,
        excused=objects.crowd | objects.ignore,
        stray=stray_masks(truth),
        pixels=pixels,
        void=void,
        stored=stored,
        orientation=orientation,
        stated=stated,
        turned=turned,
        data=objects.data,
    )


def _refuse_unnamed(labels: Iterable[int], names: Sequence[str], holds: str, noun: str) -> None:
    for label in labels:
        if not 0 <= label < len(names):
            raise InvalidTruth(f"{holds} {label}, but the dataset names {counted(len(names), noun)}.")


def _header(dataset: Dataset, index: int) -> tuple[tuple[int, int] | None, int]:
    """The size and the orientation tag in an image's file; None and upright without one."""
    path = image_path(dataset, index)
    with suppress(StormproofError):
        if path is not None and is_file(path):
            return image_header(path)
    return None, 1


def _stated_size(dataset: Dataset, index: int) -> tuple[tuple[int, int] | None, bool | None]:
    """The size that the annotation of an image states, and whether images are rotated by their tags."""
    if isinstance(dataset, ChosenImages):
        return _stated_size(dataset.dataset, dataset.kept[index])
    rules = abilities(dataset).rules
    turned = rules.exif == "apply" if rules is not None and rules.exif_stated else None
    return dataset.labels.size(index) if isinstance(dataset, FileDataset) else None, turned


def _findings(dataset: Dataset, facts: dict[int, ImageFacts]) -> list[Finding]:
    twins = _twins(dataset, facts)
    images = [replace(one, twin=twins.get(index)) for index, one in facts.items()]
    whole = len(images) == len(dataset)
    return check_annotations(Inspected(images, dataset.classes, dataset.semantic_classes, whole))


def _twins(dataset: Dataset, indices: Iterable[int]) -> dict[int, str]:
    """The images whose file has the same bytes as an earlier one, with the id of that one."""
    same_size: dict[int, list[tuple[int, Path]]] = defaultdict(list)
    for index in indices:
        path = image_path(dataset, index)
        with suppress(OSError):
            if path is not None:
                same_size[path.stat().st_size].append((index, path))
    first: dict[str, str] = {}
    twins = {}
    for group in same_size.values():
        for index, path in group if len(group) > 1 else ():
            own = dataset.ids[index]
            with suppress(OSError):
                known = first.setdefault(file_content(path), own)
                if known != own:
                    twins[index] = known
    return twins


def _with_findings(inspection: Inspection, dataset: Dataset, facts: dict[int, ImageFacts]) -> Inspection:
    """The survey with the results of the checks: problems among its problems, the rest as findings."""
    for one in _findings(dataset, facts):
        if one.level is Gravity.problem:
            inspection.problems.append(Problem("", one.what))
        else:
            inspection.findings.append(one)
    return inspection


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


def _new_survey(dataset: Dataset) -> Inspection:
    inspection = Inspection(dataset.name, len(dataset), dataset.classes, dataset.semantic_classes)
    inspection.depth_remark = abilities(dataset).depth_remark
    if not len(dataset):
        inspection.problems.append(Problem("", "the dataset has no images."))
    images = len(dataset) if has_files(dataset) else 0  # one without files may be endless
    paths = (image_path(dataset, index) for index in range(images))
    inspection.missing_files = sum(path is not None and not is_file(path) for path in paths)
    return inspection


@contextmanager
def _noting(inspection: Inspection, name: str) -> Iterator[None]:
    """Turn an error about one image into a problem, so that the other images are still inspected."""
    inspection.looked_at += 1
    if name in inspection.ids:
        inspection.problems.append(Problem(f"sample {name!r}", "the id occurs twice."))
    inspection.ids.add(name)
    try:
        yield
    except StormproofError as error:
        for problem in problems_of(error):
            inspection.problems.append(Problem(problem.where or f"sample {name!r}", problem.what))
    except OSError as error:  # of a store that cannot be reached
        inspection.problems.append(Problem(f"sample {name!r}", f"cannot be read: {error}."))


def _add_truth(inspection: Inspection, truth: Truth, size: tuple[int, int], facts: ImageFacts) -> None:
    inspection.sizes[size] += 1
    objects = truth.instances
    if objects is not None:
        inspection.labels["boxes"] += 1
        if objects.masks is not None:
            inspection.labels["masks"] += 1
        inspection.labels.update([*objects.data])  # of further forms, by their names
        # One region may excuse every class.
        inspection.excused += len(np.unique(facts.boxes[facts.excused], axis=0))
        inspection.objects.update(inspection.classes[label] for label in facts.labels[~facts.excused])
    inspection.labels.update([*truth.maps])
    for value, count in (facts.pixels or {}).items() if inspection.semantic_classes else ():
        inspection.pixels[inspection.semantic_classes[value]] += count
