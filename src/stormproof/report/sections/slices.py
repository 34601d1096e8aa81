"""Which images and objects suffer: scores by an attribute of images, detection rates by one of objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from stormproof.core.table import Table
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import limits, per_cent, unit
from stormproof.results.detection_rate import LOST, DetectionRates, lost_words, series_of
from stormproof.results.scores import Scores
from stormproof.results.slices import Slices

_SHARED = (
    "Each slice is scored as if its images were the whole dataset, over the classes that it shows, and "
    "compared with as many random images over the same classes, since few images score too high; p is "
    "corrected for the number of slices (Holm). "
)
_FOUND = (
    "An object is found if a box of its class with a score of {score:g} or more overlaps it by IoU 0.5. A "
    "wrong box has no {by}, so this is about objects alone: there is no precision by {by}. "
)


def slice_section(by_run: Mapping[str, Slices]) -> Section:
    """Scores by an attribute of images, one or more runs."""
    first = next(iter(by_run.values()))
    by, several = first.attribute.name, len(by_run) > 1
    rows: list[Datum] = []
    for run, slices in by_run.items():
        pick = {"pick": (run,)} if several else {}
        for name, scores in slices.items():
            intervals, values = scores.intervals(slices.measure), scores.values(slices.measure)
            for number in slices.names:
                if number == "rPC" or number not in values:
                    continue
                word = _word(number, scores)
                row = {"x": name, "y": per_cent(slices.measure, values[number]), "series": word, **pick}
                rows.append(row | limits(intervals.get(number), measures()[slices.measure].scale))
    figure = Figure(
        "slices", f"{first.measure} by {by}", Kind.BARS, Axis(by, names=True),
        Axis(unit(first.measure), zero=True), rows, series="over", pick=("Run",) if several else (),
        note="Lines are 95 % intervals for new images like these.",
    )  # fmt: skip
    said = " ".join(filter(None, (_clear(slices, run if several else "") for run, slices in by_run.items())))
    tables = tuple(_class_table(slices, run, several) for run, slices in by_run.items())
    return Section("slices", f"By {by}", f"{said} {_SHARED}".strip(), (figure,), tables, short=f"By {by}")


def _clear(slices: Slices, name: str) -> str:
    """Which slices are clearly worse or better than the rest, in the mean under corruption or when clean."""
    compared = [number for number in slices.names if number != "rPC"]
    if not compared:
        return ""
    number = compared[-1]
    differing = {each: d for each, d in slices.differences(number).items() if d.clear}
    whom, words = f"{name}: " if name else "", _word(number, slices.whole)
    if not differing:
        return f"{whom}No slice differs clearly from all images ({slices.measure}, {words})."
    scale = measures()[slices.measure].scale
    parts = [
        f"{each} {scale * d.interval.estimate:+.1f} ({d.interval.span(scale, sign='+')})"
        for each, d in sorted(differing.items(), key=lambda pair: pair[1].interval.estimate)
    ]
    return (
        f"{whom}Clearly different from all images, in points of {slices.measure} ({words}): "
        f"{'; '.join(parts)}."
    )


def _word(number: str, scores: Scores) -> str:
    return {"P": "clean", "mean": scores.over.mean_name}.get(number, number)


def _class_table(slices: Slices, run: str, several: bool) -> Table:
    table = slices.table()
    return replace(table, id=f"{table.id}-{run}", title=f"{run}: {table.title}") if several else table


def rate_section(by_run: Mapping[str, DetectionRates]) -> Section:
    """Detection rates by an attribute of objects; by distance, with the distance at which they are lost."""
    first = next(iter(by_run.values()))
    by, several = first.by, len(by_run) > 1
    rows = [row for run, rates in by_run.items() for row in _curve(rates, run if several else "")]
    ranged = by == "distance"
    panels = len({row["panel"] for row in rows}) > 1
    if not panels:
        rows = [{key: value for key, value in row.items() if key != "panel"} for row in rows]
    x = Axis(f"{by} ({first.unit})", zero=True) if ranged else Axis(by, names=True)
    figure = Figure(
        "rates", f"Detection rate of {first.what} by {by}", Kind.LINES if ranged else Kind.BARS, x,
        Axis("found (%)", end=100.0), rows,
        series="condition", panel="corruption" if panels else "", pick=("Run",) if several else (),
        note="Lines up and down are 95 % intervals for new images like these.",
    )  # fmt: skip
    said = (
        " ".join(_say_lost(rates, run if several else "") for run, rates in by_run.items()) if ranged else ""
    )
    text = f"{said} {_FOUND.format(score=first.min_score, by=by)}".strip()
    return Section(
        "rates", f"How many are found, by {by}", text, (figure,),
        tuple(rates.table() for rates in by_run.values()), short=f"By {by}",
    )  # fmt: skip


def _curve(rates: DetectionRates, run: str) -> list[Datum]:
    panels = [panel for panel, _ in map(series_of, rates.drawn) if panel] or [""]
    rows: list[Datum] = []
    for text in rates.drawn:
        own, series = series_of(text)
        for panel in [own] if own else dict.fromkeys(panels):
            for k, each in enumerate(rates.bins):
                interval = rates.interval(text, k)
                if math.isnan(interval.estimate):
                    continue
                row: Datum = {
                    "x": each.middle if rates.by == "distance" else each.name,
                    "y": 100 * interval.estimate, "series": series, "panel": panel,
                }  # fmt: skip
                rows.append(row | ({"pick": (run,)} if run else {}) | limits(interval, least=0.0, most=100.0))
    return rows


def _say_lost(rates: DetectionRates, name: str) -> str:
    """'Where the detection rate of person falls below 50 %: clean, nowhere; haze[visibility=100], 41 m …'"""
    worst = sorted(rates.drawn, key=lambda text: sum(v for v in rates.rate(text) if math.isfinite(v)))[:3]
    chosen = [text for text in rates.drawn if text == "clean" or text in worst]
    whom = f"{name}: " if name else ""
    parts = [f"{text}, {lost_words(rates.lost_from(text))}" for text in chosen]
    return f"{whom}Where the detection rate of {rates.what} falls below {100 * LOST:g} %: {'; '.join(parts)}."
