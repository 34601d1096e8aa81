"""The grid at a glance, and whether gains on clean images carry over."""

from __future__ import annotations

import math

from stormproof.condition import Condition
from stormproof.report.elements import Axis, Figure, Kind, Row, Section, Table
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import all_conditions, graded, present, scaled, share, ungraded, unit
from stormproof.report.subject import Subject
from stormproof.report.text import Cell
from stormproof.robustness.correlation import correlate, correlation_table, gains

ABSOLUTE, RELATIVELY = "absolute", "relative to clean"


def grid(asked: Asked) -> Section | None:
    """Every condition of every run: corruption × severity, and conditions given by parameters."""
    conditions = all_conditions(asked.subjects)
    names = graded(conditions)
    figures, tables = [], []
    if names:
        rows = [row for subject in asked.subjects for row in _cells(subject, asked.measure, names)]
        figures.append(
            Figure(
                "grid",
                f"{asked.measure} by corruption and severity",
                Kind.HEAT,
                Axis("severity", names=True),
                Axis("corruption", names=True),
                rows,
                pick=("Model", "Scale"),
                value=unit(asked.measure),
                note="Relative: 100 is the score on clean images.",
            )
        )
    loose = ungraded(conditions)
    if loose:
        rows = [
            {"pick": (scale,), "x": s.name, "y": text, "v": value}
            for scale in (ABSOLUTE, RELATIVELY)
            for text in ("clean", *loose)
            for s in asked.subjects
            if math.isfinite(value := _scaled(s, asked.measure, text, scale))
        ]
        figures.append(
            Figure(
                "conditions",
                f"{asked.measure} by condition",
                Kind.HEAT,
                Axis("model", names=True),
                Axis("condition", names=True),
                rows,
                pick=("Scale",),
                value=unit(asked.measure),
                cite="pezzementi, Table IV",
            )
        )
    tables.append(_table(asked, [str(c) for c in conditions]))
    return (
        Section(
            "grid",
            "Every condition",
            "One cell is one corruption at one severity, over all images of the run.",
            tuple(figures),
            tuple(tables),
        )
        if conditions
        else None
    )


def _cells(subject: Subject, measure: str, names: dict[str, list[Condition]]) -> list[Row]:
    return [
        {"pick": (subject.name, scale), "x": f"{condition.severity}", "y": name, "v": value}
        for scale in (ABSOLUTE, RELATIVELY)
        for name, levels in names.items()
        for condition in levels
        if math.isfinite(value := _scaled(subject, measure, str(condition), scale))
    ]


def _scaled(subject: Subject, measure: str, condition: str, scale: str) -> float:
    value = subject.score(measure, condition)
    return scaled(measure, value) if scale == ABSOLUTE else share(value, subject.score(measure))


def _table(asked: Asked, conditions: list[str]) -> Table:
    columns = ("condition", *(f"{s.name}, {unit(asked.measure)}" for s in asked.subjects))
    rows: list[list[Cell]] = [
        [text, *(scaled(asked.measure, s.score(asked.measure, text)) for s in asked.subjects)]
        for text in ("clean", *conditions)
    ]
    return Table("cells", f"{asked.measure} of every condition", columns, rows)


def clean_gains(asked: Asked) -> Section | None:
    """Clean against corrupted scores over models, and which measures go together."""
    whole = [
        s
        for s in asked.subjects
        if s.total(asked.measure, "mPC") is not None and math.isfinite(s.score(asked.measure))
    ]
    if len(whole) < 3:
        return None
    m = asked.measure
    clean = {s.name: s.score(m) for s in whole}
    under = {s.name: float(s.total(m, "mPC")) for s in whole}
    found = correlate(clean, under)
    rows: list[Row] = [
        {"x": scaled(m, clean[s.name]), "y": scaled(m, under[s.name]), "series": s.name} for s in whole
    ]
    figure = Figure(
        "carry-over",
        f"Mean {m} under corruption against clean {m}",
        Kind.POINTS,
        Axis(f"P: clean {unit(m)}"),
        Axis(f"mPC: {unit(m)} under corruption"),
        rows,
        series="model",
        by_run=True,
        note=f"Pearson {found.pearson:.2f} (p {found.pearson_p:.2g}), Spearman {found.spearman:.2f} "
        f"(p {found.spearman_p:.2g}) over {found.count} models.",
        cite="michaelis, section 4.2",
    )
    tables = [t for t in (_gains(asked, whole), _measures(whole)) if t]
    return Section(
        "gains",
        "Do gains on clean images carry over?",
        "Models on a line through the reference gain as much under corruption as on clean images.",
        (figure,),
        tuple(tables),
    )


def _gains(asked: Asked, whole: list[Subject]) -> Table | None:
    grids = {s.name: s.grid(asked.measure) for s in whole if s.complete(asked.measure)}
    if asked.reference.name not in grids or len(grids) < 2:
        return None
    m = asked.measure
    rows = [
        (name, scaled(m, g.delta_p), scaled(m, g.delta_mpc))
        for name, g in gains(grids, asked.reference.name).items()
    ]
    return Table(
        "gains", f"Gains over {asked.reference.name}, in points of {m}", ("model", "ΔP", "ΔmPC"), rows
    )


def _measures(whole: list[Subject]) -> Table | None:
    """How the models' mPC, rPC and mCE of different measures go together."""
    columns: dict[str, dict[str, float]] = {}
    for measure in dict.fromkeys(name for s in whole for name in s.aggregates):
        for number in ("mPC", "rPC", "mCE"):
            column = {s.name: s.total(measure, number) for s in whole}
            if all(isinstance(v, float) and math.isfinite(v) for v in column.values()):
                columns[f"{number} of {measure}"] = column
    first = next((name for name in columns if name.startswith("mPC")), None)
    if first is None:
        return None
    rows = [
        (a, b, found.pearson, found.spearman, found.count)
        for (a, b), found in correlation_table(columns).items()
        if a == first and present({"x": found.pearson})
    ]
    return (
        Table(
            "measures",
            "Correlation of measures over models",
            ("measure", "with", "Pearson", "Spearman", "models"),
            rows,
            digits=2,
        )
        if rows
        else None
    )
