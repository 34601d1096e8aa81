"""Corrupting part of an image: its objects, its background, or some classes.

Objects are the pixels of their masks or, without masks, of their boxes; crowds and ignored objects count too.
Background is the rest. Class names, joined by `+`, name objects or regions of a semantic map. Without
objects, a semantic map with a class `background` defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from stormproof.core.errors import MissingContext, UnknownName
from stormproof.core.sample import Bools, Image, Instances, Sample, Truth

OBJECTS, BACKGROUND = "objects", "background"


def compose(corrupted: Image, sample: Sample, mask: Bools) -> Image:
    """The corrupted image inside the mask, the clean one outside."""
    clean = sample.image
    return np.where(mask if clean.ndim == 2 else mask[..., None], corrupted, clean)


def part_mask(
    sample: Sample, part: str, *, classes: Sequence[str] = (), semantic_classes: Sequence[str] = ()
) -> Bools:
    """The pixels of the part that a condition's `on` names."""
    height, width = sample.image.shape[:2]
    if part in (OBJECTS, BACKGROUND):
        objects = _objects(sample, (height, width), semantic_classes)
        return objects if part == OBJECTS else ~objects
    names = part.split("+")
    known = (*classes, *semantic_classes)
    if not known:
        fix = "take the sample from a dataset, or create it with classes=…"
        raise MissingContext(f"on={part} names classes, but the sample has no list of classes; {fix}.")
    for name in names:
        if name not in known:
            raise UnknownName("class in on=", name, known, f"Classes: {', '.join(dict.fromkeys(known))}.")
    mask = np.zeros((height, width), bool)
    for name in names:
        mask |= _of_class(sample, name, classes, semantic_classes)
    return mask


def _objects(sample: Sample, size: tuple[int, int], semantic_classes: Sequence[str]) -> Bools:
    truth = sample.truth
    if truth.instances is not None:
        return _cover(truth.instances, np.ones(len(truth.instances), bool), size)
    if truth.semantic is not None and BACKGROUND in semantic_classes:
        labels = truth.semantic.labels
        thing: Bools = (labels != semantic_classes.index(BACKGROUND)) & (labels != truth.semantic.ignore)
        return thing
    fix = "use a dataset with boxes or masks, or name classes of its semantic map"
    raise MissingContext(f"Sample {sample.id!r} does not say where objects are; {fix}.")


def _of_class(sample: Sample, name: str, classes: Sequence[str], semantic_classes: Sequence[str]) -> Bools:
    truth: Truth = sample.truth
    size = (sample.image.shape[0], sample.image.shape[1])
    mask = np.zeros(size, bool)
    found = False
    if name in classes and truth.instances is not None:
        mask |= _cover(truth.instances, truth.instances.labels == classes.index(name), size)
        found = True
    if name in semantic_classes and truth.semantic is not None:
        mask |= truth.semantic.labels == semantic_classes.index(name)
        found = True
    if not found:
        raise MissingContext(
            f"Sample {sample.id!r} has no truth for the class {name!r}; use a labelled dataset."
        )
    return mask


def _cover(objects: Instances, chosen: Bools, size: tuple[int, int]) -> Bools:
    """The union of some objects' masks or boxes."""
    mask = np.zeros(size, bool)
    for i in np.flatnonzero(chosen):
        if objects.masks is not None:
            mask |= objects.masks[int(i)].to_mask()
        else:
            # A pixel belongs to a box if its centre does.
            x1, y1, x2, y2 = (max(ceil(edge - 0.5), 0) for edge in objects.boxes[int(i)])
            mask[y1:y2, x1:x2] = True
    return mask
