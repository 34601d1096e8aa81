"""Correlation between measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stormproof.core.errors import InvalidOption
from stormproof.metrics.grid import require_same


@dataclass(frozen=True, slots=True)
class Correlation:
    """Linear and rank correlation of two columns of `count` rows, each with its two-sided p-value."""

    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float
    count: int


def correlate(a: Mapping[str, float], b: Mapping[str, float]) -> Correlation:
    """Correlation of two columns with the same keys (detectors, corruptions …).

    >>> correlate({"x": 1.0, "y": 2.0, "z": 9.0}, {"x": 1.0, "y": 4.0, "z": 5.0}).spearman
    1.0
    """
    require_same(a, b, "in the first column", "in the second column")
    if len(a) < 3:
        raise InvalidOption(f"A correlation of {len(a)} rows is meaningless; give at least 3.")
    x, y = np.array([a[key] for key in a]), np.array([b[key] for key in a])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        nan = float("nan")
        return Correlation(nan, nan, nan, nan, len(a))
    from scipy.stats import pearsonr, spearmanr  # imported late: it takes a second

    linear, ranked = pearsonr(x, y), spearmanr(x, y)
    return Correlation(
        float(linear.statistic), float(linear.pvalue), float(ranked.statistic), float(ranked.pvalue), len(a)
    )


def correlation_table(columns: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str], Correlation]:
    """The correlation of every pair of columns."""
    return {(a, b): correlate(columns[a], columns[b]) for a, b in combinations(columns, 2)}
