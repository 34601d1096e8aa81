"""The figure of the study: AP by severity, and relative to clean by corruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot
from values import TRAININGS, Trained, pooled, relative, seeds_of

from stormproof.corruptions.groups import BENCHMARK_15, MICHAELIS
from stormproof.results.interval import around

COLOURS = {"standard": "#5b6470", "stylized": "#c2571a", "combined": "#17407d"}


def draw(found: Trained, path: Path) -> None:
    """AP by severity, 0 for clean, and relative to clean by corruption; bars are intervals of the mean."""
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=(2, 3)
    )
    seeds = seeds_of(found)
    levels = range(6)
    for step, training in enumerate(TRAININGS):
        look = {"color": COLOURS[training], "label": training}
        names = ["P", *(f"by_severity/{level}" for level in levels[1:])]
        values = [pooled(found, training, "AP", name) for name in names]
        halves = [around(*value).half_width for value in values]
        at = np.array(levels) + 0.06 * (step - 1)
        left.errorbar(at, [v.estimate for v in values], halves, marker="o", markersize=4, **look)
        shown = [relative(found, training, name) for name in BENCHMARK_15]
        halves = [around(*value).half_width for value in shown]
        across = np.arange(len(BENCHMARK_15)) + 0.22 * (step - 1)
        right.errorbar(across, [v.estimate for v in shown], halves, fmt="o", markersize=4, **look)
    left.set(xlabel="severity, 0 for clean", ylabel="AP", xticks=list(levels), ylim=(0, None))
    left.legend(frameon=False)
    names = [name.replace("_", " ") for name in BENCHMARK_15]
    right.set_xticks(range(len(names)), names, rotation=50, ha="right", rotation_mode="anchor", fontsize=8)
    right.set(ylim=(0, None), ylabel="AP, % of clean, mean over severities")
    edge = -0.5
    for group, members in MICHAELIS.items():
        middle = edge + len(members) / 2
        right.text(middle, 1.01, group, transform=right.get_xaxis_transform(), ha="center", fontsize=9)
        edge += len(members)
        if edge < len(names) - 0.5:
            right.axvline(edge, color="#cccccc", linewidth=0.8)
    figure.suptitle(f"{len(seeds)} seeds each" if len(seeds) > 1 else "one seed each", fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
