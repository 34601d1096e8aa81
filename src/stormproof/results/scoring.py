"""From a run to its scores: every metric that fits, for the score itself and for every replicate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.errors import InvalidOption, OutputError
from stormproof.core.files import sweep_below
from stormproof.core.sample import Bools, Floats
from stormproof.core.text import plain
from stormproof.core.threads import map_in_threads
from stormproof.corruptions.plugins import declare
from stormproof.datasets.groups import frames_warning
from stormproof.metrics.inputs import MetricInput, Objects
from stormproof.metrics.metric import (
    DETAILS,
    METRICS,
    Metric,
    Scored,
    Weights,
    mean_of_known,
    measures,
    metrics_of,
)
from stormproof.metrics.object_error import MatchingRule
from stormproof.metrics.task import scored_forms, task_of
from stormproof.results import rows
from stormproof.results.aggregates import bound_interval
from stormproof.results.details import make_details
from stormproof.results.interval import Interval, draws, interval_around
from stormproof.results.reader import Reader
from stormproof.results.run import DatasetGone, IncompleteRun, Run, missing_words
from stormproof.results.scores import Replicates, ScoreOptions, Scores
from stormproof.results.stored import FOLDER, load_scores, save_scores, scores_key
from stormproof.results.truths import ClassSelection, check_classes
from stormproof.results.weights import half_weights, require_replicates
from stormproof.results.worst import ImageErrors

_GONE = "The dataset was not found: these are stored scores, and its images could not be checked."


def score(run: Run, options: ScoreOptions, *, partial: bool, replicates: int, keep: bool = True) -> Scores:
    """The scores of a run: those stored under the same key, or computed now and, with `keep`, stored.

    Stored scores are used only while the run, its dataset and its images are unchanged; if the dataset is
    gone, they are used with a notice.
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
    if keep:
        sweep_below(run.folder / FOLDER)  # of a killed command: no other would write that file again
    stored = load_scores(run, key, options, replicates)
    if gone is not None and stored is None:
        raise gone
    if stored is not None:
        return replace(stored, notices=_doubts(run, replicates) if gone is None else (_GONE,))
    check_classes(options.classes, run.dataset.classes, run.dataset.semantic_classes)
    made = _make(run, options, complete, replicates)
    made = replace(made, notices=_doubts(run, replicates))
    if not keep:
        return made
    try:
        save_scores(run, key, made)
    except OutputError as error:  # a folder that cannot be written: its scores can still be read
        return replace(made, notices=(*made.notices, f"Not stored: {error}"))
    return made


def _doubts(run: Run, replicates: int) -> tuple[str, ...]:
    """What a reader of intervals must know: images that may not be as independent as they are taken to be."""
    doubt = frames_warning(run.dataset) if replicates and run.clips is None else None
    return (doubt,) if doubt else ()


def _make(run: Run, options: ScoreOptions, conditions: Sequence[str], replicates: int) -> Scores:
    weights, units, record = weights_of(run, replicates), len({*run.units}), run.record
    scored = {text: Scored({}) for text in conditions}
    errors: dict[str, dict[str, Floats]] = {form.name: {} for form in scored_forms()}
    per_class: dict[str, dict[str, dict[str, float]]] = {}
    classes: dict[str, None] = {}  # in order
    shown: dict[str, tuple[tuple[str, int], ...]] = {}  # by measure: each class, and how many units show it
    details: dict[str, dict[str, Any]] = {"quality": rows.changes(run, conditions)}
    judge = partial(_judge, weights=weights, units=units, object_error=record.metric == "E")
    inputs = iter_inputs(run, options.classes, conditions, options.rule)
    # The first, most often clean, runs alone: it compiles kernels, and the others use what it fixes.
    every = chain(map(judge, islice(inputs, 1)), map_in_threads(judge, inputs, threads=_threads()))
    for text, judged in every:
        scored[text] |= judged.scored
        errors[judged.form][text] = judged.errors
        classes |= dict.fromkeys(judged.classes)
        names, by_class = [plain(name) for name in judged.classes], judged.scored.per_class
        for measure, values in by_class.items():
            per_class.setdefault(measure, {})[text] = dict(zip(names, values[0].tolist(), strict=True))
        if replicates and not by_class.keys() <= shown.keys():
            counts = zip(names, _units_by_class(judged.shown, run.units), strict=True)
            shown = dict.fromkeys(by_class, tuple(counts)) | shown
        for name, told in judged.details.items():
            details.setdefault(name, {})[text] = told
    if not any(each.numbers for each in scored.values()):
        raise InvalidOption(f"{record.dataset.name} has no truth for what {record.model.name} predicts.")
    measured = [name for name in measures() if any(name in each.numbers for each in scored.values())]
    reported = next((held for held in errors.values() if held), None)
    return replace(
        Scores.before_scoring(run, run.clips),
        per_condition={
            name: {t: float(s.numbers[name][0]) if name in s.numbers else math.nan
                   for t, s in scored.items()}
            for name in measured
        },
        conditions=tuple(options.conditions or run.conditions),
        per_class=per_class,
        classes=tuple(classes),
        missing=missing_words(run, options.conditions or None),
        details=details,
        image_errors=ImageErrors(run.ids, reported) if reported else None,
        replicates=_replicates(scored, shown, measured) if replicates else None,
        options=options,
    )  # fmt: skip


class _Judged(NamedTuple):
    """What is known about one condition in one form."""

    form: str
    classes: tuple[str, ...]
    scored: Scored
    errors: Floats  # by image
    shown: Bools  # the classes that each image shows
    details: dict[str, Any]


def _judge(
    named: tuple[str, MetricInput], *, weights: Weights, units: int, object_error: bool
) -> tuple[str, _Judged]:
    text, given = named
    task = task_of(given)
    liu = object_error and isinstance(given, Objects)  # *liu*'s benchmark
    errors = given.errors.per_image if liu and isinstance(given, Objects) else task.image_errors(given)
    scored = replace(given.scored(weights), parts={})  # by class and threshold: large
    told = make_details(given, weights, units)
    return text, _Judged(task.form.name, given.scored_names, scored, errors, task.shown(given), told)


def _threads() -> int:
    """How many conditions are scored at a time: one per core, unless plugins' code would run in threads."""
    functions = [*(each.function for each in METRICS.values()), *(each.function for each in DETAILS.values())]
    return 0 if all(function.__module__.startswith("stormproof.") for function in functions) else 1


def weights_of(run: Run, replicates: int) -> Weights:
    """A row of ones for the score itself, then one for every random half; a column for each image."""
    ones = np.ones((1, len(run.readable)), np.uint8)
    if not replicates:
        return ones
    halves = half_weights(run.units, replicates=require_replicates(replicates))
    return np.concatenate([ones, halves])


def iter_inputs(
    run: Run, classes: ClassSelection, conditions: Sequence[str], rule: MatchingRule | None = None
) -> Iterator[tuple[str, MetricInput]]:
    """What metrics read, form by form and condition by condition."""
    reader = Reader(run, classes, conditions, rule or MatchingRule())
    for form in reader.forms():
        yield from form.collect(reader)


def measured_inputs(
    run: Run, classes: ClassSelection, conditions: Sequence[str], measure: str | None = None
) -> Iterator[tuple[str, MetricInput, Metric, str]]:
    """What one measure is computed from, condition by condition, with its metric and its name: the measure
    asked for, the run's, or the one that it is reported in."""
    chosen = measure or run.record.metric
    for text, given in iter_inputs(run, classes, conditions):
        wanted = chosen or task_of(given).headline
        fitting = (each for each in metrics_of(*given.kinds) if wanted in {m.name for m in each.measures})
        if (metric := next(fitting, None)) is not None:
            chosen = wanted
            yield text, given, metric, wanted


def _replicates(
    scored: Mapping[str, Scored], shown: Mapping[str, Sequence[tuple[str, int]]], names: Sequence[str]
) -> Replicates:
    drawn = {
        name: {text: drawn_under(text, each, name) for text, each in scored.items() if name in each.numbers}
        for name in names
    }
    per_class: dict[str, dict[str, dict[str, Interval]]] = {}
    for text, each in scored.items():
        for measure, values in each.per_class.items():
            optimism = each.optimism.get(measure, np.full(values.shape[1], np.nan))
            row = per_class.setdefault(measure, {}).setdefault(text, {})
            for (name, units), of_class, gap in zip(shown[measure], values.T, optimism, strict=True):
                one = interval_around(float(of_class[0]), draws(of_class, float(gap)), images=units)
                known = measure in measures()  # else a fraction that only classes have, as IoU
                row[name] = bound_interval(one, measure, "P") if known else one.of_fraction()
    return Replicates(drawn, per_class, fewest_units(scored.values()))


def fewest_units(conditions: Iterable[Scored]) -> dict[str, int]:
    """The number of units that decide each measure, under the condition with the fewest."""
    counts: dict[str, list[int]] = {}
    for scored in conditions:
        for name, count in scored.units.items():
            counts.setdefault(name, []).append(count)
    return {name: min(each) for name, each in counts.items()}


def drawn_under(text: str, scored: Scored, measure: str) -> Floats:
    """The draws of a measure under a condition; if its metric cannot tell its optimism, that is estimated."""
    known = scored.optimism.get(measure)
    optimism = math.nan if known is None else float(mean_of_known(known))
    return draws(scored.numbers[measure], optimism, clean=text == "clean")


def _units_by_class(shown: Bools, units: Sequence[str]) -> list[int]:
    """The number of images, or clips, whose truth shows each scored class: a single one shows no spread."""
    _, unit = np.unique(units, return_inverse=True)
    return [len(np.unique(unit[column])) for column in shown.T]
