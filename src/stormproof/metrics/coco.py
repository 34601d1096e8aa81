"""The twelve COCO numbers for boxes and masks, overall and per class.

Who matched whom is found by `cocomatching`; here precision and recall follow as pycocotools' `accumulate`
has them (docs/adr/0020). Only a hit moves recall and only at a hit is precision read, so each class, size and
threshold keeps the precision at its hits alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats
from stormproof.metrics.cocomatching import IOUS, SIZES, Matches, match_boxes, match_masks
from stormproof.metrics.measure import Measure, Scored, mean_present, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

# name → (IoU threshold or all, size bin), in the order pycocotools prints them
_PRECISIONS: dict[str, tuple[float | None, int]] = {
    "AP": (None, 0),
    "AP50": (0.5, 0),
    "AP75": (0.75, 0),
    "APs": (None, 1),
    "APm": (None, 2),
    "APl": (None, 3),
}
# name → (size bin, which of the caps on detections per image)
_RECALLS: dict[str, tuple[int, int]] = {
    "AR1": (0, 0),
    "AR10": (0, 1),
    "AR100": (0, 2),
    "ARs": (1, 2),
    "ARm": (2, 2),
    "ARl": (3, 2),
}
NUMBERS = (*_PRECISIONS, *_RECALLS)
MASKS = "mask "  # in front of the COCO numbers of masks
_CAPS = np.array([1, 10, 100])
_POINTS = np.linspace(0.0, 1.0, 101)  # recalls at which precision is read
_EPSILON = float(np.spacing(1))  # pycocotools adds it to the number of detections


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """COCO's twelve numbers as fractions; NaN where the truth holds no object to find.

    Sizes are by the truth's area: small < 32², medium < 96², large beyond, in square pixels.
    """

    AP: float
    AP50: float
    AP75: float
    APs: float
    APm: float
    APl: float
    AR1: float
    AR10: float
    AR100: float
    ARs: float
    ARm: float
    ARl: float
    per_class: Mapping[str, Mapping[str, float]]

    def numbers(self) -> dict[str, float]:
        """The twelve, by name, in pycocotools' order."""
        return {name: getattr(self, name) for name in NUMBERS}


def box_scores(truth: DetectionTruth, predictions: Predictions) -> DetectionScores:
    """COCO scores of boxes (Lin et al. 2014).

    Crowds and ignored truths absorb detections: no reward, no penalty.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a.png", Instances([[0, 0, 50, 50]], [0]))], ["cat"])
    >>> scores = box_scores(truth, {"a.png": Prediction([[0, 0, 50, 41]], [0.9], [0])})
    >>> {name: round(value, 3) for name, value in scores.numbers().items() if name in ("AP", "AP50", "AR1")}
    {'AP': 0.7, 'AP50': 1.0, 'AR1': 0.7}
    """
    return _scores(truth, match_boxes(truth, lay_out(predictions, truth)))


def mask_scores(truth: DetectionTruth, predictions: Predictions) -> DetectionScores:
    """COCO scores of instance masks; a detection's size is its mask's area, as in the COCO challenge."""
    found = lay_out(predictions, truth)
    _check_masks(found, truth)
    return _scores(truth, match_masks(truth, found))


def _declare(section: str, prefix: str) -> list[Measure]:
    return [Measure(prefix + name, f"COCO {name} of {section}", section) for name in NUMBERS]


@measured("boxes", *_declare("boxes", ""))
def _score_boxes(truth: DetectionTruth, found: Detections) -> Scored:
    return _scored(box_scores(truth, found), "")


@measured("masks", *_declare("masks", MASKS))
def _score_masks(truth: DetectionTruth, found: Detections) -> Scored:
    return _scored(mask_scores(truth, found), MASKS)


def _scored(scores: DetectionScores, prefix: str) -> Scored:
    by_class = {name: row["AP"] for name, row in scores.per_class.items()}
    numbers = {prefix + name: value for name, value in scores.numbers().items()}
    return Scored(numbers, {f"{prefix}AP": by_class})


def _check_masks(found: Detections, truth: DetectionTruth) -> None:
    for i, mask in enumerate(truth.masks):
        if mask is None:
            raise InvalidTruth(f"Image {truth.owner(i)!r}: a truth has no mask; score boxes or read masks.")
    sizes = {int(i): mask.size for i, mask in zip(truth.image, truth.masks, strict=True) if mask is not None}
    for i, mask in zip(found.image.tolist(), found.masks or (None,) * len(found), strict=True):
        if mask is None:
            raise InvalidPrediction(f"Image {truth.ids[i]!r}: a detection has no mask; score boxes instead.")
        if mask.size != sizes.get(i, mask.size):
            raise InvalidPrediction(
                f"Image {truth.ids[i]!r}: a predicted mask has size {mask.size}, the "
                f"truth's {sizes[i]} (height, width); resize it to the image."
            )


def _scores(truth: DetectionTruth, matches: Matches) -> DetectionScores:
    classes = len(truth.classes)
    wanted = np.stack(
        [np.bincount(matches.truth_label[counts], minlength=classes) for counts in matches.counts]
    )
    starts = np.searchsorted(matches.label, np.arange(classes + 1))
    precision = np.full((len(SIZES), classes, len(IOUS)), np.nan)
    recall = np.full((len(SIZES), len(_CAPS), classes, len(IOUS)), np.nan)
    _accumulate(
        starts, matches.hit, matches.excused, matches.inside, matches.place, wanted, _CAPS, _POINTS,
        precision, recall,
    )  # fmt: skip
    by_class = _numbers(precision, recall)
    overall = {name: mean_present(column) for name, column in by_class.items()}
    per_class = {
        name: {number: float(column[k]) for number, column in by_class.items()}
        for k, name in enumerate(truth.classes)
    }
    return DetectionScores(**overall, per_class=per_class)


@kernel
def _accumulate(
    starts: Any, hit: Any, excused: Any, inside: Any, place: Any, wanted: Any, caps: Any, points: Any,
    precision: Any, recall: Any,
) -> None:  # fmt: skip
    """Mean precision and final recall by size, class and threshold; left alone where nothing can be found."""
    thresholds = precision.shape[2]
    at_hits = np.empty((thresholds, max(1, wanted.max())))  # the precision at each hit
    hits, false = np.empty(thresholds, np.int64), np.empty(thresholds, np.int64)
    capped = np.empty((len(caps), thresholds), np.int64)
    for s in range(len(wanted)):
        for c in range(len(starts) - 1):
            if wanted[s, c] == 0:
                continue
            hits[:], false[:], capped[:] = 0, 0, 0
            missed = 0  # false at every threshold
            for d in range(starts[c], starts[c + 1]):
                if hit[s, d] == 0 and excused[s, d] == 0:
                    missed += inside[s, d]
                    continue
                for k in range(thresholds):
                    if hit[s, d] >> k & 1:
                        hits[k] += 1
                        at_hits[k, hits[k] - 1] = hits[k] / (hits[k] + false[k] + missed + _EPSILON)
                        for m in range(len(caps)):
                            capped[m, k] += place[d] < caps[m]
                    elif not excused[s, d] >> k & 1:
                        false[k] += inside[s, d]
            for k in range(thresholds):
                for i in range(hits[k] - 2, -1, -1):  # the best precision at that recall or beyond
                    at_hits[k, i] = max(at_hits[k, i], at_hits[k, i + 1])
                total, i = 0.0, 0
                for r in range(len(points)):
                    while i < hits[k] and (i + 1) / wanted[s, c] < points[r]:
                        i += 1
                    if i == hits[k]:
                        break
                    total += at_hits[k, i]
                precision[s, c, k] = total / len(points)
                for m in range(len(caps)):
                    recall[s, m, c, k] = capped[m, k] / wanted[s, c]


def _numbers(precision: Floats, recall: Floats) -> dict[str, Floats]:
    """Each number for every class; NaN where a class has no truths of a size."""
    numbers = {}
    for name, (threshold, size) in _PRECISIONS.items():
        ious = slice(None) if threshold is None else np.isclose(IOUS, threshold)
        numbers[name] = precision[size][:, ious].mean(axis=1)
    for name, (size, cap) in _RECALLS.items():
        numbers[name] = recall[size, cap].mean(axis=1)
    return numbers
