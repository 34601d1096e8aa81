"""Scores as plain data: JSON, CSV, rows of a tidy table, numbers for trackers; and what a reader must know of
their images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import counted
from stormproof.core.text import as_csv as csv_text
from stormproof.core.text import indented_json, json_safe
from stormproof.results.calibrated import doubt
from stormproof.results.interaction import interactions
from stormproof.results.interval import FEW, FEWEST, interval_target
from stormproof.results.scores import Scores

COLUMNS = ("condition", "corruption", "severity", "class", "measure", "value")
_TOO_FEW_CLIPS = 10  # to trust any interval


def as_dict(scores: Scores) -> dict[str, Any]:
    """Everything, for JSON: fractions in full precision, null if there is no number."""
    record = scores.record
    content = {
        "model": scores.model, "dataset": scores.dataset, "images": scores.images,
        "seed": record.seed if record else None, "key": record.key if record else None,
        "benchmark": scores.benchmark, "tags": dict(scores.tags), "options": scores.options.as_dict(),
        "headline": scores.headline, "reference": scores.reference.model if scores.reference else None,
        "missing": list(scores.missing), "left_out": list(scores.left_out), "notices": list(scores.notices),
        "classes": list(scores.classes), "over": scores.over.name if scores.over.whole else "",
        "scores": scores.per_condition, "aggregates": dict(scores.aggregates), "per_class": scores.per_class,
        "sets": [
            {
                "name": each.name, "conditions": list(each.conditions), "of": each.of,
                "covered": list(each.covered),
                "aggregates": {
                    name: scores.aggregates[name] if each is scores.over else scores.totals(name, each)
                    for name in scores.per_condition
                },
            }
            for each in scores.sets
        ],
        **{name: {} for name in ("quality", "roc", "lost", "reliability")}, **scores.details,
        "interactions": {t: one.as_dict() for t, one in interactions(scores, scores.headline).items()},
    }  # fmt: skip
    if scores.replicates is not None:
        content["intervals"] = _interval_dict(scores)
    return content


def _interval_dict(scores: Scores) -> dict[str, Any]:
    assert scores.replicates is not None
    by_measure = {measure: scores.intervals(measure) for measure in scores.replicates.per_condition}
    conditions = set(scores.conditions)
    return {
        "target": interval_target(scores.clips), "level": 0.95,
        "images": scores.images, "clips": scores.clips, "replicates": scores.replicates.count,
        "left_out": list(scores.left_out), "warning": few_images(scores.images, scores.clips),
        "not_calibrated": {m: reason for m in by_measure if (reason := doubt(scores, m))},
        "cells": {
            m: {n: asdict(i) for n, i in row.items() if n in conditions} for m, row in by_measure.items()
        },
        "aggregates": {
            m: {n: asdict(i) for n, i in row.items() if n not in conditions} for m, row in by_measure.items()
        },
        "per_class": {
            m: {t: {n: asdict(i) for n, i in row.items()} for t, row in by_condition.items()}
            for m, by_condition in scores.replicates.per_class.items()
        },
    }  # fmt: skip


def document(content: Any) -> str:
    """Content as the text of a JSON file."""
    return indented_json(json_safe(content)) + "\n"


def write_several(every: Mapping[str, Scores], *, wants_json: bool) -> str:
    """The scores of one run, or of several by name, as JSON or CSV."""
    if wants_json:
        if len(every) == 1:
            return document(as_dict(next(iter(every.values()))))
        return document({name: as_dict(scores) for name, scores in every.items()})
    if len(every) == 1:
        return as_csv(next(iter(every.values())))
    rows = ((name, *row) for name, scores in every.items() for row in tidy(scores))
    return csv_text(("run", *COLUMNS), rows)


def as_csv(scores: Scores) -> str:
    """One line per condition and measure, then one for each class that has numbers of its own."""
    return csv_text(COLUMNS, tidy(scores))


def tidy(scores: Scores) -> Iterator[tuple[str, str | None, float | None, str | None, str, float]]:
    """Every number as a row of `COLUMNS`; the class is None for a number over all scored classes."""
    for measure, by_condition in scores.per_condition.items():
        for text, value in by_condition.items():
            condition = Condition.parse(text)
            yield text, condition.corruption, condition.severity, None, measure, value
    for measure, conditions in scores.per_class.items():
        for text, by_class in conditions.items():
            condition = Condition.parse(text)
            for name, value in by_class.items():
                yield text, condition.corruption, condition.severity, name, measure, value


def flat_numbers(scores: Scores) -> dict[str, float]:
    """Every finite number under a name, for trackers: 'AP/fog@3', 'AP/mPC'."""
    conditions = {
        f"{m}/{text}": value for m, row in scores.per_condition.items() for text, value in row.items()
    }
    totals = {
        f"{measure}/{name}": value
        for measure, by_name in scores.aggregates.items()
        for name, value in by_name.items()
        if isinstance(value, float)
    }
    return {name: value for name, value in (conditions | totals).items() if math.isfinite(value)}


def few_images(images: int | None, clips: int | None) -> str | None:
    """A warning if there are too few images for reliable intervals, or too few clips that they come from."""
    count, what = (images, "images") if clips is None else (clips, "clips")
    if count is None or count >= FEW:
        return None
    if clips is not None and clips < _TOO_FEW_CLIPS:
        rest = "1 independent observation" if clips == 1 else f"{clips} independent observations"
        return (
            f"The {images} images are frames of {counted(clips, 'clip')}, and frames of a clip are alike: "
            f"intervals rest on {rest}, too few to be trusted. Use at least {FEW} clips."
        )
    return (
        f"{count} {what} are few: intervals are wide, and below {FEWEST} they decide no requirement "
        f"(docs/confidence.md). Use at least {FEW}, better 1,000."
    )


def images_scored(scores: Scores) -> str:
    """The number of images scored, and of how many if some could not be read."""
    if not scores.left_out or scores.images is None:
        images = "an unknown number of images" if scores.images is None else counted(scores.images, "image")
        return images + (f" of {counted(scores.clips, 'clip')}" if scores.clips else "")
    unreadable = len(scores.left_out)
    return f"{scores.images} of {scores.images + unreadable} images ({unreadable} unreadable)"


def curves_of(scores: Scores, measure: str) -> dict[tuple[str, str], dict[float, float]]:
    """rP of one measure: by space and part of the image, then by α."""
    curves: dict[tuple[str, str], dict[float, float]] = {}
    for name, value in scores.aggregates_of(measure).get("rP", {}).items():
        space, part, alpha = name.split("/")
        curves.setdefault((space, part), {})[float(alpha)] = value
    return curves
