"""Groups of objects and detections that may match, and the matching rules of two devkits.

Detections are matched group by group, best score first. A group is usually one class in one image. Kernels
run over flat arrays: a group's detections are consecutive and sorted by falling score; equal scores keep
their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.boxes import area, overlap, shared
from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.core.threads import remember
from stormproof.metrics.ordering import by_number
from stormproof.metrics.records import Detections, DetectionTruth

FALSE, TRUE, DROPPED = 0, 1, 2  # the verdict on a detection; a dropped one does not count
Verdicts = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Objects and detections sorted by group; `starts` holds the bounds of each group."""

    truths: Ints
    detections: Ints
    starts: Ints  # groups × (first object, end of objects, first detection, end of detections)

    @property
    def offsets(self) -> Ints:
        """Where each group's table of overlaps (detections × objects, flat) begins, and the last ends."""
        starts = self.starts
        pairs = (starts[:, 1] - starts[:, 0]) * (starts[:, 3] - starts[:, 2])
        return np.concatenate(([0], np.cumsum(pairs)))

    @property
    def place(self) -> Ints:
        """How many detections of its group score higher than each."""
        first, end = self.starts[:, 2], self.starts[:, 3]
        return np.arange(len(self.detections)) - np.repeat(first, end - first)


@dataclass(frozen=True, slots=True, eq=False)
class ClassGroups(Groups):
    """Groups of one class in one image."""

    by_class: Ints  # the detections sorted by class, then by falling score


def by_image(truth: DetectionTruth, predicted: Detections, most: int) -> Groups:
    """Group by image: a detection may match every object; `most` detections per image, the best ones."""
    detections = by_number(predicted.image, len(truth.ids), predicted.order)
    truths = np.argsort(truth.image, kind="stable")
    owners = predicted.image[detections]
    first = np.searchsorted(owners, np.arange(len(truth.ids)))
    detections = detections[np.arange(len(owners)) - first[owners] < most]
    return Groups(truths, detections, _starts(truth.image[truths], predicted.image[detections]))


def by_class_and_image(truth: DetectionTruth, predicted: Detections) -> ClassGroups:
    """Group by image and class: a detection may match the objects of its own class."""
    return remember(predicted, "_groups", truth, lambda: _group(truth, predicted))


def _group(truth: DetectionTruth, predicted: Detections) -> ClassGroups:
    by_class = by_number(predicted.labels, len(truth.classes), predicted.order)
    detections = by_number(predicted.image, len(truth.ids), by_class)
    truths = truth.grouped
    starts = _starts(
        truth.keys[truths], (predicted.image * len(truth.classes) + predicted.labels)[detections]
    )
    return ClassGroups(truths, detections, starts, by_class)


@kernel
def _starts(of_truth: Any, of_found: Any) -> Any:
    """The bounds of every group that has an object or a detection, from the sorted keys of both."""
    starts = np.empty((len(of_truth) + len(of_found), 4), np.int64)
    count = t = d = 0
    while t < len(of_truth) or d < len(of_found):
        if d == len(of_found) or (t < len(of_truth) and of_truth[t] <= of_found[d]):
            key = of_truth[t]
        else:
            key = of_found[d]
        starts[count, 0], starts[count, 2] = t, d
        while t < len(of_truth) and of_truth[t] == key:
            t += 1
        while d < len(of_found) and of_found[d] == key:
            d += 1
        starts[count, 1], starts[count, 3] = t, d
        count += 1
    return starts[:count].copy()


def judge_voc(
    truth: DetectionTruth, detections: Detections, *, iou: float, overlaps: Floats | None = None
) -> Verdicts:
    """The VOC devkit's rule: a detection is compared only with the object that it overlaps most.

    At IoU ≥ `iou` it is dropped if that object is excused, and true if the object is still free; otherwise it
    is false. `overlaps` are those of each group's detections × objects, flat; by default, those of boxes.
    """
    groups = by_class_and_image(truth, detections)
    table = ious_of(groups, truth.boxes, detections.boxes) if overlaps is None else overlaps
    verdicts = np.zeros(len(detections), np.uint8)
    excused = truth.excused[groups.truths]
    verdicts[groups.detections] = _voc(groups.starts, groups.offsets, table, excused, iou)
    return verdicts


def ious_of(groups: Groups, truths: Floats, boxes: Floats) -> Floats:
    """IoU of each group's boxes, detections × objects, flat."""
    overlaps = np.empty(groups.offsets[-1])
    _overlaps(groups.starts, truths[groups.truths], np.take(boxes, groups.detections, axis=0), overlaps)
    return overlaps


def judge_nrec(truth: DetectionTruth, detections: Detections, *, iou: float) -> tuple[Verdicts, Ints]:
    """The verdicts of *pezzementi*'s benchmark, and the object that each detection found (−1 for none).

    Best score first, a detection takes the free object that it overlaps most at IoU ≥ `iou`. One that finds
    none but has at least `iou` of its own area in an ignored region is dropped; the rest are false.
    """
    groups = by_class_and_image(truth, detections)
    boxes, excused = truth.boxes[groups.truths], truth.excused[groups.truths]
    verdicts, hits = _nrec(groups.starts, boxes, excused, detections.boxes, groups.detections, iou)
    return verdicts, np.where(hits >= 0, groups.truths[hits], -1) if len(truth) else hits


@kernel
def _overlaps(starts: Any, truths: Any, boxes: Any, out: Any) -> None:
    at = 0
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            for t in range(t0, t1):
                out[at] = overlap(boxes[d], truths[t])
                at += 1


@kernel
def _voc(starts: Any, offsets: Any, overlaps: Any, excused: Any, iou: Any) -> Any:
    """The verdict on each grouped detection."""
    taken = np.zeros(len(excused), np.bool_)
    verdicts = np.zeros(starts[-1, 3] if len(starts) else 0, np.uint8)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            row = offsets[g] + (d - d0) * (t1 - t0) - t0
            best, at = -1.0, -1
            for t in range(t0, t1):
                if overlaps[row + t] > best:
                    best, at = overlaps[row + t], t
            if at < 0 or best < iou:
                continue
            if excused[at]:
                verdicts[d] = DROPPED
            elif not taken[at]:
                taken[at] = True
                verdicts[d] = TRUE
    return verdicts


@kernel
def _nrec(starts: Any, truths: Any, excused: Any, boxes: Any, detections: Any, iou: Any) -> Any:
    taken = np.zeros(len(truths), np.bool_)
    verdicts, hits = np.zeros(len(boxes), np.uint8), np.full(len(boxes), -1)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in detections[d0:d1]:
            best, at, hidden = 0.0, -1, False
            for t in range(t0, t1):
                if excused[t]:
                    own = area(boxes[d])
                    hidden = hidden or (own > 0 and shared(boxes[d], truths[t]) >= iou * own)
                elif not taken[t]:
                    common = overlap(boxes[d], truths[t])
                    if common >= iou and common > best:
                        best, at = common, t
            if at >= 0:
                taken[at] = True
                verdicts[d], hits[d] = TRUE, at
            elif hidden:
                verdicts[d] = DROPPED
    return verdicts, hits
