"""What differs from paper to paper: which cells a mean covers, and the tables of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from stormproof.corruptions.presets import PRESETS
from stormproof.metrics.degradation import as_averaged
from stormproof.metrics.grid import Grid
from stormproof.results.aggregates import grid_of
from stormproof.results.store.record import RunRecord

# The aggregate that says a paper's groups are there: its table's title, and columns that may be absent.
_GROUPS = {
    "by_group_michaelis": (
        "by group of corruptions",
        {"mPC": "by_group_michaelis", "rPC": "rPC_by_group_michaelis"},
    ),
    "by_group_kamann": (
        "by category of corruptions",
        {
            "mean": "by_group_kamann",
            "relative": "rPC_by_group_kamann",
            "CD": "CD_by_category",
            "rCD": "rCD_by_category",
        },
    ),
    "CE_by_group_liu": (
        "by part of the camera",
        {"CE": "CE_by_group_liu", "ΔCE": "delta_CE_by_group_liu"},
    ),
}


def follows_kamann(record: RunRecord) -> bool:
    """Whether a run is one of *kamann*'s benchmarks, whose means leave out noise of severity 4 and 5."""
    preset = PRESETS.get(record.benchmark or "")
    return preset is not None and preset.cite == "kamann2020"


def averaged_grid(scores: Mapping[str, float], conditions: tuple[str, ...], record: RunRecord) -> Grid:
    """A measure's scores as a grid over those of the conditions that the benchmark's means cover."""
    grid = grid_of(scores, conditions)
    return as_averaged(grid) if follows_kamann(record) else grid


def group_tables(name: str, found: Mapping[str, Any], record: RunRecord) -> list[Table]:
    """The papers' groups of one measure, in percent; means of categories with their standard deviation."""
    papers = {"by_group_kamann"} if follows_kamann(record) else {*_GROUPS} - {"by_group_kamann"}
    tables = []
    for key in (key for key in _GROUPS if key in papers and key in found):
        title, columns = _GROUPS[key]
        shown = {words: found[source] for words, source in columns.items() if source in found}
        table = Table(title=f"{name}, {title} (in %)", title_justify="left")
        table.add_column("group")
        for words in shown:
            table.add_column(words, justify="right")
        for group in found[key]:
            table.add_row(group, *(_cell(values.get(group, math.nan)) for values in shown.values()))
        tables.append(table)
    return tables


def _cell(value: float | Mapping[str, float]) -> str:
    if isinstance(value, Mapping):
        return f"{100 * value['mean']:.1f} ± {100 * value['std']:.1f}"
    return "" if math.isnan(value) else f"{100 * value:.1f}"
