"""Replicates of aggregates from replicates of cells.

Every aggregate of the papers is linear in the cells of a grid (P, mPC, CE, by corruption, by severity …) or a
ratio of such. Its coefficients are its values on grids that are 1 in one cell and 0 elsewhere, so the
definitions stay in `robustness` and a thousand replicates are one matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from stormproof.core.sample import Bools, Floats
from stormproof.metrics.degradation import as_averaged
from stormproof.metrics.measure import measures
from stormproof.metrics.performance import mpc_by_corruption
from stormproof.results.aggregates import aggregates, grid_of
from stormproof.results.precision import mean_of_known, ratio

Cells = Mapping[str, Floats]  # replicates by condition
SLASH = "/"  # between an aggregate and the corruption, severity or group it is of: by_corruption/fog
_LEAST = 0.01  # a reference that loses less than a point is no measure of loss (docs/adr/0021)


def aggregated(measure: str, cells: Cells) -> dict[str, Floats]:
    """Every aggregate of one measure by replicate, under flat names: 'mPC', 'by_corruption/fog'."""
    conditions = tuple(cells)
    table = np.stack([np.asarray(cells[text], np.float64) for text in conditions])
    kind = "AP" if measures()[measure].higher else "E"  # all measures of one kind have the same aggregates
    found = {name: row @ table for name, row in linear_coefficients(conditions, kind).items()}
    if measures()[measure].higher and "P" in found:
        found |= _relative(found)
    return found


def beside(cells: Cells, reference: Cells) -> dict[str, Floats]:
    """CD, rCD and gains by replicate, of scores in [0, 1] under the conditions of `cells`."""
    conditions = tuple(cells)
    mine, theirs = (
        np.stack([np.asarray(of[text], np.float64) for text in conditions]) for of in (cells, reference)
    )
    found: dict[str, Floats] = {}
    clean = conditions.index("clean") if "clean" in conditions else None
    for name, row in _as_kamann(conditions).items():
        ours, other = 1 - row @ mine, 1 - row @ theirs
        found[f"CD{SLASH}{name}"] = ratio(ours, other)
        if clean is not None:
            lost, their_loss = ours - (1 - mine[clean]), other - (1 - theirs[clean])
            found[f"rCD{SLASH}{name}"] = ratio(lost, their_loss, _LEAST)
    for kind in ("CD", "rCD"):
        every = [values for name, values in found.items() if name.startswith(kind + SLASH)]
        if every:
            found[f"m{kind}"] = mean_of_known(np.stack(every), axis=0)
    return found


def flat(found: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Aggregates as `scoring.aggregates` nests them, under flat names."""
    result: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}{SLASH}")
        else:
            result[f"{prefix}{name}"] = float(value)
    return result


@cache
def linear_coefficients(conditions: tuple[str, ...], measure: str = "AP") -> dict[str, Floats]:
    """Each condition's weight in every linear aggregate of a measure."""
    rows: dict[str, Floats] = {}
    for i in range(len(conditions)):
        for name, value in _aggregates(measure, conditions, np.arange(len(conditions)) == i).items():
            rows.setdefault(name, np.zeros(len(conditions)))[i] = value
    # An aggregate that is not linear does not follow from its values on such grids: it has no coefficients.
    test = np.random.default_rng(0).uniform(0.2, 0.8, len(conditions))
    true = _aggregates(measure, conditions, test)
    return {name: row for name, row in rows.items() if np.isclose(row @ test, true.get(name, np.nan))}


def _aggregates(measure: str, conditions: tuple[str, ...], scores: Floats | Bools) -> dict[str, float]:
    cells = dict(zip(conditions, scores.astype(float).tolist(), strict=True))
    grid = grid_of(cells, conditions)
    # Both: which of them has a name is the scores' to say.
    return flat(aggregates(measure, grid) | aggregates(measure, grid, named=False))


@cache
def _as_kamann(conditions: tuple[str, ...]) -> dict[str, Floats]:
    """The mean score of each corruption as *kamann* averages: of noise, severities 1 to 3 only."""
    rows: dict[str, Floats] = {}
    for i, text in enumerate(conditions):
        unit = grid_of(dict.fromkeys(conditions, 0.0) | {text: 1.0}, conditions)
        for name, value in mpc_by_corruption(as_averaged(unit)).items():
            rows.setdefault(name, np.zeros(len(conditions)))[i] = value
    return rows


def _relative(found: Mapping[str, Floats]) -> dict[str, Floats]:
    """rPC and its kinds: what stands over P."""
    names = {"rPC": "mPC"}
    names |= {f"rPC_{name}": name for name in found if name.startswith(("by_severity", "by_group"))}
    return {name: ratio(found[above], found["P"]) for name, above in names.items() if above in found}
