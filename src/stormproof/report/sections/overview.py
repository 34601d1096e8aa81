"""Every condition and every class at a glance, and whether gains on clean images carry over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import NamedTuple

from stormproof.core.condition import Condition
from stormproof.core.table import Entry, Table
from stormproof.metrics.correlation import correlate, correlation_table
from stormproof.metrics.grid import Score, mean
from stormproof.metrics.metric import Measure, measures, ratio
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.sections import (
    FEW_OBJECTS,
    RELATIVE,
    Scope,
    all_conditions,
    all_levels,
    class_measure,
    group_by_severity,
    group_of,
    limits,
    per_cent,
    printed_difference,
    section,
    share,
    unit,
    without_severity,
)
from stormproof.report.sentences import Number, Values, interval_of, share_kept
from stormproof.results.aggregates import mean_of
from stormproof.results.interval import Interval, interval_around
from stormproof.results.scores import Scores

Shown = Sequence[tuple[Scores, str]]  # runs, each with the measure it is shown by
ALL, MEAN = "all corruptions", "mean"
ABSOLUTE, RELATIVELY = "absolute", "relative to clean"
_BARS = 7  # runs that bars beside each other can show
_ENDS = ("low", "high")  # of an interval
_INTERVALS = "Lines are 95 % intervals for new images like these."
_CLASSES = 30  # in the figure; the table has all


def kept_by_group(runs: Sequence[Scores], measure: str) -> Figure:
    """What each run keeps of its clean score, over all corruptions and over each group of them."""
    rows: list[Datum] = []
    for run in runs:
        if not (measures()[measure].higher and run.score(measure) > 0):
            continue
        groups: dict[str, list[str]] = {}
        for name in run.by_corruption(measure):
            groups.setdefault(group_of(name), []).append(f"by_corruption/{name}")
        rows.append({"x": ALL, "series": run.name, **_share(run, measure, share_kept)})
        rows += [
            {"x": group, "series": run.name, **_share(run, measure, partial(_group_share, members))}
            for group, members in groups.items()
        ]
    title = f"Share of the clean {measure} that is left, by group of corruptions"
    if len(runs) > _BARS:
        order = {row["series"]: row["y"] for row in rows if row["x"] == ALL}
        cells: list[Datum] = [{"x": row["x"], "y": row["series"], "v": row["y"]} for row in rows]
        cells.sort(key=lambda row: -order[row["y"]])
        return Figure(
            "kept", title, Kind.HEAT, Axis("group", names=True), Axis("model", names=True), cells,
            value=RELATIVE.title, top=100.0,
        )  # fmt: skip
    usual = all((row.get("high", row["y"]) or 0) <= 100 for row in rows)  # one without a score has neither
    return Figure(
        "kept", title, Kind.BARS, Axis("group", names=True),
        replace(RELATIVE, end=100.0) if usual else RELATIVE, rows, series="model", by_run=True,
        note=_INTERVALS if any(_ENDS[0] in row for row in rows) else "",
    )  # fmt: skip


def _group_share(members: Sequence[str], values: Values) -> Score:
    return ratio(mean(values[name] for name in members), values["clean"])


def _share(run: Scores, measure: str, number: Number) -> Datum:
    """A share of the clean score in per cent, with its interval where there is one."""
    value = 100 * float(number(run.values(measure)))
    return {"y": value, **limits(interval_of(run, measure, number), least=0.0)}


@section(place=10)
def every_condition(scope: Scope) -> Section | None:
    """Every condition of every run, as a map; as bars if there is one severity of each corruption."""
    mapped = map_of_conditions(scope)
    if mapped is None or len(scope.every()) > _BARS or not measures()[scope.measure].higher:
        return mapped
    levels = group_by_severity(all_conditions(run for run, _ in scope.every()))
    if any(len(held) != 1 for held in levels.values()):
        return mapped
    return replace(mapped, figures=tuple(_bars_of(f) if f.id == "grid" else f for f in mapped.figures))


def map_of_conditions(scope: Scope) -> Section | None:
    """Every condition of every run: corruption × severity, and conditions given by parameters."""
    every = scope.every()
    conditions = all_conditions(run for run, _ in every)
    if not conditions:
        return None
    what = "Score" if scope.others else scope.measure
    names = {run.name: f"{run.name} ({m})" if scope.others else run.name for run, m in every}
    grid = [row for run, m in every for row in _grid(run, m, group_by_severity(conditions), names[run.name])]
    loose: list[Datum] = [
        {"pick": (scale,), "x": names[run.name], "y": text, **_cell(run, m, run.score(m, text), scale)}
        for scale in (RELATIVELY, ABSOLUTE)
        for text in (*without_severity(conditions), "clean")
        for run, m in every
        if without_severity(conditions)
    ]
    measure = measures()[scope.measure]
    higher = measure.higher
    value = RELATIVE.title if higher else unit(scope.measure)
    note = "Colours show the share of the clean score that is left. An arrow: more than the clean score."
    if not higher:
        note = f"Colours show the {'error' if measure.fraction else 'value'} itself: brighter is worse."
    top = 100.0 if higher or measure.fraction else None  # milliseconds and counts have no highest value
    first = "lowest" if higher else "highest"
    figures = (
        Figure(
            "grid", f"{what} by corruption and severity, the {first} first", Kind.HEAT,
            Axis("severity", names=True), Axis("corruption", names=True),
            _by_harm(grid, higher=higher), panel="model" if len(every) > 1 else "", pick=("Scale",),
            value=value, top=top, note=note,
        ),
        Figure(
            "conditions", f"{what} by condition", Kind.HEAT, Axis("model", names=True),
            Axis("condition", names=True), loose, pick=("Scale",), value=value, top=top, note=note,
            cite="pezzementi, Table IV",
        ),
        _difference(scope, group_by_severity(conditions)),
    )  # fmt: skip
    return Section(
        "grid",
        "Every condition",
        "Each number is of one corruption at one severity, over all images of the run.",
        figures,
        (*_sets(every), _cells(every, what, [str(c) for c in conditions])),
    )


def _grid(run: Scores, measure: str, levels: Mapping[str, list[Condition]], name: str) -> list[Datum]:
    """A run's cells by corruption and severity, the mean of each corruption, and the clean score."""
    texts = {(series, f"{c.severity:g}"): str(c) for series in levels for c in levels[series]}
    scores = {place: run.score(measure, text) for place, text in texts.items()}
    if any(len(held) > 1 for held in levels.values()):
        means = run.by_corruption(measure)
        scores |= {(corruption, MEAN): means.get(corruption, math.nan) for corruption in levels}
        scores["clean", MEAN] = run.score(measure)
    left = shares_left(run, measure, [*texts.values()])
    return [
        {
            "pick": (scale,), "panel": name, "x": x, "y": y, **_cell(run, measure, value, scale),
            **(limits(left.get(texts.get((y, x), "")), least=0.0) if scale == RELATIVELY else {}),
        }
        for scale in (RELATIVELY, ABSOLUTE)
        for (y, x), value in scores.items()
    ]  # fmt: skip


def _bars_of(grid: Figure) -> Figure:
    """The shares of a map with one severity of each corruption."""
    rows: list[Datum] = [
        {"x": row["y"], "y": row["v"], "series": row["panel"], **{k: row[k] for k in _ENDS if k in row}}
        for row in grid.rows
        if row["pick"] == (RELATIVELY,)
    ]
    return Figure(
        grid.id, "Share of the clean score that is left, by corruption, the lowest first", Kind.BARS,
        Axis("corruption", names=True), RELATIVE, rows, series="model",
        note=_INTERVALS if any(_ENDS[0] in row for row in rows) else "",
    )  # fmt: skip


def shares_left(run: Scores, measure: str, conditions: Sequence[str]) -> dict[str, Interval]:
    """The 95 % interval of each condition's share of the clean score, where the scores have replicates."""
    if not measures()[measure].higher or run.replicates is None or not run.score(measure) > 0:
        return {}
    drawn, cells = run.replicates.per_condition.get(measure, {}), run.per_condition.get(measure, {})
    return {
        text: interval_around(
            float(ratio(cells[text], cells["clean"])), ratio(drawn[text], drawn["clean"]), images=run.units
        ).of_fraction(math.inf)
        for text in conditions
        if text in drawn and "clean" in drawn
    }


def _difference(scope: Scope, levels: Mapping[str, list[Condition]]) -> Figure:
    """Every other run's cells less the reference's, in points; what got worst first."""
    m, base = scope.measure, scope.reference
    rows: list[Datum] = []
    for run in scope.runs:
        if run.name == base.name or not levels:
            continue
        ours = _grid(base, m, levels, "")
        theirs = {(row["y"], row["x"]): row["v"] for row in ours if ABSOLUTE in row["pick"]}
        for row in _grid(run, m, levels, run.name):
            other = theirs.get((row["y"], row["x"]), math.nan)
            exact = row["v"] - other
            if ABSOLUTE in row["pick"] and math.isfinite(exact):
                printed = printed_difference(row["v"], other)
                rows.append({"panel": run.name, "x": row["x"], "y": row["y"], "v": printed, "shade": exact})
    higher = measures()[m].higher
    better = "Positive is better than" if higher else "Negative is better than"
    most = max((abs(row["shade"]) for row in rows), default=1.0)
    return Figure(
        "difference", f"Difference from {base.name}, in points of {m}", Kind.HEAT,
        Axis("severity", names=True), Axis("corruption", names=True), _by_harm(rows, higher=higher),
        panel="model", value=f"difference of {m} (points)", top=max(1.0, float(math.ceil(most))),
        diverging=True, note=f"{better} {base.name}.",
    )  # fmt: skip


def _by_harm(rows: Sequence[Datum], *, higher: bool) -> list[Datum]:
    """Cells in the order of what hurts most, over all runs; clean last."""
    shades: dict[str, list[float]] = {}
    for row in rows:
        if math.isfinite(row["shade"]):
            shades.setdefault(row["y"], []).append(row["shade"] if higher else -row["shade"])
    harm = {name: fmean(values) for name, values in shades.items()}
    return sorted(rows, key=lambda row: (row["y"] == "clean", harm.get(row["y"], math.inf)))


def _cell(run: Scores, measure: str, value: float, scale: str) -> Datum:
    """A cell's number, and its colour: what is left of the clean score, or the error itself."""
    absolute, relative = per_cent(measure, value), share(value, run.score(measure))
    known = measures()[measure].higher and math.isfinite(relative)
    return {"v": absolute if scale == ABSOLUTE else relative, "shade": relative if known else absolute}


def _cells(every: Shown, what: str, conditions: list[str]) -> Table:
    columns = ("condition", *(f"{run.name}, {unit(measure)}" for run, measure in every))
    rows: list[list[Entry]] = [
        [text, *(per_cent(measure, run.score(measure, text)) for run, measure in every)]
        for text in ("clean", *conditions)
    ]
    return Table("cells", f"{what} of every condition", columns, rows)


def _sets(every: Shown) -> list[Table]:
    """The mean of each benchmark or suite, where a run holds several sets of conditions."""
    if not any(len(run.sets) > 1 for run, _ in every):
        return []
    fractions = all(measures()[m].fraction for _, m in every)
    rows = [
        (
            run.name, each.words, m if fractions else unit(m), per_cent(m, middle),
            share(middle, run.score(m)),
        )
        for run, m in every
        for each in run.sets
        if isinstance(middle := mean_of(run.totals(m, each)), float)
    ]  # fmt: skip
    note = "The mean is mPC (of errors: mCE) where the set is a whole benchmark or suite."
    columns = ("model", "set of conditions", "measure", f"mean{' (%)' * fractions}", "% of the clean score")
    return [Table("sets", "Each set of conditions", columns, rows, note=note)] if rows else []


@section(place=30)
def by_class(scope: Scope) -> Section | None:
    """Each class under each corruption, relative to its own clean score; of errors, the errors themselves."""
    kind = class_measure(scope.measure)
    declared = measures().get(kind, measures()[scope.measure])
    what = f"{kind} (%)" if declared.fraction else kind
    having = [run for run in scope.runs if run.per_class.get(kind, {}).get("clean")]
    if not having:
        return None
    objects = {run.name: run.detail("objects").get("clean", {}) for run in having}
    means = {run.name: _class_means(run, kind, objects[run.name], declared) for run in having}
    rows: list[Datum] = [
        {"pick": (model,), "x": corruption, "y": name, "v": value}
        for model, table in means.items()
        for name in _hardest(table, higher=declared.higher)[:_CLASSES]
        for corruption, value in table[name].items()
    ]
    lines = [
        (
            run.name, name, objects[run.name].get(name, "–"), declared.scale * clean,
            _class_interval(run, kind, name, declared.scale),
            fmean(row.values()) if (row := means[run.name].get(name)) else math.nan,
        )
        for run in having
        for name, clean in run.per_class[kind]["clean"].items()
        if clean > 0 or (clean == 0 and not declared.higher)
    ]  # fmt: skip
    words = _words_of_scores(kind) if declared.higher else _words_of_errors(kind, what)
    note = f"{words.order}; a class with few objects may come first by chance."
    if any(len(table) > _CLASSES for table in means.values()):
        note = f"The {_CLASSES} classes {words.first} on these images; the table below has all."
    figure = Figure(
        "classes", words.title, Kind.HEAT, Axis("corruption", names=True), Axis("class", names=True), rows,
        pick=("Model",), value=words.value, top=100.0 if declared.higher or declared.fraction else None,
        note=note,
    )  # fmt: skip
    columns = ("model", "class", "objects", f"clean {what}", "95 % interval", words.column)
    few = f"With fewer than {FEW_OBJECTS} objects, {words.few}"
    return Section(
        "classes",
        "Classes under corruption",
        words.text,
        (figure,) if rows else (),
        (Table("classes", "Classes", columns, lines, note=few),),
        short="Classes",
    )


class _ClassWords(NamedTuple):
    """What the section about classes says where higher is better, and where lower is."""

    title: str
    text: str
    value: str  # what the figure shows
    column: str
    order: str
    first: str
    few: str


def _words_of_scores(kind: str) -> _ClassWords:
    return _ClassWords(
        f"Share of each class's clean {kind}, mean over severities",
        f"{kind} of a class under corruption, in per cent of the same class on clean images.",
        "share of clean (%)",
        "left under corruption (% of clean)",
        "Sorted by what is left on these images",
        "with the least left",
        "what is left would be chance and is not shown. A class that scores 0 on clean images has no line.",
    )


def _words_of_errors(kind: str, what: str) -> _ClassWords:
    return _ClassWords(
        f"{kind} of each class, mean over severities",
        f"{kind} of a class under corruption; lower is better.",
        what,
        f"{what} under corruption",
        "Sorted by the error on these images",
        "with the highest errors",
        "the error under corruption would be chance and is not shown.",
    )


def _class_interval(run: Scores, kind: str, name: str, scale: float) -> str:
    """The interval of a class's clean score, in words; a dash without one."""
    held = {} if run.replicates is None else run.replicates.per_class.get(kind, {}).get("clean", {})
    known = held.get(name)
    if known is None or not math.isfinite(known.low):
        return "–"
    return known.span(scale)


def _class_means(
    run: Scores, kind: str, objects: Mapping[str, int], declared: Measure
) -> dict[str, dict[str, float]]:
    """Class → corruption → per cent of the clean score, or the error, of the classes with enough objects."""
    scores = run.per_class[kind]
    every: dict[str, dict[str, float]] = {}
    for name, clean in scores["clean"].items():
        if (declared.higher and not clean > 0) or objects.get(name, FEW_OBJECTS) < FEW_OBJECTS:
            continue
        means = {
            corruption: fmean(scores.get(str(c), {}).get(name, math.nan) for c in levels)
            for corruption, levels in all_levels(run.corrupted).items()
        }
        shown = {
            corruption: share(mean, clean) if declared.higher else declared.scale * mean
            for corruption, mean in means.items()
        }
        every[name] = {corruption: value for corruption, value in shown.items() if math.isfinite(value)}
    return every


def _hardest(table: dict[str, dict[str, float]], *, higher: bool) -> list[str]:
    sign = 1 if higher else -1
    return sorted(table, key=lambda name: (sign * fmean(table[name].values() or [sign * math.inf]), name))


@section(place=80, paper=True)
def clean_gains(scope: Scope) -> Section | None:
    """Clean against corrupted scores over models, and which measures go together."""
    m = scope.measure
    whole = [run for run in scope.runs if isinstance(run.mean(m), float) and math.isfinite(run.score(m))]
    if len(whole) < 3 or len({frozenset(run.over.covered) for run in whole}) > 1 or not measures()[m].higher:
        return None
    name = whole[0].mean_name(m)
    clean = {run.name: run.score(m) for run in whole}
    under = {run.name: float(run.mean(m)) for run in whole}
    both = correlate(clean, under)
    rows: list[Datum] = [
        {"x": per_cent(m, clean[run.name]), "y": per_cent(m, under[run.name]), "series": run.name}
        for run in whole
    ]
    figure = Figure(
        "carry-over", f"Mean {m} under corruption against clean {m}", Kind.POINTS,
        Axis(f"P: clean {unit(m)}"), Axis(f"{name}: {unit(m)} under corruption"), rows,
        series="model", by_run=True, cite="michaelis, section 3.2",
        note=f"Pearson {both.pearson:.2f} (p {both.pearson_p:.2g}), Spearman {both.spearman:.2f} "
        f"(p {both.spearman_p:.2g}) over {both.count} models.",
    )  # fmt: skip
    return Section(
        "gains",
        "Do gains on clean images carry over?",
        "Where they do, a model that is better on clean images is better under corruption by as much.",
        (figure,),
        (*_gains(scope, whole, name), *_measures(whole)),
        short="Clean gains",
    )


def _gains(scope: Scope, whole: list[Scores], name: str) -> list[Table]:
    m, base = scope.measure, scope.reference
    if base.name not in {run.name for run in whole}:
        return []
    # as those who subtract the numbers that the page prints above would find them
    rows = [
        (
            run.name,
            printed_difference(per_cent(m, run.score(m)), per_cent(m, base.score(m))),
            printed_difference(per_cent(m, run.mean(m)), per_cent(m, base.mean(m))),
        )
        for run in whole
        if run.name != base.name
    ]
    return [Table("gains", f"Gains over {base.name}, in points of {m}", ("model", "ΔP", f"Δ {name}"), rows)]


def _measures(whole: list[Scores]) -> list[Table]:
    """How the models' mPC, rPC and mCE of different measures go together."""
    columns: dict[str, dict[str, float]] = {}
    for measure in dict.fromkeys(name for run in whole for name in run.aggregates):
        for number in ("mPC", "rPC", "mCE"):
            column = {run.name: run.total(measure, number) for run in whole}
            if all(isinstance(v, float) and math.isfinite(v) for v in column.values()):
                columns[f"{number} of {measure}"] = column
    first = next((name for name in columns if name.startswith("mPC")), None)
    rows = [
        (a, b, correlation.pearson, correlation.spearman, correlation.count)
        for (a, b), correlation in correlation_table(columns).items()
        if a == first and math.isfinite(correlation.pearson)
    ]
    heads = ("measure", "with", "Pearson", "Spearman", "models")
    return [Table("measures", "Correlation of measures over models", heads, rows, 2)] if rows else []
