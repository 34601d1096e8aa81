"""Degradation against a reference model (*kamann* Fig. 10 to 12, 15, 16), and a radar (Fig. 19)."""

from __future__ import annotations

import math

from stormproof.core.table import Table
from stormproof.corruptions.groups import KAMANN, MICHAELIS, ONE_DATASET_ONLY, Groups
from stormproof.metrics.degradation import Degradation, by_category, cd, mean_over, rcd
from stormproof.metrics.degradation import degradation as degraded
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Figure, Kind, Row, Section
from stormproof.report.sections import Asked
from stormproof.report.sections.cells import scaled, unit
from stormproof.results.scores import Scores

Ratios = dict[str, dict[str, float]]  # CD, rCD → corruption → fraction


def degradation(asked: Asked) -> Section | None:
    """CD and rCD of every run that shares the reference's corruptions."""
    if not measures()[asked.measure].higher or not measures()[asked.measure].fraction:
        return None
    base = _degradation(asked.reference, asked.measure)
    if base is None:
        return None
    found: dict[str, Ratios] = {}
    for subject in asked.subjects:
        mine = _degradation(subject, asked.measure)
        if mine is not None and mine.corrupted.keys() == base.corrupted.keys():
            found[subject.name] = {"CD": cd(mine, base), "rCD": rcd(mine, base)}
    radar = _radar(asked)
    if len(found) < 2:
        return (
            Section("degradation", "By category", "Means over the corruptions of a category.", (radar,))
            if radar
            else None
        )
    y = Axis("% of the reference", zero=True)
    figures = [
        Figure(
            "cd-clean",
            f"CD and rCD against clean {asked.measure}",
            Kind.POINTS,
            Axis(f"clean {unit(asked.measure)}"),
            y,
            _scatter(asked, found),
            series="model",
            panel="ratio",
            cite="kamann, Fig. 10",
            by_run=True,
        ),
        Figure(
            "cd-categories",
            "CD and rCD by category",
            Kind.BARS,
            Axis("category", names=True),
            y,
            _bars(found),
            series="model",
            panel="ratio",
            cite="kamann, Fig. 11 and 12",
            by_run=True,
            note="Bars are means within a category, error bars one standard deviation over its corruptions.",
        ),
        Figure(
            "cd-corruptions",
            "CD and rCD by corruption",
            Kind.BARS,
            Axis("corruption", names=True),
            y,
            [
                {"x": c, "y": 100 * v, "series": name, "panel": ratio}
                for name, ratios in found.items()
                for ratio, row in ratios.items()
                for c, v in row.items()
                if math.isfinite(v)
            ],
            series="model",
            panel="ratio",
            cite="kamann, Fig. 15 and 16",
            by_run=True,
        ),
    ]
    table = Table(
        "cd",
        f"Degradation against {asked.reference.name} (%)",
        ("model", "CD", "rCD"),
        [(name, 100 * _mean(r["CD"]), 100 * _mean(r["rCD"])) for name, r in found.items()],
        note="Below 100 is more robust than the reference; rCD leaves out where the reference hardly loses.",
    )
    return Section(
        "degradation",
        f"Degradation against {asked.reference.name}",
        "CD sets 1 − score against the reference's, rCD the loss from clean against the reference's loss. "
        "Noise counts with severities 1 to 3, as in kamann.",
        (*figures, radar) if radar else tuple(figures),
        (table,),
    )


def _degradation(subject: Scores, measure: str) -> Degradation | None:
    """D of a run's grid, or of a published table that gives means over severities."""
    if subject.complete(measure):
        return degraded(subject.grid(measure))
    means, clean = subject.total(measure, "by_corruption"), subject.score(measure)
    if subject.record is None and means and math.isfinite(clean):
        return Degradation(1 - clean, {name: 1 - value for name, value in means.items()})
    return None


def _mean(values: dict[str, float]) -> float:
    return float(mean_over(values, without=ONE_DATASET_ONLY))


def _scatter(asked: Asked, found: dict[str, Ratios]) -> list[Row]:
    clean = {s.name: scaled(asked.measure, s.score(asked.measure)) for s in asked.subjects}
    return [
        {"x": clean[name], "y": 100 * _mean(row), "series": name, "panel": ratio}
        for name, ratios in found.items()
        for ratio, row in ratios.items()
        if math.isfinite(_mean(row))
    ]


def _bars(found: dict[str, Ratios]) -> list[Row]:
    rows: list[Row] = []
    for name, ratios in found.items():
        for ratio, row in ratios.items():
            for category, spread in by_category(row, _groups_of([*row]), without=ONE_DATASET_ONLY).items():
                if spread.count:
                    low, high = spread.mean - spread.std, spread.mean + spread.std
                    rows.append(
                        {
                            "x": category,
                            "y": 100 * spread.mean,
                            "low": 100 * low,
                            "high": 100 * high,
                            "series": name,
                            "panel": ratio,
                        }
                    )
    return rows


def _radar(asked: Asked) -> Figure | None:
    """The mean score of each category; at least three make a radar."""
    rows: list[Row] = []
    for subject in asked.subjects:
        means = subject.total(asked.measure, "by_corruption")
        if not means:
            continue
        spokes = {"clean": subject.score(asked.measure)}
        means_of = by_category(means, _groups_of([*means]), without=ONE_DATASET_ONLY)
        spokes |= {name: spread.mean for name, spread in means_of.items() if spread.count}
        rows += [
            {"x": name, "y": scaled(asked.measure, value), "series": subject.name}
            for name, value in spokes.items()
            if math.isfinite(value)
        ]
    if len({row["x"] for row in rows}) < 4:
        return None
    return Figure(
        "radar",
        f"{asked.measure} by category",
        Kind.RADAR,
        Axis("category", names=True),
        Axis(unit(asked.measure), zero=True),
        rows,
        series="model",
        cite="kamann, Fig. 19",
        by_run=True,
    )


def _groups_of(corruptions: list[str]) -> Groups:
    """The categories of the paper whose corruptions these are."""

    def fits(groups: Groups) -> int:
        return sum(name in members for name in corruptions for members in groups.values())

    return max((KAMANN, MICHAELIS), key=fits)
