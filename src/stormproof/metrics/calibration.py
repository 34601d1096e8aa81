"""Calibration: how far the scores of detections are from the share of detections that are right.

Definitions differ, so each has its name:

- D-ECE (Küppers et al. 2020): all classes together; detections scored 0.3 or more; right at IoU 0.5; ten bins
  of the score; |mean score − precision| weighted by the number of detections in a bin.
- LaECE₀ (Kuzucu et al. 2024): class by class, 25 bins, |mean score − precision · mean IoU|, where any overlap
  makes a detection right, of detections above each class's LRP-optimal threshold; the mean over classes.
- LaACE₀: the same with a bin for each detection, |score − IoU|.

LRP-optimal thresholds are fixed on the clean images, as in a deployed detector. In addition: the precision of
detections scored 0.3 or more, the lowest threshold from there on that keeps precision at the clean level, and
the recall at that threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.metrics.lrp import Located
from stormproof.metrics.metric import Measure, Scored, Weights, mean_of_known, metric, ratio, weighted_sums
from stormproof.metrics.precision import in_lanes

if TYPE_CHECKING:
    from stormproof.metrics.cells import Objects

LEAST = 0.3  # the score from which a detection counts in D-ECE and in clean precision
BINS = 10  # of D-ECE
FINE = 25  # of LaECE₀


@dataclass(frozen=True, eq=False)
class Tuned:
    """Detections of the clean images, where thresholds are fixed: at IoU 0.5, and at any overlap."""

    located: Located
    touching: Located

    def of_images(self, chosen: Ints, images: int) -> Tuned:
        """The detections of the chosen images, out of `images`, renumbered."""
        return Tuned(self.located.of_images(chosen, images), self.touching.of_images(chosen, images))


def reliability(located: Located, weights: Weights, images: int) -> Floats:
    """Detections, sum of scores and right ones by replicate and bin of the score: replicates × 3 × 10."""
    kept = np.flatnonzero(located.score >= LEAST)
    place = located.image[kept] * BINS + _bins(located.score[kept], BINS)
    tables = [
        np.bincount(place, values, minlength=images * BINS).reshape(images, BINS).astype(np.float64)
        for values in (np.ones(len(kept)), located.score[kept], located.hit[kept])
    ]
    return weighted_sums(weights, np.concatenate(tables, axis=1)).reshape(len(weights), 3, BINS)


def d_ece(counts: Floats) -> Floats:
    """D-ECE by replicate, from `reliability`.

    >>> float(d_ece(np.array([[[2.0, 0.0], [1.8, 0.0], [1.0, 0.0]]]))[0].round(3))  # 0.9 said, 0.5 right
    0.4
    """
    found: Floats = ratio(np.abs(counts[:, 1] - counts[:, 2]).sum(axis=1), counts[:, 0].sum(axis=1))
    return found


def _bins(scores: Floats, count: int) -> Ints:
    """Bins that include their upper edge; the first also includes its lower edge."""
    found: Ints = _binned(scores, np.linspace(0.0, 1.0, count + 1))
    return found


def fit_errors(touching: Located, thresholds: Floats, weights: Weights) -> Floats:
    """LaECE₀ and LaACE₀ by replicate and class; NaN for a class without a detection or an object."""
    bins, shape = _bins(touching.score, FINE), (2, touching.classes)
    return in_lanes(weights, _fit, shape, *touching.tables, bins, thresholds=thresholds)


def kept_precision(located: Located, clean: Located, weights: Weights) -> Floats:
    """Precision from a score of 0.3 on, the lowest threshold that keeps it as on clean images, and the recall
    there: replicates × 3. There is no such threshold if even the best detections are wrong too often."""
    objects = located.truth_image.astype(np.int32)
    return in_lanes(weights, _keep, (3,), *_falling(located), *_falling(clean), objects)


def _falling(located: Located) -> tuple[Any, ...]:
    """Images, scores and hits of detections scored 0.3 or more, by falling score over all classes."""
    kept = located.falling
    kept = kept[: np.searchsorted(-located.score[kept], -LEAST, side="right")]
    return located.image[kept].astype(np.int32), located.score[kept], located.hit[kept]


@metric(
    "boxes",
    Measure("D-ECE", "calibration error, all classes, IoU 0.5", "calibration", higher=False),
    Measure("LaECE0", "localisation-aware calibration error", "calibration", higher=False),
    Measure("LaACE0", "localisation-aware calibration error, by detection", "calibration", higher=False),
    Measure("precision", "precision of boxes scored 0.3 or more", "calibration"),
    Measure(
        "safe threshold", "the score from which precision is as clean", "calibration", False, False, False
    ),
    Measure("safe recall", "recall at that threshold", "calibration"),
)
def _calibration(objects: Objects, weights: Weights) -> Scored:
    own = Tuned(objects.located, objects.touching)
    tuned = own if objects.tuned is None else objects.tuned
    counts = reliability(objects.located, weights, len(objects.truth.ids))
    errors = fit_errors(objects.touching, tuned.touching.optimal(weights)[:, 4], weights)
    precision, threshold, recall = kept_precision(objects.located, tuned.located, weights).T
    by_class = {"LaECE0": errors[:, 0], "LaACE0": errors[:, 1]}
    numbers = {
        "D-ECE": d_ece(counts), **{name: mean_of_known(values) for name, values in by_class.items()},
        "precision": precision, "safe threshold": threshold, "safe recall": recall,
    }  # fmt: skip
    return Scored(numbers, parts=by_class)


@kernel
def _binned(scores: Any, edges: Any) -> Any:
    found = np.empty(len(scores), np.int64)
    last = len(edges) - 2
    for i in range(len(scores)):
        at = min(int(scores[i] * (last + 1)), last)  # or its neighbour, by the last bit of an edge
        while at > 0 and scores[i] <= edges[at]:
            at -= 1
        while at < last and scores[i] > edges[at + 1]:
            at += 1
        found[i] = at
    return found


@kernel
def _fit(
    image: Any, score: Any, overlap: Any, starts: Any, truth_image: Any, truth_starts: Any, bins: Any,
    thresholds: Any, weights: Any, side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    width = len(side_by_side)
    gaps, count, apart, objects = np.empty((FINE, width)), np.empty(width), np.empty(width), np.empty(width)
    for k in range(len(starts) - 1):
        gaps[:], count[:], apart[:], objects[:] = 0.0, 0.0, 0.0, 0.0
        for i in range(truth_starts[k], truth_starts[k + 1]):
            for lane in range(width):
                objects[lane] += weights[truth_image[i], lane]
        for i in range(starts[k], starts[k + 1]):
            gap = score[i] - overlap[i]
            for lane in range(width):
                if score[i] >= thresholds[k, lane]:
                    w = np.float64(weights[image[i], lane])
                    count[lane] += w
                    gaps[bins[i], lane] += w * gap
                    apart[lane] += w * abs(gap)
        for lane in range(width):
            out[:, k, lane] = np.nan
            if count[lane] > 0 and objects[lane] > 0:
                out[0, k, lane] = np.abs(gaps[:, lane]).sum() / count[lane]
                out[1, k, lane] = apart[lane] / count[lane]


@kernel
def _keep(
    image: Any, score: Any, hit: Any, clean_image: Any, clean_score: Any, clean_hit: Any, objects: Any,
    weights: Any, side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    for lane in range(len(side_by_side)):
        right, said = 0.0, 0.0
        for i in range(len(clean_image)):
            w = np.float64(weights[clean_image[i], lane])
            said += w
            right += w * clean_hit[i]
        level = right / said if said else np.nan
        there = 0.0
        for i in range(len(objects)):
            there += weights[objects[i], lane]
        out[:, lane] = np.nan
        right, said, before = 0.0, 0.0, 0.0
        for i in range(len(image)):
            w = np.float64(weights[image[i], lane])
            said += w
            right += w * hit[i]
            if i + 1 < len(image) and score[i + 1] == score[i]:
                continue  # equal scores come together
            if said > before and right / said >= level - 1e-12:  # images of weight 0 set no threshold
                out[1, lane] = score[i]
                out[2, lane] = right / there if there else np.nan
            before = said
        out[0, lane] = right / said if said else np.nan
