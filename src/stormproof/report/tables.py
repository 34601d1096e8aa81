"""Scores as printed tables; of one run, or of several as rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from stormproof.core.condition import SEVERITIES, Condition
from stormproof.corruptions.presets import PRESETS
from stormproof.corruptions.suites import KAMANN_NOISE_SEVERITIES, LIU, LIU_16, SUITES
from stormproof.metrics.aggregate import INPUTS, aggregates_of
from stormproof.metrics.metric import measures
from stormproof.metrics.sequences import curve_of
from stormproof.metrics.task import all_tasks
from stormproof.results.aggregates import MEAN, OBJECT_ERROR
from stormproof.results.calibrated import footnote, mark
from stormproof.results.documents import curves_of, images_scored
from stormproof.results.estimate import Estimate
from stormproof.results.interval import Interval, interval_target
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.sets import sets_of

FAR = 0.005  # half a point: more than the usual differences between decoders and resizing
# The aggregate that shows whether a paper's groups are there, with the title and columns of their table.
_GROUPS = {
    "by_group_michaelis": (
        "by group of corruptions",
        {"mPC": "by_group_michaelis", "rPC": "rPC_by_group_michaelis"},
    ),
    "by_group_kamann": (
        "by category of corruptions",
        {
            "mean": "by_group_kamann",
            "relative": "rPC_by_group_kamann",
            "CD": "CD_by_category",
            "rCD": "rCD_by_category",
        },
    ),
    "CE_by_group_liu": (
        "by part of the camera",
        {"CE": "CE_by_group_liu", "ΔCE": "delta_CE_by_group_liu"},
    ),
}
# *liu*, Table 2: the three places where a camera is damaged, by the groups of its faults
DAMAGES = {
    "camera damage": ("optics", "sensor"),
    "image signal processor damage": ("processor",),
    "board-level damage": ("board",),
}
# Their columns over conditions that are not a whole benchmark or suite.
_UNNAMED = {"mPC": "mean", "rPC": "% of P left"}


def summary_table(scores: Scores) -> Table:
    """P, mPC and rPC of every measure over the first set of conditions, each with its interval if known; mCE
    of E; CD and rCD against a reference. Other errors, and conditions that are not a benchmark or suite,
    have a mean instead."""
    sure = scores.replicates is not None
    columns = summary_columns(scores)
    table = Table(title=Text(title_of(scores, "in %")), title_justify="left")
    table.add_column("measure", overflow="fold")
    for _, words in columns:
        table.add_column(words, justify="right")
    if sure:
        table.add_column("optimism of P", justify="right")
    known = measures()
    for name, found in scores.aggregates.items():
        if known[name].fraction:
            intervals = scores.intervals(name) if sure else {}
            keys = [held_under(name, key, found) for key, _ in columns]
            cells = [
                plus_minus(intervals[key]) if key in intervals else percent(found.get(key, math.nan))
                for key in keys
            ]
            optimism = [_sign(intervals.get("P"))] if sure else []
            style = "bold" if name == scores.headline else ""
            table.add_row(mark(scores, name), *cells, *optimism, style=style)
    table.caption = footnote(scores, [name for name in scores.aggregates if known[name].fraction]) or None
    return table


def title_of(scores: Scores, unit: str) -> str:
    """What the numbers of one run describe, and their unit."""
    reference = f", against {scores.reference.name}" if scores.reference else ""
    over = f", over {scores.over.words}" if scores.over.conditions else ""
    asked = f"; {scores.options.words}" if scores.options.words else ""
    what = f"{scores.called} on {scores.dataset}, {images_scored(scores)}{over}{reference}{asked}"
    if scores.replicates is None:
        return f"{what} ({unit})"
    return f"{what}: 95 % intervals for {interval_target(scores.clips)} ({unit})"


def summary_columns(scores: Scores) -> list[tuple[str, str]]:
    """The aggregates that any measure has, with their headings."""
    inputs = [given for given in INPUTS if "reference" not in given or scores.reference is not None]
    declared = [(found.name, found.column) for found in aggregates_of(*inputs) if found.column]
    declared.append((MEAN, scores.over.mean_words))
    return [
        (key, column)
        for key, column in declared
        if any(held_under(name, key, found) in found for name, found in scores.aggregates.items())
    ]


def held_under(measure: str, key: str, found: Mapping[str, Any]) -> str:
    """The aggregate that a column shows of a measure: mCE and its changes belong to E, and what other errors
    hold under that name is their mean."""
    if measure == OBJECT_ERROR or measures()[measure].higher:
        return key
    if key == MEAN and "mCE" in found:
        return "mCE"
    return "" if key in ("mCE", "delta_mCE", "delta_E") else key


def set_lines(scores: Scores) -> list[str]:
    """The headline measure over each set of conditions: one line each, where there are several."""
    lines = []
    for each in scores.sets if len(scores.sets) > 1 else ():
        found = scores.totals(scores.headline, each)
        shown = {key: found[key] for key in ("P", "mPC", "rPC", "mCE", MEAN) if key in found}
        numbers = ", ".join(
            f"{key} {number(scores.headline, value, key)}"
            for key, value in shown.items()
            if not math.isnan(value)
        )
        words = each.words if each.name else f"the other {each.words}"
        lines.append(f"{scores.headline} over {words}: {numbers}")
    return lines


def truth_line(scores: Scores) -> str:
    """How many classes mIoU is over: those in the truth, the same for all conditions."""
    shown = next(iter(scores.per_class.get("IoU", {}).values()), {})
    count = sum(not math.isnan(value) for value in shown.values())
    return f"mIoU is over the {count} classes in the truth." if count else ""


def class_line(scores: Scores) -> str:
    """The classes that means cover, if not all of the dataset's."""
    if scores.record is None:
        return ""
    dataset = scores.record.dataset
    tasks = [task for task in all_tasks() if task.headline in scores.cells]
    sides = [dataset.classes if task.form.of_objects else dataset.semantic_classes for task in tasks]
    known = {name for side in sides for name in side}
    if not scores.classes or known <= {*scores.classes}:
        return ""
    some = ", ".join(scores.classes[:5]) + (" …" if len(scores.classes) > 5 else "")
    return f"Means are over {len(scores.classes)} of the dataset's {len(known)} classes: {some}."


def grid_table(scores: Scores) -> Table:
    """The headline measure by corruption and severity, with the mean of each row where all are complete."""
    values = scores.cells[scores.headline]
    unit = " (in %)" if measures()[scores.headline].fraction else ""
    table = Table(title=f"{scores.headline} by corruption and severity{unit}", title_justify="left")
    table.add_column("corruption", overflow="fold")
    for level in SEVERITIES:
        table.add_column(str(level), justify="right")
    table.add_column("mean", justify="right")
    means = _means(scores)
    graded: dict[str, dict[int, float]] = {}
    for text, value in values.items():
        condition = Condition.parse(text)
        if curve_of(condition) is not None and curves_of(scores, scores.headline):
            continue  # they are in a table of their own
        if condition.whole_severity is None:
            # As text: to rich, the brackets of a condition would be a style, and vanish.
            table.add_row(Text(text), *[""] * len(SEVERITIES), number(scores.headline, value))
        else:
            graded.setdefault(condition.series, {})[condition.whole_severity] = value
    for name, levels in graded.items():
        cells = [number(scores.headline, levels[each]) if each in levels else "–" for each in SEVERITIES]
        table.add_row(Text(name), *cells, number(scores.headline, means.get(name, math.nan)))
    return table


def _means(scores: Scores) -> dict[str, float]:
    """The headline's mean of each corruption by the rule of its set; none of an incomplete grid."""
    means: dict[str, float] = {}
    for each in reversed(scores.sets):
        found = scores.totals(scores.headline, each)
        means |= found.get("by_corruption") or found.get("CE") or {}
    return means


def group_tables(scores: Scores) -> list[Table]:
    """The headline measure by the groups of the run's paper, in percent; means of categories with their
    standard deviation."""
    found = scores.aggregates.get(scores.headline, {})
    kamann = _few_noise(scores)
    papers = {"by_group_kamann"} if kamann else {*_GROUPS} - {"by_group_kamann"}
    tables = []
    for key in (key for key in _GROUPS if key in papers and key in found):
        title, columns = _GROUPS[key]
        shown = {words: found[source] for words, source in columns.items() if source in found}
        table = Table(title=f"{scores.headline}, {title} (in %)", title_justify="left")
        table.add_column("group")
        for words in shown:
            table.add_column(words if scores.over.whole else _UNNAMED.get(words, words), justify="right")
        for group in found[key]:
            table.add_row(group, *(_group_cell(values.get(group, math.nan)) for values in shown.values()))
        tables.append(table)
    return tables


def _few_noise(scores: Scores) -> bool:
    """Whether the conditions are those of *kamann*, whose means leave out strong noise."""
    named = PRESETS.get(scores.over.name) or SUITES.get(scores.over.name)
    return named is not None and named.noise_severities == KAMANN_NOISE_SEVERITIES


def _group_cell(value: float | Mapping[str, float]) -> str:
    if isinstance(value, Mapping):
        return f"{100 * value['mean']:.1f} ± {100 * value['std']:.1f}"
    return percent(value)


def curve_table(scores: Scores) -> Table:
    """The headline measure along α, relative to clean, by space and part of the image, with intervals if
    known."""
    curves = curves_of(scores, scores.headline)
    sure = {} if scores.replicates is None else scores.intervals(scores.headline)
    table = Table(title=f"r{scores.headline} by α (in % of clean)", title_justify="left")
    table.add_column("α", justify="right")
    for space, part in curves:
        table.add_column(f"{space}\n{part}", justify="right")
    for alpha in sorted({alpha for curve in curves.values() for alpha in curve}):
        cells = [
            plus_minus(sure[key])
            if (key := f"rP/{space}/{part}/{alpha:g}") in sure
            else percent(curve.get(alpha, math.nan))
            for (space, part), curve in curves.items()
        ]
        table.add_row(f"{alpha:g}", *cells)
    return table


def fault_table(scores: Scores) -> Table | None:
    """CE of each camera fault and the means of the paper's three kinds of damage, with what a reference
    changes (*liu*, Tables 2 and 5); None unless all faults were run."""
    found = scores.aggregates.get(OBJECT_ERROR, {})
    columns = {"CE": found.get("CE", {}), "ΔCE": found.get("delta_CE", {})}
    if not {*LIU_16} <= columns["CE"].keys() or not scores.over.whole:
        return None
    shown = {words: values for words, values in columns.items() if values}
    table = Table(title="Object error E by camera fault (in %; lower is better)", title_justify="left")
    table.add_column("fault")
    for words in shown:
        table.add_column(words, justify="right")
    for name in LIU_16:
        table.add_row(name, *(percent(values[name]) for values in shown.values()))
    table.add_section()
    for damage, groups in DAMAGES.items():
        members = [name for group in groups for name in LIU[group]]
        means = (sum(values[name] for name in members) / len(members) for values in shown.values())
        table.add_row(f"mean of {damage}", *map(percent, means))
    return table


def models_table(every: Mapping[str, Scores]) -> Table:
    """One row for each run: its headline measure on clean images, under corruption, and their ratio.

    Where the conditions are not a benchmark or suite, there is a mean over them instead.
    """
    fractions = all(measures()[scores.headline].fraction for scores in every.values())
    table = Table(title="Models (in %)" if fractions else "Models", title_justify="left")
    for name in ("model", "dataset", "measure"):
        table.add_column(name, overflow="fold")
    totals = {name: scores.aggregates.get(scores.headline, {}) for name, scores in every.items()}
    unnamed = [MEAN] if any(MEAN in found for found in totals.values()) else []
    for name in ("P", "mPC", "rPC", *unnamed, "conditions"):
        table.add_column(name, justify="right")
    for name, scores in every.items():
        found = {**totals[name], "P": scores.score(scores.headline)}
        keys = ("P", "mPC", "rPC", *unnamed)
        cells = [number(scores.headline, found.get(key), key) for key in keys]
        count = str(len(scores.conditions) - len(scores.missing))
        table.add_row(Text(name), Text(scores.dataset), scores.headline, *cells, count)
    return table


def expectations(scores: Scores) -> list[str]:
    """Warnings about clean scores that differ from the expected ones."""
    found = []
    for measure, promised in scores.record.expect.items() if scores.record else ():
        clean = scores.score(measure)
        if math.isnan(clean):
            found.append(f"no clean {measure} to compare with the expected {100 * promised:.1f}.")
        elif abs(clean - promised) > FAR:
            found.append(
                f"clean {measure} is {100 * clean:.1f}, expected {100 * promised:.1f}: check the model's "
                "size, normalisation and classes, and that these are the card's images."
            )
    return found


def estimate_table(run: Run, found: Estimate) -> Table:
    """An estimate from part of a grid, marked as one."""
    part = f"{100 * found.inferences:.1f} % of the inferences, {found.shares:g} images a condition"
    table = Table(title=Text(f"ESTIMATE of {run.name} from {part} (in %)"), title_justify="left")
    for column in ("", "estimate", "95 % of the full grid's"):
        table.add_column(column)
    table.add_row("P", f"{100 * found.clean:.2f}", "in full")
    mean = sets_of(run.conditions, run.record.benchmark)[0].mean_name
    relative = "rPC" if mean == "mPC" else f"{mean}, relative to P"
    for name, interval in ((mean, found.mpc), (relative, found.rpc)):
        sure = interval.span(digits=2, between=" … ")
        table.add_row(name, f"{100 * interval.estimate:.2f}", sure, style="bold")
    for name, interval in found.by_corruption.items():
        table.add_row(Text(name), f"{100 * interval.estimate:.1f}", interval.span(digits=2, between=" … "))
    return table


def plus_minus(interval: Interval) -> str:
    """
    >>> plus_minus(Interval(0.302, 0.29, 0.314, 0.006)), plus_minus(Interval(0.302, 0.28, 0.314, 0.006, 0.01))
    ('30.2 ± 1.2', '30.2 −2.2 +1.2')
    """
    if math.isnan(interval.estimate):
        return ""
    if math.isnan(interval.se):
        return f"{percent(interval.estimate)} ± ?"
    below, above = percent(interval.estimate - interval.low), percent(interval.high - interval.estimate)
    width = f"± {above}" if below == above else f"−{below} +{above}"
    return f"{percent(interval.estimate)} {width}"


def number(measure: str, value: float | None, aggregate: str = "") -> str:
    """A value of a measure, or an aggregate of it, as tables show it; rPC is a ratio whatever the measure.

    >>> number("AP", 0.302), number("FP per image", 1.5), number("FP per image", 0.5, "rPC")
    ('30.2', '1.5', '50.0')
    """
    if aggregate == "rPC" or value is None:
        return percent(value)
    return percent(measures()[measure].scale / 100 * value)


def percent(value: float | None) -> str:
    """A fraction as tables show it; empty if there is none."""
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _sign(interval: Interval | None) -> str:
    return "" if interval is None or math.isnan(interval.optimism) else f"{100 * interval.optimism:+z.2f}"
