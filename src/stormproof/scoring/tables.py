"""Scores as printed tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table
from rich.text import Text

from stormproof.condition import SEVERITIES, Condition
from stormproof.files import whole_file
from stormproof.metrics.measure import measures
from stormproof.robustness.aggregate import INPUTS, aggregates_of
from stormproof.scoring.score import Scores

SCORES = "scores.json"
SCORES_CSV = "scores.csv"


def save(run: Path, scores: Scores) -> None:
    """Keep scores beside the predictions they were derived from."""
    for name, text in ((SCORES, as_json(scores)), (SCORES_CSV, as_csv(scores))):
        with whole_file(run / name) as file:
            file.write(text.encode())


def as_json(scores: Scores) -> str:
    """Fractions, in full precision; null where there is no number."""
    return json.dumps(_finite(scores.as_dict()), indent=1, ensure_ascii=False) + "\n"


def as_csv(scores: Scores) -> str:
    """One line per measure and condition."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("measure", "condition", "corruption", "severity", "value"))
    for measure, by_condition in scores.by_measure.items():
        for text, value in by_condition.items():
            condition = Condition.parse(text)
            writer.writerow((measure, text, condition.corruption, condition.severity, _number(value)))
    return out.getvalue()


def summary_table(scores: Scores) -> Table:
    """P, mPC and rPC of every measure; mCE where lower is better; CD and rCD beside a reference."""
    inputs = [given for given in INPUTS if given != "reference" or scores.reference is not None]
    columns = [(found.name, found.column) for found in aggregates_of(*inputs) if found.column]
    record = scores.record
    beside = f", against {scores.reference}" if scores.reference else ""
    title = f"{record.model.name} on {record.dataset.name}, {record.images} images{beside} (in %)"
    table = Table(title=Text(title), title_justify="left")
    table.add_column("measure", overflow="fold")
    for _, words in columns:
        table.add_column(words, justify="right")
    known = measures()
    for name, found in scores.aggregates.items():
        if known[name].fraction:
            cells = [_percent(found.get(key, math.nan)) for key, _ in columns]
            table.add_row(name, *cells, style="bold" if name == scores.headline else "")
    return table


def grid_table(scores: Scores) -> Table:
    """The headline measure by corruption and severity, with the mean of each row where all are complete."""
    values = scores.by_measure[scores.headline]
    table = Table(title=f"{scores.headline} by corruption and severity (in %)", title_justify="left")
    table.add_column("corruption", overflow="fold")
    for level in SEVERITIES:
        table.add_column(str(level), justify="right")
    table.add_column("mean", justify="right")
    found = scores.aggregates.get(scores.headline, {})
    complete = "by_corruption" in found or "CE" in found
    graded: dict[str, dict[int, float]] = {}
    for text, value in values.items():
        condition = Condition.parse(text)
        if condition.severity is None:
            # As text: to rich, the brackets of a condition would be a style, and vanish.
            table.add_row(Text(text), *[""] * len(SEVERITIES), _percent(value))
        else:
            graded.setdefault(condition.series, {})[condition.severity] = value
    for name, levels in graded.items():
        cells = [_percent(levels[level]) if level in levels else "–" for level in SEVERITIES]
        table.add_row(Text(name), *cells, _percent(fmean(levels.values()) if complete else math.nan))
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


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.1f}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
