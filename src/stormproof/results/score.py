"""Scores of a run folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, UnknownName, some
from stormproof.corruptions.plugins import declare
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.coco import MASKS
from stormproof.metrics.measure import Scored, measures
from stormproof.metrics.objects import MatchingRule
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.roc import Sensitivities, Worsening, fix_sensitivities, worst_images
from stormproof.models.classes import match_classes
from stormproof.results.aggregates import Aggregates, against, aggregates
from stormproof.results.classes import Asked, check_classes, chosen_classes
from stormproof.results.images import ImageErrors, map_errors
from stormproof.results.measures import people, score_boxes, score_maps, score_masks, score_people
from stormproof.results.papers import averaged_grid
from stormproof.results.reading import RunRows
from stormproof.results.sets import ConditionSet, sets_of
from stormproof.results.store.completeness import (
    IncompleteRun,
    in_words,
    missing_images,
    readable_images,
)
from stormproof.results.store.contents import has_values
from stormproof.results.store.integrity import check_images, check_run
from stormproof.results.store.record import RunRecord, read_record
from stormproof.results.store.reopen import dataset_of
from stormproof.results.truths import Truths, met, only

_LOST = 3  # images kept of each condition


@dataclass(frozen=True, slots=True)
class Scores:
    """A run's scores: by measure and condition, per class, and what follows from all of them."""

    record: RunRecord
    by_measure: dict[str, dict[str, float]]
    per_class: dict[str, dict[str, dict[str, float]]]  # measure → condition → class → score
    aggregates: dict[str, Aggregates]  # over the first of the sets
    missing: tuple[str, ...] = ()
    reference: str | None = None
    sets: tuple[tuple[ConditionSet, dict[str, Aggregates]], ...] = ()  # every set, by measure
    classes: tuple[str, ...] = ()  # those that were scored
    measure: str | None = None
    quality: dict[str, dict[str, float]] = field(default_factory=dict)  # condition → RMSE, SNR
    curves: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)  # by condition
    lost: dict[str, list[Worsening]] = field(default_factory=dict)  # people hardest to find again
    images: ImageErrors | None = None

    @property
    def headline(self) -> str:
        """The measure that tables print first: the one asked for, the benchmark's, else the task's own."""
        usual = (self.measure, self.record.metric, "mIoU", f"{MASKS}AP", "AP")
        return next(name for name in usual if name in self.by_measure)

    @property
    def over(self) -> str:
        """The benchmark or suite that the aggregates are over; empty if the conditions are no such set."""
        return self.sets[0][0].name if self.sets and self.sets[0][0].whole else ""

    @property
    def aggregated(self) -> tuple[str, ...]:
        """The conditions that the aggregates are of, clean among them."""
        chosen = self.sets[0][0].conditions if self.sets else ()
        return tuple(text for text in self.record.conditions if text == "clean" or text in chosen)

    def showing(self, measure: str) -> Scores:
        """The same scores with another measure first."""
        if measure not in self.by_measure:
            there = f"There are {', '.join(self.by_measure)}."
            raise UnknownName("measure of this run", measure, self.by_measure, there)
        return replace(self, measure=measure)

    def as_dict(self) -> dict[str, Any]:
        record = self.record
        return {
            "model": record.model.name, "dataset": record.dataset.name, "images": record.images,
            "seed": record.seed, "key": record.key, "benchmark": record.benchmark, "tags": record.tags,
            "headline": self.headline, "reference": self.reference, "missing": list(self.missing),
            "classes": list(self.classes), "over": self.over,
            "scores": self.by_measure, "aggregates": self.aggregates, "per_class": self.per_class,
            "sets": [
                {"name": each.name, "conditions": list(each.conditions), "of": each.of, "aggregates": found}
                for each, found in self.sets
            ],
            "quality": self.quality, "curves": self.curves,
            "lost": {text: [asdict(one) for one in worst] for text, worst in self.lost.items()},
        }  # fmt: skip


def score_run(
    run: Path,
    *,
    data: str | Dataset | None = None,
    classes: Asked = None,
    partial: bool = False,
    reference: Path | None = None,
    only: Sequence[str] = (),
    rule: MatchingRule = MatchingRule(),  # noqa: B008
) -> Scores:
    """Every measure that fits a run. An incomplete grid is refused by name, unless `partial` is asked for.

    `classes` are those to score: by default the ones that model and dataset share, "all" of the dataset's, or
    some by name. `only` scores some conditions, as if there were no others. `rule` is how object errors match
    boxes to objects.
    """
    record = whole = read_record(run)
    if only:
        record = record.model_copy(update={"conditions": tuple(only)})
    declare(record.declared)
    dataset = dataset_of(record, data)
    rows = RunRows(run, record)
    check_run(run, whole, dataset)
    check_images(run, record, dataset)
    lacking = missing_images(run, record)
    missing = in_words(record, lacking)
    here = [text for text in record.conditions if text not in lacking]
    if lacking and not (partial and here):
        raise IncompleteRun(run, record, lacking, "score")
    check_classes(classes, dataset.classes, dataset.semantic_classes)
    lost: dict[str, list[Worsening]] = {}
    scored_classes, found = _scored(rows, record, dataset, here, classes, rule, lost)
    names = [name for name in measures() if any(name in scored.numbers for scored in found.values())]
    table = {name: {text: found[text].numbers.get(name, math.nan) for text in here} for name in names}
    kinds = dict.fromkeys(kind for scored in found.values() for kind in scored.per_class)
    per_class = {kind: {text: dict(found[text].per_class.get(kind, {})) for text in here} for kind in kinds}
    sets = () if missing else tuple(_by_set(record, table))
    totals = sets[0][1] if sets else {}
    scores = Scores(
        record, table, per_class, totals, missing, sets=sets, classes=scored_classes,
        quality=rows.changes(here), lost=lost,
        curves={text: {name: dict(c) for name, c in found[text].curves.items()} for text in here},
        images=_images(readable_ids(run, record, dataset), found),
    )  # fmt: skip
    if reference is None:
        return scores
    return _beside(scores, score_run(reference, data=data, classes=classes, rule=rule))


def _by_set(
    record: RunRecord, table: dict[str, dict[str, float]]
) -> Iterator[tuple[ConditionSet, dict[str, Aggregates]]]:
    """The aggregates of each set of conditions; of the clean score alone where there is no other."""
    for each in sets_of(record.conditions, record.benchmark) or (ConditionSet("", (), 0),):
        found = {
            name: aggregates(name, averaged_grid(values, each.conditions, record), named=each.whole)
            for name, values in table.items()
        }
        yield each, found


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
        raise InvalidOption(
            f"The reference {theirs.model.name} lacks {some(lacking)}; run it under these, too."
        )
    sets = tuple(
        (each, {name: dict(found) | _gains(name, each, scores, reference) for name, found in totals.items()})
        for each, totals in scores.sets
    )
    merged = sets[0][1] if sets else scores.aggregates
    return replace(scores, aggregates=merged, sets=sets, reference=theirs.model.name)


def _gains(name: str, each: ConditionSet, scores: Scores, reference: Scores) -> Aggregates:
    if name not in reference.by_measure:
        return {}
    grids = (averaged_grid(s.by_measure[name], each.conditions, scores.record) for s in (scores, reference))
    return against(name, *grids, named=each.whole)


def readable_ids(run: Path, record: RunRecord, dataset: Dataset) -> tuple[str, ...]:
    """The images that scores are of, in order: all but those that could not be read."""
    return tuple(dataset.ids[i] for i in readable_images(run, record))


def _images(ids: tuple[str, ...], found: Mapping[str, Scored]) -> ImageErrors | None:
    """The error of each image: of label maps where the run has them, else of objects."""
    kinds = dict.fromkeys(kind for scored in found.values() for kind in scored.per_image)
    if not kinds:
        return None
    kind = "mIoU" if "mIoU" in kinds else next(iter(kinds))
    return ImageErrors(ids, {t: s.per_image[kind] for t, s in found.items() if kind in s.per_image})


def _scored(
    rows: RunRows,
    record: RunRecord,
    dataset: Dataset,
    conditions: list[str],
    asked: Asked,
    rule: MatchingRule,
    lost: dict[str, list[Worsening]],
) -> tuple[tuple[str, ...], dict[str, Scored]]:
    """The classes that were scored, and the numbers of each condition."""
    found: dict[str, Scored] = {text: Scored({}) for text in conditions}
    scored_classes: tuple[str, ...] = ()
    truths = Truths.of_run(rows.run, record, dataset, asked)
    if has_values(rows.run, "confusion_pixels"):
        match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
        kept = chosen_classes(record.model.semantic_classes, dataset.semantic_classes, asked)
        scored_classes, images = kept, len(readable_images(rows.run, record))
        for text, columns, owners in rows.confusions(conditions):
            errors = map_errors(columns, owners, images, match)
            found[text] |= score_maps(columns, match, kept) | Scored({}, per_image={"mIoU": errors})
    if truths.answered_in(rows.run):
        scored_classes = tuple(dict.fromkeys((*truths.classes, *scored_classes)))
        for text, scored in _objects(rows, record, truths, conditions, rule, lost):
            found[text] |= scored
    if not any(scored.numbers for scored in found.values()):
        raise InvalidOption(f"{record.dataset.name} has no truth for what {record.model.name} predicts.")
    return scored_classes, found


def _objects(
    rows: RunRows,
    record: RunRecord,
    truths: Truths,
    conditions: list[str],
    rule: MatchingRule,
    lost: dict[str, list[Worsening]],
) -> Iterator[tuple[str, Scored]]:
    masks = has_values(rows.run, "masks") and truths.has_masks
    fixed: Sensitivities | None = None
    clean: Detections | None = None
    for text, truth, found in met(rows, record, truths, conditions, masks=masks):
        scored = score_boxes(truth, found, rule)
        if masks:
            scored |= score_masks(truth, found)
        if truths.person is not None:
            if text == "clean":
                fixed, clean = _sensitivities(truths, found, truths.person), people(found, truths.person)
            if fixed is not None and _shown(truth, truths.person):
                scored |= score_people(truth, found, truths.person, fixed)
                if clean is not None and text != "clean" and truth is truths.still:
                    now = people(found, truths.person)
                    lost[text] = worst_images(only(truth, truths.person), clean, now, count=_LOST)
        yield text, scored


def _sensitivities(truths: Truths, clean: Detections, label: int) -> Sensitivities | None:
    """Sensitivities fixed on the clean images; none if no image shows a person that counts."""
    if not _shown(truths.still, label):
        return None
    return fix_sensitivities(only(truths.still, label), people(clean, label))


def _shown(truth: DetectionTruth, label: int) -> bool:
    """Whether any object of a class counts; a condition may move all of them out of the image."""
    return bool(((truth.labels == label) & ~truth.excused).any())
