"""The twelve COCO numbers for boxes and masks, overall and per class.

`cocomatching` finds the matches; precision and recall follow as in pycocotools' `accumulate` (docs/adr/0011).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.sample import Floats
from stormproof.metrics.cocomatching import IOUS, Matches, match_boxes, match_masks
from stormproof.metrics.metric import Measure, Scored, Weights, mean_of_known, metric, ratio
from stormproof.metrics.optimism import ap_optimism
from stormproof.metrics.precision import COCO_POINTS, average_precision, curves_of, precision_alone
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

if TYPE_CHECKING:
    from stormproof.metrics.cells import Objects

# name → (IoU thresholds, size bin), in the order pycocotools prints them
_PRECISIONS: dict[str, tuple[slice, int]] = {
    "AP": (slice(None), 0),
    "AP50": (slice(0, 1), 0),
    "AP75": (slice(5, 6), 0),
    "APs": (slice(None), 1),
    "APm": (slice(None), 2),
    "APl": (slice(None), 3),
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
_FADING = 1.25  # of AP by class and threshold; docs/adr/0066


def box_numbers(truth: DetectionTruth, predictions: Predictions) -> dict[str, float]:
    """COCO's twelve numbers of boxes (Lin et al. 2014), as fractions; NaN where there is no object to find.

    Crowds and ignored truths absorb detections: no reward, no penalty. Sizes are by the truth's area: small
    below 32², medium below 96², large beyond, in square pixels.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a.png", Instances([[0, 0, 50, 50]], [0]))], ["cat"])
    >>> numbers = box_numbers(truth, {"a.png": Prediction([[0, 0, 50, 41]], [0.9], [0])})
    >>> {name: round(value, 3) for name, value in numbers.items() if name in ("AP", "AP50", "AR1")}
    {'AP': 0.7, 'AP50': 1.0, 'AR1': 0.7}
    """
    return _plain(match_boxes(truth, lay_out(predictions, truth)))


def mask_numbers(truth: DetectionTruth, predictions: Predictions) -> dict[str, float]:
    """COCO's twelve numbers of instance masks; a detection's size is its mask's area, as in the challenge."""
    found = lay_out(predictions, truth)
    check_masks(found, truth)
    return _plain(match_masks(truth, found))


def _plain(matches: Matches) -> dict[str, float]:
    scored = coco_scored(matches, np.ones((1, matches.images)))
    return {name: float(values[0]) for name, values in scored.numbers.items()}


def _declare(section: str, prefix: str) -> list[Measure]:
    return [Measure(prefix + name, f"COCO {name} of {section}", section, fading=_FADING) for name in NUMBERS]


@metric("boxes", *_declare("boxes", ""))
def _boxes(objects: Objects, weights: Weights) -> Scored:
    return coco_scored(objects.boxes, weights)


@metric("masks", *_declare("masks", MASKS))
def _masks(objects: Objects, weights: Weights) -> Scored:
    return coco_scored(objects.masks, weights, MASKS)


def coco_scored(matches: Matches, weights: Weights, prefix: str = "") -> Scored:
    """The twelve numbers by replicate, AP by class, the parts that each number averages, optimism of AP."""
    precision, recall = average_precision(curves_of(matches.judged), weights, matches.classes, COCO_POINTS)
    by_class: dict[str, Floats] = {}
    parts: dict[str, Floats] = {}
    for name, (thresholds, size) in _PRECISIONS.items():
        chosen = precision[:, 0, size, :, thresholds]
        by_class[name] = chosen.mean(axis=2)
        parts[prefix + name] = chosen.reshape(len(weights), -1)
    for name, (size, cap) in _RECALLS.items():
        by_class[name] = parts[prefix + name] = recall[:, cap, size].mean(axis=2)
    numbers = {prefix + name: mean_of_known(column) for name, column in by_class.items()}
    optimism: dict[str, Floats] = {}
    if len(weights) > 1:
        too_high = ap_optimism(matches.judged, matches.score, weights[0] > 0)
        for name, (thresholds, size) in _PRECISIONS.items():
            optimism[prefix + name] = too_high[size, :, thresholds].mean(axis=1)
    return Scored(numbers, {f"{prefix}AP": by_class["AP"]}, parts, optimism)


def image_precision(matches: Matches) -> Floats:
    """AP of each image alone, the mean over the classes that it shows; NaN for one without an object to
    find."""
    image, precision = precision_alone(matches.alone, len(IOUS), COCO_POINTS)
    sums = np.bincount(image, precision.mean(axis=1), minlength=matches.images)
    means: Floats = ratio(sums, np.bincount(image, minlength=matches.images))
    return means


def check_masks(found: Detections, truth: DetectionTruth) -> None:
    """Refuse objects without masks, and masks whose size differs from the truth's."""
    for i, mask in enumerate(truth.masks):
        if mask is None:
            raise InvalidTruth(
                f"Image {truth.owner(i)!r}: an object has no mask; score boxes, or read masks."
            )
    sizes: Mapping[int, tuple[int, int]] = {
        int(i): mask.size for i, mask in zip(truth.image, truth.masks, strict=True) if mask is not None
    }
    for i, mask in zip(found.image.tolist(), found.masks or (None,) * len(found), strict=True):
        if mask is None:
            raise InvalidPrediction(f"Image {truth.ids[i]!r}: a detection has no mask; score boxes instead.")
        if mask.size != sizes.get(i, mask.size):
            raise InvalidPrediction(
                f"Image {truth.ids[i]!r}: a predicted mask has size {mask.size}, the "
                f"truth's {sizes[i]} (height, width); resize it to the image."
            )
