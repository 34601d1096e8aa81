"""The numbers of one condition: what metrics declare, given what each of them measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stormproof.metrics.measure import Scored, score_with
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import Sensitivities
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import ClassMatch
from stormproof.sample import Bools, Ints
from stormproof.scoring.truths import only, with_stranger


def score_boxes(truth: DetectionTruth, found: Detections) -> Scored:
    """Measures of boxes.

    A detection of a class the dataset lacks is nothing to average precision. An object's error takes it for
    what it is: a box on the object under a wrong name.
    """
    every = replace(found, masks=())
    named = _chosen(every, found.labels < len(truth.classes))
    return score_with("boxes", truth, named) | score_with("every box", with_stranger(truth), every)


def score_masks(truth: DetectionTruth, found: Detections) -> Scored:
    """Measures of masks."""
    return score_with("masks", truth, _chosen(found, found.labels < len(truth.classes)))


def score_people(
    truth: DetectionTruth, found: Detections, label: int, sensitivities: Sensitivities
) -> Scored:
    """Measures of people at sensitivities fixed beforehand."""
    return score_with("people", only(truth, label), people(found, label), sensitivities)


def people(found: Detections, label: int) -> Detections:
    """The detections of one class, as the only class."""
    kept = _chosen(replace(found, masks=()), found.labels == label)
    return replace(kept, labels=np.zeros(len(kept), np.int64))


def score_maps(columns: tuple[Ints, Ints, Ints], match: ClassMatch) -> Scored:
    """Measures of label maps, from pixels by true and predicted class."""
    truth, predicted, pixels = columns
    classes = len(match.dataset)
    mapped = np.asarray(match.labels, np.int64)[predicted] if len(predicted) else predicted
    counts = np.zeros((classes + 1, classes + 1), np.int64)
    np.add.at(counts, (truth, np.where(mapped < 0, classes, mapped)), pixels)
    return score_with("maps", Confusion(counts), match.dataset)


def _chosen(found: Detections, kept: Bools) -> Detections:
    masks = tuple(mask for mask, keep in zip(found.masks, kept, strict=True) if keep) if found.masks else ()
    return Detections(found.image[kept], found.boxes[kept], found.scores[kept], found.labels[kept], masks)
