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

from stormproof.confidence.matching import IOUS, Bits, Matches
from stormproof.kernel import kernel
from stormproof.sample import Bools, Floats, Ints

POINTS = np.linspace(0.0, 1.0, 101)
_HIT_INSIDE, _HIT_OUTSIDE, _EXCUSED_INSIDE = 0, 1, 2


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


def average_precision(found: Curve, weights: npt.NDArray[Any], points: Floats = POINTS) -> Floats:
    """AP by replicate, class and threshold; NaN where a replicate has no object of a class.

    `weights` are replicates × images, whole numbers or any others that are not negative.
    """
    out = np.empty((len(weights), len(found.truth_starts) - 1, len(found.event_starts)))
    rows = np.array_split(np.arange(len(weights)), max(1, min(len(weights), os.cpu_count() or 1)))
    tables: list[Any] = [getattr(found, name) for name in found.__dataclass_fields__]
    kernel: Any = _average_precision

    def some(chosen: Ints) -> None:
        part = slice(chosen[0], chosen[-1] + 1)
        kernel(*tables, weights[part], points, out[part])

    with ThreadPoolExecutor(len(rows)) as pool:
        list(pool.map(some, rows))
    return out


def mean_over_classes(values: Floats) -> Floats:
    """The mean over the classes (the last axis) that a replicate has objects of; NaN if it has none."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    total = np.where(present, values, 0.0).sum(axis=-1)
    result: Floats = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return result


def coco_numbers(found: Sequence[Curve], weights: npt.NDArray[Any]) -> tuple[dict[str, Floats], Floats]:
    """AP, AP50, AP75, APs, APm and APl by replicate; and AP by replicate and class."""
    every = average_precision(found[0], weights)
    by_class = every.mean(axis=2)
    numbers = {
        "AP": mean_over_classes(by_class),
        "AP50": mean_over_classes(every[:, :, 0]),
        "AP75": mean_over_classes(every[:, :, 5]),
    }
    for name, one in zip(("APs", "APm", "APl"), found[1:], strict=True):
        numbers[name] = mean_over_classes(average_precision(one, weights).mean(axis=2))
    return numbers, by_class


@kernel
def _average_precision(
    judged: Any, judged_starts: Any, truths: Any, truth_starts: Any, event_at: Any, event_image: Any,
    event_kind: Any, event_starts: Any, weights: Any, points: Any, out: Any,
) -> None:  # fmt: skip
    classes, thresholds = out.shape[1], out.shape[2]
    widest, most = 0, 0
    for k in range(classes):
        widest = max(widest, judged_starts[k + 1] - judged_starts[k])
        for t in range(thresholds):
            most = max(most, event_starts[t, k + 1] - event_starts[t, k])
    sums = np.zeros(widest + 1)
    recall, precision = np.empty(most), np.empty(most)
    for r in range(len(weights)):
        weight = weights[r]
        for k in range(classes):
            positives = 0.0
            for i in range(truth_starts[k], truth_starts[k + 1]):
                positives += weight[truths[i]]
            if positives == 0:
                out[r, k, :] = np.nan
                continue
            first = judged_starts[k]
            total = 0.0
            for i in range(judged_starts[k + 1] - first):
                total += weight[judged[first + i]]
                sums[i + 1] = total
            for t in range(thresholds):
                hits, extra, count = 0.0, 0.0, 0
                for e in range(event_starts[t, k], event_starts[t, k + 1]):
                    w = np.float64(weight[event_image[e]])
                    if w == 0:
                        continue
                    kind = event_kind[e]
                    if kind == _EXCUSED_INSIDE:
                        extra -= w
                        continue
                    if kind == _HIT_OUTSIDE:
                        extra += w
                    hits += w
                    recall[count] = hits / positives
                    precision[count] = hits / (sums[event_at[e]] + extra)
                    count += 1
                out[r, k, t] = _interpolated(recall, precision, count, points)


@kernel(inline=True)
def _interpolated(recall: Any, precision: Any, count: Any, points: Any) -> Any:
    """The mean over recall points of the best precision at that recall or beyond."""
    total, best, i = 0.0, 0.0, count - 1
    for p in range(len(points) - 1, -1, -1):
        while i >= 0 and recall[i] >= points[p]:
            best = max(best, precision[i])
            i -= 1
        total += best
    return total / len(points)
