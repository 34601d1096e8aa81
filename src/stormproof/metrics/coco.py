"""The twelve COCO numbers for boxes and masks, overall and per class.

`cocomatching` finds the matches; precision and recall are those of pycocotools' `accumulate` (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stormproof.core.sample import Bools, Floats
from stormproof.metrics.cocomatching import IOUS, Matches, match_boxes, match_masks
from stormproof.metrics.inputs import OBJECTS, Objects
from stormproof.metrics.metric import (
    Calibrated,
    Measure,
    Scored,
    Weights,
    detail,
    mean_of_known,
    metric,
    ratio,
)
from stormproof.metrics.optimism import ap_optimism, class_optimism
from stormproof.metrics.precision import COCO_POINTS, average_precision, precision_by_image
from stormproof.metrics.records import DetectionTruth, Predictions, lay_out
from stormproof.metrics.task import Task, task

# name → (IoU thresholds, size bin), in the order pycocotools prints them
_PRECISIONS: dict[str, tuple[slice, int]] = {
    "AP": (slice(None), 0),
    "AP50": (slice(0, 1), 0),
    "AP75": (slice(5, 6), 0),
    "APs": (slice(None), 1),
    "APm": (slice(None), 2),
    "APl": (slice(None), 3),
}
# name → (IoU thresholds, size bin, which of the caps on detections per image)
_RECALLS: dict[str, tuple[slice, int, int]] = {
    "AR1": (slice(None), 0, 0),
    "AR10": (slice(None), 0, 1),
    "AR100": (slice(None), 0, 2),
    "ARs": (slice(None), 1, 2),
    "ARm": (slice(None), 2, 2),
    "ARl": (slice(None), 3, 2),
}
NUMBERS = (*_PRECISIONS, *_RECALLS)
MASKS = "mask "  # the prefix of measures of masks
_FADING = 1.25  # of AP by class and threshold; docs/adr/0029
CALIBRATED: dict[str, Calibrated] = {
    "AP": ((80, 50),),
    "AP50": ((80, 50),),
    "AP75": ((80, 50),),
    "APs": ((8, 50), (80, 100)),
    "APm": ((80, 50),),
    "APl": ((80, 50),),
    "AR1": ((80, 50),),
    "AR10": ((80, 50),),
    "AR100": ((80, 50),),
    "ARs": ((1, 50), (80, 300)),
    "ARm": ((80, 50),),
    "ARl": ((1, 50), (8, 300)),
}
_POWER = 0.7  # of the number of images, with which the bias of recall falls


def box_numbers(truth: DetectionTruth, predictions: Predictions) -> dict[str, float]:
    """COCO's twelve numbers of boxes (Lin et al. 2014), as fractions; NaN where there is no object to find.

    A detection on a crowd or an ignored object is neither right nor wrong. Sizes are by the object's area in
    pixels: small up to 32², medium from 32² to 96², large from 96² on; a bound belongs to both sizes.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a.png", Instances([[0, 0, 50, 50]], [0]))], ["cat"])
    >>> numbers = box_numbers(truth, {"a.png": Prediction([[0, 0, 50, 41]], [0.9], [0])})
    >>> {name: round(value, 3) for name, value in numbers.items() if name in ("AP", "AP50", "AR1")}
    {'AP': 0.7, 'AP50': 1.0, 'AR1': 0.7}
    """
    return _plain(match_boxes(truth, lay_out(predictions, truth)))


def mask_numbers(truth: DetectionTruth, predictions: Predictions) -> dict[str, float]:
    """COCO's twelve numbers of instance masks; the size of a detection is its mask's area, as in COCO."""
    return _plain(match_masks(truth, lay_out(predictions, truth)))


def _plain(matches: Matches) -> dict[str, float]:
    return coco_scored(matches, np.ones((1, matches.images))).scores


@metric(
    "boxes",
    *(Measure(name, f"COCO {name} of boxes", "boxes", fading=_FADING) for name in NUMBERS),
    calibrated=CALIBRATED,
)
def _boxes(objects: Objects, weights: Weights) -> Scored:
    return coco_scored(objects.boxes, weights)


@detail("objects", "boxes")
def _objects(objects: Objects, _: Weights) -> dict[str, int] | None:
    """How many objects of each class are scored, of the clean images."""
    if not objects.is_clean:
        return None
    truth = objects.truth
    counts = np.bincount(truth.labels[~truth.excused], minlength=len(truth.classes))
    return dict(zip(truth.classes, counts.tolist(), strict=True))


@metric(
    "masks",
    *(Measure(MASKS + name, f"COCO {name} of masks", "masks", fading=_FADING) for name in NUMBERS),
    calibrated={MASKS + name: known for name, known in CALIBRATED.items()},
)
def _masks(objects: Objects, weights: Weights) -> Scored:
    return coco_scored(objects.masks, weights, MASKS)


def coco_scored(
    matches: Matches,
    weights: Weights,
    prefix: str = "",
    precisions: Mapping[str, tuple[slice, int]] = _PRECISIONS,
    recalls: Mapping[str, tuple[slice, int, int]] = _RECALLS,
) -> Scored:
    """The twelve numbers, or others in their way, by replicate, AP by class, the values that each number
    averages, optimism of AP."""
    precision, recall = average_precision(matches.judged, weights, COCO_POINTS)
    by_class: dict[str, Floats] = {}
    parts: dict[str, Floats] = {}
    for name, (thresholds, size) in precisions.items():
        chosen = precision[:, 0, size, :, thresholds]
        by_class[name] = chosen.mean(axis=2)
        parts[prefix + name] = chosen.reshape(len(weights), -1)
    for name, (thresholds, size, cap) in recalls.items():
        by_class[name] = parts[prefix + name] = recall[:, cap, size][..., thresholds].mean(axis=2)
    numbers = {prefix + name: mean_of_known(column) for name, column in by_class.items()}
    optimism: dict[str, Floats] = {}
    if len(weights) > 1:
        too_high = ap_optimism(matches.judged, matches.score, weights[0] > 0)
        for name, (thresholds, size) in precisions.items():
            optimism[prefix + name] = too_high[size, :, thresholds].mean(axis=1)
        judged = matches.judged
        for name, (_, size, _) in recalls.items():
            counting = judged.counts[size]
            optimism[prefix + name] = class_optimism(
                by_class[name], judged.truth_image[counting], judged.truth_label[counting], weights, _POWER
            )
    return Scored(numbers, {f"{prefix}AP": by_class["AP"]}, parts, optimism)


def image_precision(matches: Matches) -> Floats:
    """AP of each image by itself, the mean over the classes it shows; NaN for one with no object to find."""
    image, precision = precision_by_image(matches.by_image, len(IOUS), COCO_POINTS)
    sums = np.bincount(image, precision.mean(axis=1), minlength=matches.images)
    means: Floats = ratio(sums, np.bincount(image, minlength=matches.images))
    return means


def shown_classes(objects: Objects) -> Bools:
    """Images × classes: whether the truth shows an object of the class that counts."""
    truth = objects.truth
    counting = ~truth.excused
    shown = np.zeros((len(truth.ids), len(truth.classes)), np.bool_)
    shown[truth.image[counting], truth.labels[counting]] = True
    return shown


task(
    Task(
        "instance segmentation", 30, OBJECTS, headline=f"{MASKS}AP", per_class=f"{MASKS}AP", section="masks",
        fits=lambda given: "masks" in given.kinds,
        image_errors=lambda objects: 1 - image_precision(objects.masks), shown=shown_classes, objects=Objects,
    ),
    __name__,
)  # fmt: skip
task(
    Task(
        "detection", 40, OBJECTS, headline="AP", per_class="AP", section="boxes",
        fits=lambda given: "boxes" in given.kinds,
        image_errors=lambda objects: 1 - image_precision(objects.boxes), shown=shown_classes, objects=Objects,
    ),
    __name__,
)  # fmt: skip
