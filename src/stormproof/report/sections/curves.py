"""Scores along severities: all, groups and each alone (*michaelis* Fig. 5, 7 to 10; *kamann* Fig. 17)."""

from __future__ import annotations

from stormproof.core.errors import IncompleteGrid
from stormproof.corruptions.groups import KAMANN, MICHAELIS, Groups
from stormproof.metrics.degradation import as_averaged
from stormproof.metrics.grid import Grid
from stormproof.metrics.performance import mpc
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import SEVERITY, all_conditions, graded, present, scaled, unit
from stormproof.results.scores import Scores

ALL = "all corruptions"


def by_severity(asked: Asked) -> Section | None:
    """The curves, where any corruption has several severities."""
    names = graded(all_conditions(asked.subjects))
    if not any(len(levels) > 1 for levels in names.values()):  # a line through two points would be a guess
        return None
    y = Axis(unit(asked.measure), zero=True)
    figures = []
    for paper, groups, cite in (
        ("michaelis", MICHAELIS, "michaelis, Fig. 5"),
        ("kamann", KAMANN, "kamann, Fig. 17"),
    ):
        rows = [row for s in asked.subjects for row in _groups(s, asked.measure, groups, paper == "kamann")]
        if any(row["panel"] != ALL for row in rows) or (rows and paper == "michaelis"):
            figures.append(
                Figure(
                    f"groups-{paper}",
                    f"{asked.measure} by severity, in {paper}'s groups",
                    Kind.LINES,
                    SEVERITY,
                    y,
                    rows,
                    series="model",
                    panel="group",
                    cite=cite,
                    by_run=True,
                    note="The mean over the corruptions of a group that the runs hold whole.",
                )
            )
    rows = [
        row
        for name, levels in names.items()
        for s in asked.subjects
        for row in _curve(s, asked.measure, name, [(float(c.severity or 0), str(c)) for c in levels])
    ]
    figures.append(
        Figure(
            "corruptions",
            f"{asked.measure} by severity, each corruption",
            Kind.LINES,
            SEVERITY,
            y,
            rows,
            series="model",
            panel="corruption",
            cite="michaelis, Fig. 7 to 10",
            by_run=True,
        )
    )
    return Section(
        "curves",
        "How it falls with severity",
        "Every curve begins at severity 0, the clean score.",
        tuple(figures),
    )


def _curve(subject: Scores, measure: str, panel: str, levels: list[tuple[float, str]]) -> list[Row]:
    points = [(0.0, "clean"), *levels]
    rows: list[Row] = [
        {"x": x, "y": scaled(measure, subject.score(measure, text)), "series": subject.name, "panel": panel}
        for x, text in points
    ]
    return [row for row in rows if present(row)]


def _groups(subject: Scores, measure: str, groups: Groups, averaged: bool) -> list[Row]:
    """Group means at each severity, of groups that the run holds whole."""
    if not subject.complete(measure):
        return []
    grid = as_averaged(subject.grid(measure)) if averaged else subject.grid(measure)
    panels: dict[str, tuple[str, ...]] = {ALL: grid.corruptions}
    panels |= {name: members for name, members in groups.items() if {*members} <= {*grid.corruptions}}
    rows: list[Row] = []
    for panel, members in panels.items():
        rows.append({"x": 0.0, "y": scaled(measure, grid.clean), "series": subject.name, "panel": panel})
        for severity in grid.severities:
            value = _mean(grid.over(members).at_severity(severity))
            if value is not None:
                rows.append(
                    {
                        "x": float(severity),
                        "y": scaled(measure, value),
                        "series": subject.name,
                        "panel": panel,
                    }
                )
    return rows if len(rows) > 1 else []


def _mean(grid: Grid) -> float | None:
    try:
        return float(mpc(grid))
    except IncompleteGrid:
        return None
