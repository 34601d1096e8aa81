"""Matches of detections and objects by COCO's rule (pycocotools' `evaluateImg`), for every size and IoU.

A weight applies to a whole image, and COCO matches within images, so weights change no match: scores and
their spread are computed from the same matches (`metrics.coco`; docs/adr/0017, 0016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hotcoco import mask as masks_of

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.federated import MOST
from stormproof.core.kernels import kernel
from stormproof.core.sample import RLE, Bools, Floats, Ints
from stormproof.core.threads import remember
from stormproof.metrics.matching import ClassGroups, Groups, by_class_and_image
from stormproof.metrics.ordering import by_falling_score, by_number, places
from stormproof.metrics.precision import MAX_DETECTIONS, ImageMatches, Judged
from stormproof.metrics.records import Detections, DetectionTruth

IOUS = np.linspace(0.5, 0.95, 10)
# Bounds of the area: all, small, medium, large.
SIZES = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """COCO's matches of a set: `judged` by class, with the detections' scores, and `by_image`."""

    images: int
    judged: Judged
    score: Floats
    by_image: ImageMatches


def match_boxes(truth: DetectionTruth, detections: Detections) -> Matches:
    """COCO's matches of boxes."""
    groups = by_class_and_image(truth, detections)
    return match_groups(
        truth, detections, groups, class_overlaps(truth, detections), box_areas(detections, groups)
    )


def box_areas(detections: Detections, groups: Groups) -> Floats:
    """The area of each grouped detection's box."""
    sides: Floats = np.take(detections.sides, groups.detections, axis=0)
    return sides[:, 0] * sides[:, 1]


def class_overlaps(truth: DetectionTruth, detections: Detections) -> Floats:
    """IoU of all boxes of the same class in the same image, group by group."""
    groups = by_class_and_image(truth, detections)
    return remember(detections, "_overlaps", truth, lambda: box_overlaps(truth, detections, groups))


def box_overlaps(truth: DetectionTruth, predicted: Detections, groups: Groups) -> Floats:
    """IoU of each group's boxes, detections × objects, flat; for a crowd, the detection's share in it."""
    offsets = groups.offsets
    overlaps = np.empty(offsets[-1])
    detections = _xywh(predicted.boxes, predicted.sides, groups.detections)
    objects = _xywh(truth.boxes, truth.sides, groups.truths)
    _box_overlaps(groups.starts, offsets, detections, objects, truth.excused[groups.truths], overlaps)
    return overlaps


@kernel
def _xywh(boxes: Any, sides: Any, chosen: Any) -> Any:
    """The chosen boxes with the sides stated in files, which may differ from x2 − x1 in the last bit
    (docs/adr/0006)."""
    corners = np.empty((len(chosen), 4))
    for k in range(len(chosen)):
        i = chosen[k]
        x, y, width, height = boxes[i, 0], boxes[i, 1], sides[i, 0], sides[i, 1]
        corners[k, 0], corners[k, 1], corners[k, 2], corners[k, 3] = x, y, width, height
    return corners


def match_masks(truth: DetectionTruth, detections: Detections) -> Matches:
    """COCO's matches of masks; a detection's size is its mask's area."""
    groups = by_class_and_image(truth, detections)
    overlaps = mask_overlaps(truth, detections, groups)
    area = np.array(
        [masks_of.area(_pack(detections.masks[i])) for i in groups.detections.tolist()], np.float64
    )
    return match_groups(truth, detections, groups, overlaps, area)


def mask_overlaps(truth: DetectionTruth, predicted: Detections, groups: Groups) -> Floats:
    """IoU of each group's masks, detections × objects, flat; for a crowd, the detection's share in it."""
    _check_masks(truth, predicted)
    offsets, excused = groups.offsets, truth.excused[groups.truths]
    detections = [_pack(predicted.masks[i]) for i in groups.detections.tolist()]
    objects = [_pack(truth.masks[i]) for i in groups.truths.tolist()]
    overlaps = np.empty(offsets[-1])
    for (t0, t1, d0, d1), at in zip(groups.starts.tolist(), offsets.tolist(), strict=False):
        if t1 > t0 and d1 > d0:
            table = masks_of.iou(detections[d0:d1], objects[t0:t1], excused[t0:t1].tolist())
            overlaps[at : at + table.size] = np.asarray(table).ravel()
    return overlaps


def _check_masks(truth: DetectionTruth, detections: Detections) -> None:
    """Refuse objects and detections without masks, and predicted masks of another size than the truth's."""
    sizes: dict[int, tuple[int, int]] = {}
    for i, mask in enumerate(truth.masks):
        if mask is None:
            raise InvalidTruth(
                f"Image {truth.owner(i)!r}: an object has no mask; score boxes, or read masks."
            )
        sizes[int(truth.image[i])] = mask.size
    for i, mask in zip(detections.image.tolist(), detections.masks or (None,) * len(detections), strict=True):
        if mask is None:
            raise InvalidPrediction(f"Image {truth.ids[i]!r}: a detection has no mask; score boxes instead.")
        if mask.size != sizes.get(i, mask.size):
            raise InvalidPrediction(
                f"Image {truth.ids[i]!r}: a predicted mask has size {mask.size}, the "
                f"truth's {sizes[i]} (height, width); resize it to the image."
            )


def _pack(mask: RLE | None) -> Any:
    assert mask is not None, "`_check_masks` refuses these"
    return masks_of.frPyObjects({"size": list(mask.size), "counts": mask.counts.tolist()}, *mask.size)


def match_groups(
    truth: DetectionTruth, detections: Detections, groups: ClassGroups, overlaps: Floats, area: Floats,
    shared: Bools | None = None,
) -> Matches:  # fmt: skip
    """COCO's matches by any similarity: `overlaps` of each group's detections × objects, flat. `area` is each
    grouped detection's size. Several detections may match one of the `shared` objects; all excused ones
    are, unless given."""
    sizes, chosen = len(SIZES), groups.detections
    hit, excused = (np.zeros((len(chosen), sizes), np.uint16) for _ in range(2))
    uncounted, extent = truth.excused[groups.truths], truth.area[groups.truths]
    crowd = uncounted if shared is None else shared[groups.truths]
    most = MAX_DETECTIONS if truth.federated is None else MOST
    _match(groups.starts, groups.offsets, overlaps, uncounted, crowd, extent, SIZES, IOUS, most, hit, excused)
    order = _by_class(truth, detections, groups, most)
    # The last cap on recall includes all that are matched.
    place = np.minimum(groups.place, MAX_DETECTIONS - 1)
    source = chosen[order]
    low, high = SIZES[:, :1], SIZES[:, 1:]
    counts = ~truth.excused & (truth.area >= low) & (truth.area <= high)
    inside = (SIZES[:, 0] <= area[:, None]) & (area[:, None] <= SIZES[:, 1])
    by_image = ImageMatches(
        groups.starts, truth.image[groups.truths], counts[0, groups.truths],
        hit[:, 0].copy(), excused[:, 0].copy(), inside[:, 0].copy(),
    )  # fmt: skip
    judged = Judged(
        detections.image[source], detections.labels[source],
        np.take(hit, order, axis=0), np.take(excused, order, axis=0), np.take(inside, order, axis=0),
        place[order], truth.image, truth.labels, counts, len(truth.classes), len(IOUS),
    )  # fmt: skip
    return Matches(len(truth.ids), judged, detections.scores[source], by_image)


def _by_class(truth: DetectionTruth, detections: Detections, groups: ClassGroups, most: int) -> Ints:
    """Places in `groups.detections`, sorted by class, then by falling score; equal scores by the rank of the
    image, then as given. Detections beyond the cap are left out."""
    ranks = truth.rank[detections.image]
    if (ranks[1:] >= ranks[:-1]).all():  # nearly always: images come in the order of their ranks
        order = groups.by_class
    else:
        given = np.argsort(ranks, kind="stable")
        order = by_number(
            detections.labels, len(truth.classes), given[by_falling_score(detections.scores[given])]
        )
    order = places(groups.detections, len(detections))[order]
    return order[groups.place[order] < most]


@kernel
def _box_overlaps(starts: Any, offsets: Any, detections: Any, objects: Any, crowd: Any, out: Any) -> None:
    """IoU as pycocotools computes it, operation by operation."""
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        at = offsets[g]
        for d in range(d0, d1):
            x, y, dw, dh = detections[d]
            for t in range(t0, t1):
                tx, ty, tw, th = objects[t]
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
    starts: Any, offsets: Any, overlaps: Any, uncounted: Any, crowd: Any, area: Any, sizes: Any, ious: Any,
    most: Any, hit: Any, excused: Any,
) -> None:  # fmt: skip
    taken = np.zeros(len(crowd), np.bool_)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        if t0 == t1 or d0 == d1:
            continue
        last = min(d1, d0 + most)
        if t1 == t0 + 1:
            _match_one(
                offsets[g] - d0, d0, last, overlaps, uncounted[t0], crowd[t0], area[t0], sizes, ious, hit,
                excused,
            )  # fmt: skip
            continue
        for s in range(len(sizes)):
            for k in range(len(ious)):
                taken[t0:t1] = False
                level, any_left = min(ious[k], 1 - 1e-10), False
                for d in range(d0, last):
                    row = offsets[g] + (d - d0) * (t1 - t0) - t0
                    best, at, counts = level, -1, False
                    # First the objects that count; a detection that finds none may take an excused one.
                    for turn in range(2):
                        if turn == 1 and at >= 0:
                            break
                        for t in range(t0, t1):
                            if overlaps[row + t] < best:
                                continue
                            any_left = True
                            skip = uncounted[t] or area[t] < sizes[s, 0] or area[t] > sizes[s, 1]
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
                    break  # no detection reaches this threshold, so none reaches a higher one


@kernel(inline=True)
def _match_one(
    row: Any, d0: Any, last: Any, overlaps: Any, uncounted: Any, crowd: Any, area: Any, sizes: Any,
    ious: Any, hit: Any, excused: Any,
) -> None:  # fmt: skip
    """A group with one object: a detection finds it at each threshold that it is the first to reach."""
    done = 0  # the object is taken at this many thresholds; a crowd never is
    for d in range(d0, last):
        reached = done
        while reached < len(ious) and overlaps[row + d] >= min(ious[reached], 1 - 1e-10):
            reached += 1
        bits = (1 << reached) - (1 << done)
        for s in range(len(sizes)):
            if uncounted or area < sizes[s, 0] or area > sizes[s, 1]:
                excused[d, s] = bits
            else:
                hit[d, s] = bits
        done = 0 if crowd else reached
