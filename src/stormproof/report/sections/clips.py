"""Are detections steady: flicker, fragments and jitter of objects over the frames of clips."""

from __future__ import annotations

import math

from stormproof.core.table import Cell, Table
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Scope, scaled, unit
from stormproof.results.scores import Scores

MEASURES = ("flicker", "fragments", "jitter", "centre error", "shape error", "found")
_TEXT = (
    "Flicker is how often an object that is there in two consecutive frames is found in one and missed in "
    "the other. Fragments are interruptions of a found object, per track. Jitter is how far a box shifts "
    "against its object from one frame to the next, in sides of the box. Centre and shape error are the "
    "deviations of a track's boxes (Zhang & Wang 2016). A model that finds nothing does not flicker: read "
    "flicker beside the share of objects found. Thresholds are those that are best on the clean frames; "
    "intervals are for new clips."
)


def stability(scope: Scope) -> Section | None:
    """How steady detections are under every condition."""
    runs = [run for run in scope.runs if "flicker" in run.cells]
    if not runs:
        return None
    columns = ("run", "condition", *(unit(name) for name in MEASURES))
    rows = [row for run in runs for row in _rows(run)]
    table = Table("clips", "Stability over clips", columns, rows, digits=2)
    return Section("clips", "Are detections steady?", _TEXT, (_flicker(runs),), (table,), short="Clips")


def _rows(run: Scores) -> list[tuple[Cell, ...]]:
    return [
        (run.name, text, *(scaled(name, run.cells[name].get(text, math.nan)) for name in MEASURES))
        for text in run.cells["flicker"]
    ]


def _flicker(runs: list[Scores]) -> Figure:
    rows: list[Row] = []
    for run in runs:
        sure = run.intervals("flicker") if run.replicates is not None else {}
        for text, value in run.cells["flicker"].items():
            row: Row = {"x": text, "y": scaled("flicker", value), "series": run.name}
            if text in sure and math.isfinite(sure[text].se):
                row |= {"low": scaled("flicker", sure[text].low), "high": scaled("flicker", sure[text].high)}
            rows.append(row)
    words = measures()["flicker"].words
    return Figure(
        "flicker", "Flicker of detections", Kind.BARS, Axis("condition", names=True),
        Axis("flicker (%)", zero=True), rows, series="model", note=f"Flicker: {words}.", by_run=True,
    )  # fmt: skip
