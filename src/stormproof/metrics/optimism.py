"""Optimism: by how much few images inflate average precision.

The precision at a hit includes that hit, the best precision at a recall is a maximum over few points, and few
images of a class seldom show it in a crowd, where it is hard to find. So the AP of a class that m images show
is too high, on average by about

    10 / (3 + m) · ∫ p · (1 − p) dr

where p is the precision at recall r on the curve of all classes together, each with the same weight. The two
constants are empirical, from three networks on photographs and from simulation, and err on the safe side
(docs/adr/0068).

If every object of a class is found, its precision also counts at a recall of 1, the last of 101 points (of 11
by VOC's rule of 2007). Among more images, some object is missed, and that point counts 0. So a perfect score
is too high by a hundredth (an eleventh).
"""

from __future__ import annotations

import numpy as np

from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import ratio
from stormproof.metrics.precision import COCO_POINTS, Judged

_SCALE, _OFFSET = 10.0, 3.0


def ap_optimism(
    found: Judged, scores: Floats, among: Bools | None = None, points: int = COCO_POINTS
) -> Floats:
    """The optimism of the AP of each size, class and IoU threshold; NaN where a class has no object.

    `scores` are those of the detections; `among` marks the images that count, by default all; `points` is the
    number of recalls at which precision is read, 0 for all of them.
    """
    order, counts = np.argsort(-scores, kind="stable"), found.counts
    if among is not None:
        order, counts = order[among[found.image[order]]], counts & among[found.truth_image]
    labels, inside = found.label[order], found.inside[order]
    out = np.full((len(counts), found.classes, found.thresholds), np.nan)
    for size, counting in enumerate(counts):
        shown = np.stack([found.truth_label[counting], found.truth_image[counting]])
        objects = np.bincount(shown[0], minlength=found.classes)
        images = np.bincount(np.unique(shown, axis=1)[0], minlength=found.classes)
        occurs = objects > 0
        weight = np.where(occurs, ratio(1.0, objects), 0.0)[labels]
        hits, excused = found.hit[order, size], found.excused[order, size]
        for t in range(found.thresholds):
            hit = (hits >> t & 1).astype(bool)
            counted = hit | inside[:, size] & ~(excused >> t & 1).astype(bool)
            undecided = _undecided(hit, weight * counted) / max(1, occurs.sum())
            out[size, occurs, t] = _SCALE / (_OFFSET + images[occurs]) * undecided
            if points:
                out[size, occurs, t] += _precision_at_the_end(hit, counted, labels, objects)[occurs] / points
    return out


def _precision_at_the_end(hit: Bools, counted: Bools, labels: Ints, objects: Ints) -> Floats:
    """The precision of each class once all its objects are found; 0 if some are not.

    Detections are sorted by falling score.
    """
    order = np.argsort(labels, kind="stable")
    hit, counted, labels = hit[order], counted[order], labels[order]
    hits = np.bincount(labels[hit], minlength=len(objects))
    last = np.full(len(objects), -1)
    last[labels[hit]] = np.flatnonzero(hit)  # of several, the last is kept
    seen = np.concatenate([[0], np.cumsum(counted)])
    until = seen[last + 1] - seen[np.searchsorted(labels, np.arange(len(objects)))]
    complete = (hits >= objects) & (hits > 0)
    precision: Floats = np.where(complete, ratio(hits, np.maximum(1, until)), 0.0)
    return precision


def _undecided(hit: Bools, weight: Floats) -> float:
    """∫ p · (1 − p) dr over detections sorted by falling score; a hit adds its weight to the recall r."""
    at = np.flatnonzero(hit)
    precision = np.cumsum(weight[at]) / np.cumsum(weight)[at]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((weight[at] * best * (1 - best)).sum())
