"""Scores of each class: who disappears first?"""

from __future__ import annotations

import math
from statistics import fmean

from stormproof.core.table import Table
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import all_levels, of_a_class, share
from stormproof.results.scores import Scores

_MOST = 30  # classes in the figure; the table has all


def by_class(asked: Asked) -> Section | None:
    """Each class under each corruption, relative to its own clean score."""
    kind = of_a_class(asked.measure)
    having = [s for s in asked.subjects if s.per_class.get(kind, {}).get("clean")]
    if not having:
        return None
    rows: list[Row] = []
    lines = []
    for subject in having:
        table = _by_class(subject, kind)
        for name in _hardest(table)[:_MOST]:
            rows += [
                {"pick": (subject.name,), "x": corruption, "y": name, "v": value}
                for corruption, value in table[name].items()
                if corruption != "clean"
            ]
        for name, row in table.items():
            under = [v for corruption, v in row.items() if corruption != "clean"]
            lines.append(
                (
                    subject.name,
                    name,
                    100 * subject.per_class[kind]["clean"][name],
                    fmean(under) if under else math.nan,
                )
            )
    figure = Figure(
        "classes",
        f"What is left of each class's {kind}, mean over severities",
        Kind.HEAT,
        Axis("corruption", names=True),
        Axis("class", names=True),
        rows,
        pick=("Model",),
        value="left of clean (%)",
        top=100.0,
        note=f"The {_MOST} classes that lose most, worst first; the table below has all."
        if any(len(_by_class(s, kind)) > _MOST for s in having)
        else "The class that loses most comes first.",
    )
    columns = ("model", "class", f"clean {kind} (%)", "left under corruption (% of clean)")
    note = "Few objects make a noisy score; a class with none has no line."
    return Section(
        "classes",
        "Which classes disappear first",
        f"{kind} of a class under corruption, in per cent of the same class on clean images.",
        (figure,) if rows else (),
        (Table("classes", "Classes", columns, lines, note=note),),
    )


def _by_class(subject: Scores, kind: str) -> dict[str, dict[str, float]]:
    """Class → corruption → share of the clean score; classes that score 0 when clean have none."""
    cells = subject.per_class[kind]
    found: dict[str, dict[str, float]] = {}
    for name, clean in cells["clean"].items():
        if not math.isfinite(clean) or clean <= 0:
            continue
        found[name] = {"clean": 100.0}
        for corruption, levels in all_levels(subject.corrupted).items():
            values = [cells.get(str(c), {}).get(name, math.nan) for c in levels]
            if all(map(math.isfinite, values)):
                found[name][corruption] = share(fmean(values), clean)
    return found


def _hardest(table: dict[str, dict[str, float]]) -> list[str]:
    return sorted(table, key=lambda name: (fmean(table[name].values()), name))
