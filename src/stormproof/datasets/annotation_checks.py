"""Checks for errors in annotations that open without one: pure functions over facts about labelled images.

A test on broken labels certifies nothing, and scores alone do not tell a wrong box from a weak network. Each
check sees all inspected images together and yields findings. `Gravity` says how sure it is: a problem is
almost certainly an error in the files, a warning may be intended, a note describes. Rare defects are notes:
large public datasets have a few of each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from stormproof.core.errors import counted, first_few
from stormproof.core.forms import FORMS, Size
from stormproof.core.sample import Bools, Floats, Ints, Truth

_RARE = 0.01  # the share of objects or images up to which a defect is a note
PIXEL = 1.0  # tolerance: formats that count from 1, or round, may exceed the edge by one pixel
_FEW = 5  # boxes below which no pattern is looked for
_MANY = 50  # objects from which an absent class is remarkable
_TURNS = {2: "mirrored", 3: "180°", 4: "mirrored", 5: "90°", 6: "90°", 7: "270°", 8: "270°"}
_SIDEWAYS = (5, 6, 7, 8)  # orientations that exchange height and width


class Gravity(StrEnum):
    """How sure a check is that something is wrong."""

    problem = "problem"
    warning = "warning"
    note = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, in a sentence, with the fix."""

    level: Gravity
    what: str


@dataclass(frozen=True, slots=True, eq=False)
class ImageFacts:
    """What the checks know about one image. `size` is the one that its labels refer to.

    `stray` marks objects whose mask lies outside their box or has no pixels. `pixels` counts those of each
    semantic class. `stored` is the size in the image's file and `orientation` its EXIF tag (1: upright),
    both None without a file; `stated` is the size in the annotation. `turned` says whether images are
    rotated by their tag, None if the user did not decide. `twin` names an image with the same content.
    """

    id: str
    size: Size
    labelled: bool
    boxes: Floats
    labels: Ints
    excused: Bools  # crowds and ignored regions
    stray: Bools
    pixels: Mapping[int, int] | None = None
    void: int = 0  # pixels without truth
    stored: Size | None = None
    orientation: int = 1
    stated: Size | None = None
    turned: bool | None = None
    twin: str | None = None
    data: Mapping[str, Floats] = field(default_factory=dict)  # as forms declare it (`core.forms`)


@dataclass(frozen=True, eq=False)
class Inspected:
    """The facts of the images that were inspected, with all their boxes in one array."""

    images: Sequence[ImageFacts]
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    whole: bool  # whether these are all images of the dataset

    @cached_property
    def boxes(self) -> Floats:
        """The boxes that count, x1 y1 x2 y2."""
        parts = [image.boxes[~image.excused] for image in self.images]
        return np.concatenate(parts) if parts else np.zeros((0, 4))

    @cached_property
    def limits(self) -> Floats:
        """Width and height of the image of each box."""
        parts = [np.tile(np.array(i.size[::-1], float), ((~i.excused).sum(), 1)) for i in self.images]
        return np.concatenate(parts) if parts else np.zeros((0, 2))

    @cached_property
    def owners(self) -> list[str]:
        """The id of the image of each box."""
        return [image.id for image in self.images for _ in range(int((~image.excused).sum()))]

    def data(self, name: str) -> Floats | None:
        """An array of the boxes that count; None if not every image with such boxes has it."""
        held = [i.data[name][~i.excused] for i in self.images if name in i.data and (~i.excused).any()]
        return np.concatenate(held) if held and sum(map(len, held)) == len(self.boxes) else None

    @cached_property
    def objects(self) -> Counter[int]:
        """How many objects of each label count."""
        return Counter(int(label) for image in self.images for label in image.labels[~image.excused])

    def example(self, wrong: Bools) -> str:
        """The first box of those marked, with its image."""
        first = int(np.flatnonzero(wrong)[0])
        box = ", ".join(f"{value:g}" for value in self.boxes[first].round(2))
        return f"the first: image {self.owners[first]!r}, box ({box})"


def stray_masks(truth: Truth) -> Bools:
    """For each object, whether its mask is empty or has more than a tenth of its pixels outside the box."""
    objects = truth.objects
    if objects.masks is None:
        return np.zeros(len(objects), bool)
    stray = []
    for (x1, y1, x2, y2), mask in zip(objects.boxes, objects.masks, strict=True):
        height, width = mask.size
        top, bottom = (int(np.clip(v, 0, height)) for v in (np.floor(y1 - 1), np.ceil(y2 + 1)))
        left, right = (int(np.clip(v, 0, width)) for v in (np.floor(x1 - 1), np.ceil(x2 + 1)))
        inside = int(mask.to_mask()[top:bottom, left:right].sum())
        stray.append(inside < 0.9 * mask.area or mask.area == 0)
    return np.array(stray, bool)


def check_annotations(seen: Inspected) -> list[Finding]:
    """Everything that the checks find, the most certain first."""
    order = list(Gravity)
    findings = [finding for check in CHECKS for finding in check(seen)]
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _level(count: int, total: int) -> Gravity:
    return Gravity.problem if count > _RARE * total else Gravity.note


def report_marked(seen: Inspected, wrong: Bools, what: str) -> Finding:
    """A finding about the boxes or masks that are marked."""
    count, total = int(wrong.sum()), len(wrong)
    return Finding(_level(count, total), f"{count} of {total} {what} ({seen.example(wrong)}).")


def _of(count: int, total: int, nouns: str) -> str:
    return f"All {total} {nouns}" if count == total > 1 else f"{count} of {total} {nouns}"


def _truth(seen: Inspected) -> Iterator[Finding]:
    """Labels without anything to score."""
    labelled = [image for image in seen.images if image.labelled]
    if not labelled or not seen.classes:
        return
    every = sum(len(image.boxes) for image in labelled)
    sure = seen.whole or len(labelled) >= 20
    if not every:
        if any(image.pixels for image in labelled):
            return  # labelled by its maps
        level = Gravity.problem if sure else Gravity.warning
        where = (
            "No image has an object" if seen.whole else f"No object in the {len(labelled)} images inspected"
        )
        yield Finding(level, f"{where}: check that the labels belong to these images.")
    elif every >= _FEW and not len(seen.boxes):
        yield Finding(
            Gravity.problem,
            f"All {every} objects are crowds or ignored, so nothing counts: check these flags.",
        )
    empty = sum(not len(image.boxes) for image in labelled)
    if every and sure and empty > 0.95 * len(labelled):
        yield Finding(
            Gravity.warning,
            f"{empty} of {len(labelled)} images have no objects: check that their labels are found.",
        )


def _fractions(seen: Inspected) -> bool:
    """Whether boxes are fractions of the image instead of pixels."""
    reach = seen.boxes.max(axis=1, initial=0)
    large = seen.limits.min(axis=1, initial=np.inf) > 32
    return bool(len(reach)) and bool(large.any()) and bool((reach[large] <= PIXEL).mean() > 0.5)


def _find_normalised(seen: Inspected) -> Iterator[Finding]:
    """Coordinates from 0 to 1 where the format wants pixels."""
    if _fractions(seen):
        count, total = int((seen.boxes.max(axis=1) <= PIXEL).sum()), len(seen.boxes)
        yield Finding(
            Gravity.problem,
            f"{_of(count, total, 'boxes')} lie within one pixel of the upper left "
            "corner: coordinates look like fractions; multiply them by the image's width and height.",
        )


def _fit(boxes: Floats, limits: Floats) -> Bools:
    """Which boxes lie within their limits: a width and height for each box, or one pair for all."""
    low, high = boxes[:, :2], boxes[:, 2:]
    inside = (low >= -PIXEL).all(axis=1) & (high <= limits + PIXEL).all(axis=1)
    return np.asarray(inside & (high >= low).all(axis=1))


# What a file may contain instead of what its format requires, and the corners that were then meant.
_MISREAD: dict[str, Callable[[Floats, Floats], tuple[Floats, Floats]]] = {
    "corners (x1 y1 x2 y2) where the format wants a width and height": lambda low, side: (low, side),
    "corners (x1 y1 x2 y2) where the format wants a centre, width and height": lambda low, side: (
        low + side / 2, side,
    ),
    "a centre, width and height where the format wants the upper left corner": lambda low, side: (
        low - side / 2, low + side / 2,
    ),
    "the upper left corner, width and height where the format wants a centre": lambda low, side: (
        low + side / 2, low + 3 * side / 2,
    ),
    "y before x": lambda low, side: (low[:, ::-1], (low + side)[:, ::-1]),
}  # fmt: skip


def _past(seen: Inspected) -> Iterator[Finding]:
    """Boxes that reach past their image, with the misreading that explains them if there is one."""
    if not len(seen.boxes) or _fractions(seen):
        return
    low, side = seen.boxes[:, :2], seen.boxes[:, 2:] - seen.boxes[:, :2]
    past, total = ~_fit(seen.boxes, seen.limits), len(seen.boxes)
    count = int(past.sum())
    beyond = np.asarray((seen.boxes[:, 2:] <= 0).any(axis=1) | (low >= seen.limits).any(axis=1))
    if not count:
        return
    said = f"{count} of {total} boxes reach past their image"
    meant = _meaning(low, side, seen.limits) if total >= _FEW and count > max(1, _RARE * total) else ""
    if meant:
        yield Finding(Gravity.problem, f"{said}; nearly all fit if the file holds {meant}.")
        return
    if beyond.any():
        yield report_marked(seen, beyond, "boxes lie outside their image")
    often = count > 0.5 * total and count > 2
    level = Gravity.problem if often else Gravity.warning if count > 0.2 * total else Gravity.note
    yield Finding(level, f"{said} ({seen.example(past)}), as some datasets intend.")


def _meaning(low: Floats, side: Floats, limits: Floats) -> str:
    """The misreading under which nearly all boxes would fit their images; empty if there is none."""
    for meant, corners in _MISREAD.items():
        if _fit(np.hstack(corners(low, side)), limits).mean() >= 0.99:
            return meant
    return ""


def _corner(seen: Inspected) -> Iterator[Finding]:
    """Boxes that all lie in the upper left quarter: labels of smaller images."""
    if len(seen.boxes) < 10 or _fractions(seen):
        return
    reach = float((seen.boxes[:, 2:] / seen.limits).max())
    if reach < 0.5 and len({*seen.owners}) >= 3:
        yield Finding(
            Gravity.warning,
            f"All {len(seen.boxes)} boxes lie in the upper left {reach:.0%} of their images: "
            "were they drawn on smaller copies?",
        )


def _flat(seen: Inspected) -> Iterator[Finding]:
    """Boxes without an area."""
    if _fractions(seen):
        return
    flat = np.asarray((seen.boxes[:, 2:] <= seen.boxes[:, :2]).any(axis=1))
    if flat.any():
        yield report_marked(seen, flat, "boxes have no width or no height")


def _whole_image(seen: Inspected) -> Iterator[Finding]:
    """Boxes that are all as large as their image."""
    if len(seen.boxes) >= 10 and bool(
        ((seen.boxes[:, :2] <= PIXEL) & (seen.boxes[:, 2:] >= seen.limits - PIXEL)).all()
    ):
        yield Finding(Gravity.warning, f"All {len(seen.boxes)} boxes are as large as their image.")


def _twice(seen: Inspected) -> Iterator[Finding]:
    """Objects that are listed twice: the same box and class in one image."""
    count, first = 0, ""
    for image in seen.images:
        rows = np.column_stack([image.boxes, image.labels])[~image.excused]
        extra = len(rows) - len(np.unique(rows, axis=0))
        first = first or (image.id if extra else "")
        count += extra
    if count:
        what = f"{counted(count, 'object')} of {len(seen.boxes)} occur twice, with the same box and class"
        yield Finding(
            _level(count, len(seen.boxes)), f"{what} (the first: image {first!r}); keep one of each."
        )


def _masks(seen: Inspected) -> Iterator[Finding]:
    """Masks without pixels, or outside their boxes."""
    stray = np.concatenate([np.zeros(0, bool), *(image.stray[~image.excused] for image in seen.images)])
    if stray.any() and not _fractions(seen):
        yield report_marked(seen, stray, "masks are empty or lie outside their box")


def _forms(seen: Inspected) -> Iterator[Finding]:
    """What the forms of further arrays find wrong with them."""
    for name in dict.fromkeys(name for image in seen.images for name in image.data):
        if seen.data(name) is not None:
            yield from FORMS[name].check_labels(seen)


def _class_counts(seen: Inspected) -> Iterator[Finding]:
    """Classes without objects, ids that may be off by one, and one class under two spellings."""
    names, total = seen.classes, seen.objects.total()
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(name.strip().casefold(), []).append(name)
    for same in (held for held in spelled.values() if len(held) > 1):
        yield Finding(
            Gravity.warning,
            f"Classes that differ in capitals or spaces only: {first_few(same)}; are they one?",
        )
    present = [label for label in range(len(names)) if seen.objects[label]]
    if total >= _MANY and len(names) >= 5 and len(present) == 1:
        yield Finding(
            Gravity.note,
            f"All {total} objects are {names[present[0]]!r}, although {len(names)} classes are named.",
        )
    elif total >= _MANY and len(names) >= 3 and 0 not in present and len(present) >= 0.8 * (len(names) - 1):
        yield Finding(
            Gravity.warning,
            f"The first class, {names[0]!r}, has no object, but {len(present)} of {len(names)} have: "
            "are class numbers counted from 1 where the format counts from 0?",
        )
    if seen.whole and total and len(present) < len(names):
        absent = [name for label, name in enumerate(names) if label not in present]
        yield Finding(
            Gravity.note, f"{len(absent)} of {len(names)} classes have no object: {first_few(absent)}."
        )


def _maps(seen: Inspected) -> Iterator[Finding]:
    """Label maps of one class, or without truth."""
    maps = [image for image in seen.images if image.pixels is not None]
    counts: Counter[int] = sum((Counter(image.pixels) for image in maps), Counter())
    void, labelled = sum(image.void for image in maps), counts.total()
    if maps and not labelled:
        yield Finding(Gravity.problem, "No pixel of the label maps has a class: all are ignored.")
    elif void > 0.95 * (void + labelled):
        share = void / (void + labelled)
        yield Finding(
            Gravity.warning, f"{share:.0%} of the pixels of the label maps are ignored: are the ids right?"
        )
    elif len(maps) >= 3 and len(counts) == 1 and len(seen.semantic_classes) > 1:
        name = seen.semantic_classes[next(iter(counts))]
        yield Finding(Gravity.problem, f"Every pixel of {len(maps)} label maps is {name!r}.")


def _sizes(seen: Inspected) -> Iterator[Finding]:
    """Image files whose size differs from the annotation."""
    both = [image for image in seen.images if image.stored and image.stated]
    wrong = [image for image in both if image.stated != _read_size(image)]
    if not wrong:
        return
    first = wrong[0]
    assert first.stated is not None
    assert first.stored is not None
    shown = "{1}×{0} in the annotation, {3}×{2} in the file".format(*first.stated, *first.stored)
    fix = "the labels belong to other images, or to resized ones"
    if all(image.stated == image.stored and image.orientation in _SIDEWAYS for image in wrong):
        fix = "they carry an orientation tag and were labelled before rotation: leave out exif=apply"
    elif all(image.stated == _turned_size(image) for image in wrong):
        fix = "they carry an orientation tag and were labelled after rotation: add exif=apply"
    elif all(image.stated == image.stored[::-1] for image in wrong if image.stored):
        fix = "width and height seem to be exchanged"
    yield Finding(
        Gravity.problem,
        f"{_of(len(wrong), len(both), 'images')} differ in size from their annotation (the first: image "
        f"{first.id!r}, {shown}): {fix}.",
    )


def _orientation(seen: Inspected) -> Iterator[Finding]:
    """Orientation tags, where nothing says whether the labels were drawn before or after the rotation."""
    tagged = [
        image
        for image in seen.images
        if image.labelled and image.orientation in _TURNS and image.turned is None and not _is_decided(image)
    ]
    if not tagged:
        return
    turns = sorted({_TURNS[image.orientation] for image in tagged})
    what = (
        f"{_of(len(tagged), len(seen.images), 'images')} carry an orientation tag ({', '.join(turns)}; "
        f"the first: image {tagged[0].id!r})"
    )
    if any(_fits_turned_only(image) for image in tagged):
        fix = "and their boxes fit only the rotated image: add exif=apply to the dataset"
    else:
        fix = (
            "and nothing in the files says which way their labels were drawn; state it: exif=apply (as "
            "viewers show the image) or exif=ignore (as it is stored, the default)"
        )
    yield Finding(_level(len(tagged), len(seen.images)), f"{what}, {fix}.")


def _turned_size(image: ImageFacts) -> Size | None:
    """The size of an image file after rotation by its tag, if the rotation changes it."""
    swaps = image.orientation in _SIDEWAYS and image.stored and image.stored[0] != image.stored[1]
    return image.stored[::-1] if swaps and image.stored else None


def _read_size(image: ImageFacts) -> Size | None:
    return (_turned_size(image) if image.turned else None) or image.stored


def _is_decided(image: ImageFacts) -> bool:
    """Whether the size in the annotation shows which way the labels were drawn."""
    return image.stated is not None and _turned_size(image) is not None


def _fits_turned_only(image: ImageFacts) -> bool:
    turned = _turned_size(image)
    if turned is None or image.stored is None or not len(image.boxes):
        return False
    as_stored, rotated = (np.array(size[::-1], float) for size in (image.stored, turned))
    return bool(_fit(image.boxes, rotated).all() and not _fit(image.boxes, as_stored).all())


def _twins(seen: Inspected) -> Iterator[Finding]:
    """Images that occur twice."""
    twins = [image for image in seen.images if image.twin is not None]
    if twins:
        yield Finding(
            _level(len(twins), len(seen.images)),
            f"{counted(len(twins), 'image')} of {len(seen.images)} repeat another: the first, "
            f"{twins[0].id!r}, has the same content as {twins[0].twin!r}; keep one.",
        )


CHECKS: tuple[Callable[[Inspected], Iterator[Finding]], ...] = (
    _truth, _find_normalised, _past, _corner, _flat, _whole_image, _twice, _masks, _forms,
    _class_counts, _maps, _sizes, _orientation, _twins,
)  # fmt: skip
