"""Scores as printed tables; of one run, or of several as rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from stormproof.core.condition import SEVERITIES, Condition
from stormproof.core.errors import counted
from stormproof.core.table import Entry, Styled, Table, cell_text, styled
from stormproof.corruptions.presets import PRESETS
from stormproof.corruptions.suites import KAMANN_NOISE_SEVERITIES, LIU, LIU_16, SUITES
from stormproof.metrics.aggregate import INPUTS, aggregates_of
from stormproof.metrics.metric import measures
from stormproof.metrics.sequences import curve_of
from stormproof.metrics.task import all_tasks
from stormproof.report.sections import all_levels, per_cent, unit
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
_WIDTH = 12  # of a bar
_SHADES = ("red", "dark_orange", "yellow3", "green3", "green")  # from nothing left to all of it


def summary_table(scores: Scores) -> Table:
    """P, mPC and rPC of every measure over the first set of conditions, each with its interval if known; mCE
    of E; CD and rCD against a reference. Other errors, and conditions that are not a benchmark or suite,
    have a mean instead."""
    sure = scores.replicates is not None
    columns = summary_columns(scores)
    fractions = {name: held for name, held in scores.aggregates.items() if measures()[name].fraction}
    rows: list[Sequence[Entry]] = []
    for name, held in fractions.items():
        intervals = scores.intervals(name) if sure else {}
        keys = [held_under(name, key, held) for key, _ in columns]
        row: list[Entry] = [mark(scores, name)]
        row += [
            plus_minus(intervals[key]) if key in intervals else percent(held.get(key, math.nan))
            for key in keys
        ]
        row += [_sign(intervals.get("P"))] if sure else []
        rows.append(styled(row, "bold") if name == scores.headline else row)
    heads = ("measure", *(words for _, words in columns), *(("optimism of P",) if sure else ()))
    note = footnote(scores, list(fractions))
    return Table("measures", title_of(scores, "in %"), heads, rows, note=note)


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


def held_under(measure: str, key: str, totals: Mapping[str, Any]) -> str:
    """The aggregate that a column shows of a measure: mCE and its changes belong to E, and what other errors
    hold under that name is their mean."""
    if measure == OBJECT_ERROR or measures()[measure].higher:
        return key
    if key == MEAN and "mCE" in totals:
        return "mCE"
    return "" if key in ("mCE", "delta_mCE", "delta_E") else key


def scope_lines(scores: Scores) -> Iterator[str]:
    """What the numbers cover: each set of conditions, where there are several; the classes of means, if not
    all of the dataset's; and those of mIoU, which are the same for all conditions."""
    for each in scores.sets if len(scores.sets) > 1 else ():
        totals = scores.totals(scores.headline, each)
        shown = {key: totals[key] for key in ("P", "mPC", "rPC", "mCE", MEAN) if key in totals}
        numbers = ", ".join(
            f"{key} {number(scores.headline, value, key)}"
            for key, value in shown.items()
            if not math.isnan(value)
        )
        words = each.words if each.name else f"the other {each.words}"
        yield f"{scores.headline} over {words}: {numbers}"
    if scores.record is not None and scores.classes:
        dataset = scores.record.dataset
        tasks = [task for task in all_tasks() if task.headline in scores.per_condition]
        sides = [dataset.classes if task.form.of_objects else dataset.semantic_classes for task in tasks]
        known = {name for side in sides for name in side}
        if not known <= {*scores.classes}:
            some = ", ".join(scores.classes[:5]) + (" …" if len(scores.classes) > 5 else "")
            yield f"Means are over {len(scores.classes)} of the dataset's {len(known)} classes: {some}."
    by_class = next(iter(scores.per_class.get("IoU", {}).values()), {})
    if count := sum(not math.isnan(value) for value in by_class.values()):
        yield f"mIoU is over the {counted(count, 'class')} in the truth."


def grid_table(scores: Scores) -> Table:
    """The headline measure by corruption and severity, with the mean of each row where all are complete."""
    in_percent = " (in %)" if measures()[scores.headline].fraction else ""
    means: dict[str, float] = {}  # of each corruption by the rule of its set; none of an incomplete grid
    for each in reversed(scores.sets):
        totals = scores.totals(scores.headline, each)
        means |= totals.get("by_corruption") or totals.get("CE") or {}
    rows: list[list[Entry]] = []
    graded: dict[str, dict[int, float]] = {}
    along_alpha = curves_of(scores, scores.headline)
    for text, value in scores.per_condition[scores.headline].items():
        condition = Condition.parse(text)
        if curve_of(condition) is not None and along_alpha:
            continue  # they are in a table of their own
        if condition.whole_severity is None:
            rows.append([text, *[""] * len(SEVERITIES), per_cent(scores.headline, value)])
        else:
            graded.setdefault(condition.series, {})[condition.whole_severity] = value
    for name, levels in graded.items():
        values = [*(levels.get(level, math.nan) for level in SEVERITIES), means.get(name, math.nan)]
        rows.append([name, *(per_cent(scores.headline, value) for value in values)])
    title = f"{scores.headline} by corruption and severity{in_percent}"
    return Table("grid", title, ("corruption", *map(str, SEVERITIES), "mean"), rows)


def scores_by_severity(scores: Scores, measure: str) -> dict[str, dict[str, float]]:
    """The score of each corruption, what hurts most first, at each severity and as their `MEAN`; a condition
    without a severity has only that."""
    means = scores.by_corruption(measure)
    lines: dict[str, dict[str, float]] = {
        name: {MEAN if c.severity is None else f"{c.severity:g}": scores.score(measure, str(c)) for c in held}
        for name, held in all_levels(scores.corrupted).items()
    }
    for name, mean in means.items():
        lines.setdefault(name, {})[MEAN] = mean
    sign = 1 if measures()[measure].higher else -1
    return dict(sorted(lines.items(), key=lambda line: sign * line[1].get(MEAN, sign * math.inf)))


def severity_columns(lines: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The severities of any line of `scores_by_severity`, in order."""
    return sorted({column for line in lines.values() for column in line} - {MEAN}, key=float)


def bar_table(scores: Scores, measure: str) -> Table:
    """A measure by corruption and severity, what hurts most first, with a bar for what is left of clean.
    Of an error nothing is left, so it is given in per cent of the clean one."""
    clean, lines = scores.score(measure), scores_by_severity(scores, measure)
    higher = measures()[measure].higher
    columns = [*severity_columns(lines), MEAN]
    rows: list[list[Entry]] = []
    for name, line in lines.items():
        values = [line.get(column, math.nan) for column in columns]
        shades = [_shade(value, clean) if higher else "" for value in values]
        texts = [cell_text(per_cent(measure, value)) for value in values]
        cells = [Styled(text, shade) for text, shade in zip(texts, shades, strict=True)]
        rows.append([name, *cells, _bar(values[-1], clean) if higher else _of_clean(values[-1], clean)])
    title = f"{unit(measure)} by severity, and its mean"
    last = "left of clean" if higher else "of clean"
    return Table("bars", title, ("corruption", *columns, last), rows)


def _bar(value: float, clean: float) -> Entry:
    said = _of_clean(value, clean)
    if math.isnan(value) or said is None:
        return said
    return Styled(f"{'█' * round(_WIDTH * min(value / clean, 1)):<{_WIDTH}} {said}", _shade(value, clean))


def _of_clean(value: float, clean: float) -> str | None:
    if math.isnan(value):
        return "incomplete"
    return f"{100 * value / clean:.0f} %" if clean > 0 else None


def _shade(value: float, clean: float) -> str:
    """The colour of what is left; none where nobody knows."""
    left = value / clean if clean > 0 else 0.0
    if math.isnan(left):
        return ""
    return _SHADES[min(len(_SHADES) - 1, max(0, int(left * len(_SHADES))))]


def group_tables(scores: Scores) -> list[Table]:
    """The headline measure by the groups of the run's paper, in percent; means of categories with their
    standard deviation."""
    totals = scores.aggregates_of(scores.headline)
    named = PRESETS.get(scores.over.name) or SUITES.get(scores.over.name)
    # means of *kamann* leave out strong noise
    kamann = named is not None and named.noise_severities == KAMANN_NOISE_SEVERITIES
    papers = {"by_group_kamann"} if kamann else {*_GROUPS} - {"by_group_kamann"}
    tables = []
    for key in (key for key in _GROUPS if key in papers and key in totals):
        title, columns = _GROUPS[key]
        shown = {words: totals[source] for words, source in columns.items() if source in totals}
        heads = [words if scores.over.whole else _UNNAMED.get(words, words) for words in shown]
        rows = [
            [group, *(_group_cell(values.get(group, math.nan)) for values in shown.values())]
            for group in totals[key]
        ]
        tables.append(Table(key, f"{scores.headline}, {title} (in %)", ("group", *heads), rows))
    return tables


def _group_cell(value: float | Mapping[str, float]) -> str:
    if isinstance(value, Mapping):
        return f"{100 * value['mean']:.1f} ± {100 * value['std']:.1f}"
    return percent(value)


def curve_table(scores: Scores) -> Table:
    """The headline measure along α, relative to clean, by space and part of the image, with intervals if
    known."""
    curves = curves_of(scores, scores.headline)
    sure = {} if scores.replicates is None else scores.intervals(scores.headline)
    rows = [
        [f"{alpha:g}"]
        + [
            plus_minus(sure[key])
            if (key := f"rP/{space}/{part}/{alpha:g}") in sure
            else percent(curve.get(alpha, math.nan))
            for (space, part), curve in curves.items()
        ]
        for alpha in sorted({alpha for curve in curves.values() for alpha in curve})
    ]
    heads = (f"{space}\n{part}" for space, part in curves)
    return Table("curves", f"r{scores.headline} by α (in % of clean)", ("α", *heads), rows)


def fault_table(scores: Scores) -> Table | None:
    """CE of each camera fault and the means of the paper's three kinds of damage, with what a reference
    changes (*liu*, Tables 2 and 5); means over fewer severities are not called CE. None unless all faults
    were run."""
    totals = scores.aggregates_of(OBJECT_ERROR)
    heads = ("CE", "ΔCE") if scores.over.whole else ("mean E", "change")
    columns = dict(zip(heads, (totals.get("CE", {}), totals.get("delta_CE", {})), strict=True))
    if not {*LIU_16} <= columns[heads[0]].keys():
        return None
    shown = {words: values for words, values in columns.items() if values}
    members = {name: [name] for name in LIU_16}
    for damage, groups in DAMAGES.items():
        members[f"mean of {damage}"] = [name for group in groups for name in LIU[group]]
    rows = [
        [words, *(percent(fmean(values[name] for name in names)) for values in shown.values())]
        for words, names in members.items()
    ]
    return Table("faults", "Object error E by camera fault (in %; lower is better)", ("fault", *shown), rows)


def models_table(every: Mapping[str, Scores]) -> Table:
    """One row for each run: its headline measure on clean images, under corruption, and their ratio.

    Where the conditions are not a benchmark or suite, there is a mean over them instead.
    """
    fractions = all(measures()[scores.headline].fraction for scores in every.values())
    totals = {name: scores.aggregates_of(scores.headline) for name, scores in every.items()}
    unnamed = [MEAN] if any(MEAN in held for held in totals.values()) else []
    keys = ("P", "mPC", "rPC", *unnamed)
    rows: list[list[Entry]] = []
    for name, scores in every.items():
        held = {**totals[name], "P": scores.score(scores.headline)}
        cells = [number(scores.headline, held.get(key), key) for key in keys]
        count = len(scores.conditions) - len(scores.missing)
        rows.append([name, scores.dataset, scores.headline, *cells, count])
    columns = ("model", "dataset", "measure", *keys, "conditions")
    return Table("models", "Models (in %)" if fractions else "Models", columns, rows)


def expectations(scores: Scores) -> list[str]:
    """Warnings about clean scores that differ from the expected ones."""
    warnings = []
    for measure, promised in scores.record.expect.items() if scores.record else ():
        clean = scores.score(measure)
        if math.isnan(clean):
            warnings.append(f"no clean {measure} to compare with the expected {100 * promised:.1f}.")
        elif abs(clean - promised) > FAR:
            warnings.append(
                f"clean {measure} is {100 * clean:.1f}, expected {100 * promised:.1f}: check the model's "
                "size, normalisation and classes, and that these are the card's images."
            )
    return warnings


def estimate_table(run: Run, estimate: Estimate) -> Table:
    """An estimate from part of a grid, marked as one."""
    part = f"{100 * estimate.inferences:.1f} % of the inferences, {estimate.shares:g} images a condition"
    mean = sets_of(run.conditions, run.record.benchmark)[0].mean_name
    relative = "rPC" if mean == "mPC" else f"{mean}, relative to P"

    def line(name: str, interval: Interval, digits: int) -> list[Entry]:
        return [name, f"{100 * interval.estimate:.{digits}f}", interval.span(digits=2, between=" … ")]

    rows: list[Sequence[Entry]] = [["P", f"{100 * estimate.clean:.2f}", "in full"]]
    rows += [styled(line(*one, 2), "bold") for one in ((mean, estimate.mpc), (relative, estimate.rpc))]
    rows += [line(name, interval, 1) for name, interval in estimate.by_corruption.items()]
    title = f"ESTIMATE of {run.name} from {part} (in %)"
    return Table("estimate", title, ("", "estimate", "95 % of the full grid's"), rows)


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
