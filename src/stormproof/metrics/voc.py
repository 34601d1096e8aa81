"""PASCAL VOC average precision at IoU 0.5, by the 2007 and the 2010 rule, per class.

Difficult truths (`ignore` or `crowd`) are neither counted nor penalised. *michaelis* scores PASCAL-C
with the 2007 rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stormproof.metrics.matching import DROPPED, TRUE, judge_voc
from stormproof.metrics.measure import Measure, Scored, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out
from stormproof.sample import Floats

Rule = Callable[[Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class VocScores:
    """AP50 as a fraction: the mean over the classes in the truth, and each class (NaN if absent)."""

    AP50: float
    per_class: Mapping[str, float]


def voc07_scores(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> VocScores:
    """VOC 2007: precision sampled at recall 0, 0.1, …, 1 (Everingham et al. 2010).

    >>> from stormproof.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9], [20, 0, 29, 9]], [0, 0]))], ["cat"])
    >>> round(voc07_scores(truth, {"a": Prediction([[0, 0, 9, 9]], [0.9], [0])}).AP50, 4)  # 6 of 11 points
    0.5455
    """
    return _scores(truth, predictions, eleven_points, iou)


def voc10_scores(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> VocScores:
    """VOC 2010 and later: the whole area under the monotone precision-recall curve."""
    return _scores(truth, predictions, area_under, iou)


@measured(
    "boxes",
    Measure("VOC07 AP50", "VOC 2007 AP at IoU 0.5, eleven points", section="boxes"),
    Measure("VOC10 AP50", "VOC 2010 AP at IoU 0.5, area under the curve", section="boxes"),
)
def _score_boxes(truth: DetectionTruth, found: Detections) -> Scored:
    scores = {"VOC07 AP50": voc07_scores(truth, found), "VOC10 AP50": voc10_scores(truth, found)}
    by_class = {"VOC07 AP50": scores["VOC07 AP50"].per_class}
    return Scored({name: score.AP50 for name, score in scores.items()}, by_class)


def eleven_points(recall: Floats, precision: Floats) -> float:
    """Mean over eleven recalls of the best precision at that recall or beyond."""
    beyond = [precision[recall >= level] for level in np.linspace(0, 1, 11)]
    return float(np.mean([p.max() if p.size else 0.0 for p in beyond]))


def area_under(recall: Floats, precision: Floats) -> float:
    """Σ (r_i − r_{i−1}) · max_{r ≥ r_i} p(r)."""
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall, prepend=0.0) * envelope).sum())


def _scores(truth: DetectionTruth, predictions: Predictions, rule: Rule, iou: float) -> VocScores:
    found = lay_out(predictions, truth)
    verdicts = judge_voc(truth, found, iou=iou)
    order = np.argsort(-found.scores, kind="stable")
    order = order[verdicts[order] != DROPPED]
    positives = np.bincount(truth.labels[~truth.excused], minlength=len(truth.classes))
    per_class = {}
    for k, name in enumerate(truth.classes):
        right = verdicts[order[found.labels[order] == k]] == TRUE
        hits = np.cumsum(right)
        per_class[name] = (
            rule(hits / positives[k], hits / np.arange(1, len(hits) + 1)) if positives[k] else float("nan")
        )
    present = [value for value in per_class.values() if not np.isnan(value)]
    return VocScores(float(np.mean(present)) if present else float("nan"), per_class)
