"""Average detection rate of weighted images; sensitivities are fixed on each replicate's own clean images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.metrics.matching import FALSE, TRUE, judge_nrec
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import IOUS, REFERENCE_FPPI
from stormproof.results.precision import ratio


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Detections at one IoU by falling score: their images, scores and verdicts."""

    image: Ints
    score: Floats
    verdict: npt.NDArray[np.uint8]


def judge(truth: DetectionTruth, found: Detections) -> list[Judged]:
    """The verdicts at each of the five IoU; truth and detections are of one class."""
    order = np.argsort(-found.scores, kind="stable")
    verdicts = [judge_nrec(truth, found, iou=iou)[0][order] for iou in IOUS]
    return [Judged(found.image[order], found.scores[order], verdict) for verdict in verdicts]


def fix_thresholds(clean: list[Judged], weights: npt.NDArray[Any]) -> Floats:
    """Score thresholds by replicate, IoU and reference FPPI; +∞ where even the strictest exceeds it."""
    out = np.full((len(weights), len(clean), len(REFERENCE_FPPI)), np.inf)
    images = weights.sum(axis=1, dtype=np.float64)
    for k, judged in enumerate(clean):
        false = judged.verdict == FALSE
        _thresholds(judged.image, judged.score, false, weights, images, np.array(REFERENCE_FPPI), out[:, k])
    return out


def average_rates(
    truth: DetectionTruth, judged: list[Judged], weights: npt.NDArray[Any], thresholds: Floats
) -> Floats:
    """ADR by replicate; NaN where a replicate shows nobody."""
    people = truth.image[~truth.excused]
    shown = weights[:, people].sum(axis=1, dtype=np.float64)
    rates = np.zeros(thresholds.shape)
    for k, one in enumerate(judged):
        right = one.verdict == TRUE
        _found(one.image[right], one.score[right], weights, thresholds[:, k], rates[:, k])
    return ratio(rates.mean(axis=(1, 2)), shown)


@kernel
def _thresholds(image: Any, score: Any, false: Any, weights: Any, images: Any, levels: Any, out: Any) -> None:
    for r in range(len(weights)):
        errors = 0.0
        for i in range(len(image)):
            if false[i]:
                errors += weights[r, image[i]]
            last = i + 1 == len(image) or score[i + 1] != score[i]  # equal scores come together
            if not last or images[r] == 0:
                continue
            rate = errors / images[r]
            if rate > levels[-1]:
                break
            for k in range(len(levels)):
                if rate <= levels[k]:
                    out[r, k] = score[i]


@kernel
def _found(image: Any, score: Any, weights: Any, thresholds: Any, out: Any) -> None:
    """The weight of what is found at each threshold; thresholds fall, and so do scores."""
    for r in range(len(weights)):
        total, i = 0.0, 0
        for k in range(thresholds.shape[1]):
            while i < len(image) and score[i] >= thresholds[r, k]:
                total += weights[r, image[i]]
                i += 1
            out[r, k] = total
