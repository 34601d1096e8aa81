"""The twelve COCO numbers for boxes and masks, overall and per class.

`cocomatching` finds the matches; precision and recall follow as in pycocotools' `accumulate` (docs/adr/0011).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.sample import Floats
from stormproof.metrics.cocomatching import Matches, match_boxes, match_masks
from stormproof.metrics.metric import Measure, Scored, Weights, mean_of_known, metric, ratio
from stormproof.metrics.optimism import ap_optimism
from stormproof.metrics.ordering import by_number
from stormproof.metrics.precision import COCO_POINTS, Judged, average_precision, curves_of
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
        too_high = ap_optimism(matches.judged, matches.score)
        for name, (thresholds, size) in _PRECISIONS.items():
            optimism[prefix + name] = too_high[size, :, thresholds].mean(axis=1)
    return Scored(numbers, {f"{prefix}AP": by_class["AP"]}, parts, optimism)


def image_precision(matches: Matches) -> Floats:
    """AP of each image alone, the mean over the classes that it shows; NaN for one without an object to find.

    What was matched in the whole set is judged again with every pair of image and class as a class.
    """
    found, classes = matches.judged, matches.classes
    theirs, ours = found.image * classes + found.label, found.truth_image * classes + found.truth_label
    is_shown = np.zeros(matches.images * classes, bool)
    is_shown[ours[found.counts[0]]] = True
    shown, place = np.flatnonzero(is_shown), np.cumsum(is_shown) - 1
    if not len(shown):
        return np.full(matches.images, np.nan)
    detections, truths = (np.flatnonzero(is_shown[pairs]) for pairs in (theirs, ours))
    detections = by_number(place[theirs], len(shown), detections)  # by pair, then by falling score
    alone = Judged(
        found.image[detections], place[theirs[detections]], found.hit[detections, :1],
        found.excused[detections, :1], found.inside[detections, :1], found.place[detections],
        found.truth_image[truths], place[ours[truths]], found.counts[:1, truths], len(shown),
        found.thresholds,
    )  # fmt: skip
    ones = np.ones((1, matches.images), np.uint8)
    precision, _ = average_precision(curves_of(alone), ones, len(shown), COCO_POINTS)
    of_image, images = shown // classes, matches.images
    sums = np.bincount(of_image, precision[0, 0, 0].mean(axis=1), minlength=images)
    means: Floats = ratio(sums, np.bincount(of_image, minlength=images))
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
