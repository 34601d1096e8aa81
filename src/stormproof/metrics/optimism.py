"""Optimism: how much too high average precision is on few images.

The precision at an object counts that object among the hits, the best precision at a recall is a maximum
over few points, and a class that few images show is seldom seen in a crowd, where it is hard to find. So the
AP of a class that m images show is too high, on average by about

    10 / (3 + m) · ∫ p · (1 − p) dr

where p is the precision at recall r along the curve of all classes together, with equal weight: if all
detections are right, or all are wrong, there is no optimism. The two constants are
empirical, from three networks on photographs and from simulation, and err on the safe side (docs/adr/0068).
"""

from __future__ import annotations

import numpy as np

from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.metric import ratio
from stormproof.metrics.precision import Judged

_MOST, _FADES = 10.0, 3.0


def ap_optimism(found: Judged, scores: Floats, among: Bools | None = None) -> Floats:
    """How much too high the AP of each size, class and IoU threshold is; NaN where a class has no object.

    `scores` are those of the detections. `among` marks the images that are scored, if not all are.
    """
    if among is not None and not among.all():
        found, scores = _of_images(found, among), scores[among[found.image]]
    order = np.argsort(-scores, kind="stable")
    said, inside = found.label[order], found.inside[order]
    out = np.full((len(found.counts), found.classes, found.thresholds), np.nan)
    for size, counting in enumerate(found.counts):
        label = found.truth_label[counting]
        objects = np.bincount(label, minlength=found.classes)
        images = np.bincount(_pairs(label, found.truth_image[counting]), minlength=found.classes)
        there = objects > 0
        weight = np.where(there, ratio(1.0, objects), 0.0)[said]
        hits, excused = found.hit[order, size], found.excused[order, size]
        for t in range(found.thresholds):
            hit = (hits >> t & 1).astype(bool)
            counted = hit | inside[:, size] & ~(excused >> t & 1).astype(bool)
            undecided = _undecided(hit, weight * counted) / max(1, there.sum())
            out[size, there, t] = _MOST / (_FADES + images[there]) * undecided
    return out


def _of_images(found: Judged, among: Bools) -> Judged:
    said, shown = among[found.image], among[found.truth_image]
    return found._replace(
        image=found.image[said], label=found.label[said], hit=found.hit[said], excused=found.excused[said],
        inside=found.inside[said], place=found.place[said],
        truth_image=found.truth_image[shown], truth_label=found.truth_label[shown],
        counts=found.counts[:, shown],
    )  # fmt: skip


def _pairs(label: Ints, image: Ints) -> Ints:
    """The label of every class in every image that shows it."""
    found: Ints = np.unique(np.stack([label, image]), axis=1)[0]
    return found


def _undecided(hit: Bools, weight: Floats) -> float:
    """∫ p · (1 − p) dr along detections by falling score, in the weights' unit of recall."""
    at = np.flatnonzero(hit)
    precision = np.cumsum(weight[at]) / np.cumsum(weight)[at]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((weight[at] * best * (1 - best)).sum())
