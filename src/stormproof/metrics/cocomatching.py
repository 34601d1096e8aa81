"""Matches of detections and objects by COCO's rule (pycocotools' `evaluateImg`), for every size and IoU.

A weight belongs to a whole image and COCO matches within images, so no weight changes a match: scores and
their spread follow from the same matches (`metrics.coco`; docs/adr/0039, 0011).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from hotcoco import mask as masks_of

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.kernels import kernel
from stormproof.core.sample import RLE, Bools, Floats, Ints
from stormproof.metrics.matching import ClassGroups, Groups, by_class_and_image
from stormproof.metrics.ordering import by_falling_score, by_number
from stormproof.metrics.precision import MOST, Alone, Bits, Judged
from stormproof.metrics.records import Detections, DetectionTruth

IOUS = np.linspace(0.5, 0.95, 10)
SIZES = np.array(
    [[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], np.float64
)  # all, small, medium, large


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Matches of truths and detections; the detections of a class are sorted by falling score.

    `hit[d, s]` has bit t where detection d found an object of size s at the t-th IoU threshold,
    `excused[d, s]` where it found one that neither counts nor penalises. `inside[d, s]` says whether it has
    that size itself: only then is one that found nothing a false positive. `place[d]` counts the detections
    of its class in its image that score higher. `counts[s, o]` marks the objects to find. `alone` holds the
    matches of objects of any size, image by image.
    """

    images: int
    classes: int
    image: Ints
    label: Ints
    score: Floats
    hit: Bits
    excused: Bits
    inside: Bools
    place: Ints
    truth_image: Ints
    truth_label: Ints
    counts: Bools
    alone: Alone

    @property
    def judged(self) -> Judged:
        """The part that precision and recall are computed from."""
        return Judged(
            self.image, self.label, self.hit, self.excused, self.inside, self.place, self.truth_image,
            self.truth_label, self.counts, self.classes, len(IOUS),
        )  # fmt: skip


def match_boxes(truth: DetectionTruth, found: Detections) -> Matches:
    """COCO's matches of boxes."""
    groups = by_class_and_image(truth, found)
    sides = np.take(found.sides, groups.detections, axis=0)
    return _matches(truth, found, groups, class_overlaps(truth, found), sides[:, 0] * sides[:, 1])


@lru_cache(maxsize=1)  # several measures need the same
def class_overlaps(truth: DetectionTruth, found: Detections) -> Floats:
    """IoU of the boxes that may match under COCO's rule: those of one class in one image."""
    return box_overlaps(truth, found, by_class_and_image(truth, found))


def box_overlaps(truth: DetectionTruth, found: Detections, groups: Groups) -> Floats:
    """IoU of each group's boxes, detections × truths, flat; with a crowd, the share of the detection."""
    offsets = groups.offsets
    overlaps = np.empty(offsets[-1])
    theirs, ours = _xywh(found, groups.detections), _xywh(truth, groups.truths)
    _box_overlaps(groups.starts, offsets, theirs, ours, truth.excused[groups.truths], overlaps)
    return overlaps


def _xywh(objects: DetectionTruth | Detections, chosen: Ints) -> Floats:
    """Boxes with the sides that files state, which may differ from x2 − x1 in a bit (docs/adr/0057)."""
    found: Floats = _taken(objects.boxes, objects.sides, chosen)
    return found


@kernel
def _taken(boxes: Any, sides: Any, chosen: Any) -> Any:
    found = np.empty((len(chosen), 4))
    for k in range(len(chosen)):
        i = chosen[k]
        found[k, 0], found[k, 1], found[k, 2], found[k, 3] = (
            boxes[i, 0],
            boxes[i, 1],
            sides[i, 0],
            sides[i, 1],
        )
    return found


def match_masks(truth: DetectionTruth, found: Detections) -> Matches:
    """COCO's matches of masks; a detection's size is its mask's area."""
    groups = by_class_and_image(truth, found)
    overlaps = mask_overlaps(truth, found, groups)
    area = np.array([masks_of.area(_packed(found.masks[i])) for i in groups.detections.tolist()], np.float64)
    return _matches(truth, found, groups, overlaps, area)


def mask_overlaps(truth: DetectionTruth, found: Detections, groups: Groups) -> Floats:
    """IoU of each group's masks, detections × truths, flat; with a crowd, the share of the detection."""
    _check_masks(truth, found)
    offsets, excused = groups.offsets, truth.excused[groups.truths]
    theirs = [_packed(found.masks[i]) for i in groups.detections.tolist()]
    ours = [_packed(truth.masks[i]) for i in groups.truths.tolist()]
    overlaps = np.empty(offsets[-1])
    for (t0, t1, d0, d1), at in zip(groups.starts.tolist(), offsets.tolist(), strict=False):
        if t1 > t0 and d1 > d0:
            table = masks_of.iou(theirs[d0:d1], ours[t0:t1], excused[t0:t1].tolist())
            overlaps[at : at + table.size] = np.asarray(table).ravel()
    return overlaps


def _check_masks(truth: DetectionTruth, found: Detections) -> None:
    """Refuse objects and detections without masks, and masks whose size differs from the truth's."""
    sizes: dict[int, tuple[int, int]] = {}
    for i, mask in enumerate(truth.masks):
        if mask is None:
            raise InvalidTruth(
                f"Image {truth.owner(i)!r}: an object has no mask; score boxes, or read masks."
            )
        sizes[int(truth.image[i])] = mask.size
    for i, mask in zip(found.image.tolist(), found.masks or (None,) * len(found), strict=True):
        if mask is None:
            raise InvalidPrediction(f"Image {truth.ids[i]!r}: a detection has no mask; score boxes instead.")
        if mask.size != sizes.get(i, mask.size):
            raise InvalidPrediction(
                f"Image {truth.ids[i]!r}: a predicted mask has size {mask.size}, the "
                f"truth's {sizes[i]} (height, width); resize it to the image."
            )


def _packed(mask: RLE | None) -> Any:
    assert mask is not None, "`_check_masks` refuses these"
    return masks_of.frPyObjects({"size": list(mask.size), "counts": mask.counts.tolist()}, *mask.size)


def _matches(
    truth: DetectionTruth, found: Detections, groups: ClassGroups, overlaps: Floats, area: Floats
) -> Matches:
    sizes, chosen = len(SIZES), groups.detections
    hit, excused = (np.zeros((len(chosen), sizes), np.uint16) for _ in range(2))
    crowd, extent = truth.excused[groups.truths], truth.area[groups.truths]
    _match(groups.starts, groups.offsets, overlaps, crowd, extent, SIZES, IOUS, hit, excused)
    starts = groups.starts
    place = np.arange(len(chosen)) - np.repeat(starts[:, 2], starts[:, 3] - starts[:, 2])
    order = _by_class(truth, found, groups, place)
    source = chosen[order]
    low, high = SIZES[:, :1], SIZES[:, 1:]
    counts = ~truth.excused & (truth.area >= low) & (truth.area <= high)
    inside = _inside(area, SIZES)
    alone = Alone(
        starts, truth.image[groups.truths], counts[0, groups.truths],
        hit[:, 0].copy(), excused[:, 0].copy(), inside[:, 0].copy(),
    )  # fmt: skip
    return Matches(
        len(truth.ids), len(truth.classes), found.image[source], found.labels[source], found.scores[source],
        np.take(hit, order, axis=0), np.take(excused, order, axis=0), np.take(inside, order, axis=0),
        place[order], truth.image, truth.labels, counts, alone,
    )  # fmt: skip


def _by_class(truth: DetectionTruth, found: Detections, groups: ClassGroups, place: Ints) -> Ints:
    """The grouped detections by class, then falling score; ties by the images' rank, then in order. Those
    beyond the cap are left out."""
    where = np.empty_like(groups.detections)
    where[groups.detections] = np.arange(len(where))
    ranks = truth.rank[found.image]
    if (ranks[1:] >= ranks[:-1]).all():  # as nearly always: ties are in order as given
        order = groups.by_class
    else:
        given = np.argsort(ranks, kind="stable")
        order = by_number(found.labels, len(truth.classes), given[by_falling_score(found.scores[given])])
    order = where[order]
    return order if (place < MOST).all() else order[place[order] < MOST]


@kernel
def _inside(area: Any, sizes: Any) -> Any:
    found = np.empty((len(area), len(sizes)), np.bool_)
    for d in range(len(area)):
        for s in range(len(sizes)):
            found[d, s] = sizes[s, 0] <= area[d] <= sizes[s, 1]
    return found


@kernel
def _box_overlaps(starts: Any, offsets: Any, theirs: Any, ours: Any, crowd: Any, out: Any) -> None:
    """IoU as pycocotools computes it, operation by operation; with a crowd, the share of the detection."""
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        at = offsets[g]
        for d in range(d0, d1):
            x, y, dw, dh = theirs[d]
            for t in range(t0, t1):
                tx, ty, tw, th = ours[t]
                width = min(x + dw, tx + tw) - max(x, tx)
                height = min(y + dh, ty + th) - max(y, ty)
                out[at] = 0.0
                if width > 0 and height > 0:
                    shared = width * height
                    union = dw * dh if crowd[t] else dw * dh + tw * th - shared
                    out[at] = shared / union
                at += 1


@kernel
def _match(
    starts: Any, offsets: Any, overlaps: Any, crowd: Any, area: Any, sizes: Any, ious: Any,
    hit: Any, excused: Any,
) -> None:  # fmt: skip
    taken = np.zeros(len(crowd), np.bool_)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        if t0 == t1 or d0 == d1:
            continue
        last = min(d1, d0 + MOST)
        if t1 == t0 + 1:
            _match_one(offsets[g] - d0, d0, last, overlaps, crowd[t0], area[t0], sizes, ious, hit, excused)
            continue
        for s in range(len(sizes)):
            for k in range(len(ious)):
                taken[t0:t1] = False
                level, any_left = min(ious[k], 1 - 1e-10), False
                for d in range(d0, last):
                    row = offsets[g] + (d - d0) * (t1 - t0) - t0
                    best, at, counts = level, -1, False
                    # Objects that count come first; only a detection without one may take an excused one.
                    for turn in range(2):
                        if turn == 1 and at >= 0:
                            break
                        for t in range(t0, t1):
                            if overlaps[row + t] < best:
                                continue
                            any_left = True
                            skip = crowd[t] or area[t] < sizes[s, 0] or area[t] > sizes[s, 1]
                            if skip == (turn == 0) or (taken[t] and not crowd[t]):
                                continue
                            best, at, counts = overlaps[row + t], t, not skip
                    if at >= 0:
                        taken[at] = True
                        if counts:
                            hit[d, s] |= np.uint16(1 << k)
                        else:
                            excused[d, s] |= np.uint16(1 << k)
                if not any_left:
                    break  # nothing overlaps as much, so no higher threshold finds more


@kernel(inline=True)
def _match_one(
    row: Any, d0: Any, last: Any, overlaps: Any, crowd: Any, area: Any, sizes: Any, ious: Any, hit: Any,
    excused: Any,
) -> None:  # fmt: skip
    """A single object: a detection finds it at the thresholds that it reaches and no better one did."""
    done = 0  # thresholds at which it is taken
    for d in range(d0, last):
        reached = done
        while reached < len(ious) and overlaps[row + d] >= min(ious[reached], 1 - 1e-10):
            reached += 1
        if crowd:  # is never taken
            reached = 0
            while reached < len(ious) and overlaps[row + d] >= min(ious[reached], 1 - 1e-10):
                reached += 1
        bits = (1 << reached) - (1 << done)
        for s in range(len(sizes)):
            if crowd or area < sizes[s, 0] or area > sizes[s, 1]:
                excused[d, s] = bits
            else:
                hit[d, s] = bits
        done = 0 if crowd else reached
