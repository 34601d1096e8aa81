"""Calibration of detections: whether a score of 0.8 means that four of five such detections are right.

Definitions differ, so each has its own name:

- D-ECE (Küppers et al. 2020): over all classes together, detections scored 0.3 or more, and ten bins of the
  score, the mean of |mean score − precision|, weighted by detections. Right means an IoU of at least 0.5.
- LaECE₀ (Kuzucu et al. 2024): for each class, over 25 bins of the detections above the class's LRP-optimal
  threshold, the mean of |mean score − precision · mean IoU|; then the mean over classes. Any overlap makes a
  detection right.
- LaACE₀: the same with one bin for each detection: the mean of |score − IoU|.

LRP-optimal thresholds are fixed on the clean images, as for a deployed detector. There are three more
measures: the precision of detections scored 0.3 or more, the lowest threshold of at least 0.3 that keeps the
precision of the clean images, and the recall at that threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.core.threads import remember
from stormproof.metrics.lrp import Located
from stormproof.metrics.metric import (
    Calibrated,
    Measure,
    Scored,
    Weights,
    detail,
    mean_of_known,
    metric,
    ratio,
    reliability_diagram,
    weighted_sums,
)
from stormproof.metrics.optimism import class_optimisms, set_optimisms
from stormproof.metrics.precision import in_lanes, sum_weights

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

MIN_SCORE = 0.3  # of detections that count in D-ECE and in precision
BINS = 10  # of D-ECE
LAECE_BINS = 25
_CALIBRATED: dict[str, Calibrated] = {
    "D-ECE": ((80, 50),),
    "LaECE0": ((1, 50), (8, 300)),
    "LaACE0": ((1, 50), (8, 100)),
    "precision": ((80, 50),),
    "safe recall": ((80, 50),),
}
_POWER = 0.5  # of the number of images, with which the bias of absolute gaps falls


@dataclass(frozen=True, eq=False)
class Tuned:
    """The detections on which thresholds are fixed, those of the clean images: matched at IoU 0.5 or more,
    and at any overlap."""

    located: Located
    touching: Located

    def of_images(self, chosen: Ints, images: int) -> Tuned:
        """The detections of the chosen images, out of `images`, renumbered."""
        return Tuned(self.located.of_images(chosen, images), self.touching.of_images(chosen, images))


def reliability(located: Located, weights: Weights, images: int) -> Floats:
    """Number of detections, sum of their scores and number of hits, by bin: replicates × 3 × 10."""
    kept = np.flatnonzero(located.score >= MIN_SCORE)
    place = located.image[kept] * BINS + _bins(located.score[kept], BINS)
    tables = [
        np.bincount(place, values, minlength=images * BINS).reshape(images, BINS).astype(np.float64)
        for values in (np.ones(len(kept)), located.score[kept], located.hit[kept])
    ]
    return weighted_sums(weights, np.concatenate(tables, axis=1)).reshape(len(weights), 3, BINS)


@detail("reliability", "boxes")
def _reliability(objects: Objects, weights: Weights) -> dict[str, Floats]:
    """Mean score, the share that is right, and the number of boxes, by bin of the score."""
    number, scores, hits = np.moveaxis(reliability(objects.located, weights, len(objects.truth.ids)), 1, 0)
    return reliability_diagram(number, scores, hits)


def d_ece(counts: Floats) -> Floats:
    """D-ECE by replicate, from `reliability`.

    >>> float(d_ece(np.array([[[2.0, 0.0], [1.8, 0.0], [1.0, 0.0]]]))[0].round(3))  # score 0.9, precision 0.5
    0.4
    """
    error: Floats = ratio(np.abs(counts[:, 1] - counts[:, 2]).sum(axis=1), counts[:, 0].sum(axis=1))
    return error


def _bins(scores: Floats, count: int) -> Ints:
    """Bins that include their upper edge; the first also includes its lower edge."""
    above = np.searchsorted(np.linspace(0.0, 1.0, count + 1), scores, side="left")
    return np.maximum(above - 1, 0)


def fit_errors(touching: Located, thresholds: Floats, weights: Weights) -> Floats:
    """LaECE₀ and LaACE₀ by replicate and class; NaN for a class without a detection or an object."""
    bins, shape = _bins(touching.score, LAECE_BINS), (2, touching.classes)
    return in_lanes(weights, _fit_errors, shape, *touching.tables, bins, thresholds=thresholds)


def kept_precision(located: Located, clean: Located, weights: Weights) -> Floats:
    """Precision of detections scored 0.3 or more, the lowest threshold from there on that keeps the precision
    of the clean images (NaN if none does), and the recall at it: replicates × 3."""
    nothing = np.full((len(weights), 1), np.inf)  # no precision is that high
    wanted = remember(clean, "_precision", weights, lambda: _keep(clean, nothing, weights)[:, :1])
    return _keep(located, wanted, weights)


def _keep(located: Located, wanted: Floats, weights: Weights) -> Floats:
    """`kept_precision`, if the precision of the clean images is `wanted`."""
    kept = located.falling
    kept = kept[: np.searchsorted(-located.score[kept], -MIN_SCORE, side="right")]
    columns = located.image[kept].astype(np.int32), located.score[kept], located.hit[kept]
    objects = located.truth_image.astype(np.int32)
    return in_lanes(weights, _kept_precision, (3,), *columns, objects, thresholds=wanted)


@metric(
    "boxes",
    Measure("D-ECE", "calibration error, all classes, IoU 0.5", "calibration", higher=False),
    Measure("LaECE0", "localisation-aware calibration error", "calibration", higher=False),
    Measure("LaACE0", "localisation-aware calibration error, by detection", "calibration", higher=False),
    Measure("precision", "precision of boxes scored 0.3 or more", "calibration", share=True),
    Measure("safe threshold", "threshold that keeps the clean precision", "calibration", False, False, False),
    Measure("safe recall", "recall at that threshold", "calibration"),
    calibrated=_CALIBRATED,
)
def _calibration(objects: Objects, weights: Weights) -> Scored:
    counts = reliability(objects.located, weights, len(objects.truth.ids))
    errors = fit_errors(objects.touching, objects.tuning.touching.optimal(weights)[:, 4], weights)
    precision, threshold, recall = kept_precision(objects.located, objects.tuning.located, weights).T
    by_class = {"LaECE0": errors[:, 0], "LaACE0": errors[:, 1]}
    numbers = {
        "D-ECE": d_ece(counts), **{name: mean_of_known(values) for name, values in by_class.items()},
        "precision": precision, "safe threshold": threshold, "safe recall": recall,
    }  # fmt: skip
    at = objects.touching
    optimism = class_optimisms(by_class, at.truth_image, at.truth_label, weights, _POWER)
    optimism |= set_optimisms({"D-ECE": numbers["D-ECE"]}, _POWER)
    return Scored(numbers, parts=by_class, optimism=optimism)


@kernel
def _fit_errors(
    image: Any, score: Any, overlap: Any, starts: Any, truth_image: Any, truth_starts: Any, bins: Any,
    thresholds: Any, weights: Any, side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    width = len(side_by_side)
    gaps, gap_sum = np.empty((LAECE_BINS, width)), np.empty(width)
    count, objects = np.empty(width), np.empty(width)
    for k in range(len(starts) - 1):
        sum_weights(truth_image, truth_starts[k], truth_starts[k + 1], weights, side_by_side, objects)
        gaps[:], count[:], gap_sum[:] = 0.0, 0.0, 0.0
        for i in range(starts[k], starts[k + 1]):
            gap = score[i] - overlap[i]
            for lane in range(width):
                if score[i] >= thresholds[k, lane]:
                    w = np.float64(weights[image[i], lane])
                    count[lane] += w
                    gaps[bins[i], lane] += w * gap
                    gap_sum[lane] += w * abs(gap)
        for lane in range(width):
            out[:, k, lane] = np.nan
            if count[lane] > 0 and objects[lane] > 0:
                out[0, k, lane] = np.abs(gaps[:, lane]).sum() / count[lane]
                out[1, k, lane] = gap_sum[lane] / count[lane]


@kernel
def _kept_precision(
    image: Any, score: Any, hit: Any, objects: Any, wanted: Any, weights: Any, side_by_side: Any, out: Any
) -> None:  # fmt: skip
    """`kept_precision` for a block of replicates; `wanted` is the precision of the clean images."""
    width = len(side_by_side)
    hits, count, before, positives = np.zeros(width), np.zeros(width), np.zeros(width), np.empty(width)
    sum_weights(objects, 0, len(objects), weights, side_by_side, positives)
    kept = np.zeros(width)  # hits at the threshold
    out[:] = np.nan
    for i in range(len(image)):
        for lane in range(width):
            w = np.float64(weights[image[i], lane])
            count[lane] += w
            hits[lane] += w * hit[i]
        if i + 1 < len(image) and score[i + 1] == score[i]:
            continue  # a threshold never separates equal scores
        for lane in range(width):
            # A detection of weight 0 sets no threshold.
            keeps = (count[lane] > before[lane]) & (hits[lane] / count[lane] >= wanted[0, lane] - 1e-12)
            out[1, lane] = score[i] if keeps else out[1, lane]
            kept[lane] = hits[lane] if keeps else kept[lane]
            before[lane] = count[lane]
    for lane in range(width):
        out[0, lane] = hits[lane] / count[lane] if count[lane] else np.nan
        if positives[lane] and not np.isnan(out[1, lane]):
            out[2, lane] = kept[lane] / positives[lane]
