"""PASCAL VOC average precision at IoU 0.5, by the 2007 and the 2010 rule, per class.

Difficult objects (`ignore` or `crowd`) are neither counted nor penalised. *michaelis* scores PASCAL-C by the
2007 rule: the mean precision at recalls 0, 0.1, …, 1 (Everingham et al. 2010). The 2010 rule takes the whole
area under the monotone precision-recall curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.sample import Floats
from stormproof.metrics.cocomatching import Matches
from stormproof.metrics.matching import DROPPED, FALSE, TRUE, by_class_and_image, judge_voc
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, mean_of_known, metric
from stormproof.metrics.optimism import ap_optimism
from stormproof.metrics.precision import VOC07_POINTS, WHOLE_AREA, Judged, average_precision
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

CALIBRATED: dict[str, Calibrated] = {
    "VOC10 AP50": ((80, 50),),
}
_POINTS = {"VOC07 AP50": VOC07_POINTS, "VOC10 AP50": WHOLE_AREA}
NUMBERS = {
    "VOC07 AP50": "VOC 2007 AP at IoU 0.5, eleven points",
    "VOC10 AP50": "VOC 2010 AP at IoU 0.5, area under the curve",
}


def voc_numbers(truth: DetectionTruth, predictions: Predictions) -> dict[str, float]:
    """AP50 by both rules, as fractions.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9], [20, 0, 29, 9]], [0, 0]))], ["cat"])
    >>> numbers = voc_numbers(truth, {"a": Prediction([[0, 0, 9, 9]], [0.9], [0])})
    >>> {name: round(value, 4) for name, value in numbers.items()}  # 6 of 11 points; half of the area
    {'VOC07 AP50': 0.5455, 'VOC10 AP50': 0.5}
    """
    detections = lay_out(predictions, truth)
    return voc_scored(judge_by_devkit(truth, detections), np.ones((1, len(truth.ids)))).scores


def judge_by_devkit(truth: DetectionTruth, detections: Detections, overlaps: Floats | None = None) -> Judged:
    """The detections that the devkit counts, and which of them are right at IoU 0.5; `overlaps` as in
    `judge_voc`.

    Where a crowd has no bounds, a detection of its class is not wrong.
    """
    verdicts = judge_voc(truth, detections, iou=0.5, overlaps=overlaps)
    endless = truth.keys[truth.crowd & np.isinf(truth.area)]
    if len(endless):
        within = np.isin(detections.image * len(truth.classes) + detections.labels, endless)
        verdicts = np.where(within & (verdicts == FALSE), DROPPED, verdicts)
    order = by_class_and_image(truth, detections).by_class
    order = order[verdicts[order] != DROPPED]
    nothing = np.zeros(len(order), np.uint16)
    return Judged(
        detections.image[order], detections.labels[order],
        (verdicts[order] == TRUE).astype(np.uint16)[:, None], nothing[:, None],
        np.ones((len(order), 1), bool), nothing.astype(np.int64), truth.image, truth.labels,
        ~truth.excused[None], len(truth.classes), 1,
    )  # fmt: skip


@metric(
    "boxes",
    *(Measure(name, words, section="boxes", fading=1.25) for name, words in NUMBERS.items()),
    calibrated=CALIBRATED,
)
def _boxes(objects: Objects, weights: Weights) -> Scored:
    return voc_scored(objects.voc, weights, objects.boxes)


def voc_scored(judged: Judged, weights: Weights, matches: Matches | None = None, prefix: str = "") -> Scored:
    """AP50 by both rules for every row of weights; optimism is that of COCO's `matches` at IoU 0.5."""
    precision, _ = average_precision(judged, weights, *_POINTS.values())
    by_class: dict[str, Floats] = {
        prefix + name: precision[:, rule, 0, :, 0] for rule, name in enumerate(_POINTS)
    }
    optimism: dict[str, Floats] = {}
    if len(weights) > 1 and matches is not None:
        every, columns = matches.judged, ("hit", "excused", "inside")
        at_half = every._replace(
            **{name: getattr(every, name)[:, :1] for name in columns}, counts=every.counts[:1], thresholds=1
        )
        for name, points in _POINTS.items():
            too_high = ap_optimism(at_half, matches.score, weights[0] > 0, points)
            optimism[prefix + name] = too_high[0, :, 0]
    numbers = {name: mean_of_known(column) for name, column in by_class.items()}
    per_class = {f"{prefix}VOC07 AP50": by_class[f"{prefix}VOC07 AP50"]}
    return Scored(numbers, per_class, by_class, optimism)
