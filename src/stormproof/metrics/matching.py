"""One matcher for the devkit protocols: detections meet truths group by group, best score first.

A group is what may match at all: one class in one image. Kernels run over flat arrays; a group's
detections are consecutive and sorted by falling score, ties in the order given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.sample import Ints

FALSE, TRUE, DROPPED = 0, 1, 2  # what a detection turned out to be; dropped ones count for nothing
Verdicts = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Truths and detections sorted by group; `starts` columns bound each group's truths and detections."""

    truths: Ints
    detections: Ints
    starts: Ints  # groups × (first truth, end truth, first detection, end detection)


def by_class_and_image(truth: DetectionTruth, found: Detections) -> Groups:
    """Group so that a detection meets the truths of its own class in its own image."""
    of_truth = truth.image * len(truth.classes) + truth.labels
    of_found = found.image * len(truth.classes) + found.labels
    truths = np.argsort(of_truth, kind="stable")
    detections = np.lexsort((-found.scores, of_found))
    keys = np.unique(np.concatenate([of_truth, of_found]))
    starts = [
        np.searchsorted(column, keys, side)
        for column in (of_truth[truths], of_found[detections])
        for side in ("left", "right")
    ]
    return Groups(truths, detections, np.stack(starts, axis=1))


def judge_voc(truth: DetectionTruth, found: Detections, *, iou: float) -> Verdicts:
    """The VOC devkit's rule: each detection looks only at the truth it overlaps most.

    At IoU ≥ `iou` it is dropped if that truth is excused, right if the truth is still free, else false.
    """
    verdicts = np.zeros(len(found), np.uint8)
    groups = by_class_and_image(truth, found)
    _voc(
        groups.starts,
        truth.boxes[groups.truths],
        truth.excused[groups.truths],
        found.boxes[groups.detections],
        iou,
        groups.detections,
        verdicts,
    )
    return verdicts


def judge_nrec(truth: DetectionTruth, found: Detections, *, iou: float) -> tuple[Verdicts, Ints]:
    """The rule of *pezzementi*'s benchmark, and the truth each detection found (−1 for none).

    Best score first, a detection takes the free truth it overlaps most at IoU ≥ `iou`; one that finds
    none but lies to at least `iou` of its own area in an ignore region is dropped; the rest are false.
    """
    verdicts = np.zeros(len(found), np.uint8)
    hits = np.full(len(found), -1, np.int64)
    groups = by_class_and_image(truth, found)
    _nrec(
        groups.starts,
        truth.boxes[groups.truths],
        truth.excused[groups.truths],
        found.boxes[groups.detections],
        iou,
        groups.detections,
        groups.truths,
        verdicts,
        hits,
    )
    return verdicts, hits


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _shared(a: Any, b: Any) -> Any:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _area(a: Any) -> Any:
    return (a[2] - a[0]) * (a[3] - a[1])


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _iou(a: Any, b: Any) -> Any:
    shared = _shared(a, b)
    return shared / (_area(a) + _area(b) - shared) if shared > 0 else 0.0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _voc(starts: Any, truths: Any, excused: Any, boxes: Any, iou: Any, order: Any, verdicts: Any) -> None:
    taken = np.zeros(len(truths), np.bool_)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            best, at = -1.0, -1
            for t in range(t0, t1):
                overlap = _iou(boxes[d], truths[t])
                if overlap > best:
                    best, at = overlap, t
            if at < 0 or best < iou:
                continue
            if excused[at]:
                verdicts[order[d]] = DROPPED
            elif not taken[at]:
                taken[at] = True
                verdicts[order[d]] = TRUE


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _nrec(
    starts: Any,
    truths: Any,
    excused: Any,
    boxes: Any,
    iou: Any,
    order: Any,
    owner: Any,
    verdicts: Any,
    hits: Any,
) -> None:
    taken = np.zeros(len(truths), np.bool_)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            best, at, hidden = 0.0, -1, False
            for t in range(t0, t1):
                if excused[t]:
                    hidden = hidden or (
                        _area(boxes[d]) > 0 and _shared(boxes[d], truths[t]) >= iou * _area(boxes[d])
                    )
                elif not taken[t]:
                    overlap = _iou(boxes[d], truths[t])
                    if overlap >= iou and overlap > best:
                        best, at = overlap, t
            if at >= 0:
                taken[at] = True
                verdicts[order[d]] = TRUE
                hits[order[d]] = owner[at]
            elif hidden:
                verdicts[order[d]] = DROPPED
