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

from functools import cache

import numpy as np

from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import Weights, mean_of_known, ratio
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
    order, counts = np.argsort(-scores, kind="stable"), judged.counts
    if among is not None:
        order, counts = order[among[judged.image[order]]], counts & among[judged.truth_image]
    labels, inside = judged.label[order], judged.inside[order]
    by_class = np.argsort(labels, kind="stable")
    out = np.full((len(counts), judged.classes, judged.thresholds), np.nan)
    for size, counting in enumerate(counts):
        shown = np.stack([judged.truth_label[counting], judged.truth_image[counting]])
        objects = np.bincount(shown[0], minlength=judged.classes)
        images = _different(shown[0], shown[1], judged.classes)
        occurs = objects > 0
        weight = np.where(occurs, ratio(1.0, objects), 0.0)[labels]
        hits, excused = judged.hit[order, size], judged.excused[order, size]
        for t in range(judged.thresholds):
            hit = (hits >> t & 1).astype(bool)
            counted = hit | inside[:, size] & ~(excused >> t & 1).astype(bool)
            undecided = _integrate_doubt(hit, weight * counted) / max(1, occurs.sum())
            out[size, occurs, t] = _SCALE / (_OFFSET + images[occurs]) * undecided
            if points:
                complete = hit[by_class], counted[by_class], labels[by_class]
                out[size, occurs, t] += _precision_at_the_end(*complete, objects)[occurs] / points
    return out


def _different(labels: Ints, images: Ints, classes: int) -> Ints:
    """How many different images go with each label."""
    count = images.max(initial=0) + 1
    return np.bincount(np.unique(labels * count + images) // count, minlength=classes)


def _precision_at_the_end(hit: Bools, counted: Bools, labels: Ints, objects: Ints) -> Floats:
    """The precision of each class once all its objects are found; 0 if some are not.

    Detections are sorted by class, those of a class by falling score.
    """
    hits = np.bincount(labels[hit], minlength=len(objects))
    last = np.full(len(objects), -1)
    last[labels[hit]] = np.flatnonzero(hit)  # of several, the last is kept
    seen = np.concatenate([[0], np.cumsum(counted)])
    until = seen[last + 1] - seen[np.searchsorted(labels, np.arange(len(objects)))]
    complete = (hits >= objects) & (hits > 0)
    precision: Floats = np.where(complete, ratio(hits, np.maximum(1, until)), 0.0)
    return precision


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


def set_optimism(values: Floats, power: float) -> Floats:
    """How much too high a number over all classes is, if its bias falls with images**power; one entry."""
    gap: Floats = mean_of_known(values[1:, None], axis=0) - values[0]
    return gap / (2**power - 1)


@cache
def _growth(images: int, power: float) -> float:
    """How much larger 1 / images**power is on a random half of the images that has any of them."""
    if images < 2 or images > _MANY:
        return (2**power - 1) / images**power if images > _MANY else 0.0
    from scipy.stats import binom  # imported late: it takes a second

    held = np.arange(1, images + 1)
    chance = binom.pmf(held, images, 0.5)
    return float((chance / chance.sum()) @ held**-power - images**-power)


def _integrate_doubt(hit: Bools, weight: Floats) -> float:
    """∫ p · (1 − p) dr over detections sorted by falling score; a hit adds its weight to the recall r."""
    at = np.flatnonzero(hit)
    precision = np.cumsum(weight[at]) / np.cumsum(weight)[at]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((weight[at] * best * (1 - best)).sum())
