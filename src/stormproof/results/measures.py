"""The numbers of one condition: what metrics declare, given what each of them measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stormproof.core.sample import Bools, Ints
from stormproof.metrics.measure import Scored, score_with
from stormproof.metrics.objects import MatchingRule
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import Sensitivities
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import ClassMatch
from stormproof.results.classes import chosen_labels
from stormproof.results.truths import only, with_stranger


def score_boxes(truth: DetectionTruth, found: Detections, rule: MatchingRule = MatchingRule()) -> Scored:  # noqa: B008
    """Measures of boxes.

    A detection of a class the dataset lacks is nothing to average precision. An object's error takes it for
    what it is: a box on the object under a wrong name.
    """
    every = replace(found, masks=())
    return score_with("boxes", truth, named(every, truth)) | score_with(
        "every box", with_stranger(truth), every, rule
    )


def score_masks(truth: DetectionTruth, found: Detections) -> Scored:
    """Measures of masks."""
    return score_with("masks", truth, named(found, truth))


def score_people(
    truth: DetectionTruth, found: Detections, label: int, sensitivities: Sensitivities
) -> Scored:
    """Measures of people at sensitivities fixed beforehand."""
    return score_with("people", only(truth, label), people(found, label), sensitivities)


def named(found: Detections, truth: DetectionTruth) -> Detections:
    """The detections of classes that the dataset has."""
    return _chosen(found, found.labels < len(truth.classes))


def people(found: Detections, label: int) -> Detections:
    """The detections of one class, as the only class."""
    kept = _chosen(replace(found, masks=()), found.labels == label)
    return replace(kept, labels=np.zeros(len(kept), np.int64))


def score_maps(columns: tuple[Ints, Ints, Ints], match: ClassMatch, chosen: Sequence[str]) -> Scored:
    """Measures of label maps, from pixels by true and predicted class; means are over the chosen classes."""
    truth, predicted, pixels = columns
    classes = len(match.dataset)
    mapped = np.asarray(match.labels, np.int64)[predicted]
    counts = Confusion.counted(truth, mapped, pixels, classes=classes).counts
    first = chosen_labels(match.dataset, chosen)
    order = [*first, *(label for label in range(classes + 1) if label not in first)]
    return score_with("maps", Confusion(counts[np.ix_(order, order)]), tuple(match.dataset[i] for i in first))


def _chosen(found: Detections, kept: Bools) -> Detections:
    if kept.all():
        return found
    at = np.flatnonzero(kept)
    masks = tuple(found.masks[i] for i in at.tolist()) if found.masks else ()
    return Detections(
        found.image[at], np.take(found.boxes, at, axis=0), found.scores[at], found.labels[at], masks,
        np.take(found.sides, at, axis=0),
    )  # fmt: skip
