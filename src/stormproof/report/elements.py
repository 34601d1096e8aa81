"""The elements of a page. Plain data: a figure says what it shows, never how it is drawn.

Rows have a fixed set of keys, so that names from users are only ever values:

    x, y          the position of a mark
    v, shade      the value of a heat map's cell, and the value that its colour shows if that differs
    x2, y2        where an arrow ends
    low, high     an error bar
    series        which colour; `panel` which of several small plots; `dash` which dash of a line
    pick          what the reader chooses among (one value per entry of `Figure.pick`)
    label         text beside a mark
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stormproof.core.table import Table

VERSION = 1  # of report.json
Datum = dict[str, Any]


class Kind(StrEnum):
    """How the rows of a figure are drawn."""

    LINES = "lines"
    POINTS = "points"
    BARS = "bars"
    STACK = "stack"
    HEAT = "heat"
    RADAR = "radar"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title with the unit, and how its values are shown."""

    title: str
    names: bool = False  # its values are names, in the order of the rows; otherwise numbers
    log: bool = False
    zero: bool = False  # it begins at zero
    whole: bool = False  # ticks at whole numbers only
    end: float | None = None  # it begins at 0 and ends here, whatever the rows hold


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One figure. `by_run` says that its series are runs, so that it can be averaged by a tag."""

    id: str
    title: str
    kind: Kind
    x: Axis
    y: Axis
    rows: Sequence[Datum]
    series: str = ""
    panel: str = ""
    dash: str = ""  # what dashes tell apart, where colours tell apart the series
    pick: tuple[str, ...] = ()
    value: str = ""  # a heat map's colour bar, which begins at 0
    top: float | None = None  # and ends here; larger values have its colour
    diverging: bool = False  # it begins at minus `top` instead, and 0 is in the middle
    note: str = ""
    cite: str = ""
    by_run: bool = False
    trend: bool = False  # a straight line fitted to all points
    stepped: bool = False  # step lines, and rows with `mark` as separate dots
    grouped: Mapping[str, Sequence[Datum]] = field(default_factory=dict)  # by tag


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A heading, what to read there, and the figures and tables below it."""

    id: str
    title: str
    text: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    short: str = ""  # the title in the page's menu
    paper: bool = False  # a paper's own figures, which the page shows last and folded
    finding: str | None = None  # what its numbers say; a section that has one, or "", is folded below it


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Everything a page says, without its images."""

    title: str
    sentences: tuple[str, ...]  # the answer, then every run in a sentence
    summary: Table
    sections: tuple[Section, ...]
    first: Figure | None = None  # the figure of the first screen,
    breaking: Figure | None = None  # and beside it where runs break
    provenance: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()  # runs that are not ranked with the others, and why
    tags: tuple[str, ...] = ()
    weak_points: str = ""  # of the best of several runs
    decision: Table | None = None  # a line per run: the first thing to read

    def figures(self) -> list[Figure]:
        in_sections = [figure for section in self.sections for figure in section.figures]
        return [figure for figure in (self.first, self.breaking, *in_sections) if figure is not None]

    def tables(self) -> list[Table]:
        return [self.summary, *(table for section in self.sections for table in section.tables)]
