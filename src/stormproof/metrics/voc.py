"""PASCAL VOC average precision at IoU 0.5, by the 2007 and the 2010 rule, per class.

Difficult truths (`ignore` or `crowd`) are neither counted nor penalised. *michaelis* scores PASCAL-C
with the 2007 rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stormproof.core.sample import Floats
from stormproof.metrics.matching import DROPPED, TRUE, by_class_and_image, judge_voc
from stormproof.metrics.measure import Measure, Scored, mean_present, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

Rule = Callable[[Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class VocScores:
    """AP50 as a fraction: the mean over the classes in the truth, and each class (NaN if absent)."""

    AP50: float
    per_class: Mapping[str, float]


def voc07_scores(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> VocScores:
    """VOC 2007: precision sampled at recall 0, 0.1, …, 1 (Everingham et al. 2010).

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9], [20, 0, 29, 9]], [0, 0]))], ["cat"])
    >>> round(voc07_scores(truth, {"a": Prediction([[0, 0, 9, 9]], [0.9], [0])}).AP50, 4)  # 6 of 11 points
    0.5455
    """
    return _scores(truth, predictions, iou, eleven_points)[0]


def voc10_scores(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> VocScores:
    """VOC 2010 and later: the whole area under the monotone precision-recall curve."""
    return _scores(truth, predictions, iou, area_under)[0]


@measured(
    "boxes",
    Measure("VOC07 AP50", "VOC 2007 AP at IoU 0.5, eleven points", section="boxes"),
    Measure("VOC10 AP50", "VOC 2010 AP at IoU 0.5, area under the curve", section="boxes"),
)
def _score_boxes(truth: DetectionTruth, found: Detections) -> Scored:
    voc07, voc10 = _scores(truth, found, 0.5, eleven_points, area_under)
    return Scored({"VOC07 AP50": voc07.AP50, "VOC10 AP50": voc10.AP50}, {"VOC07 AP50": voc07.per_class})


def eleven_points(recall: Floats, precision: Floats) -> float:
    """Mean over eleven recalls of the best precision at that recall or beyond."""
    at = np.searchsorted(recall, np.linspace(0, 1, 11))  # recall never falls
    return float(np.append(_envelope(precision), 0.0)[at].mean())


def area_under(recall: Floats, precision: Floats) -> float:
    """Σ (r_i − r_{i−1}) · max_{r ≥ r_i} p(r)."""
    return float((np.diff(recall, prepend=0.0) * _envelope(precision)).sum())


def _envelope(precision: Floats) -> Floats:
    """The best precision there or beyond."""
    best: Floats = np.maximum.accumulate(precision[::-1])[::-1]
    return best


def _scores(
    truth: DetectionTruth, predictions: Predictions, iou: float, *rules: Rule
) -> tuple[VocScores, ...]:
    """The scores by each rule, of one judgement."""
    found = lay_out(predictions, truth)
    verdicts = judge_voc(truth, found, iou=iou)
    order = by_class_and_image(truth, found).by_class
    ends = np.cumsum([0, *np.bincount(found.labels, minlength=len(truth.classes))])
    judged = verdicts[order]
    positives = np.bincount(truth.labels[~truth.excused], minlength=len(truth.classes))
    per_class: list[dict[str, float]] = [{} for _ in rules]
    for k, name in enumerate(truth.classes):
        own = judged[ends[k] : ends[k + 1]]
        at = np.flatnonzero(own[own != DROPPED] == TRUE)  # precision and recall matter at hits alone
        hits = np.arange(1, len(at) + 1)
        recall, precision = hits / max(positives[k], 1), hits / (at + 1)
        for rule, values in zip(rules, per_class, strict=True):
            values[name] = rule(recall, precision) if positives[k] else float("nan")
    return tuple(VocScores(mean_present(np.array([*values.values()])), values) for values in per_class)
