"""The numbers of one condition, by task. Adding a measure adds a line to `MEASURES` and computes it here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from stormproof.metrics.coco import NUMBERS, DetectionScores, box_scores, mask_scores
from stormproof.metrics.objects import FLAWS, object_errors
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import Sensitivities, detection_rates
from stormproof.metrics.semantic import Confusion
from stormproof.metrics.voc import voc07_scores, voc10_scores
from stormproof.models.classes import ClassMatch
from stormproof.sample import Ints
from stormproof.scoring.truths import only

MASKS = "mask "  # in front of the COCO numbers of masks


@dataclass(frozen=True, slots=True)
class Measure:
    """How a number is read: whether more is better, and what it is called in words."""

    name: str
    words: str
    higher: bool = True
    fraction: bool = True  # printed as a percentage
    aggregate: bool = True  # whether a mean over conditions says anything


def _coco(prefix: str, of: str) -> list[Measure]:
    return [Measure(prefix + name, f"COCO {name} of {of}") for name in NUMBERS]


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        *_coco("", "boxes"),
        Measure("VOC07 AP50", "VOC 2007 AP at IoU 0.5, eleven points"),
        Measure("VOC10 AP50", "VOC 2010 AP at IoU 0.5, area under the curve"),
        *_coco(MASKS, "masks"),
        Measure("mIoU", "mean intersection over union"),
        Measure("pixel accuracy", "fraction of pixels whose class is right"),
        Measure("E", "mean object error, 1 − IoU with the best box", higher=False),
        Measure("ADR", "average detection rate of people at sensitivities fixed on clean images"),
        Measure("FPPI", "false positives per image at those sensitivities, mean", False, False, False),
        *(Measure(f"flaws {s.value}", f"objects that are {s.value}", False, False, False) for s in FLAWS),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scored:
    """One condition's numbers, and those that exist per class."""

    numbers: Mapping[str, float]
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __or__(self, other: Scored) -> Scored:
        return Scored({**self.numbers, **other.numbers}, {**self.per_class, **other.per_class})


def score_boxes(truth: DetectionTruth, found: Detections) -> Scored:
    """COCO, VOC and object error of boxes.

    A detection of a class the dataset lacks is nothing to average precision. An object's error takes it for
    what it is: a box on the object under a wrong name.
    """
    every = Detections(found.image, found.boxes, found.scores, found.labels)
    plain = named(every, truth)
    coco, errors = box_scores(truth, plain), object_errors(with_stranger(truth), every)
    numbers = coco.numbers()
    numbers["VOC07 AP50"] = voc07_scores(truth, plain).AP50
    numbers["VOC10 AP50"] = voc10_scores(truth, plain).AP50
    numbers["E"] = errors.error
    numbers |= {f"flaws {symptom.value}": float(n) for symptom, n in errors.flaws().items()}
    by_class = {name: error for name, error in errors.per_class().items() if name in truth.classes}
    return Scored(numbers, {"AP": _column(coco, "AP"), "E": by_class})


def score_masks(truth: DetectionTruth, found: Detections) -> Scored:
    """COCO of masks."""
    coco = mask_scores(truth, named(found, truth))
    numbers = {MASKS + name: value for name, value in coco.numbers().items()}
    return Scored(numbers, {f"{MASKS}AP": _column(coco, "AP")})


def score_people(
    truth: DetectionTruth, found: Detections, label: int, sensitivities: Sensitivities
) -> Scored:
    """Detection rates of people at sensitivities fixed beforehand."""
    rates = detection_rates(only(truth, label), people(found, label), sensitivities)
    return Scored({"ADR": rates.adr, "FPPI": float(rates.fppi.mean())})


def named(found: Detections, truth: DetectionTruth) -> Detections:
    """The detections of classes that the truth has."""
    kept = found.labels < len(truth.classes)
    masks = tuple(mask for mask, keep in zip(found.masks, kept, strict=True) if keep) if found.masks else ()
    return Detections(found.image[kept], found.boxes[kept], found.scores[kept], found.labels[kept], masks)


def with_stranger(truth: DetectionTruth) -> DetectionTruth:
    """The truth with one class more, which nothing in it has."""
    return replace(truth, classes=(*truth.classes, "(no class of the dataset)"))


def people(found: Detections, label: int) -> Detections:
    """The detections of one class, as the only class."""
    kept = found.labels == label
    zeros = np.zeros(int(kept.sum()), np.int64)
    return Detections(found.image[kept], found.boxes[kept], found.scores[kept], zeros)


def score_maps(columns: tuple[Ints, Ints, Ints], match: ClassMatch) -> Scored:
    """IoU and pixel accuracy; a class the dataset lacks is one prediction that is never right."""
    truth, predicted, pixels = columns
    classes = len(match.dataset)
    mapped = np.asarray(match.labels, np.int64)[predicted] if len(predicted) else predicted
    counts = np.zeros((classes + 1, classes + 1), np.int64)
    np.add.at(counts, (truth, np.where(mapped < 0, classes, mapped)), pixels)
    confusion = Confusion(counts)
    iou = confusion.iou[:classes]  # the last one collects what has no name, and is no class
    present = iou[~np.isnan(iou)]
    numbers = {
        "mIoU": float(present.mean()) if present.size else float("nan"),
        "pixel accuracy": confusion.pixel_accuracy,
    }
    return Scored(numbers, {"IoU": dict(zip(match.dataset, iou.tolist(), strict=True))})


def _column(scores: DetectionScores, number: str) -> dict[str, float]:
    return {name: row[number] for name, row in scores.per_class.items()}
