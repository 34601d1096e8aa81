"""The images that cost a model most: a score per image, under every condition, against the image clean.

The score is AP at IoU 0.5 over the image's own objects, class by class, or the mean IoU of its label map.
It ranks images; it is no measure of a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stormproof.core.sample import Floats
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.matching import DROPPED, TRUE, judge_voc
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.voc import area_under
from stormproof.models.classes import match_classes
from stormproof.results.classes import chosen_classes
from stormproof.results.measures import named, score_maps
from stormproof.results.reading import RunRows
from stormproof.results.store.contents import has_values
from stormproof.results.store.record import RunRecord
from stormproof.results.store.schema import CONFUSION
from stormproof.results.truths import Truths, met


@dataclass(frozen=True, slots=True)
class ImageScore:
    """One image under one condition; `clean` is NaN where the run has no clean images."""

    image: str
    condition: str
    score: float
    clean: float

    @property
    def drop(self) -> float:
        return self.clean - self.score

    def __repr__(self) -> str:
        return f"<{self.image} under {self.condition}: {100 * self.score:.1f}, clean {100 * self.clean:.1f}>"


def worst_images(run: Path, record: RunRecord, dataset: Dataset, count: int) -> list[ImageScore]:
    """The cells with the largest drop from clean; among equals, the lowest score, then by name."""
    rows = RunRows(run, record)
    maps = has_values(run, "confusion_pixels")
    scored = dict(_map_scores(rows, record, dataset) if maps else _box_scores(rows, record, dataset))
    clean = scored.pop("clean", {})
    found = [
        ImageScore(image, condition, score, clean.get(image, math.nan))
        for condition, by_image in scored.items()
        for image, score in by_image.items()
    ]
    found.sort(key=lambda s: (-s.drop if clean else 0.0, s.score, s.image, s.condition))
    return found[:count]


def _box_scores(rows: RunRows, record: RunRecord, dataset: Dataset) -> Iterator[tuple[str, dict[str, float]]]:
    truths = Truths.of_run(rows.run, record, dataset)
    for text, truth, found in met(rows, record, truths, record.conditions, masks=False):
        each = image_precisions(truth, named(found, truth))
        yield text, {name: float(s) for name, s in zip(truth.ids, each, strict=True) if not math.isnan(s)}


def image_precisions(truth: DetectionTruth, found: Detections) -> Floats:
    """AP at IoU 0.5 of each image, the mean over the classes in it; NaN for an image without objects."""
    verdicts = judge_voc(truth, found, iou=0.5)
    positives = np.zeros((len(truth.ids), len(truth.classes)), np.int64)
    counting = ~truth.excused
    np.add.at(positives, (truth.image[counting], truth.labels[counting]), 1)
    order = np.lexsort((-found.scores, found.labels, found.image))
    order = order[verdicts[order] != DROPPED]
    keys = found.image[order] * len(truth.classes) + found.labels[order]
    total = np.zeros(len(truth.ids))
    for image, label in np.argwhere(positives):
        key = image * len(truth.classes) + label
        mine = order[np.searchsorted(keys, key) : np.searchsorted(keys, key, "right")]
        hits = np.cumsum(verdicts[mine] == TRUE)
        total[image] += area_under(hits / positives[image, label], hits / np.arange(1, len(hits) + 1))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / (positives > 0).sum(axis=1))


def _map_scores(rows: RunRows, record: RunRecord, dataset: Dataset) -> Iterator[tuple[str, dict[str, float]]]:
    match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
    classes = chosen_classes(record.model.semantic_classes, dataset.semantic_classes, None)
    for text, table in rows.by_condition(record.conditions, CONFUSION):
        scores = {}
        for row in table.to_pylist():
            if row["confusion_pixels"] is not None:
                truth, predicted, pixels = (np.array(row[name], np.int64) for name in CONFUSION)
                scores[row["image"]] = score_maps((truth, predicted, pixels), match, classes).numbers["mIoU"]
        yield text, {image: score for image, score in scores.items() if not math.isnan(score)}
