"""Intervals and estimates as tables and JSON."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from stormproof.metrics.measure import measures
from stormproof.results.estimate import Estimate
from stormproof.results.interval import NEW_IMAGES, Interval
from stormproof.results.intervals import Intervals
from stormproof.results.score import Scores
from stormproof.results.sets import mean_name
from stormproof.results.store.record import RunRecord
from stormproof.results.store.seal import read_sealed, write_sealed
from stormproof.results.tables import document, finite, summary_columns

INTERVALS = "intervals.json"


def save(run: Path, found: Intervals) -> None:
    """Keep intervals beside the scores they are of."""
    write_sealed(run / INTERVALS, finite(found.as_dict()))


def read_intervals(run: Path) -> dict[str, Any] | None:
    """What `save` kept, as JSON has it; None if there is nothing."""
    path = run / INTERVALS
    again = shlex.join(["stormproof", "score", str(run), "--interval"])
    return read_sealed(path, again) if path.exists() else None


def as_json(found: Intervals) -> str:
    """Fractions, in full precision; null where there is no number."""
    return document(found.as_dict())


def interval_table(scores: Scores, found: Intervals) -> Table:
    """P, mPC, rPC and what else a summary has, each ± half its 95 % interval."""
    record = scores.record
    shown = {name for row in found.aggregates.values() for name in row}
    columns = [pair for pair in summary_columns(scores) if pair[0] in shown]
    out = f", {len(found.left_out)} unreadable left out" if found.left_out else ""
    what = f"{record.model.name} on {record.dataset.name}, {found.images} images{out}"
    title = f"{what}: 95 % intervals for {NEW_IMAGES} (in %)"
    table = Table(title=Text(title), title_justify="left")
    table.add_column("measure", overflow="fold")
    for _, words in columns:
        table.add_column(words, justify="right")
    table.add_column("bias of P", justify="right")
    for name, row in found.aggregates.items():
        if row and measures()[name].fraction:
            cells = [plus_minus(row[key]) if key in row else "" for key, _ in columns]
            style = "bold" if name == scores.headline else ""
            table.add_row(name, *cells, _signed(row.get("P")), style=style)
    return table


def estimate_table(record: RunRecord, found: Estimate) -> Table:
    """An estimate from part of a grid, marked as one."""
    part = f"{100 * found.inferences:.1f} % of the inferences, {found.shares:g} images a condition"
    title = f"ESTIMATE of {record.model.name} on {record.dataset.name} from {part} (in %)"
    table = Table(title=Text(title), title_justify="left")
    for column in ("", "estimate", "95 % of the full grid's"):
        table.add_column(column)
    table.add_row("P", f"{100 * found.clean:.2f}", "in full")
    mean = mean_name(record.conditions, record.benchmark)
    relative = "rPC" if mean == "mPC" else f"{mean}, relative to P"
    for name, interval in ((mean, found.mpc), (relative, found.rpc)):
        table.add_row(name, f"{100 * interval.estimate:.2f}", _span(interval), style="bold")
    for name, interval in found.by_corruption.items():
        table.add_row(Text(name), f"{100 * interval.estimate:.1f}", _span(interval))
    return table


def plus_minus(interval: Interval) -> str:
    """
    >>> plus_minus(Interval(0.302, 0.29, 0.314, 0.006))
    '30.2 ± 1.2'
    """
    if math.isnan(interval.estimate):
        return ""
    if math.isnan(interval.se):
        return f"{100 * interval.estimate:.1f} ± ?"
    return f"{100 * interval.estimate:.1f} ± {100 * interval.half_width:.1f}"


def _span(interval: Interval) -> str:
    return f"{100 * interval.low:.2f} … {100 * interval.high:.2f}"


def _signed(interval: Interval | None) -> Any:
    return "" if interval is None or math.isnan(interval.bias) else f"{100 * interval.bias:+.2f}"
