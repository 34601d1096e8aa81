"""Optimism: by how much few images inflate average precision, and how it is estimated for other means over
classes.

The precision at a hit includes that hit, the best precision at a recall is a maximum over few points, and few
images of a class seldom show it in a crowd, where it is hard to find. So the AP of a class that m images show
is too high, on average by about

    10 / (3 + m) · ∫ p · (1 − p) dr

where p is the precision at recall r on the curve of all classes together, each with the same weight. The two
constants are empirical, from three networks on photographs and from simulation, and err on the safe side
(docs/adr/0028).

If every object of a class is found, its precision also counts at a recall of 1, the last of 101 points (of 11
by VOC's rule of 2007). Among more images, some object is missed, and that point counts 0. So a perfect score
is too high by a hundredth (an eleventh).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Weights, mean_of_known, ratio
from stormproof.metrics.ordering import by_falling_score
from stormproof.metrics.precision import COCO_POINTS, Judged

_SCALE, _OFFSET = 10.0, 3.0
_MANY = 200  # images of which a half has close to half


def ap_optimism(
    judged: Judged, scores: Floats, among: Bools | None = None, points: int = COCO_POINTS
) -> Floats:
    """The optimism of the AP of each size, class and IoU threshold; NaN where a class has no object.

    `scores` are those of the detections; `among` marks the images that count, by default all; `points` is the
    number of recalls at which precision is read, 0 for all of them.
    """
    order, counts = by_falling_score(scores), judged.counts
    if among is not None:
        order, counts = order[among[judged.image[order]]], counts & among[judged.truth_image]
    out = np.full((len(counts), judged.classes, judged.thresholds), np.nan)
    for size, counting in enumerate(counts):
        shown = np.stack([judged.truth_label[counting], judged.truth_image[counting]])
        objects = np.bincount(shown[0], minlength=judged.classes)
        images = _different(shown[0], shown[1], judged.classes)
        occurs = objects > 0
        hit, excused, inside = (
            column[:, size].copy() for column in (judged.hit, judged.excused, judged.inside)
        )
        doubts = np.empty((judged.thresholds, np.count_nonzero(hit)))
        hits, until = (np.zeros((judged.thresholds, judged.classes), np.int64) for _ in range(2))
        weight = np.where(occurs, ratio(1.0, objects), 0.0)
        number = _walk_down(order, judged.label, hit, excused, inside, weight, doubts, hits, until)
        for t in range(judged.thresholds):
            undecided = float(doubts[t, : number[t]].sum()) / max(1, occurs.sum())
            out[size, occurs, t] = _SCALE / (_OFFSET + images[occurs]) * undecided
            if points:  # the precision of a class once all its objects are found
                complete = (hits[t] >= objects) & (hits[t] > 0)
                at_the_end = np.where(complete, ratio(hits[t], np.maximum(1, until[t])), 0.0)
                out[size, occurs, t] += at_the_end[occurs] / points
    return out


@kernel
def _walk_down(
    order: Any, label: Any, hit: Any, excused: Any, inside: Any, weight: Any, doubts: Any, hits: Any,
    until: Any,
) -> Any:  # fmt: skip
    """Visit detections by falling score. At each threshold, p · (1 − p) dr of every hit: p is the best
    precision at its recall r or a higher one, and it adds its weight to r. Also the hits of each class, and
    how many of its detections count until the last of them. Returns the number of hits by threshold."""
    thresholds = len(doubts)
    precision, seen = np.empty(doubts.shape), np.zeros(hits.shape, np.int64)
    right, total, number = np.zeros(thresholds), np.zeros(thresholds), np.zeros(thresholds, np.int64)
    for d in order:
        k = label[d]
        if not inside[d] and not hit[d]:
            continue
        for t in range(thresholds):
            found = hit[d] >> t & 1
            if not found and (not inside[d] or excused[d] >> t & 1):
                continue
            total[t] += weight[k]
            seen[t, k] += 1
            if found:
                right[t] += weight[k]
                precision[t, number[t]], doubts[t, number[t]] = right[t] / total[t], weight[k]
                hits[t, k] += 1
                until[t, k] = seen[t, k]
                number[t] += 1
    for t in range(thresholds):
        best = 0.0
        for e in range(number[t] - 1, -1, -1):
            best = max(best, precision[t, e])
            doubts[t, e] = doubts[t, e] * best * (1 - best)
    return number


def _different(labels: Ints, images: Ints, classes: int) -> Ints:
    """How many different images go with each label."""
    count = images.max(initial=0) + 1
    return np.bincount(np.unique(labels * count + images) // count, minlength=classes)


def class_optimism(values: Floats, image: Ints, label: Ints, weights: Weights, power: float) -> Floats:
    """How much too high the value of each class is, from its values on halves of the images.

    `values` is replicates × classes; `image` and `label` are those of whatever shows a class. The bias of a
    class that m images show is taken to be c / m**power, with one c for all classes: a class that a single
    image shows is on no half with fewer images, so it cannot tell by itself. Images of equal weights in all
    rows, as the frames of a clip, count as one.
    """
    shown = units_by_class(image, label, weights, values.shape[1])
    gaps = mean_of_known(values[1:], axis=0) - values[0]
    growth = np.array([_growth(int(m), power) for m in shown])
    known = np.isfinite(gaps) & (shown > 1)
    strength = ratio(gaps[known].sum(), growth[known].sum())
    optimism: Floats = np.where(np.isnan(values[0]), np.nan, strength * ratio(1.0, shown**power))
    return optimism


def class_optimisms(
    by_class: Mapping[str, Floats], image: Ints, label: Ints, weights: Weights, power: float
) -> dict[str, Floats]:
    """`class_optimism` of several measures; empty without replicates, from which it is estimated."""
    measured = by_class if len(weights) > 1 else {}
    return {name: class_optimism(values, image, label, weights, power) for name, values in measured.items()}


def units_by_class(image: Ints, label: Ints, weights: Weights, classes: int) -> Ints:
    """The number of images, or clips, that show each class."""
    counted = weights[0, image] > 0
    return _different(label[counted], _units(weights)[image[counted]], classes)


_last: list[tuple[Weights, Ints]] = []  # replaced whole: another thread may score, too


def _units(weights: Weights) -> Ints:
    """The unit of each column of weights. Every measure of a condition asks, so the last answer is kept."""
    for known, units in [*_last]:
        if known is weights:
            return units
    made: Ints = np.unique(weights, axis=1, return_inverse=True)[1].ravel()
    _last[:] = [(weights, made)]
    return made


def set_optimisms(numbers: Mapping[str, Floats], power: float) -> dict[str, Floats]:
    """How much too high numbers over all classes are, if their bias falls with images**power; one entry each,
    none without replicates."""
    measured = {name: values for name, values in numbers.items() if len(values) > 1}
    gaps = {name: mean_of_known(values[1:, None], axis=0) - values[0] for name, values in measured.items()}
    return {name: gap / (2**power - 1) for name, gap in gaps.items()}


@cache
def _growth(images: int, power: float) -> float:
    """How much larger 1 / images**power is on a random half of the images that has any of them."""
    if images < 2 or images > _MANY:
        return (2**power - 1) / images**power if images > _MANY else 0.0
    from scipy.stats import binom  # imported late: it takes a second

    held = np.arange(1, images + 1)
    chance = binom.pmf(held, images, 0.5)
    return float((chance / chance.sum()) @ held**-power - images**-power)
