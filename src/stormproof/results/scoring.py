"""From a run to its scores: every metric that fits, for the score itself and for every replicate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, OutputError
from stormproof.core.sample import Floats
from stormproof.core.text import plain
from stormproof.corruptions.plugins import declare
from stormproof.datasets.dataset import thing_classes
from stormproof.metrics import panoptic, semantic
from stormproof.metrics.calibration import Tuned, reliability
from stormproof.metrics.cells import Maps, Objects, Segments
from stormproof.metrics.coco import image_precision
from stormproof.metrics.map_calibration import reliability as map_reliability
from stormproof.metrics.metric import Scored, Weights, mean_of_known, measures, ratio
from stormproof.metrics.roc import People, drawn, worst_people
from stormproof.models.classes import match_classes
from stormproof.results import rows
from stormproof.results.interval import Interval, around, draws
from stormproof.results.kept import load_scores, save_scores, scores_key
from stormproof.results.run import DatasetGone, IncompleteRun, Run, missing_words
from stormproof.results.scores import ImageErrors, Replicates, ScoreOptions, Scores
from stormproof.results.store.schema import CONFUSION, OVERLAP
from stormproof.results.truths import (
    Asked,
    Truths,
    check_classes,
    chosen_classes,
    chosen_labels,
    iter_matches,
)
from stormproof.results.weights import half_weights

_LOST = 3  # images kept of each condition
_GONE = "The dataset was not found: these are kept scores, and its images could not be checked."
Cell = Objects | Maps | Segments
# The kinds of classes that scores by class are over; those of any other are objects.
_KINDS = {"IoU": "maps", "PQ": "panoptic"}


def score(run: Run, options: ScoreOptions, *, partial: bool, replicates: int) -> Scores:
    """The scores of a run: those kept under the same key, or computed now and kept.

    Kept scores are used only while the run, its dataset and its images are unchanged; if the dataset is gone,
    they are used with a notice.
    """
    declare(run.record.declared)
    gone: DatasetGone | None = None
    try:
        run.check()
    except DatasetGone as error:
        gone = error
    asked = options.conditions or run.conditions
    missing = run.missing
    complete = [text for text in asked if text not in missing]
    if len(complete) < len(asked) and not (partial and complete):
        raise IncompleteRun(run, "score")
    key = scores_key(run, options)
    kept = load_scores(run, key, options, replicates)
    if gone is not None and kept is None:
        raise gone
    if kept is not None:
        return kept if gone is None else replace(kept, notices=(_GONE,))
    check_classes(options.classes, run.dataset.classes, run.dataset.semantic_classes)
    made = _make(run, options, complete, replicates)
    try:
        save_scores(run, key, made)
    except OutputError as error:  # a folder that cannot be written: its scores can still be read
        return replace(made, notices=(f"Not kept: {error}",))
    return made


@dataclass
class _Found:
    """The results of scoring, by condition."""

    scored: dict[str, Scored]
    errors: dict[str, dict[str, Floats]] = field(
        default_factory=lambda: {"panoptic": {}, "maps": {}, "objects": {}}
    )
    roc: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    lost: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    reliability: dict[str, dict[str, list[float]]] = field(default_factory=dict)


def _make(run: Run, options: ScoreOptions, conditions: Sequence[str], replicates: int) -> Scores:
    weights, units = weights_of(run, replicates), len({*run.units})
    found = _Found({text: Scored({}) for text in conditions})
    clean: People | None = None
    for text, cell in iter_cells(run, options.classes, conditions, options):
        found.scored[text] |= replace(cell.scored(weights), parts={})  # by class and threshold: large
        if isinstance(cell, Segments):
            found.errors["panoptic"][text] = panoptic.image_errors(cell)
            continue
        if isinstance(cell, Maps):
            found.errors["maps"][text] = semantic.image_errors(cell)
            if cell.confidences is not None:
                found.reliability[text] = _reliability(cell, weights, units)
            continue
        found.errors["objects"][text] = _object_errors(cell, run.record.metric)
        found.reliability[text] = _reliability(cell, weights, units)
        clean = cell.people if text == "clean" else clean
        if cell.people and clean and cell.people.shown and clean.shown:
            found.roc[text] = drawn(cell.people, clean, weights)
            if text != "clean" and np.array_equal(cell.people.truth.boxes, clean.truth.boxes):
                worst = worst_people(clean, cell.people, count=_LOST)
                found.lost[text] = [asdict(one) for one in worst]
    if not any(scored.numbers for scored in found.scored.values()):
        record = run.record
        raise InvalidOption(f"{record.dataset.name} has no truth for what {record.model.name} predicts.")
    names = [name for name in measures() if any(name in each.numbers for each in found.scored.values())]
    errors = next((held for held in found.errors.values() if held), None)
    classes = scored_classes(run, options.classes)
    return Scores(
        plain(run.record.model.name), plain(run.record.dataset.name), len(run.readable),
        cells={
            name: {t: float(s.numbers[name][0]) if name in s.numbers else math.nan
                   for t, s in found.scored.items()}
            for name in names
        },
        conditions=tuple(options.conditions or run.conditions),
        metric=run.record.metric, benchmark=run.record.benchmark,
        per_class=_per_class(found.scored, classes),
        classes=tuple(dict.fromkeys(name for kind in classes.values() for name in kind)),
        missing=missing_words(run, options.conditions or None),
        quality=rows.changes(run, conditions), roc=found.roc, lost=found.lost,
        reliability=found.reliability,
        image_errors=ImageErrors(run.ids, errors) if errors else None,
        replicates=_replicates(run, found.scored, classes, names, options.classes) if replicates else None,
        left_out=tuple(run.unreadable.values()), options=options,
        tags={plain(k): plain(v) for k, v in run.record.tags.items()},
        record=run.record, folder=run.folder, clips=units if units < len(run.ids) else None,
    )  # fmt: skip


def _object_errors(cell: Objects, metric: str | None) -> Floats:
    """How wrong each image is, by the measure that the run is reported in: 1 − AP, of masks where they count,
    or *liu*'s E where the benchmark is by E."""
    if metric == "E":
        return cell.errors.per_image
    return 1 - image_precision(cell.masks if cell.scored_masks else cell.boxes)


def _reliability(cell: Objects | Maps, weights: Weights, units: int) -> dict[str, list[float]]:
    """Mean score, the share that is right with its interval, and the number of detections or pixels, by bin
    of the score."""
    if isinstance(cell, Objects):
        counts = reliability(cell.located, weights, len(cell.truth.ids))
        number, scores, hits = counts[:, 0], counts[:, 1], counts[:, 2]
    else:
        assert cell.confidences is not None
        number, scores, hits, *_ = np.moveaxis(map_reliability(cell.confidences, weights), 2, 0)
    right = ratio(hits, number)
    sure = [around(float(each[0]), draws(each), images=units) for each in right.T] if len(weights) > 1 else []
    return {
        "score": ratio(scores[0], number[0]).tolist(), "precision": right[0].tolist(),
        "low": [each.low for each in sure], "high": [each.high for each in sure],
        "detections": number[0].tolist(),
    }  # fmt: skip


def weights_of(run: Run, replicates: int) -> Weights:
    """A row of ones for the score itself, then one for every random half; a column for each image."""
    ones = np.ones((1, len(run.readable)), np.uint8)
    return np.concatenate([ones, half_weights(run.units, replicates=replicates)]) if replicates else ones


def iter_cells(
    run: Run, classes: Asked, conditions: Sequence[str], options: ScoreOptions | None = None
) -> Iterator[tuple[str, Cell]]:
    """The panoptic maps of every condition, then the label maps, then the objects, the clean ones first."""
    yield from _segments(run, classes, conditions)
    record, dataset = run.record, run.dataset
    if run.has("confusion_pixels"):
        match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
        kept = chosen_labels(match.dataset, scored_classes(run, classes)["maps"])
        labels = np.asarray(match.labels, np.int64)
        counts = zip(rows.counted(run, conditions, CONFUSION), rows.confidences(run, conditions), strict=True)
        for (text, (true, predicted, pixels), image), sums in counts:
            yield (
                text,
                Maps.of(
                    image, true, labels[predicted], pixels,
                    images=len(run.readable), classes=match.dataset, kept=kept, confidences=sums,
                ),
            )  # fmt: skip
    truths = Truths.of_run(run, classes)
    if not truths.answered_by(run):
        return
    masks = run.has("masks") and truths.has_masks
    rule, clean, tuned = (options or ScoreOptions()).rule, None, None
    for text, truth, found in iter_matches(run, truths, conditions, masks=masks):
        cell = Objects(truth, found, rule, truths.person, clean, masks, tuned)
        if text == "clean":
            clean, tuned = cell.people, Tuned(cell.located, cell.touching)
            cell = replace(cell, clean=clean, tuned=tuned)
        yield text, cell


def _segments(run: Run, classes: Asked, conditions: Sequence[str]) -> Iterator[tuple[str, Segments]]:
    if not run.has("overlap_pixels"):
        return
    match = match_classes(run.record.model.semantic_classes, run.dataset.semantic_classes)
    kept = chosen_labels(match.dataset, scored_classes(run, classes)["panoptic"])
    countable = thing_classes(run.dataset)
    things = np.array([name in countable for name in match.dataset], np.bool_)
    labels = np.asarray(match.labels, np.int64)
    for text, found, image in rows.counted(run, conditions, OVERLAP):
        table = panoptic.match_segments(image, found, labels=labels, things=things, images=len(run.readable))
        yield text, Segments(table, match.dataset, kept, things)


def scored_classes(run: Run, classes: Asked) -> dict[str, tuple[str, ...]]:
    """The classes that scores are over, of objects, label maps and panoptic maps, where the run has any."""
    record, dataset, found = run.record, run.dataset, {}
    for kind, column in {"panoptic": "overlap_pixels", "maps": "confusion_pixels"}.items():
        if run.has(column):
            found[kind] = chosen_classes(record.model.semantic_classes, dataset.semantic_classes, classes)
    truths = Truths.of_run(run, classes)
    if truths.answered_by(run):
        found["objects"] = truths.classes
    return found


def _names(kind: str, classes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return classes[_KINDS.get(kind, "objects")]


def _per_class(
    scored: Mapping[str, Scored], classes: Mapping[str, tuple[str, ...]]
) -> dict[str, dict[str, dict[str, float]]]:
    kinds = dict.fromkeys(kind for each in scored.values() for kind in each.per_class)
    return {
        kind: {
            text: dict(zip(map(plain, _names(kind, classes)), each.per_class[kind][0].tolist(), strict=True))
            for text, each in scored.items()
            if kind in each.per_class
        }
        for kind in kinds
    }


def _replicates(
    run: Run, scored: Mapping[str, Scored], classes: Mapping[str, tuple[str, ...]], names: Sequence[str],
    asked: Asked,
) -> Replicates:  # fmt: skip
    cells = {
        name: {
            text: draws(each.numbers[name], too_high(each, name), clean=text == "clean")
            for text, each in scored.items()
            if name in each.numbers
        }
        for name in names
    }
    often = _images_by_class(run, asked)
    per_class: dict[str, dict[str, dict[str, Interval]]] = {}
    for text, each in scored.items():
        for kind, values in each.per_class.items():
            optimism = each.optimism.get(kind, np.full(values.shape[1], np.nan))
            per_class.setdefault(kind, {})[text] = {
                plain(name): around(
                    float(values[0, k]),
                    draws(values[:, k], float(optimism[k])),
                    images=len({*run.units}) if kind in _KINDS else often.get(name),
                )
                for k, name in enumerate(_names(kind, classes))
            }
    return Replicates(cells, per_class)


def too_high(scored: Scored, measure: str) -> float:
    """The optimism of a score; NaN if its metric cannot tell."""
    return float(mean_of_known(scored.optimism[measure])) if measure in scored.optimism else math.nan


def _images_by_class(run: Run, asked: Asked) -> dict[str, int]:
    """The number of images, or clips, that show each class of objects: a single one shows no spread."""
    truths = Truths.of_run(run, asked)
    if not truths.answered_by(run):
        return {}
    still = truths.still
    counting = ~still.excused
    unit = np.where(still.clip >= 0, still.clip, len(still.ids) + np.arange(len(still.ids)))
    pairs = np.unique(np.stack([still.labels[counting], unit[still.image[counting]]]), axis=1)
    counts = np.bincount(pairs[0], minlength=len(still.classes))
    return dict(zip(still.classes, counts.tolist(), strict=True))
