"""People (*pezzementi*): detection rate against false positives (Fig. 4 to 6), and contextual mutators
predicted from simple ones (Fig. 7 and 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stormproof.core.table import Table
from stormproof.core.text import plain
from stormproof.metrics.prediction import PAIRS, predict_pairs
from stormproof.metrics.roc import REFERENCE_FPPI
from stormproof.report.charts import SYMBOLS
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, all_conditions, group_by_severity, section, without_severity
from stormproof.results.scores import Scores

FPPI = Axis("false positives per image", log=True)
RATE = Axis("detection rate (%)", end=100.0)
PREDICTION = "prediction"
_LOST = 50  # lines of people lost


@section(place=60, paper=True)
def detection_rates(scope: Scope) -> Section | None:
    """ROC curves where the scores hold them, and the ADR of every condition."""
    runs = [run for run in scope.runs if math.isfinite(run.score("ADR"))]
    if not runs:
        return None
    curves: list[Datum] = [
        {"x": x, "y": 100 * y, "series": run.name, "pick": pick, **({"mark": mark} if mark else {})}
        for run in runs
        for pick, text in _curves(run).items()
        for x, y, mark in _points(run.detail("roc")[text])
        if x > 0
    ]
    figure = Figure(
        "roc", "Detection rate of people against false positives", Kind.LINES, FPPI, RATE, curves,
        series="model", pick=("Condition", "Severity"), stepped=True, cite="pezzementi, Fig. 4 and 5",
        note="At IoU 0.5. Symbols: where thresholds lead under the condition that allow a false positive in "
        "10 clean images (triangle), in 100 (star) and in 1,000 (circle).",
    )  # fmt: skip
    texts = ["clean", *map(str, all_conditions(runs))]
    table = Table(
        "adr",
        "Average detection rate of people (%)",
        ("condition", *(run.name for run in runs)),
        [(text, *(100 * run.score("ADR", text) for run in runs)) for text in texts],
        note="The mean over nine sensitivities and five IoU. Pezzementi et al., Table IV.",
    )
    return Section(
        "people",
        "Are people still found?",
        "A deployed detector keeps the threshold it was tuned to, so thresholds are fixed on clean images.",
        (figure,),
        (table, *_lost_people(runs)),
        short="People",
    )


def _points(curve: Mapping[str, Sequence[float]]) -> Iterator[tuple[float, float, str]]:
    """The points of a curve, and of its nine marks the paper's three, by what they mark."""
    for x, y in zip(curve["fppi"], curve["rate"], strict=True):
        yield x, y, ""
    marks = zip(REFERENCE_FPPI, curve["marks_fppi"], curve["marks_rate"], strict=True)
    for reference, x, y in marks:
        if (name := f"1 in {1 / reference:.0f}") in SYMBOLS:
            yield x, y, name


def _curves(run: Scores) -> dict[tuple[str, str], str]:
    """Every condition with a curve, by what the reader picks; of a corruption the hardest severity first."""
    texts = {("clean", ""): "clean"}
    for name, levels in group_by_severity(run.corrupted).items():
        texts |= {(name, f"{c.severity:g}"): str(c) for c in reversed(levels)}
    texts |= {(text, ""): text for text in without_severity(run.corrupted)}
    return {pick: text for pick, text in texts.items() if text in run.detail("roc")}


def _lost_people(runs: Sequence[Scores]) -> list[Table]:
    """The people that a condition makes hardest to find again (*pezzementi*, Fig. 6), last those whom no
    sensitivity of the paper finds on clean images."""
    rows = [
        (plain(person["id"]), run.name, text, person["before"], person["after"], _orders(person))
        for run in runs
        for text, people in run.detail("lost").items()
        for person in people
    ]
    rows.sort(key=lambda row: (row[3] > REFERENCE_FPPI[-1], -row[5], row[:3]))
    columns = (
        "image",
        "model",
        "condition",
        "false positives per image before",
        "after",
        "orders of magnitude",
    )
    note = (
        "The false positives that a sensitivity must tolerate to find the person. A dash: never found. Last "
        "come people who take more than one in ten images when clean."
    )
    return [Table("lost", "People hardest to find again", columns, rows[:_LOST], 3, note)] if rows else []


def _orders(person: Mapping[str, Any]) -> float:
    after = person["after"]
    return math.inf if after is None or math.isnan(after) else math.log10(after / person["before"])


@section(place=70, paper=True)
def predicted(scope: Scope) -> Section | None:
    """Predicted against observed contextual scores, of at least two models."""
    measure = "ADR" if all(math.isfinite(run.score("ADR")) for run in scope.runs) else scope.measure
    if len(scope.runs) < 2 or not all(run.score(measure) > 0 for run in scope.runs):
        return None
    known = {
        run.name: {text: v for text, v in run.per_condition[measure].items() if v == v} for run in scope.runs
    }
    predictions = predict_pairs(known)
    if not predictions:
        return None
    pairs = {f"{contextual} from {PAIRS[contextual]}": each for contextual, each in predictions.items()}
    points: list[Datum] = [
        {
            "x": 100 * float(fit.observed[i, j]),
            "y": 100 * float(fit.predicted[i, j]),
            "series": system,
            "panel": pair,
            "label": target,
        }
        for pair, fit in pairs.items()
        for i, system in enumerate(fit.systems)
        for j, target in enumerate(fit.contextual)
    ]
    weights: list[Datum] = [
        {"x": name, "y": target, "v": float(fit.overall[j, k]), "pick": (pair,)}
        for pair, fit in pairs.items()
        for j, target in enumerate(fit.contextual)
        for k, name in enumerate(fit.simple)
    ]
    lines = [
        (pair, system, r2)
        for pair, fit in pairs.items()
        for system, r2 in {"all models": fit.r2, **fit.r2_by_system}.items()
    ]
    figures = (
        Figure(
            "prediction", f"Predicted against observed {measure}, normalised by clean", Kind.POINTS,
            Axis("observed (% of clean)"), Axis("predicted (% of clean)"), points, series="model",
            panel="pair", cite="pezzementi, Fig. 7",
        ),
        Figure(
            "weights", "Weights of simple mutators", Kind.HEAT, Axis("simple", names=True),
            Axis("contextual", names=True), weights, pick=("Pair",), value="weight",
            cite="pezzementi, Fig. 8",
        ),
    )  # fmt: skip
    table = Table("prediction", "R² of predictions", ("pair", "model left out", "R²"), lines, digits=3)
    return Section(
        PREDICTION,
        "Contextual conditions predicted from simple ones",
        "Each model is predicted from a fit on all the others: non-negative least squares of scores "
        "normalised by each model's own clean score.",
        figures,
        (table,),
        short="Prediction",
    )
