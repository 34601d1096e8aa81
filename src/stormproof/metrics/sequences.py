"""Performance along a sequence of corruption strengths (*theodoridis*, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.core.sample import Floats
from stormproof.corruptions.suites import FEATURE, PIXEL
from stormproof.metrics.aggregate import aggregate
from stormproof.metrics.grid import Grid, Score
from stormproof.metrics.metric import ratio

SIZES = ("AP", "APs", "APm", "APl")
STYLE = "style"  # the corruption whose conditions are points of curves over α, not levels to average
WHOLE = "image"
AlphaScores = Mapping[float, Mapping[str, float]]  # α → score name → score


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Distances between the sequences of models: symmetric, zero on the diagonal."""

    models: tuple[str, ...]
    matrix: Floats


def relative_performance(
    sequence: AlphaScores, clean: Mapping[str, float], *, names: tuple[str, ...] = SIZES
) -> dict[str, dict[float, float]]:
    """rP_α = P_α / P by score and α, as fractions; NaN where the clean score is 0.

    >>> relative_performance({0.5: {"AP": 0.2}}, {"AP": 0.4}, names=("AP",))
    {'AP': {0.5: 0.5}}
    """
    holes = [
        f"{name} at α {alpha}" for alpha, scores in sequence.items() for name in names if name not in scores
    ]
    holes += [f"{name} when clean" for name in names if name not in clean]
    if holes or not sequence:
        raise IncompleteGrid(holes or ("every α",), len(names) * (len(sequence) + 1))
    return {
        name: {
            alpha: scores[name] / clean[name] if clean[name] else float("nan")
            for alpha, scores in sorted(sequence.items())
        }
        for name in names
    }


def split(grid: Grid) -> tuple[Grid, Grid]:
    """Two grids of the same scores: of the conditions to average, and of those on curves over α."""
    curves = tuple(c for c in grid.expected if c.corruption == STYLE)
    rest = tuple(c for c in grid.expected if c.corruption != STYLE)
    return Grid(grid.scores, rest), Grid(grid.scores, curves)


def curve_of(condition: Condition) -> tuple[str, str, float] | None:
    """Space, part of the image and α of a stylized condition; None for other conditions, and for those of
    somebody else's `style` that has no α.

    >>> curve_of(Condition.parse("style[alpha=0.4,on=objects,space=pixel]"))
    ('pixel', 'objects', 0.4)
    """
    if condition.corruption != STYLE:
        return None
    params = dict(condition.params)
    if not isinstance(alpha := params.get("alpha"), int | float):
        return None
    return str(params.get("space", FEATURE)), str(params.get("on", WHOLE)), float(alpha)


@aggregate("sequence", "rP")
def relative_curves(grid: Grid) -> dict[str, Score]:
    """rP_α = P_α / P by 'space/part/α' (*theodoridis*, section 4).

    A curve in pixel space starts at the clean image and ends where the curve in feature space does, so these
    two points are added to it.

    >>> relative_curves(Grid.of({"clean": 0.4, "style[alpha=0.5]": 0.2}))
    {'feature/image/0.5': 0.5}
    """
    grid.require_complete()
    points = {point: grid.scores[c] for c in grid.expected if (point := curve_of(c)) is not None}
    for part in {part for space, part, _ in points if space == PIXEL}:
        points.setdefault((PIXEL, part, 0.0), grid.clean)
        if (FEATURE, part, 1.0) in points:
            points.setdefault((PIXEL, part, 1.0), points[FEATURE, part, 1.0])
    return {
        f"{space}/{part}/{alpha:g}": ratio(points[space, part, alpha], grid.clean)
        for space, part, alpha in sorted(points)
    }


def distance_matrix(models: Mapping[str, Mapping[str, Mapping[float, float]]]) -> Distances:
    """Euclidean distances between models over α, averaged over the scores (*theodoridis*, Fig. 15).

    `models` holds each model's `relative_performance`; all must cover the same scores and α.
    """
    cells = dict.fromkeys(
        (name, alpha) for scores in models.values() for name, row in scores.items() for alpha in row
    )
    holes = [
        f"{model}: {name} at α {alpha}"
        for model, scores in models.items()
        for name, alpha in cells
        if alpha not in scores.get(name, {})
    ]
    if holes or not cells:
        raise IncompleteGrid(holes or ("every model",), len(cells) * len(models))
    names = dict.fromkeys(name for name, _ in cells)
    rows = {
        name: [[row[name][alpha] for alpha in sorted(row[name])] for row in models.values()] for name in names
    }
    tables = [np.array(rows[name]) for name in names]
    per_score = [np.linalg.norm(table[:, None] - table[None, :], axis=2) for table in tables]
    return Distances(tuple(models), np.mean(per_score, axis=0))
