"""Scores of a run folder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormproof.condition import Condition
from stormproof.datasets.dataset import Dataset
from stormproof.errors import InvalidOption
from stormproof.metrics.coco import MASKS
from stormproof.metrics.measure import Scored, measures
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import Sensitivities, fix_sensitivities
from stormproof.models.classes import match_classes
from stormproof.scoring.aggregates import Aggregates, against, aggregates, grid_of
from stormproof.scoring.measures import people, score_boxes, score_maps, score_masks, score_people
from stormproof.scoring.reading import RunRows
from stormproof.scoring.truths import Truths, only
from stormproof.store.completeness import IncompleteRun, in_words, missing_images
from stormproof.store.contents import has_objects, has_values
from stormproof.store.record import RunRecord, read_record
from stormproof.store.reopen import dataset_of


@dataclass(frozen=True, slots=True)
class Scores:
    """A run's scores: by measure and condition, per class, and what follows from all of them."""

    record: RunRecord
    by_measure: dict[str, dict[str, float]]
    per_class: dict[str, dict[str, dict[str, float]]]  # measure → condition → class → score
    aggregates: dict[str, Aggregates]
    missing: tuple[str, ...] = ()
    reference: str | None = None

    @property
    def headline(self) -> str:
        """The measure that tables print first: the benchmark's, else the task's own."""
        usual = (self.record.metric, "mIoU", f"{MASKS}AP", "AP")
        return next(name for name in usual if name in self.by_measure)

    def as_dict(self) -> dict[str, Any]:
        record = self.record
        return {
            "model": record.model.name, "dataset": record.dataset.name, "images": record.images,
            "seed": record.seed, "key": record.key, "benchmark": record.benchmark, "tags": record.tags,
            "headline": self.headline, "reference": self.reference, "missing": list(self.missing),
            "scores": self.by_measure, "aggregates": self.aggregates, "per_class": self.per_class,
        }  # fmt: skip


def score_run(
    run: Path, *, data: str | None = None, partial: bool = False, reference: Path | None = None
) -> Scores:
    """Every measure that fits a run. An incomplete grid is refused by name, unless `partial` is asked for."""
    record = read_record(run)
    dataset = dataset_of(record, data)
    rows = RunRows(run, record)
    lacking = missing_images(run, record)
    missing = in_words(record, lacking)
    here = [text for text in record.conditions if text not in lacking]
    if lacking and not (partial and here):
        raise IncompleteRun(run, record, lacking, "score")
    found = dict(_scored(rows, record, dataset, here))
    names = [name for name in measures() if any(name in scored.numbers for scored in found.values())]
    table = {name: {text: found[text].numbers.get(name, math.nan) for text in here} for name in names}
    kinds = dict.fromkeys(kind for scored in found.values() for kind in scored.per_class)
    per_class = {kind: {text: dict(found[text].per_class.get(kind, {})) for text in here} for kind in kinds}
    totals = {} if missing else {n: aggregates(n, grid_of(table[n], record.conditions)) for n in names}
    scores = Scores(record, table, per_class, totals, missing)
    return scores if reference is None else _beside(scores, score_run(reference, data=data))


def _beside(scores: Scores, reference: Scores) -> Scores:
    ours, theirs = scores.record, reference.record
    if ours.dataset.fingerprint != theirs.dataset.fingerprint or ours.images != theirs.images:
        raise InvalidOption(
            f"The reference was run on {theirs.dataset.name} ({theirs.images} images), this run on "
            f"{ours.dataset.name} ({ours.images} images); give a reference run on the same images."
        )
    # Cell by cell: means over other severities cannot be compared, though the corruptions have one name.
    lacking = [text for text in ours.conditions if text not in theirs.conditions]
    if lacking:
        some = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
        raise InvalidOption(f"The reference {theirs.model.name} lacks {some}; run it under these, too.")
    totals = {
        name: found
        | against(
            name,
            grid_of(scores.by_measure[name], ours.conditions),
            grid_of(reference.by_measure[name], ours.conditions),
        )
        for name, found in scores.aggregates.items()
        if name in reference.by_measure
    }
    merged = scores.aggregates | totals
    return Scores(ours, scores.by_measure, scores.per_class, merged, scores.missing, theirs.model.name)


def _scored(
    rows: RunRows, record: RunRecord, dataset: Dataset, conditions: list[str]
) -> Iterator[tuple[str, Scored]]:
    found: dict[str, Scored] = {text: Scored({}) for text in conditions}
    truths = Truths(dataset, record.images, record.seed)
    if has_values(rows.run, "confusion_pixels"):
        match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
        for text, columns in rows.confusions(conditions):
            found[text] |= score_maps(columns, match)
    if truths.has_objects and (has_objects(rows.run) or not has_values(rows.run, "semantic_runs")):
        for text, scored in _objects(rows, record, truths, conditions):
            found[text] |= scored
    if not any(scored.numbers for scored in found.values()):
        raise InvalidOption(f"{record.dataset.name} has no truth for what {record.model.name} predicts.")
    yield from found.items()


def _objects(
    rows: RunRows, record: RunRecord, truths: Truths, conditions: list[str]
) -> Iterator[tuple[str, Scored]]:
    match = match_classes(record.model.classes, truths.dataset.classes)
    masks = has_values(rows.run, "masks") and truths.has_masks
    clean_first = sorted(conditions, key=lambda text: text != "clean")
    fixed: Sensitivities | None = None
    for text, found in rows.detections(clean_first, match, truths.still.position, masks=masks):
        truth = truths.under(Condition.parse(text))
        scored = score_boxes(truth, found)
        if masks:
            scored |= score_masks(truth, found)
        if truths.person is not None:
            if text == "clean":
                fixed = _sensitivities(truths, found, truths.person)
            if fixed is not None and _shown(truth, truths.person):
                scored |= score_people(truth, found, truths.person, fixed)
        yield text, scored


def _sensitivities(truths: Truths, clean: Detections, label: int) -> Sensitivities | None:
    """Sensitivities fixed on the clean images; none if no image shows a person that counts."""
    if not _shown(truths.still, label):
        return None
    return fix_sensitivities(only(truths.still, label), people(clean, label))


def _shown(truth: DetectionTruth, label: int) -> bool:
    """Whether any object of a class counts; a condition may move all of them out of the image."""
    return bool(((truth.labels == label) & ~truth.excused).any())
