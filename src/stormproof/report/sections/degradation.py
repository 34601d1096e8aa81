"""Degradation against a reference model (*kamann* Fig. 10 to 12, 15, 16), and a radar (Fig. 19)."""

from __future__ import annotations

import math

from stormproof.core.table import Table
from stormproof.corruptions.suites import ONE_DATASET_ONLY
from stormproof.metrics.degradation import (
    Degradation,
    by_category,
    categories_of,
    category_spreads,
    cd,
    mean_over,
    rcd,
    without_strong_noise,
)
from stormproof.metrics.degradation import degradation as degraded
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import Scope, per_cent, section, unit
from stormproof.results.scores import Scores

Ratios = dict[str, dict[str, dict[str, float]]]  # model → CD, rCD → corruption → fraction
OF_REFERENCE = Axis("% of the reference", zero=True)


@section(place=30, paper=True)
def degradation(scope: Scope) -> Section | None:
    """CD and rCD of every run that has the reference's corruptions, and the mean score of each category."""
    if not measures()[scope.measure].higher or not measures()[scope.measure].fraction:
        return None
    ratios = _ratios(scope)
    radar = _radar(scope)
    if len(ratios) < 2:
        return Section(
            "degradation", "By category", "Mean scores of the corruptions of a category.", (radar,)
        )
    reference = scope.reference.name
    table = Table(
        "cd",
        f"Degradation against {reference} (%)",
        ("model", "CD", "rCD"),
        [(name, 100 * _mean(r["CD"]), 100 * _mean(r["rCD"])) for name, r in ratios.items()],
        note="Below 100 is more robust than the reference. rCD skips corruptions under which the reference "
        "loses less than one point.",
    )
    return Section(
        "degradation",
        f"Degradation against {reference}",
        "CD is 1 − score relative to that of the reference; rCD is the loss from clean relative to the "
        "reference's loss. Noise counts with severities 1 to 3, as in Kamann et al.",
        (*_figures(scope, ratios), radar),
        (table,),
        short="Degradation",
    )


def _ratios(scope: Scope) -> Ratios:
    base = _degradation(scope.reference, scope.measure)
    ratios: Ratios = {}
    for run in scope.runs:
        mine = _degradation(run, scope.measure)
        if mine is not None and base is not None and mine.corrupted.keys() == base.corrupted.keys():
            ratios[run.name] = {"CD": cd(mine, base), "rCD": rcd(mine, base)}
    return ratios


def _degradation(run: Scores, measure: str) -> Degradation | None:
    """D of a run's grid, or of a published table that gives means over severities; None if no corruption
    counts, as where all are composed or strong noise."""
    if run.complete(measure):
        grid = run.grid(measure)
        return degraded(grid) if without_strong_noise(grid).expected else None
    means, clean = run.total(measure, "by_corruption"), run.score(measure)
    if run.record is None and means and math.isfinite(clean):
        return Degradation(1 - clean, {name: 1 - value for name, value in means.items()})
    return None


def _mean(values: dict[str, float]) -> float:
    return float(mean_over(values, without=ONE_DATASET_ONLY))


def _figures(scope: Scope, ratios: Ratios) -> tuple[Figure, ...]:
    clean = {run.name: per_cent(scope.measure, run.score(scope.measure)) for run in scope.runs}
    every = [(name, ratio, values) for name, both in ratios.items() for ratio, values in both.items()]
    means: list[Datum] = [
        {"x": clean[name], "y": 100 * _mean(values), "series": name, "panel": ratio}
        for name, ratio, values in every
    ]
    categories: list[Datum] = [
        {
            "x": category, "y": 100 * spread.mean, "series": name, "panel": ratio,
            "low": 100 * (spread.mean - spread.std), "high": 100 * (spread.mean + spread.std),
        }
        for name, ratio, values in every
        for category, spread in category_spreads(values).items()
    ]  # fmt: skip
    corruptions: list[Datum] = [
        {"x": corruption, "y": 100 * value, "series": name, "panel": ratio}
        for name, ratio, values in every
        for corruption, value in values.items()
    ]
    return (
        Figure(
            "cd-clean", f"CD and rCD against clean {scope.measure}", Kind.POINTS,
            Axis(f"clean {unit(scope.measure)}"), OF_REFERENCE, means, series="model", panel="ratio",
            cite="kamann, Fig. 10", by_run=True,
        ),
        Figure(
            "cd-categories", "CD and rCD by category", Kind.BARS, Axis("category", names=True), OF_REFERENCE,
            categories, series="model", panel="ratio", cite="kamann, Fig. 11, 12, 15, 16", by_run=True,
            note="Bars are means within a category, error bars one standard deviation over its corruptions. "
            "In the paper, Fig. 11 alone leaves out JPEG compression.",
        ),
        Figure(
            "cd-corruptions", "CD and rCD by corruption", Kind.BARS, Axis("corruption", names=True),
            OF_REFERENCE, corruptions, series="model", panel="ratio", by_run=True,
        ),
    )  # fmt: skip


def _radar(scope: Scope) -> Figure:
    """The mean score of each category, beside the clean one; fewer than three categories make no radar."""
    rows: list[Datum] = []
    for run in scope.runs:
        means = run.total(scope.measure, "by_corruption") or {}
        spreads = by_category(means, categories_of(means), without=ONE_DATASET_ONLY)
        spokes = {name: spread.mean for name, spread in spreads.items() if spread.count}
        if spokes:
            rows += [
                {"x": name, "y": per_cent(scope.measure, value), "series": run.name}
                for name, value in {"clean": run.score(scope.measure), **spokes}.items()
            ]
    drawn = rows if len({row["x"] for row in rows}) > 3 else []
    return Figure(
        "radar", f"{scope.measure} by category", Kind.RADAR, Axis("category", names=True),
        Axis(unit(scope.measure), zero=True), drawn, series="model", cite="kamann, Fig. 19", by_run=True,
    )  # fmt: skip
