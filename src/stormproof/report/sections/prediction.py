"""Contextual mutators predicted from simple ones (*pezzementi* Fig. 7 and 8)."""

from __future__ import annotations

import math

from stormproof.core.errors import IncompleteGrid
from stormproof.core.table import Table
from stormproof.metrics.prediction import PAIRS, Predicted, normalise, predict_from_its_pair
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked


def predicted(asked: Asked) -> Section | None:
    """Predicted against observed contextual scores, of at least two models."""
    measure = "ADR" if all(math.isfinite(s.score("ADR")) for s in asked.subjects) else asked.measure
    scores = {s.name: dict(s.cells.get(measure, {})) for s in asked.subjects}
    points: list[Row] = []
    weights: list[Row] = []
    lines = []
    for contextual, simple in PAIRS.items():
        found = _predicted(scores, contextual)
        if found is None:
            continue
        panel = f"{contextual} from {simple}"
        for i, system in enumerate(found.systems):
            for j, target in enumerate(found.contextual):
                points.append(
                    {
                        "x": 100 * float(found.observed[i, j]),
                        "y": 100 * float(found.predicted[i, j]),
                        "series": system,
                        "panel": panel,
                        "label": target,
                    }
                )
        for j, target in enumerate(found.contextual):
            weights += [
                {"x": name, "y": target, "v": float(found.overall[j, k]), "pick": (panel,)}
                for k, name in enumerate(found.simple)
            ]
        lines.append((panel, "all models", found.r2))
        lines += [(panel, system, r2) for system, r2 in found.r2_by_system.items()]
    if not points:
        return None
    figures = (
        Figure(
            "prediction",
            f"Predicted against observed {measure}, normalised by clean",
            Kind.POINTS,
            Axis("observed (% of clean)"),
            Axis("predicted (% of clean)"),
            points,
            series="model",
            panel="pair",
            cite="pezzementi, Fig. 7",
        ),
        Figure(
            "weights",
            "Weights of simple mutators",
            Kind.HEAT,
            Axis("simple", names=True),
            Axis("contextual", names=True),
            weights,
            pick=("Pair",),
            value="weight",
            cite="pezzementi, Fig. 8",
        ),
    )
    table = Table("prediction", "R² of predictions", ("pair", "model left out", "R²"), lines, digits=3)
    return Section(
        "prediction",
        "Contextual conditions predicted from simple ones",
        "Each model is predicted from a fit on all the others: non-negative least squares of scores "
        "normalised by each model's own clean score.",
        figures,
        (table,),
    )


def _predicted(scores: dict[str, dict[str, float]], contextual: str) -> Predicted | None:
    if len(scores) < 2:
        return None
    try:
        return predict_from_its_pair(normalise(scores), contextual)
    except IncompleteGrid:
        return None
