"""Scores as printed tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from stormproof.core.condition import SEVERITIES, Condition
from stormproof.core.files import write_text
from stormproof.metrics.aggregate import INPUTS, aggregates_of
from stormproof.metrics.measure import measures
from stormproof.metrics.sequences import curve_of
from stormproof.results import papers
from stormproof.results.aggregates import MEAN
from stormproof.results.images import save_images
from stormproof.results.score import Scores
from stormproof.results.sets import mean_words
from stormproof.results.store.seal import write_sealed

SCORES = "scores.json"
SCORES_CSV = "scores.csv"
COLUMNS = ("condition", "corruption", "severity", "class", "measure", "value")


def save(run: Path, scores: Scores) -> None:
    """Keep scores beside the predictions they were derived from."""
    write_sealed(run / SCORES, finite(scores.as_dict()))
    write_text(run / SCORES_CSV, as_csv(scores))
    if scores.images is not None:
        save_images(run, scores.images)


def as_json(scores: Scores) -> str:
    """Fractions, in full precision; null where there is no number."""
    return document(scores.as_dict())


def document(content: Any) -> str:
    """Content as a JSON file has it."""
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def several(every: Mapping[str, Scores], *, wants_json: bool) -> str:
    """The scores of one run, or of several by name, as JSON or CSV."""
    if len(every) == 1:
        (scores,) = every.values()
        return as_json(scores) if wants_json else as_csv(scores)
    if wants_json:
        return document({name: scores.as_dict() for name, scores in every.items()})
    lines = [f"run,{line}" if k == 0 else f"{_quoted(name)},{line}"
             for j, (name, scores) in enumerate(every.items())
             for k, line in enumerate(as_csv(scores).splitlines()) if k or not j]  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def as_csv(scores: Scores) -> str:
    """One line per condition and measure, then one for each class that has numbers of its own."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for *identity, value in tidy(scores):
        writer.writerow((*identity, _number(value)))
    return out.getvalue()


def tidy(scores: Scores) -> Iterator[tuple[str, str | None, float | None, str | None, str, float]]:
    """Every number as a row of `COLUMNS`; no class is all that were scored."""
    for measure, by_condition in scores.by_measure.items():
        for text, value in by_condition.items():
            condition = Condition.parse(text)
            yield text, condition.corruption, condition.severity, None, measure, value
    for measure, conditions in scores.per_class.items():
        for text, by_class in conditions.items():
            condition = Condition.parse(text)
            for name, value in by_class.items():
                yield text, condition.corruption, condition.severity, name, measure, value


def summary_table(scores: Scores) -> Table:
    """P, mPC and rPC of every measure over the first set of conditions; mCE where lower is better; CD and rCD
    beside a reference. Conditions that are no benchmark or suite have a mean instead."""
    columns = summary_columns(scores)
    record = scores.record
    beside = f", against {scores.reference}" if scores.reference else ""
    over = f", over {scores.sets[0][0].words}" if scores.sets and scores.sets[0][0].conditions else ""
    title = f"{record.model.name} on {record.dataset.name}, {record.images} images{over}{beside} (in %)"
    table = Table(title=Text(title), title_justify="left")
    table.add_column("measure", overflow="fold")
    for _, words in columns:
        table.add_column(words, justify="right")
    known = measures()
    for name, found in scores.aggregates.items():
        if known[name].fraction:
            cells = [percent(found.get(key, math.nan)) for key, _ in columns]
            table.add_row(name, *cells, style="bold" if name == scores.headline else "")
    return table


def summary_columns(scores: Scores) -> list[tuple[str, str]]:
    """The aggregates that any measure has, with their headings."""
    inputs = [given for given in INPUTS if "reference" not in given or scores.reference is not None]
    declared = [(found.name, found.column) for found in aggregates_of(*inputs) if found.column]
    count = len(scores.sets[0][0].conditions) if scores.sets else 0
    declared.append((MEAN, mean_words(count)))
    held = {key for found in scores.aggregates.values() for key in found}
    return [(name, column) for name, column in declared if name in held]


def set_lines(scores: Scores) -> list[str]:
    """The headline measure over each set of conditions: one line each, where there are several."""
    lines = []
    for each, totals in scores.sets if len(scores.sets) > 1 else ():
        found = totals.get(scores.headline, {})
        shown = {key: found[key] for key in ("P", "mPC", "rPC", "mCE", MEAN) if key in found}
        numbers = ", ".join(
            f"{key} {percent(value)}" for key, value in shown.items() if not math.isnan(value)
        )
        lines.append(
            f"{scores.headline} over {each.words if each.name else f'{each.words} beside'}: {numbers}"
        )
    return lines


def class_line(scores: Scores) -> str:
    """Which classes the means are over, where that is not all of the dataset's."""
    dataset = scores.record.dataset
    sides = {"AP": dataset.classes, "mIoU": dataset.semantic_classes}
    known = {name for measure, side in sides.items() if measure in scores.by_measure for name in side}
    if not scores.classes or known <= {*scores.classes}:
        return ""
    some = ", ".join(scores.classes[:5]) + (" …" if len(scores.classes) > 5 else "")
    return f"Means are over {len(scores.classes)} of the dataset's {len(known)} classes: {some}."


def grid_table(scores: Scores) -> Table:
    """The headline measure by corruption and severity, with the mean of each row where all are complete."""
    values = scores.by_measure[scores.headline]
    table = Table(title=f"{scores.headline} by corruption and severity (in %)", title_justify="left")
    table.add_column("corruption", overflow="fold")
    for level in SEVERITIES:
        table.add_column(str(level), justify="right")
    table.add_column("mean", justify="right")
    means = _means(scores)
    graded: dict[str, dict[int, float]] = {}
    for text, value in values.items():
        condition = Condition.parse(text)
        if curve_of(condition) is not None and curves_of(scores, scores.headline):
            continue  # they are in a table of their own
        if condition.rung is None:
            # As text: to rich, the brackets of a condition would be a style, and vanish.
            table.add_row(Text(text), *[""] * len(SEVERITIES), percent(value))
        else:
            graded.setdefault(condition.series, {})[condition.rung] = value
    for name, levels in graded.items():
        cells = [percent(levels[level]) if level in levels else "–" for level in SEVERITIES]
        table.add_row(Text(name), *cells, percent(means.get(name, math.nan)))
    return table


def _means(scores: Scores) -> dict[str, float]:
    """The headline's mean of each corruption by the benchmark's rule; none of an incomplete grid."""
    means: dict[str, float] = {}
    for totals in [found for _, found in reversed(scores.sets)] or [scores.aggregates]:
        found = totals.get(scores.headline, {})
        means |= found.get("by_corruption") or found.get("CE") or {}
    return means


def group_tables(scores: Scores) -> list[Table]:
    """The headline measure by the groups of the run's paper."""
    return papers.group_tables(scores.headline, scores.aggregates.get(scores.headline, {}), scores.record)


def curves_of(scores: Scores, measure: str) -> dict[tuple[str, str], dict[float, float]]:
    """rP of one measure: by space and part of the image, then by α."""
    found: dict[tuple[str, str], dict[float, float]] = {}
    for name, value in scores.aggregates.get(measure, {}).get("rP", {}).items():
        space, part, alpha = name.split("/")
        found.setdefault((space, part), {})[float(alpha)] = value
    return found


def curve_table(scores: Scores) -> Table:
    """The headline measure along α, relative to clean, by space and part of the image."""
    curves = curves_of(scores, scores.headline)
    table = Table(title=f"r{scores.headline} by α (in % of clean)", title_justify="left")
    table.add_column("α", justify="right")
    for space, part in curves:
        table.add_column(f"{space}\n{part}", justify="right")
    for alpha in sorted({alpha for curve in curves.values() for alpha in curve}):
        table.add_row(f"{alpha:g}", *(percent(curve.get(alpha, math.nan)) for curve in curves.values()))
    return table


def flat_numbers(scores: Scores) -> dict[str, float]:
    """Every finite number under a name, for trackers: 'AP/fog@3', 'AP/mPC'."""
    cells = {f"{m}/{text}": value for m, row in scores.by_measure.items() for text, value in row.items()}
    totals = {
        f"{measure}/{name}": value
        for measure, found in scores.aggregates.items()
        for name, value in found.items()
        if isinstance(value, float)
    }
    return {name: value for name, value in (cells | totals).items() if math.isfinite(value)}


def percent(value: float | None) -> str:
    """A fraction as tables show it; nothing where there is none."""
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
