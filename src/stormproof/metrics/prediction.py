"""Predicting scores under contextual mutators (haze, defocus) from simple ones (*pezzementi*, IV-B).

Scores are divided by each system's own baseline, so that the fit is about robustness. For each contextual
configuration, a non-negative least-squares fit without intercept on all systems but one predicts the system
left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption
from stormproof.core.sample import Floats

Scores = Mapping[str, Mapping[str, float]]  # system → condition → score
PAIRS = {"defocus": "gaussian_blur", "haze": "alpha_blend"}  # contextual mutator → its form without depth


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Observed and predicted normalised scores (systems × contextual conditions), with their fits.

    `weights[i, j]` holds the simple mutators' weights in the fit of target j without system i, `overall[j]`
    those of the fit on all systems.
    """

    systems: tuple[str, ...]
    simple: tuple[str, ...]
    contextual: tuple[str, ...]
    observed: Floats
    predicted: Floats
    weights: Floats
    overall: Floats

    @property
    def r2(self) -> float:
        """R² of all predictions together."""
        return r_squared(self.observed.ravel(), self.predicted.ravel())

    @property
    def r2_by_system(self) -> dict[str, float]:
        """R² of each system over its configurations; NaN where scores do not vary."""
        rows = zip(self.systems, self.observed, self.predicted, strict=True)
        return {system: r_squared(observed, predicted) for system, observed, predicted in rows}


def normalise(scores: Scores) -> dict[str, dict[str, float]]:
    """Each system's scores divided by its clean score."""
    lacking = [system for system, row in scores.items() if not row.get("clean")]
    if lacking:
        raise IncompleteGrid((f"{system}: a clean score above 0" for system in lacking), len(scores))
    return {
        system: {name: value / row["clean"] for name, value in row.items()} for system, row in scores.items()
    }


def predict_pairs(scores: Scores) -> dict[str, Predicted]:
    """Each contextual corruption of `PAIRS` predicted from the simple one it resembles, if all systems have
    both.

    Only conditions that every system has are used.
    """
    normalised = normalise(scores)
    rows = list(normalised.values())
    shared = [text for text in rows[0] if all(text in row for row in rows)] if rows else []
    by_name = {
        name: [text for text in shared if Condition.parse(text).corruption == name]
        for name in (*PAIRS, *PAIRS.values())
    }
    return {
        contextual: predict(normalised, by_name[simple], by_name[contextual])
        for contextual, simple in PAIRS.items()
        if by_name[simple] and by_name[contextual]
    }


def predict(scores: Scores, simple: Sequence[str], contextual: Sequence[str]) -> Predicted:
    """Predict each system's contextual scores (Fig. 7) by fits on the other systems (weights in Fig. 8)."""
    if len(scores) < 2 or not simple or not contextual:
        raise InvalidOption(
            "A prediction needs at least 2 systems, 1 simple and 1 contextual condition; "
            f"given {len(scores)}, {len(simple)} and {len(contextual)}."
        )
    holes = [
        f"{system}: {name}"
        for system, row in scores.items()
        for name in (*simple, *contextual)
        if not np.isfinite(row.get(name, np.nan))
    ]
    if holes:
        raise IncompleteGrid(holes, len(scores) * (len(simple) + len(contextual)))
    x = np.array([[row[name] for name in simple] for row in scores.values()])
    y = np.array([[row[name] for name in contextual] for row in scores.values()])
    systems = np.arange(len(x))
    weights = np.array([_fit(x[systems != i], y[systems != i]) for i in systems])
    predicted = np.einsum("ik,ijk->ij", x, weights)
    return Predicted(tuple(scores), tuple(simple), tuple(contextual), y, predicted, weights, _fit(x, y))


def r_squared(observed: Floats, predicted: Floats) -> float:
    """1 − residual / total sum of squares, the latter about the mean; NaN if observations do not vary."""
    total = float(np.square(observed - observed.mean()).sum())
    return 1 - float(np.square(observed - predicted).sum()) / total if total > 0 else float("nan")


def _fit(x: Floats, y: Floats) -> Floats:
    """Non-negative weights: targets × features."""
    from scipy.optimize import nnls  # imported late: it takes half a second

    return np.array([nnls(x, column)[0] for column in y.T])
