"""The one figure of a notebook: a measure by corruption and severity."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.frameworks import framework
from stormproof.results.score import Scores

_LIGHT, _DARK = (0.68, 0.78, 0.91), (0.09, 0.25, 0.49)


def plot(scores: Scores, measure: str, ax: Any) -> Any:
    """Draw on `ax`, or on a new figure; the axes come back."""
    pyplot = framework("matplotlib.pyplot", extra="notebook")
    series: dict[str, list[tuple[Condition, float]]] = {}
    for text, value in scores.by_measure[measure].items():
        condition = Condition.parse(text)
        if not condition.is_clean:
            series.setdefault(condition.series, []).append((condition, 100 * value))
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 1.2 + 0.26 * max(len(series), 1)), layout="constrained")
    for row, levels in enumerate(series.values()):
        ax.hlines(
            row, min(v for _, v in levels), max(v for _, v in levels), color=_LIGHT, linewidth=2, zorder=1
        )
        for place, (condition, value) in enumerate(levels, 1):
            ax.scatter(
                value, row, s=26, color=_shade(condition.severity or place, max(5, len(levels))), zorder=2
            )
        ax.scatter(fmean(v for _, v in levels), row, s=70, marker="|", color="black", zorder=3)
    clean = scores.by_measure[measure].get("clean")
    if clean is not None:
        ax.axvline(100 * clean, color="black", linewidth=0.8, linestyle="--")
        ax.annotate(
            "clean",
            (100 * clean, 1),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=8,
        )
    ax.set_yticks(range(len(series)), list(series))
    ax.invert_yaxis()
    ax.set_xlabel(f"{measure} in %; dots: severities, darker is stronger; |: their mean")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _shade(place: float, of: int) -> tuple[float, ...]:
    part = (place - 1) / (of - 1)
    return tuple(light + part * (dark - light) for light, dark in zip(_LIGHT, _DARK, strict=True))
