"""What a condition needs besides the pixels: depth and a camera, or the part of the image that it changes.

Depth is in metres along the optical axis, one number per pixel. Infinity is the sky; NaN is unknown. Up to
half of the pixels may be unknown: each takes the depth of the nearest known pixel. Sparser maps are refused,
since haze made from them would be a guess. Zero and negative depths, and depths with a median beyond a
kilometre, are refused: they are missing values and millimetres.

A part is named by `on=`. Objects are the pixels of their masks or, without masks, of their boxes; crowds and
ignored objects count too. Background is the rest. Class names, joined by `+`, name objects or regions of a
semantic map. Without objects, a semantic map with a class `background` defines them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np

from stormproof import imaging
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, InvalidTruth, MissingContext, UnknownName
from stormproof.core.sample import Bools, Camera, Instances, Sample
from stormproof.core.text import same_name

DENSE = 0.5  # share of pixels whose depth must be known
FARTHEST_MEDIAN = 1000.0  # metres; beyond it the numbers are more likely millimetres
OBJECTS, BACKGROUND = "objects", "background"


def missing(corruption: str) -> MissingContext:
    """The error for a sample without depth."""
    return MissingContext(
        f"{corruption} needs the depth of every pixel, but there is none; open the dataset with depth=FOLDER "
        "(or disparity=FOLDER,calib=FOLDER), or compute it once with 'stormproof depth DATASET --out FOLDER'."
    )


def pinhole(size: tuple[int, int], view: float) -> Camera:
    """The camera that sees `view` degrees across an image of (height, width), its axis in the middle.

    >>> round(pinhole((100, 200), 90).fx)
    100
    """
    height, width = size
    focal = width / 2 / math.tan(math.radians(view / 2))
    return Camera(focal, focal, (width - 1) / 2, (height - 1) / 2)


def usable_depth(depth: object, size: tuple[int, ...], user: str) -> imaging.Field:
    """`depth` as a float32 map of metres without holes; the input is not modified.

    >>> usable_depth(np.array([[5.0, np.nan]]), (1, 2), "haze").tolist()
    [[5.0, 5.0]]
    """
    if depth is None:
        raise missing(user)
    if not isinstance(depth, np.ndarray) or depth.dtype.kind != "f" or depth.shape != tuple(size):
        given = f"{depth.dtype} {depth.shape}" if isinstance(depth, np.ndarray) else type(depth).__name__
        raise InvalidTruth(f"Depth for {user} must be floats of the image's size {tuple(size)}, not {given}.")
    metres = np.asarray(depth, np.float32)
    lowest, known, finite, beyond = imaging.survey(metres, FARTHEST_MEDIAN)
    if lowest <= 0:
        where = tuple(int(i) for i in np.argwhere(metres <= 0)[0])
        fix = "mark unknown depth as NaN and the sky as infinity"
        raise InvalidTruth(f"Depth for {user} is {lowest:g} m at (row, column) {where}; {fix}.")
    if 2 * beyond > finite:
        fix = "if they are millimetres, open the dataset with depth_scale=1000"
        raise InvalidTruth(
            f"Depth for {user}: the median lies beyond {FARTHEST_MEDIAN:g} m; depth is in metres, {fix}."
        )
    if known == metres.size:
        return metres
    if known < DENSE * metres.size:
        fix = "fill it with fill_depth=true, or with 'stormproof depth DATASET --from given --out FOLDER'"
        share = 100 * known / metres.size
        raise MissingContext(
            f"{user} needs dense depth, but only {share:.1f} % of the pixels have any; {fix}."
        )
    return imaging.fill_holes(metres)


def part_of(condition: Condition) -> str | None:
    """The part of the image that a condition applies to: objects, background, classes; None is all of it."""
    part = dict(condition.params).get("on")
    if part is not None and (not isinstance(part, str) or not all(part.split("+"))):
        fix = "write on=objects, on=background or class names joined by +, as in on=car+person"
        raise InvalidCondition(f"{condition}: {fix}.")
    return part


def refuse_part(condition: Condition) -> None:
    """Raise an error if a condition applies to part of the image: a plain image does not know its parts."""
    if part_of(condition) is not None:
        fix = "apply it to a Sample with truth, from a dataset with masks or boxes"
        raise MissingContext(f"{condition} needs the positions of objects; {fix}.")


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
        if same_name(name, known) is None:
            raise UnknownName("class in on=", name, known, f"Classes: {', '.join(dict.fromkeys(known))}.")
    return reduce(or_, (_of_class(sample, name, classes, semantic_classes) for name in names))


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
    objects, semantic = sample.truth.instances, sample.truth.semantic
    masks: list[Bools] = []
    of_objects, of_maps = same_name(name, classes), same_name(name, semantic_classes)
    if of_objects is not None and objects is not None:
        size = (sample.image.shape[0], sample.image.shape[1])
        masks.append(_cover(objects, objects.labels == classes.index(of_objects), size))
    if of_maps is not None and semantic is not None:
        masks.append(semantic.labels == semantic_classes.index(of_maps))
    if not masks:
        raise MissingContext(
            f"Sample {sample.id!r} has no truth for the class {name!r}; use a labelled dataset."
        )
    return reduce(or_, masks)


def _cover(objects: Instances, chosen: Bools, size: tuple[int, int]) -> Bools:
    """The union of some objects' masks or boxes."""
    mask = np.zeros(size, bool)
    for i in np.flatnonzero(chosen):
        if objects.masks is not None:
            mask |= objects.masks[int(i)].to_mask()
        else:
            # A pixel belongs to a box if its centre does.
            x1, y1, x2, y2 = (max(math.ceil(edge - 0.5), 0) for edge in objects.boxes[int(i)])
            mask[y1:y2, x1:x2] = True
    return mask
