"""The grid at a glance, and whether gains on clean images carry over."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stormproof.core.condition import Condition
from stormproof.core.table import Cell, Table
from stormproof.metrics.correlation import correlate, correlation_table, gains
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import all_conditions, graded, present, scaled, share, ungraded, unit
from stormproof.results.scores import Scores, mean_of

Shown = Sequence[tuple[Scores, str]]  # runs, each with the measure it is shown by
ABSOLUTE, RELATIVELY = "absolute", "relative to clean"


def grid(asked: Asked) -> Section | None:
    """Every condition of every run: corruption × severity, and conditions given by parameters."""
    every = asked.every()
    conditions = all_conditions(s for s, _ in every)
    names = graded(conditions)
    what = asked.measure if not asked.others else "Score"
    value = unit(asked.measure) if not asked.others else "score (%)"
    label = {s.name: s.name if not asked.others else f"{s.name} ({measure})" for s, measure in every}
    figures, tables = [], []
    if names:
        rows = [row for s, measure in every for row in _cells(s, measure, names, label[s.name])]
        figures.append(
            Figure(
                "grid",
                f"{what} by corruption and severity",
                Kind.HEAT,
                Axis("severity", names=True),
                Axis("corruption", names=True),
                rows,
                pick=("Model", "Scale"),
                value=value,
                note="Relative: 100 is the score on clean images.",
            )
        )
    loose = ungraded(conditions)
    if loose:
        rows = [
            {"pick": (scale,), "x": label[s.name], "y": text, "v": number}
            for scale in (ABSOLUTE, RELATIVELY)
            for text in ("clean", *loose)
            for s, measure in every
            if math.isfinite(number := _scaled(s, measure, text, scale))
        ]
        figures.append(
            Figure(
                "conditions",
                f"{what} by condition",
                Kind.HEAT,
                Axis("model", names=True),
                Axis("condition", names=True),
                rows,
                pick=("Scale",),
                value=value,
                cite="pezzementi, Table IV",
            )
        )
    tables += [*_sets(every), _table(every, what, [str(c) for c in conditions])]
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


def _cells(subject: Scores, measure: str, names: dict[str, list[Condition]], label: str) -> list[Row]:
    return [
        {"pick": (label, scale), "x": f"{condition.severity}", "y": name, "v": value}
        for scale in (ABSOLUTE, RELATIVELY)
        for name, levels in names.items()
        for condition in levels
        if math.isfinite(value := _scaled(subject, measure, str(condition), scale))
    ]


def _scaled(subject: Scores, measure: str, condition: str, scale: str) -> float:
    value = subject.score(measure, condition)
    return scaled(measure, value) if scale == ABSOLUTE else share(value, subject.score(measure))


def _table(every: Shown, what: str, conditions: list[str]) -> Table:
    columns = ("condition", *(f"{s.name}, {unit(measure)}" for s, measure in every))
    rows: list[list[Cell]] = [
        [text, *(scaled(measure, s.score(measure, text)) for s, measure in every)]
        for text in ("clean", *conditions)
    ]
    return Table("cells", f"{what} of every condition", columns, rows)


def _sets(every: Shown) -> list[Table]:
    """The mean of each benchmark or suite, where a run holds several sets of conditions."""
    if not any(len(s.sets) > 1 for s, _ in every):
        return []
    rows = [
        (s.name, each.words, m, scaled(m, mean), 100 * mean / s.score(m) if s.score(m) else None)
        for s, m in every
        for each in s.sets
        if isinstance(mean := mean_of(s.totals(m, each)), float)
    ]
    note = "The mean is mPC (of errors: mCE) where the set is a whole benchmark or suite."
    columns = ("model", "set of conditions", "measure", "mean (%)", "% of the clean score")
    return [Table("sets", "Each set of conditions", columns, rows, note=note)] if rows else []


def clean_gains(asked: Asked) -> Section | None:
    """Clean against corrupted scores over models, and which measures go together."""
    whole = [
        s
        for s in asked.subjects
        if isinstance(s.mean(asked.measure), float) and math.isfinite(s.score(asked.measure))
    ]
    m = asked.measure
    if len(whole) < 3 or len({frozenset(s.over.covered) for s in whole}) > 1 or not measures()[m].higher:
        return None
    name = whole[0].mean_name(m)
    clean = {s.name: s.score(m) for s in whole}
    under = {s.name: float(s.mean(m)) for s in whole}
    found = correlate(clean, under)
    rows: list[Row] = [
        {"x": scaled(m, clean[s.name]), "y": scaled(m, under[s.name]), "series": s.name} for s in whole
    ]
    figure = Figure(
        "carry-over",
        f"Mean {m} under corruption against clean {m}",
        Kind.POINTS,
        Axis(f"P: clean {unit(m)}"),
        Axis(f"{name}: {unit(m)} under corruption"),
        rows,
        series="model",
        by_run=True,
        note=f"Pearson {found.pearson:.2f} (p {found.pearson_p:.2g}), Spearman {found.spearman:.2f} "
        f"(p {found.spearman_p:.2g}) over {found.count} models.",
        cite="michaelis, section 4.2",
    )
    tables = [t for t in (_gains(asked, whole, name), _measures(whole)) if t]
    return Section(
        "gains",
        "Do gains on clean images carry over?",
        "Models on a line through the reference gain as much under corruption as on clean images.",
        (figure,),
        tuple(tables),
    )


def _gains(asked: Asked, whole: list[Scores], name: str) -> Table | None:
    grids = {s.name: s.grid(asked.measure) for s in whole if s.complete(asked.measure)}
    if asked.reference.name not in grids or len(grids) < 2:
        return None
    m = asked.measure
    rows = [
        (model, scaled(m, g.delta_p), scaled(m, g.delta_mpc))
        for model, g in gains(grids, asked.reference.name).items()
    ]
    return Table(
        "gains", f"Gains over {asked.reference.name}, in points of {m}", ("model", "ΔP", f"Δ {name}"), rows
    )


def _measures(whole: list[Scores]) -> Table | None:
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
