"""Average precision and recall of weighted images, from matches that are computed once.

Recall changes only at a hit, and precision needs only the total weight of the detections so far. So for each
replicate the weights of a class's detections are summed once for all thresholds; then the hits of each
threshold are visited.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Weights

Bits = npt.NDArray[np.uint16]  # one bit per IoU threshold
COCO_POINTS, VOC07_POINTS, WHOLE_AREA = 101, 11, 0  # recalls at which precision is read; 0: all of them
CAPS = np.array([1, 10, 100])  # for AR1, AR10 and AR100: detections per class and image
MAX_DETECTIONS = 100  # detections per class and image that are matched
_LANES = 8  # replicates that a loop computes side by side
_SMALL = 4096  # entries: a loop over smaller tables ends before a thread has started
_HIT_INSIDE, _HIT_OUTSIDE, _EXCUSED_INSIDE = 0, 1, 2  # kinds of events
_HITS = np.array([1.0, 1.0, 0.0])  # what each kind adds to the number of hits,
_EXTRA = np.array([0.0, 1.0, -1.0])  # and to the number of detections that `Curves.judged` gives


class Judged(NamedTuple):
    """Detections as a protocol judges them, sorted by class, then by falling score; and the objects to find.

    Bit t of `hit[d, s]` is set if detection d found an object of size s at the t-th IoU threshold, bit t of
    `excused[d, s]` if it found one that is neither counted nor penalised. `inside[d, s]` says whether the
    detection itself has size s: only then is it a false positive if it found nothing. `place[d]` counts the
    detections of the same class and image that score higher. `counts[s, o]` marks the objects of size s.
    """

    image: Ints
    label: Ints
    hit: Bits
    excused: Bits
    inside: Bools
    place: Ints
    truth_image: Ints
    truth_label: Ints
    counts: Bools
    classes: int
    thresholds: int


class ImageMatches(NamedTuple):
    """Matches of objects of any size, in groups of one class in one image, each sorted by falling score.

    `starts` bounds the objects and the detections of each group, as in `matching.Groups`; `hit`, `excused`
    and `inside` are as in `Judged`, for one size.
    """

    starts: Ints
    truth_image: Ints
    counts: Bools
    hit: Bits
    excused: Bits
    inside: Bools


class Curves(NamedTuple):
    """The data of precision-recall curves: a row for each size and class, and in it a curve per threshold.

    `judged` holds the images of the detections that count by default, by row and falling score. An event is a
    hit or an excused detection; it comes after the first `at` detections of its row.
    """

    judged: npt.NDArray[np.int32]
    judged_starts: Ints  # rows + 1
    truths: npt.NDArray[np.int32]  # images of the objects to find, by row
    truth_starts: Ints  # rows + 1
    event_at: npt.NDArray[np.int32]
    event_image: npt.NDArray[np.int32]
    event_kind: npt.NDArray[np.uint8]
    event_rank: npt.NDArray[np.uint8]  # the index of the smallest of `CAPS` that includes it
    event_starts: Ints  # thresholds × (rows + 1)


def curves_of(matched: Judged) -> Curves:
    """The curves of every size, class and threshold."""
    rows = matched.hit.shape[1] * matched.classes
    judged, truths = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    events = np.zeros((matched.thresholds, rows), np.int64)
    _count(
        matched.label, matched.hit, matched.excused, matched.inside, matched.truth_label, matched.counts,
        judged, truths, events,
    )  # fmt: skip
    judged_starts, truth_starts = (np.concatenate([[0], np.cumsum(each)]) for each in (judged, truths))
    ends = np.cumsum(events).reshape(events.shape)
    event_starts = np.concatenate([ends[:, :1] - events[:, :1], ends], axis=1)
    total = int(events.sum())
    made = Curves(
        np.empty(judged_starts[-1], np.int32), judged_starts, np.empty(truth_starts[-1], np.int32),
        truth_starts, np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.uint8),
        np.empty(total, np.uint8), event_starts,
    )  # fmt: skip
    _fill(
        matched.image, matched.label, matched.hit, matched.excused, matched.inside, matched.place, CAPS,
        matched.truth_image, matched.truth_label, matched.counts, judged_starts[:-1].copy(),
        truth_starts[:-1].copy(), event_starts[:, :-1].copy(), *made,
    )  # fmt: skip
    return made


def average_precision(judged: Judged, weights: Weights, *rules: int) -> tuple[Floats, Floats]:
    """AP by replicate, rule, size, class and threshold, and recall by replicate, cap, size, class, threshold.

    NaN where a replicate has no object of a class. A rule is the number of recalls at which precision is
    read.
    """
    sizes, classes, thresholds = len(judged.counts), judged.classes, judged.thresholds
    shape = (len(rules) + len(CAPS), sizes * classes, thresholds)
    averages = in_lanes(weights, _average, shape, *curves_of(judged), np.array(rules))
    averages = averages.reshape(len(weights), len(rules) + len(CAPS), sizes, classes, thresholds)
    return averages[:, : len(rules)], averages[:, len(rules) :]


def precision_by_image(matches: ImageMatches, thresholds: int, points: int) -> tuple[Ints, Floats]:
    """The image of every group with an object to find, and the group's AP by threshold."""
    image = np.empty(len(matches.starts), np.int64)
    averages = np.empty((len(matches.starts), thresholds))
    groups = _average_by_image(*matches, points, image, averages)
    return image[:groups], averages[:groups]


def in_lanes(
    weights: Weights, loop: Any, shape: tuple[int, ...], *tables: Any, thresholds: Floats | None = None
) -> Floats:
    """Run a compiled loop over blocks of replicates, on several threads; returns replicates × `shape`.

    A block's replicates are the lanes of vector instructions. The loop gets the `tables`, the block's
    `thresholds` as classes × lanes (if given, as replicates × classes), its weights as images × lanes, a
    tuple with one entry per lane, whose length the compiler knows, and an array `shape` × lanes to fill.
    """
    width = 1 if len(weights) == 1 else _LANES
    out = np.empty((len(weights), *shape))

    def run_block(first: int) -> None:
        chosen = weights[first : first + width]
        block = np.zeros((weights.shape[1], width), weights.dtype)
        block[:, : len(chosen)] = chosen.T
        lanes, given = np.empty((*shape, width)), tables
        if thresholds is not None:
            levels = np.full((thresholds.shape[1], width), np.nan)
            levels[:, : len(chosen)] = thresholds[first : first + width].T
            given = (*tables, levels)
        loop(*given, block, (0,) * width, lanes)
        out[first : first + len(chosen)] = np.moveaxis(lanes, -1, 0)[: len(chosen)]

    starts = range(0, len(weights), width)
    if len(starts) == 1 or max(map(np.size, tables)) < _SMALL:
        for first in starts:
            run_block(first)
    else:
        list(_block_threads().map(run_block, starts))
    return out


@cache
def _block_threads() -> ThreadPoolExecutor:
    """The threads that compute blocks, for all conditions that are scored at the same time."""
    return ThreadPoolExecutor(os.cpu_count() or 1)


@kernel
def _count(
    label: Any, hit: Any, excused: Any, inside: Any, truth_label: Any, counts: Any, judged: Any, truths: Any,
    events: Any,
) -> None:  # fmt: skip
    sizes, thresholds = hit.shape[1], len(events)
    classes = len(judged) // sizes
    for d in range(len(label)):
        for s in range(sizes):
            row = s * classes + label[d]
            judged[row] += inside[d, s]
            bits = hit[d, s] | (excused[d, s] * inside[d, s])
            if bits:
                for t in range(thresholds):
                    events[t, row] += bits >> t & 1
    for s in range(sizes):
        for o in range(len(truth_label)):
            truths[s * classes + truth_label[o]] += counts[s, o]


@kernel
def _fill(
    images: Any, label: Any, hit: Any, excused: Any, inside: Any, place: Any, caps: Any, truth_image: Any,
    truth_label: Any, counts: Any, next_judged: Any, next_truth: Any, next_event: Any, judged: Any,
    judged_starts: Any, truths: Any, truth_starts: Any, at: Any, image: Any, kind: Any, rank: Any,
    event_starts: Any,
) -> None:  # fmt: skip
    """Write every table of `Curves`; the `next_` arrays hold the place of each row's next entry."""
    sizes, thresholds = hit.shape[1], len(event_starts)
    classes = len(next_judged) // sizes
    for d in range(len(label)):
        for s in range(sizes):
            row = s * classes + label[d]
            if inside[d, s]:
                judged[next_judged[row]] = images[d]
                next_judged[row] += 1
            bits = hit[d, s] | (excused[d, s] * inside[d, s])
            if bits:
                order = 0
                while order < len(caps) and place[d] >= caps[order]:
                    order += 1
                for t in range(thresholds):
                    if bits >> t & 1:
                        e = next_event[t, row]
                        next_event[t, row] += 1
                        at[e], image[e], rank[e] = next_judged[row] - judged_starts[row], images[d], order
                        if hit[d, s] >> t & 1:
                            kind[e] = _HIT_INSIDE if inside[d, s] else _HIT_OUTSIDE
                        else:
                            kind[e] = _EXCUSED_INSIDE
    for s in range(sizes):
        for o in range(len(truth_label)):
            if counts[s, o]:
                row = s * classes + truth_label[o]
                truths[next_truth[row]] = truth_image[o]
                next_truth[row] += 1


@kernel(inline=True)
def sum_weights(image: Any, first: Any, end: Any, weights: Any, side_by_side: Any, out: Any) -> None:
    """The total weight of the objects from `first` to `end`, lane by lane."""
    out[:] = 0.0
    for i in range(first, end):
        for lane in range(len(side_by_side)):
            out[lane] += weights[image[i], lane]


@kernel
def _average(
    judged: Any, judged_starts: Any, truths: Any, truth_starts: Any, event_at: Any, event_image: Any,
    event_kind: Any, event_rank: Any, event_starts: Any, points: Any, weights: Any,
    side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    """AP by each rule, then recall by each cap, for a block of replicates."""
    width, rules = len(side_by_side), len(points)
    rows, thresholds, caps = out.shape[1], out.shape[2], out.shape[0] - rules
    widest, most = 0, 0
    for k in range(rows):
        widest = max(widest, judged_starts[k + 1] - judged_starts[k])
        for t in range(thresholds):
            most = max(most, event_starts[t, k + 1] - event_starts[t, k])
    sums = np.zeros((widest + 1, width))
    right, counted = np.zeros((most + 1, width)), np.empty((most, width))
    reached, best = np.zeros((most + 1, width)), np.empty((2, width))
    positives, extra, capped = np.empty(width), np.empty(width), np.empty((caps + 1, width))
    for k in range(rows):
        sum_weights(truths, truth_starts[k], truth_starts[k + 1], weights, side_by_side, positives)
        first = judged_starts[k]
        for i in range(judged_starts[k + 1] - first):
            for lane in range(width):
                sums[i + 1, lane] = sums[i, lane] + weights[judged[first + i], lane]
        for t in range(thresholds):
            # An event of weight 0, or an excused one, has the hits of the event before it and at least its
            # count, so its precision is never the best at its recall: no branch is needed.
            start, count = event_starts[t, k], event_starts[t, k + 1] - event_starts[t, k]
            extra[:] = 0
            capped[:] = 0
            for e in range(count):
                hit, extra_count = _HITS[event_kind[start + e]], _EXTRA[event_kind[start + e]]
                image, at, rank = event_image[start + e], event_at[start + e], event_rank[start + e]
                for lane in range(width):
                    w = np.float64(weights[image, lane])
                    right[e + 1, lane] = right[e, lane] + w * hit
                    extra[lane] += w * extra_count
                    capped[rank, lane] += w * hit
                    counted[e, lane] = sums[at, lane] + extra[lane]
            for rule in range(rules):
                interpolate(
                    right[1:], counted, count, positives, points[rule], True, side_by_side, reached, best,
                    out[rule, k, t],
                )  # fmt: skip
            for lane in range(width):
                total = 0.0
                for m in range(caps):
                    total += capped[m, lane]
                    out[rules + m, k, t, lane] = total / positives[lane] if positives[lane] else np.nan


@kernel
def _average_by_image(
    starts: Any, truth_image: Any, counts: Any, hit: Any, excused: Any, inside: Any, points: Any, image: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Write the image and the AP of each group with an object to find; returns the number of such groups."""
    right, counted = np.empty((MAX_DETECTIONS, 1)), np.empty((MAX_DETECTIONS, 1))
    reached, best = np.zeros((MAX_DETECTIONS + 1, 1)), np.empty((2, 1))
    positives, groups = np.zeros(1), 0
    # Most groups have a single object: precision at every point is that at its hit, computed with the same
    # operations as in `interpolate`.
    steps = np.float64(points - 1)
    whole = points - (steps * (1.0 / steps) > 1.0)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        positives[0] = 0
        for o in range(t0, t1):
            positives[0] += counts[o]
        if positives[0] == 0:
            continue
        last, any_hit = min(d1, d0 + MAX_DETECTIONS), np.uint16(0)
        for d in range(d0, last):
            any_hit |= hit[d]
        image[groups] = truth_image[t0]
        for t in range(out.shape[1]):
            out[groups, t] = 0.0
            if not any_hit >> t & 1:
                continue
            if positives[0] == 1:
                out[groups, t] = whole * (1.0 / _count_until_hit(hit, excused, inside, d0, t)) / points
                continue
            events, hits, judged = 0, 0.0, 0.0
            for d in range(d0, last):
                judged += inside[d]
                if hit[d] >> t & 1:
                    hits += 1.0
                    judged += not inside[d]
                elif excused[d] >> t & 1 and inside[d]:
                    judged -= 1.0
                else:
                    continue
                right[events, 0], counted[events, 0] = hits, judged
                events += 1
            interpolate(
                right, counted, events, positives, points, True, (0,), reached, best, out[groups, t : t + 1]
            )
        groups += 1
    return groups


@kernel(inline=True)
def _count_until_hit(hit: Any, excused: Any, inside: Any, first: Any, t: Any) -> Any:
    """The number of detections that count, up to and including the first hit at a threshold."""
    judged, d = 0.0, first
    while not hit[d] >> t & 1:
        judged += inside[d] and not excused[d] >> t & 1
        d += 1
    return judged + 1.0


@kernel
def interpolate(
    right: Any, counted: Any, count: Any, positives: Any, points: Any, rounded: Any, side_by_side: Any,
    reached: Any, best: Any, out: Any,
) -> None:  # fmt: skip
    """The mean over recall points of the best precision (found / counted) at that recall or a higher one.

    The loop goes from the last of `count` events to the first; each adds the points between its own recall
    and that of the event before it. It does not branch on weights, because such a branch is unpredictable and
    therefore slow. `reached` (one row more than events, the first all zeros) and `best` (two rows) are
    scratch arrays; `rounded` is explained in `_reach`.
    """
    width = len(side_by_side)
    _reach(right, count, positives, points, rounded, side_by_side, reached)
    best[0], best[1], out[:] = 0.0, 1.0, 0.0
    for e in range(count - 1, -1, -1):
        for lane in range(width):
            better = right[e, lane] * best[1, lane] > best[0, lane] * counted[e, lane]
            best[0, lane] = right[e, lane] if better else best[0, lane]
            best[1, lane] = counted[e, lane] if better else best[1, lane]
            out[lane] += (reached[e + 1, lane] - reached[e, lane]) * (best[0, lane] / best[1, lane])
    for lane in range(width):
        mean = out[lane] / points if points else out[lane]
        out[lane] = mean if positives[lane] > 0 else np.nan


@kernel
def _reach(
    right: Any, count: Any, positives: Any, points: Any, rounded: Any, side_by_side: Any, reached: Any
) -> None:  # fmt: skip
    """The number of recall points at or below found / positives; without points, the recall itself.

    The devkits compute points as k · step, `rounded`, some of which lie above the exact fraction k / steps.
    """
    width = len(side_by_side)
    steps = np.float64(points - 1)
    step = 1.0 / steps
    for e in range(count):
        for lane in range(width):
            recall = right[e, lane] / positives[lane]
            place = recall * steps
            point = np.floor(place + 1e-9)
            above = rounded & (place - point < 1e-9) & (point / steps < point * step)
            reached[e + 1, lane] = (point + 1.0 - above) * (right[e, lane] > 0) if points else recall
