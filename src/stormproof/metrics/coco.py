"""The twelve COCO numbers for boxes and masks, overall and per class.

Matching is hotcoco's, which follows pycocotools to the last bit (docs/adr/0020). This module hands it
flat arrays and reads the precision and recall tables; nothing passes through JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from stormproof.errors import InvalidPrediction, InvalidTruth
from stormproof.metrics.measure import Measure, Scored, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out
from stormproof.sample import RLE, Floats

if TYPE_CHECKING:
    import hotcoco

# name → (IoU threshold or all, size bin, detections per image), in the order pycocotools prints them
_PRECISIONS: dict[str, tuple[float | None, int, int]] = {
    "AP": (None, 0, 2),
    "AP50": (0.5, 0, 2),
    "AP75": (0.75, 0, 2),
    "APs": (None, 1, 2),
    "APm": (None, 2, 2),
    "APl": (None, 3, 2),
}
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
_IOUS = np.linspace(0.5, 0.95, 10)
# The evaluator's index of each truth, by what is matched: it outlives a condition, and goes with its truth.
_INDEXES: WeakKeyDictionary[DetectionTruth, dict[str, hotcoco.COCO]] = WeakKeyDictionary()


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

    >>> from stormproof.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a.png", Instances([[0, 0, 50, 50]], [0]))], ["cat"])
    >>> scores = box_scores(truth, {"a.png": Prediction([[0, 0, 50, 41]], [0.9], [0])})
    >>> {name: round(value, 3) for name, value in scores.numbers().items() if name in ("AP", "AP50", "AR1")}
    {'AP': 0.7, 'AP50': 1.0, 'AR1': 0.7}
    """
    found = lay_out(predictions, truth)
    index = _index(truth, "bbox", None)
    return _scores(truth, index, index.load_res(_result_rows(found, truth)), "bbox")


def mask_scores(truth: DetectionTruth, predictions: Predictions) -> DetectionScores:
    """COCO scores of instance masks; a detection's size is its mask's area, as in the COCO challenge."""
    found = lay_out(predictions, truth)
    masks = _given_masks(found, truth)
    for i, mask in enumerate(truth.masks):
        if mask is None:
            raise InvalidTruth(f"Image {truth.owner(i)!r}: a truth has no mask; score boxes or read masks.")
    index = _index(truth, "segm", [_rle(mask) for mask in truth.masks if mask is not None])
    results = index.load_res(_result_rows(found, truth), segmentation=[_rle(mask) for mask in masks])
    if masks:
        # With both a box and a mask at hand the protocol would bin by the box's area.
        areas = np.array([mask.area for mask in masks], np.float64)
        results.update_anns(ids=np.arange(1, len(masks) + 1), area=areas)
    return _scores(truth, index, results, "segm")


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


def _given_masks(found: Detections, truth: DetectionTruth) -> list[RLE]:
    masks = found.masks or (None,) * len(found)
    sizes = {int(i): mask.size for i, mask in zip(truth.image, truth.masks, strict=True) if mask is not None}
    given = []
    for i, mask in zip(found.image.tolist(), masks, strict=True):
        if mask is None:
            raise InvalidPrediction(f"Image {truth.ids[i]!r}: a detection has no mask; score boxes instead.")
        if mask.size != sizes.get(i, mask.size):
            raise InvalidPrediction(
                f"Image {truth.ids[i]!r}: a predicted mask has size {mask.size}, the "
                f"truth's {sizes[i]} (height, width); resize it to the image."
            )
        given.append(mask)
    return given


def _index(truth: DetectionTruth, kind: str, masks: list[Any] | None) -> hotcoco.COCO:
    """The evaluator's index of the truth, built at first use and kept for every further condition."""
    import hotcoco

    kept = _INDEXES.setdefault(truth, {})
    if kind not in kept:
        kept[kind] = hotcoco.COCO.from_arrays(
            [{"id": i + 1, "width": 0, "height": 0} for i in range(len(truth.ids))],
            [{"id": i + 1, "name": name} for i, name in enumerate(truth.classes)],
            truth.rank[truth.image] + 1,
            truth.labels + 1,
            _xywh(truth),
            area=truth.area,
            iscrowd=truth.excused,
            segmentation=masks,
        )
    return kept[kind]


def _result_rows(found: Detections, truth: DetectionTruth) -> Floats:
    rows = np.empty((len(found), 7))
    rows[:, 0] = truth.rank[found.image] + 1
    rows[:, 1:5] = _xywh(found)
    rows[:, 5] = found.scores
    rows[:, 6] = found.labels + 1
    return rows


def _xywh(objects: DetectionTruth | Detections) -> Floats:
    return np.concatenate([objects.boxes[:, :2], objects.sides], axis=1)


def _rle(mask: RLE) -> dict[str, Any]:
    return {"size": list(mask.size), "counts": mask.counts.tolist()}


def _scores(truth: DetectionTruth, index: hotcoco.COCO, results: hotcoco.COCO, kind: str) -> DetectionScores:
    import hotcoco

    run = hotcoco.COCOeval(index, results, kind)
    run.evaluate()
    run.accumulate()
    tables = run.eval
    assert tables is not None  # accumulate() has just filled it
    by_class = _numbers(tables["precision"], tables["recall"])
    overall = {name: _mean(column) for name, column in by_class.items()}
    per_class = {
        name: {number: float(column[k]) for number, column in by_class.items()}
        for k, name in enumerate(truth.classes)
    }
    return DetectionScores(**overall, per_class=per_class)


def _numbers(precision: Floats, recall: Floats) -> dict[str, Floats]:
    """Each number for every class. Precision is IoU × recall point × class × size × cap, recall lacks the
    second axis; a class without truths of a size holds −1 throughout, here NaN."""
    numbers = {}
    for name, (threshold, size, cap) in _PRECISIONS.items():
        ious = slice(None) if threshold is None else np.isclose(_IOUS, threshold)
        numbers[name] = precision[ious, :, :, size, cap].mean(axis=(0, 1))
    for name, (size, cap) in _RECALLS.items():
        numbers[name] = recall[:, :, size, cap].mean(axis=0)
    return {name: np.where(column > -0.5, column, np.nan) for name, column in numbers.items()}


def _mean(values: Floats) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if kept.size else float("nan")
