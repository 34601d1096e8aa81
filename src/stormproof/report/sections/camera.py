"""Object errors (*liu*): mAP against mCE (Fig. 8), flaws (Fig. 9), scenarios, enhancements (Tables 4, 5)."""

from __future__ import annotations

import math

from stormproof.core.errors import IncompleteGrid
from stormproof.core.table import Table
from stormproof.metrics.corruption_error import cross_scenario, enhancement_change
from stormproof.metrics.object_error import FLAWS
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import all_levels
from stormproof.results.scores import Scores

TRAINED, DETECTOR = "trained", "detector"  # tags that cross-scenario tables go by


def errors(asked: Asked) -> Section | None:
    """Everything that follows from the error of each object."""
    judged = [s for s in asked.subjects if math.isfinite(s.mean("E") or math.nan)]
    if not judged:
        return None
    figures = [f for f in (_map_against_mce(judged), _flaws(judged)) if f]
    tables = [t for t in (_ce(judged), _enhancements(judged), _scenarios(judged)) if t]
    return Section(
        "errors",
        "How objects go wrong",
        "CE is the mean error of objects, 1 − IoU with the best box, over the severities of a corruption; "
        "lower is better. Flaws: CBWO good box, wrong class; WBCO right class, bad box; WBWO both wrong; "
        "PMD object missed, others found; MD all objects of an image missed.",
        tuple(figures),
        tuple(tables),
    )


def _mean(judged: list[Scores]) -> str:
    """mCE where the runs' conditions are a benchmark or suite, else what it is a mean of."""
    names = {s.mean_name("E").replace("mean ", "mean E ") for s in judged}
    return names.pop() if len(names) == 1 else "mean E over each run's conditions"


def _map_against_mce(judged: list[Scores]) -> Figure | None:
    rows: list[Row] = [
        {"x": 100 * s.score("AP"), "y": 100 * s.mean("E"), "series": s.name}
        for s in judged
        if math.isfinite(s.score("AP"))
    ]
    return (
        Figure(
            "map-mce",
            f"Clean mAP against {_mean(judged)}",
            Kind.POINTS,
            Axis("clean mAP (%)"),
            Axis(f"{_mean(judged)} (%)"),
            rows,
            series="model",
            cite="liu, Fig. 8",
            by_run=True,
        )
        if len(rows) > 1
        else None
    )


def _flaws(judged: list[Scores]) -> Figure | None:
    rows: list[Row] = []
    for subject in judged:
        levels = all_levels(subject.corrupted)
        names = {name: [str(c) for c in held] for name, held in levels.items()}
        every = {
            "all corruptions": [text for texts in names.values() for text in texts],
            "clean": ["clean"],
            **names,
        }
        for name, texts in every.items():
            counts = {f.value: sum(subject.score(f"flaws {f.value}", text) for text in texts) for f in FLAWS}
            total = sum(counts.values())
            if math.isfinite(total) and total > 0:
                rows += [
                    {"x": subject.name, "y": 100 * n / total, "series": flaw, "pick": (name,), "order": i}
                    for i, (flaw, n) in enumerate(counts.items())
                ]
    return (
        Figure(
            "flaws",
            "Distribution of flaws",
            Kind.STACK,
            Axis("model", names=True),
            Axis("share of flawed objects (%)", percent=True),
            rows,
            series="flaw",
            pick=("Corruption",),
            cite="liu, Fig. 9",
        )
        if rows
        else None
    )


def _ce(judged: list[Scores]) -> Table:
    names = list(dict.fromkeys(name for s in judged for name in s.total("E", "CE") or {}))
    rows = [
        (
            s.name,
            100 * s.score("E"),
            *(100 * (s.total("E", "CE") or {}).get(name, math.nan) for name in names),
            100 * s.mean("E"),
        )
        for s in judged
    ]
    return Table("ce", "Corruption error (%)", ("model", "clean", *names, _mean(judged)), rows)


def _enhancements(judged: list[Scores]) -> Table | None:
    """Runs with an enhancement beside the run of the same model without."""
    lines = []
    for subject in judged:
        record = subject.record
        if record is None or not record.model.enhance:
            continue
        for plain in judged:
            other = plain.record
            if other is None or other.model.enhance or other.model.spec != record.model.spec:
                continue
            try:
                change = enhancement_change(plain.grid("E"), subject.grid("E"))
            except IncompleteGrid:
                continue
            lines += [
                (subject.name, ", ".join(record.model.enhance), name, 100 * v) for name, v in change.items()
            ]
    return (
        Table(
            "enhancements",
            "Change of CE with an enhancement, in points",
            ("model", "enhancement", "corruption", "ΔCE"),
            lines,
            note="Positive is worse. liu, Table 5.",
        )
        if lines
        else None
    )


def _scenarios(judged: list[Scores]) -> Table | None:
    """Change of mCE by the scenario a model was trained for (a tag) and the dataset it was tested on."""
    by_detector: dict[str, dict[tuple[str, str], Scores]] = {}
    for subject in judged:
        if TRAINED in subject.tags:
            detector = subject.tags.get(DETECTOR, subject.model)
            by_detector.setdefault(detector, {})[subject.tags[TRAINED], subject.dataset] = subject
    lines = []
    for detector, found in by_detector.items():
        if len(found) < 2:
            continue
        try:
            changes = cross_scenario({pair: s.grid("E") for pair, s in found.items()})
        except IncompleteGrid:
            continue
        lines += [(detector, trained, tested, 100 * v) for (trained, tested), v in changes.items()]
    return (
        Table(
            "scenarios",
            "Change of mCE across scenarios, in points",
            ("detector", "trained for", "tested on", "mCE − clean"),
            lines,
            note="liu, Table 4.",
        )
        if lines
        else None
    )
