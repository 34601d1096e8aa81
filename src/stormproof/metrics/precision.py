"""Average precision and recall of weighted images, from matches found once.

Only a hit moves recall, and precision needs nothing but the weight of everything judged so far. So a
replicate sums the weights of a class's detections once for all thresholds, then visits the hits of each.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Weights

Bits = npt.NDArray[np.uint16]  # one bit per IoU threshold
COCO_POINTS, VOC07_POINTS, WHOLE_AREA = 101, 11, 0  # recalls at which precision is read; 0: all of them
CAPS = np.array([1, 10, 100])  # detections per class and image that recall counts
_LANES = 8  # replicates that are added up side by side
_HIT_INSIDE, _HIT_OUTSIDE, _EXCUSED_INSIDE = 0, 1, 2
_HITS = np.array([1.0, 1.0, 0.0])  # what each kind of event adds to the hits,
_EXTRA = np.array([0.0, 1.0, -1.0])  # and to what was judged beside `judged`


def _missed(points: int) -> Ints:
    """Points that a recall of exactly so many parts does not reach, as rounding has it in the devkits,
    too."""
    steps = max(points - 1, 1)
    return (np.arange(steps + 1) / steps < np.linspace(0.0, 1.0, steps + 1)).astype(np.int64)


class Judged(NamedTuple):
    """The detections of one protocol and size, class by class and by falling score, and the objects to find.

    `hit[d]` has bit t where detection d found an object at the t-th IoU threshold, `excused[d]` where it
    found one that neither counts nor penalises. One that is not `inside` is no false positive. `place[d]`
    counts the detections of its class in its image that score higher.
    """

    image: Ints
    label: Ints
    hit: Bits
    excused: Bits
    inside: Bools
    place: Ints
    truth_image: Ints
    truth_label: Ints
    classes: int
    thresholds: int


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """What the precision-recall curves consist of, by class and threshold.

    `judged` are the images of the detections that count unless an event says otherwise, by class and falling
    score. An event (a hit, or a detection that is excused) comes after the first `at` of its class's judged.
    """

    judged: npt.NDArray[np.int32]
    judged_starts: Ints  # classes + 1
    truths: npt.NDArray[np.int32]  # images of the objects to find, by class
    truth_starts: Ints  # classes + 1
    event_at: npt.NDArray[np.int32]
    event_image: npt.NDArray[np.int32]
    event_kind: npt.NDArray[np.uint8]
    event_rank: npt.NDArray[np.uint8]  # the first of `CAPS` that counts it
    event_starts: Ints  # thresholds × (classes + 1)


def average_precision(found: Judged, weights: Weights, points: int = COCO_POINTS) -> tuple[Floats, Floats]:
    """AP by replicate, class and threshold, and recall by replicate, cap, class and threshold.

    NaN where a replicate has no object of a class. `points` is how many recalls precision is read at.
    """
    curve, missed = _curve(found), _missed(points)
    precision = np.empty((len(weights), found.classes, found.thresholds))
    recall = np.empty((len(weights), len(CAPS), found.classes, found.thresholds))
    tables: list[Any] = [getattr(curve, name) for name in curve.__dataclass_fields__]
    average: Any = _average

    def some(first: int) -> None:
        rows = weights[first : first + _LANES]
        block = np.zeros((weights.shape[1], _LANES), weights.dtype)
        block[:, : len(rows)] = rows.T
        lanes = np.empty((*precision.shape[1:], _LANES))
        capped = np.empty((*recall.shape[1:], _LANES))
        average(*tables, block, points, missed, lanes, capped)
        precision[first : first + len(rows)] = np.moveaxis(lanes, -1, 0)[: len(rows)]
        recall[first : first + len(rows)] = np.moveaxis(capped, -1, 0)[: len(rows)]

    starts = range(0, len(weights), _LANES)
    if len(starts) == 1:
        some(0)
    else:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(some, starts))
    return precision, recall


def _curve(found: Judged) -> _Curve:
    edges = np.arange(found.classes + 1)
    starts = np.searchsorted(found.label[found.inside], edges)
    by_class = np.argsort(found.truth_label, kind="stable")
    counts = np.zeros((found.thresholds, found.classes), np.int64)
    _count_events(found.label, found.hit, found.excused, found.inside, counts)
    ends = np.cumsum(counts).reshape(counts.shape)
    event_starts = np.concatenate([ends[:, :1] - counts[:, :1], ends], axis=1)
    total = int(counts.sum())
    at, image = (np.empty(total, np.int32) for _ in range(2))
    kind, rank = (np.empty(total, np.uint8) for _ in range(2))
    _fill_events(
        found.image, found.label, found.hit, found.excused, found.inside, found.place, CAPS, starts,
        event_starts[:, :-1].copy(), at, image, kind, rank,
    )  # fmt: skip
    return _Curve(
        found.image[found.inside].astype(np.int32), starts,
        found.truth_image[by_class].astype(np.int32), np.searchsorted(found.truth_label[by_class], edges),
        at, image, kind, rank, event_starts,
    )  # fmt: skip


@kernel
def _count_events(label: Any, hit: Any, excused: Any, inside: Any, counts: Any) -> None:
    for d in range(len(label)):
        events = hit[d] | (excused[d] if inside[d] else np.uint16(0))
        t = 0
        while events:
            if events & 1 and t < len(counts):
                counts[t, label[d]] += 1
            events >>= 1
            t += 1


@kernel
def _fill_events(
    images: Any, label: Any, hit: Any, excused: Any, inside: Any, place: Any, caps: Any, starts: Any,
    nexts: Any, at: Any, image: Any, kind: Any, rank: Any,
) -> None:  # fmt: skip
    judged = 0
    for d in range(len(label)):
        judged += inside[d]
        events, hits = hit[d] | (excused[d] if inside[d] else np.uint16(0)), hit[d]
        t = 0
        while events:
            if events & 1 and t < len(nexts):
                e = nexts[t, label[d]]
                nexts[t, label[d]] += 1
                at[e], image[e] = judged - starts[label[d]], images[d]
                if hits & 1:
                    kind[e] = _HIT_INSIDE if inside[d] else _HIT_OUTSIDE
                else:
                    kind[e] = _EXCUSED_INSIDE
                rank[e] = np.searchsorted(caps, place[d], side="right")
            events >>= 1
            hits >>= 1
            t += 1


@kernel
def _average(
    judged: Any, judged_starts: Any, truths: Any, truth_starts: Any, event_at: Any, event_image: Any,
    event_kind: Any, event_rank: Any, event_starts: Any, weights: Any, points: Any, missed: Any, out: Any,
    recall: Any,
) -> None:  # fmt: skip
    """Of a block of replicates side by side (`weights` are images × lanes), so that they add up together."""
    classes, thresholds, caps = out.shape[0], out.shape[1], recall.shape[0]
    widest, most = 0, 0
    for k in range(classes):
        widest = max(widest, judged_starts[k + 1] - judged_starts[k])
        for t in range(thresholds):
            most = max(most, event_starts[t, k + 1] - event_starts[t, k])
    sums = np.zeros((widest + 1, _LANES))
    found, counted = np.empty((most, _LANES)), np.empty((most, _LANES))
    positives, hits, extra = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    capped = np.empty((caps + 1, _LANES))
    for k in range(classes):
        positives[:] = 0
        for i in range(truth_starts[k], truth_starts[k + 1]):
            for lane in range(_LANES):
                positives[lane] += weights[truths[i], lane]
        first = judged_starts[k]
        for i in range(judged_starts[k + 1] - first):
            for lane in range(_LANES):
                sums[i + 1, lane] = sums[i, lane] + weights[judged[first + i], lane]
        for t in range(thresholds):
            # An event of weight 0, or an excused one, repeats the hits of the event before it with no
            # smaller a count, so it is never the best precision at its recall and needs no branch.
            start, count = event_starts[t, k], event_starts[t, k + 1] - event_starts[t, k]
            hits[:] = 0
            extra[:] = 0
            capped[:] = 0
            for e in range(count):
                hit, beside = _HITS[event_kind[start + e]], _EXTRA[event_kind[start + e]]
                image, at, rank = event_image[start + e], event_at[start + e], event_rank[start + e]
                for lane in range(_LANES):
                    w = np.float64(weights[image, lane])
                    hits[lane] += w * hit
                    extra[lane] += w * beside
                    capped[rank, lane] += w * hit
                    found[e, lane] = hits[lane]
                    counted[e, lane] = sums[at, lane] + extra[lane]
            for lane in range(_LANES):
                out[k, t, lane] = _interpolated(
                    found[:, lane], counted[:, lane], count, positives[lane], points, missed
                )
                total = 0.0
                for m in range(caps):
                    total += capped[m, lane]
                    recall[m, k, t, lane] = total / positives[lane] if positives[lane] else np.nan


@kernel(inline=True)
def _interpolated(found: Any, counted: Any, count: Any, positives: Any, points: Any, missed: Any) -> Any:
    """The mean over recalls of the best precision (found / counted) at that recall or beyond.

    From the last event to the first, each with the points between its recall and that of the one before it.
    Without a branch on the weights, which no processor could foresee.
    """
    if positives == 0 or count == 0:
        return np.nan if positives == 0 else 0.0
    total, best, over = 0.0, 0.0, 1.0
    reached = _reached(found[count - 1], positives, points, missed)
    for i in range(count - 1, -1, -1):
        before = _reached(found[i - 1], positives, points, missed) if i else 0.0
        better = found[i] * over > best * counted[i]
        best, over = (found[i], counted[i]) if better else (best, over)
        total += (reached - before) * (best / over)
        reached = before
    return total / points if points else total


@kernel(inline=True)
def _reached(hits: Any, positives: Any, points: Any, missed: Any) -> Any:
    """How many of the recall points lie at or below hits / positives; the recall itself where all count."""
    if points == 0:
        return hits / positives
    place = hits / positives * (points - 1)
    point = int(place + 1e-9)
    on = place - point < 1e-9
    return np.float64((point + 1 - (on and missed[point])) * (hits > 0))
