"""Who matched whom under COCO's rule, for every size and threshold: found once, weighted many times.

A weight belongs to a whole image and COCO matches within images, so no weight changes a match. The evaluator
of `metrics.coco` keeps its matches to itself; this one follows the same rule (pycocotools' `evaluateImg`) and
is tested against it to 1e-12 (docs/adr/0090).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hotcoco import mask as masks_of

from stormproof.kernel import kernel
from stormproof.metrics.matching import Groups, by_class_and_image
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.sample import RLE, Bools, Floats, Ints

Bits = npt.NDArray[np.uint16]  # one bit per IoU threshold

IOUS = np.linspace(0.5, 0.95, 10)
SIZES = np.array(
    [[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], np.float64
)  # all, small, medium, large
_CAP = 100  # detections per image and class


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """What became of truths and detections; of a class, the detections come by falling score.

    `hit[s, d]` has bit t where detection d found an object of size s at the t-th IoU threshold,
    `excused[s, d]` where it found one that neither counts nor penalises. `inside[s, d]` says whether it is of
    that size itself: one that found nothing is a false positive there, and nowhere else. `counts[s, o]` marks
    the objects to find.
    """

    images: int
    classes: int
    image: Ints
    label: Ints
    score: Floats
    hit: Bits
    excused: Bits
    inside: Bools
    truth_image: Ints
    truth_label: Ints
    counts: Bools

    def of_images(self, chosen: Ints) -> Matches:
        """The matches of some images, which are then numbered as chosen."""
        place = np.full(self.images, -1)
        place[chosen] = np.arange(len(chosen))
        d, o = place[self.image] >= 0, place[self.truth_image] >= 0
        return Matches(
            len(chosen), self.classes, place[self.image[d]], self.label[d], self.score[d], self.hit[:, d],
            self.excused[:, d], self.inside[:, d], place[self.truth_image[o]], self.truth_label[o],
            self.counts[:, o],
        )  # fmt: skip


def match_boxes(truth: DetectionTruth, found: Detections) -> Matches:
    """COCO's matches of boxes."""
    groups = by_class_and_image(truth, found)
    theirs, ours = found.boxes[groups.detections], truth.boxes[groups.truths]
    excused = truth.excused[groups.truths]
    offsets = _offsets(groups)
    overlaps = np.empty(offsets[-1])
    _box_overlaps(groups.starts, offsets, theirs, ours, excused, overlaps)
    area = (theirs[:, 2] - theirs[:, 0]) * (theirs[:, 3] - theirs[:, 1])
    return _matches(truth, found, groups, offsets, overlaps, area)


def match_masks(truth: DetectionTruth, found: Detections) -> Matches:
    """COCO's matches of masks; a detection's size is its mask's area."""
    groups = by_class_and_image(truth, found)
    offsets = _offsets(groups)
    excused = truth.excused[groups.truths]
    theirs = [_packed(found.masks[i]) for i in groups.detections.tolist()]
    ours = [_packed(truth.masks[i]) for i in groups.truths.tolist()]
    overlaps = np.empty(offsets[-1])
    for (t0, t1, d0, d1), at in zip(groups.starts.tolist(), offsets.tolist(), strict=False):
        if t1 > t0 and d1 > d0:
            table = masks_of.iou(theirs[d0:d1], ours[t0:t1], excused[t0:t1].tolist())
            overlaps[at : at + table.size] = np.asarray(table).ravel()
    area = np.array([masks_of.area(mask) for mask in theirs], np.float64)
    return _matches(truth, found, groups, offsets, overlaps, area)


def _packed(mask: RLE | None) -> Any:
    assert mask is not None, "masks were checked when they were scored"
    return masks_of.frPyObjects({"size": list(mask.size), "counts": mask.counts.tolist()}, *mask.size)


def _offsets(groups: Groups) -> Ints:
    """Where each group's overlaps begin: detections × truths of the group, flat."""
    starts = groups.starts
    pairs = (starts[:, 1] - starts[:, 0]) * (starts[:, 3] - starts[:, 2])
    return np.concatenate(([0], np.cumsum(pairs)))


def _matches(
    truth: DetectionTruth, found: Detections, groups: Groups, offsets: Ints, overlaps: Floats, area: Floats
) -> Matches:
    sizes, chosen = len(SIZES), groups.detections
    hit, excused = np.zeros((sizes, len(chosen)), np.uint16), np.zeros((sizes, len(chosen)), np.uint16)
    crowd, extent = truth.excused[groups.truths], truth.area[groups.truths]
    _match(groups.starts, offsets, overlaps, crowd, extent, SIZES, IOUS, hit, excused)
    first = np.repeat(groups.starts[:, 2], groups.starts[:, 3] - groups.starts[:, 2])
    kept = np.flatnonzero(np.arange(len(chosen)) - first < _CAP)
    image, label, score = found.image[chosen[kept]], found.labels[chosen[kept]], found.scores[chosen[kept]]
    # By class, then falling score; ties by the images' rank and then, since the sort is stable, as grouped.
    order = kept[np.lexsort((truth.rank[image], -score, label))]
    source = chosen[order]
    low, high = SIZES[:, :1], SIZES[:, 1:]
    return Matches(
        len(truth.ids), len(truth.classes), found.image[source], found.labels[source], found.scores[source],
        hit[:, order], excused[:, order], (area[order] >= low) & (area[order] <= high),
        truth.image, truth.labels, ~truth.excused & (truth.area >= low) & (truth.area <= high),
    )  # fmt: skip


@kernel
def _box_overlaps(starts: Any, offsets: Any, theirs: Any, ours: Any, crowd: Any, out: Any) -> None:
    """IoU as pycocotools computes it, operation by operation; with a crowd, the share of the detection."""
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        at = offsets[g]
        for d in range(d0, d1):
            dw, dh = theirs[d, 2] - theirs[d, 0], theirs[d, 3] - theirs[d, 1]
            for t in range(t0, t1):
                tw, th = ours[t, 2] - ours[t, 0], ours[t, 3] - ours[t, 1]
                width = min(theirs[d, 0] + dw, ours[t, 0] + tw) - max(theirs[d, 0], ours[t, 0])
                height = min(theirs[d, 1] + dh, ours[t, 1] + th) - max(theirs[d, 1], ours[t, 1])
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
        for s in range(len(sizes)):
            for k in range(len(ious)):
                taken[t0:t1] = False
                for d in range(d0, min(d1, d0 + _CAP)):
                    row = offsets[g] + (d - d0) * (t1 - t0) - t0
                    best, at, counts = min(ious[k], 1 - 1e-10), -1, False
                    # Objects that count come first; only a detection without one may take an excused one.
                    for turn in range(2):
                        if turn == 1 and at >= 0:
                            break
                        for t in range(t0, t1):
                            skip = crowd[t] or area[t] < sizes[s, 0] or area[t] > sizes[s, 1]
                            if skip == (turn == 0) or (taken[t] and not crowd[t]):
                                continue
                            if overlaps[row + t] >= best:
                                best, at, counts = overlaps[row + t], t, not skip
                    if at >= 0:
                        taken[at] = True
                        if counts:
                            hit[s, d] |= np.uint16(1 << k)
                        else:
                            excused[s, d] |= np.uint16(1 << k)
