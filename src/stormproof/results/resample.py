"""From a run folder to replicates of every cell, one condition in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from stormproof.core.sample import Bools, Floats, Ints
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.coco import MASKS
from stormproof.metrics.cocomatching import match_boxes, match_masks
from stormproof.metrics.objects import object_errors
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.models.classes import ClassMatch, match_classes
from stormproof.results.classes import Asked, chosen_classes, chosen_labels
from stormproof.results.maps import image_confusions, map_numbers
from stormproof.results.measures import named, people
from stormproof.results.precision import coco_numbers, curves, ratio
from stormproof.results.rates import average_rates, fix_thresholds, judge
from stormproof.results.reading import RunRows
from stormproof.results.store.completeness import readable_images, unreadable_images
from stormproof.results.store.contents import has_values
from stormproof.results.store.record import RunRecord, read_record
from stormproof.results.store.reopen import dataset_of
from stormproof.results.truths import Truths, met, only, with_stranger
from stormproof.results.weights import REPLICATES, Weights, poisson_weights


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """A run's scores in every replicate: measure → condition → replicates, and the same per class.

    `left_out` are the images that could not be read: no condition's scores are of them.
    """

    record: RunRecord
    by_measure: Mapping[str, Mapping[str, Floats]]
    per_class: Mapping[str, Mapping[str, Floats]]  # measure → condition → replicates × classes
    classes: Mapping[str, tuple[str, ...]]  # measure → names
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """One condition's replicates."""

    numbers: dict[str, Floats]
    per_class: dict[str, Floats]


def resample(
    run: Path,
    *,
    data: str | None = None,
    classes: Asked = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Replicates:
    """Replicates of a complete run; runs of the same images and seed are weighted alike.

    `classes` as for `score_run`.
    """
    record = read_record(run)
    dataset = dataset_of(record, data)
    ids = [dataset.ids[i] for i in range(record.images)]
    weights = poisson_weights(ids, replicates=replicates, seed=seed)
    return weighted(run, record, dataset, weights, classes)


def weighted(
    run: Path,
    record: RunRecord,
    dataset: Dataset,
    weights: Weights,
    asked: Asked = None,
) -> Replicates:
    """The scores of a run's conditions under each row of weights; `record` may name some of them only.

    `weights` have a column for each image of the run; those that could not be read count nowhere.
    """
    unreadable = unreadable_images(run, record)
    readable = readable_images(run, record)
    weights = weights[:, readable]
    rows = RunRows(run, record)
    kept = chosen_classes(record.model.semantic_classes, dataset.semantic_classes, asked)
    truths = Truths.of_run(run, record, dataset, asked)
    cells: dict[str, _Cell] = {text: _Cell({}, {}) for text in record.conditions}
    classes: dict[str, tuple[str, ...]] = {}
    if has_values(run, "confusion_pixels"):
        classes["IoU"] = kept
        _take(cells, _maps(rows, record, dataset, weights, kept))
    if truths.answered_in(run):
        classes |= dict.fromkeys(("AP", f"{MASKS}AP", "E"), truths.classes)
        _take(cells, _objects(rows, record, truths, weights))
    by_measure, per_class = (_by_measure(cells, kind) for kind in ("numbers", "per_class"))
    return Replicates(record, by_measure, per_class, classes, tuple(unreadable.values()))


def _take(cells: dict[str, _Cell], found: Iterator[tuple[str, _Cell]]) -> None:
    for text, cell in found:
        cells[text].numbers.update(cell.numbers)
        cells[text].per_class.update(cell.per_class)


def _by_measure(cells: Mapping[str, _Cell], kind: str) -> dict[str, dict[str, Floats]]:
    names = dict.fromkeys(name for cell in cells.values() for name in getattr(cell, kind))
    return {
        name: {text: getattr(cell, kind)[name] for text, cell in cells.items() if name in getattr(cell, kind)}
        for name in names
    }


def _maps(
    rows: RunRows, record: RunRecord, dataset: Dataset, weights: Weights, kept: Sequence[str]
) -> Iterator[tuple[str, _Cell]]:
    match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
    labels = chosen_labels(match.dataset, kept)
    for text, confusions in confusions_of(rows, record, match):
        numbers, iou = map_numbers(confusions, weights, len(match.dataset), labels)
        yield text, _Cell(numbers, {"IoU": iou})


def confusions_of(
    rows: RunRows, record: RunRecord, match: ClassMatch
) -> Iterator[tuple[str, sparse.csr_array]]:
    """The confusion matrices of every condition's images, but for those that could not be read."""
    labels, images = np.asarray(match.labels, np.int64), len(readable_images(rows.run, record))
    for text, (truth, predicted, pixels), image in rows.confusions(record.conditions):
        yield (
            text,
            image_confusions(
                image, truth, labels[predicted], pixels, images=images, classes=len(match.dataset)
            ),
        )


def _objects(
    rows: RunRows, record: RunRecord, truths: Truths, weights: Weights
) -> Iterator[tuple[str, _Cell]]:
    masks = has_values(rows.run, "masks") and truths.has_masks
    thresholds: Floats | None = None
    for text, truth, found in met(rows, record, truths, record.conditions, masks=masks):
        cell = box_replicates(truth, found, weights)
        if masks:
            numbers, by_class = coco_numbers(curves(match_masks(truth, named(found, truth))), weights)
            cell.numbers.update({MASKS + name: values for name, values in numbers.items()})
            cell.per_class[f"{MASKS}AP"] = by_class
        if truths.person is not None:
            shown = only(truth, truths.person)
            judged = judge(shown, people(found, truths.person))
            if text == "clean":
                thresholds = fix_thresholds(judged, weights)
            if thresholds is not None and not shown.excused.all():
                cell.numbers["ADR"] = average_rates(shown, judged, weights, thresholds)
        yield text, cell


def box_replicates(truth: DetectionTruth, found: Detections, weights: Weights) -> _Cell:
    """AP of boxes and object error of one condition."""
    plain = replace(found, masks=())
    numbers, by_class = coco_numbers(curves(match_boxes(truth, named(plain, truth))), weights)
    errors = object_errors(with_stranger(truth), plain)
    numbers["E"] = _image_mean(errors.image, errors.errors, weights)
    by_label = (errors.labels == k for k in range(len(truth.classes)))
    per_class = [_weighted_mean(errors.image, errors.errors, chosen, weights) for chosen in by_label]
    return _Cell(numbers, {"AP": by_class, "E": np.stack(per_class, axis=1)})


def _image_mean(image: Ints, values: Floats, weights: Weights) -> Floats:
    """The weighted mean over images of the mean over each image's objects (*liu*, Eq. 3)."""
    images = weights.shape[1]
    counts, sums = np.bincount(image, minlength=images), np.bincount(image, values, minlength=images)
    shown = np.flatnonzero(counts)
    return ratio(
        weights[:, shown] @ (sums[shown] / counts[shown]), weights[:, shown].sum(axis=1, dtype=float)
    )


def _weighted_mean(image: Ints, values: Floats, chosen: Bools, weights: Weights) -> Floats:
    images = weights.shape[1]
    counts = np.bincount(image[chosen], minlength=images).astype(float)
    sums = np.bincount(image[chosen], values[chosen], minlength=images)
    return ratio(np.asarray(weights @ sums, float), np.asarray(weights @ counts, float))
