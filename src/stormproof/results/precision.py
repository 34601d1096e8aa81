"""Average precision of weighted images, from matches found once.

Only a hit moves recall, and precision needs nothing but the weight of everything judged so far. So a
replicate sums the weights of a class's detections once for all thresholds, then visits the hits of each.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.cocomatching import IOUS, Bits, Matches

_LANES = 8  # replicates that are added up side by side
POINTS = np.linspace(0.0, 1.0, 101)
# Points that a recall of exactly so many hundredths does not reach, as rounding has it in pycocotools, too.
_MISSED = (np.arange(101) / 100 < POINTS).astype(np.int64)
_HIT_INSIDE, _HIT_OUTSIDE, _EXCUSED_INSIDE = 0, 1, 2
_HITS = np.array([1.0, 1.0, 0.0])  # what each kind of event adds to the hits,
_EXTRA = np.array([0.0, 1.0, -1.0])  # and to what was judged beside `judged`


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What the precision-recall curves of one size consist of, by class and threshold.

    `judged` are the images of the detections that count unless an event says otherwise, by class and falling
    score. An event (a hit, or a detection that is excused) stands after the first `at` of its class's judged.
    """

    judged: npt.NDArray[np.int32]
    judged_starts: Ints  # classes + 1
    truths: npt.NDArray[np.int32]  # images of the objects to find, by class
    truth_starts: Ints  # classes + 1
    event_at: npt.NDArray[np.int32]
    event_image: npt.NDArray[np.int32]
    event_kind: npt.NDArray[np.uint8]
    event_starts: Ints  # thresholds × (classes + 1)


def curves(matches: Matches) -> list[Curve]:
    """The curves of all sizes together, small, medium and large."""
    return [
        curve(matches, matches.hit[s], matches.excused[s], matches.inside[s], matches.counts[s], len(IOUS))
        for s in range(len(matches.hit))
    ]


def curve(matches: Matches, hit: Bits, excused: Bits, inside: Bools, counts: Bools, thresholds: int) -> Curve:
    """The curves of one size."""
    edges = np.arange(matches.classes + 1)
    starts = np.searchsorted(matches.label[inside], edges)
    before = np.cumsum(inside)  # judged so far, this one included
    by_class = np.flatnonzero(counts)[np.argsort(matches.truth_label[counts], kind="stable")]
    at, image, kind, event_starts, base = [], [], [], [], 0
    for k in range(thresholds):
        hits = (hit >> np.uint16(k) & np.uint16(1)).astype(bool)
        events = np.flatnonzero(hits | ((excused >> np.uint16(k) & np.uint16(1)).astype(bool) & inside))
        label = matches.label[events]
        at.append(before[events] - starts[label])
        image.append(matches.image[events])
        kind.append(
            np.where(hits[events], np.where(inside[events], _HIT_INSIDE, _HIT_OUTSIDE), _EXCUSED_INSIDE)
        )
        event_starts.append(base + np.searchsorted(label, edges))
        base += len(events)
    return Curve(
        matches.image[inside].astype(np.int32), starts,
        matches.truth_image[by_class].astype(np.int32), np.searchsorted(matches.truth_label[by_class], edges),
        np.concatenate(at).astype(np.int32), np.concatenate(image).astype(np.int32),
        np.concatenate(kind).astype(np.uint8), np.stack(event_starts),
    )  # fmt: skip


def average_precision(found: Curve, weights: npt.NDArray[Any]) -> Floats:
    """AP by replicate, class and threshold; NaN where a replicate has no object of a class.

    `weights` are replicates × images, whole numbers or any others that are not negative.
    """
    out = np.empty((len(weights), len(found.truth_starts) - 1, len(found.event_starts)))
    tables: list[Any] = [getattr(found, name) for name in found.__dataclass_fields__]
    kernel: Any = _average_precision

    def some(first: int) -> None:
        rows = weights[first : first + _LANES]
        block = np.zeros((weights.shape[1], _LANES), weights.dtype)
        block[:, : len(rows)] = rows.T
        lanes = np.empty((*out.shape[1:], _LANES))
        kernel(*tables, block, lanes)
        out[first : first + len(rows)] = np.moveaxis(lanes, 2, 0)[: len(rows)]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(some, range(0, len(weights), _LANES)))
    return out


def ratio(above: Floats, below: Floats, least: float = 0.0) -> Floats:
    """above / below; NaN where there is no more than `least` below."""
    shape = np.broadcast(above, below).shape
    result: Floats = np.divide(above, below, out=np.full(shape, np.nan), where=below > least)
    return result


def mean_of_known(values: Floats, axis: int = -1) -> Floats:
    """The mean over what has a value, such as the classes a replicate has objects of; NaN if none has."""
    present = ~np.isnan(values)
    return ratio(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))


def coco_numbers(found: Sequence[Curve], weights: npt.NDArray[Any]) -> tuple[dict[str, Floats], Floats]:
    """AP, AP50, AP75, APs, APm and APl by replicate; and AP by replicate and class."""
    every = average_precision(found[0], weights)
    by_class = every.mean(axis=2)
    numbers = {
        "AP": mean_of_known(by_class),
        "AP50": mean_of_known(every[:, :, 0]),
        "AP75": mean_of_known(every[:, :, 5]),
    }
    for name, one in zip(("APs", "APm", "APl"), found[1:], strict=True):
        numbers[name] = mean_of_known(average_precision(one, weights).mean(axis=2))
    return numbers, by_class


@kernel
def _average_precision(
    judged: Any, judged_starts: Any, truths: Any, truth_starts: Any, event_at: Any, event_image: Any,
    event_kind: Any, event_starts: Any, weights: Any, out: Any,
) -> None:  # fmt: skip
    """Of a block of replicates side by side (`weights` are images × lanes), so that they add up together."""
    classes, thresholds = out.shape[0], out.shape[1]
    widest, most = 0, 0
    for k in range(classes):
        widest = max(widest, judged_starts[k + 1] - judged_starts[k])
        for t in range(thresholds):
            most = max(most, event_starts[t, k + 1] - event_starts[t, k])
    sums = np.zeros((widest + 1, _LANES))
    found, counted = np.empty((most, _LANES)), np.empty((most, _LANES))
    positives, hits, extra = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
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
            for e in range(count):
                hit, beside = _HITS[event_kind[start + e]], _EXTRA[event_kind[start + e]]
                image, at = event_image[start + e], event_at[start + e]
                for lane in range(_LANES):
                    w = np.float64(weights[image, lane])
                    hits[lane] += w * hit
                    extra[lane] += w * beside
                    found[e, lane] = hits[lane]
                    counted[e, lane] = sums[at, lane] + extra[lane]
            for lane in range(_LANES):
                out[k, t, lane] = _interpolated(found[:, lane], counted[:, lane], count, positives[lane])


@kernel(inline=True)
def _interpolated(found: Any, counted: Any, count: Any, positives: Any) -> Any:
    """The mean over recall points of the best precision (found / counted) at that recall or beyond.

    From the last event to the first, each with the points between its recall and that of the one before it.
    Without a branch on the weights, which no processor could foresee.
    """
    if positives == 0 or count == 0:
        return np.nan if positives == 0 else 0.0
    total, best, over = 0.0, 0.0, 1.0
    reached = _points_within(found[count - 1], positives)
    for i in range(count - 1, -1, -1):
        before = _points_within(found[i - 1], positives) if i else 0
        better = found[i] * over > best * counted[i]
        best, over = (found[i], counted[i]) if better else (best, over)
        total += (reached - before) * (best / over)
        reached = before
    return total / len(POINTS)


@kernel(inline=True)
def _points_within(hits: Any, positives: Any) -> Any:
    """How many of the 101 recall points lie at or below hits / positives; none if there is no hit."""
    place = hits / positives * (len(POINTS) - 1)
    point = int(place + 1e-9)
    on = place - point < 1e-9
    return (point + 1 - (on and _MISSED[point])) * (hits > 0)
