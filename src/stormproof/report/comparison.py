"""Two runs side by side: what got better or worse, by corruption, class and image; which ranks changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.errors import first_few
from stormproof.core.loading import framework
from stormproof.core.table import Entry, Table
from stormproof.core.text import plain
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section, View
from stormproof.report.make import write_page
from stormproof.report.page import page
from stormproof.report.sections import (
    FEW_OBJECTS,
    class_measure,
    group_by_severity,
    per_cent,
    printed_difference,
    unit,
)
from stormproof.report.sentences import classes_of, comparable, keeping, more_images, spoken, with_interval
from stormproof.report.sources import Source, disambiguate_names, one_run
from stormproof.report.view import drawable, make_view
from stormproof.results.aggregates import MEAN, NAMED
from stormproof.results.comparable import differences, image_difference, image_set
from stormproof.results.documents import curves_of
from stormproof.results.interval import Difference, interval_target
from stormproof.results.scores import Scores
from stormproof.results.worst import ImageErrors, image_measure

_IMAGES = 20  # of those that changed most
CHANGE_NOTE = "A change is the difference of the two numbers as they are printed."
CLEAN = "clean"
RANKS = ("rank before", "rank after", "change of rank")
RANK_NOTE = (
    " Rank 1 hurts most; where the change of rank is positive, a corruption hurts less than before, compared "
    "with the others. On other images, neighbours may change places."
)


@dataclass(frozen=True, repr=False, eq=False)
class RunComparison:
    """What changed from one run to another: a sentence, a table of changes, and the page of both."""

    view: View

    @property
    def sentence(self) -> str:
        """The change on clean images and under corruption, and how many corruptions got better or worse."""
        return self.view.sentences[0]

    @property
    def table(self) -> Table:
        """Clean, the mean under corruption, then every corruption from what got worse to what got better."""
        return self.view.summary

    def to_frame(self) -> Any:
        """The table as a pandas frame."""
        return framework("pandas", extra="notebook").DataFrame(self.table.rows, columns=self.table.columns)

    def save(self, out: str | PathLike[str]) -> Path:
        """Write the comparison as a page, and its numbers beside it as JSON."""
        return write_page(Path(out), self.view, page(self.view))[0]

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{self.table.as_html()}"

    def __repr__(self) -> str:
        return f"<comparison: {self.sentence}>"


def compare(
    before: Source, after: Source, *, measure: str | None = None, interval: bool = True
) -> RunComparison:
    """What changed from one run to another, over the conditions that both hold.

    Where both are runs on the same images, changes have 95 % intervals and are called clear if chance is an
    unlikely explanation; `interval=False` saves the seconds that this takes.
    """
    first, second = (one_run(side, interval=interval) for side in (before, after))
    return RunComparison(compare_view(first, second, measure=measure))


class Change(NamedTuple):
    """A number of both runs as it is printed, and how certain its change is, if that is known."""

    name: str
    before: float
    after: float
    sure: Difference | None = None

    @property
    def points(self) -> float:
        """The change as it is printed."""
        return printed_difference(self.after, self.before)

    @property
    def exact(self) -> float:
        """The change that decides order and direction: a clear one may be printed as 0.0."""
        return self.after - self.before


def compare_view(a: Scores, b: Scores, *, measure: str | None = None) -> View:
    """The view of a comparison: the changes first, then both runs as in any report.

    Changes have intervals where both runs have replicates of the same images.
    """
    both = make_view([a, b], measure=measure)
    first, second = over_common(*disambiguate_names([a, b]))
    chosen = measure or next((m for m in (first.headline, *first) if m in second), first.headline)
    notices = (*_other_images(first, second), *_other_classes(first, second, chosen), *both.notices)
    both = replace(both, title=f"{plain(first.name)} → {plain(second.name)}", notices=notices)
    changes = changes_of(first, second, chosen)
    if len(changes) < 2 and (along := curve_changes(first, second, chosen)):
        said = (curve_sentence(first, second, along), *both.sentences[1:])
        return replace(both, sentences=said, summary=curve_change_table(first, second, along), decision=None)
    if len(changes) < 2:
        alone = f"{first.name} and {second.name} share no complete corruption of {chosen}."
        return replace(both, sentences=(alone, *both.sentences[1:]))
    figure, by_severity = _figures(first, second, chosen, changes)
    sections = drawable(
        (
            Section("severities", "Change at each severity", "", (by_severity,), short="Change by severity"),
            *by_class(first, second, chosen),
            *by_image(first, second),
            Section("runs", "Both runs", "", (both.first,) if both.first else (), (both.summary,)),
        ),
        [first, second],
    )
    return replace(
        both,
        sentences=(verdict(first, second, chosen, changes), *both.sentences[1:]),
        summary=change_table(first, second, chosen, changes),
        first=figure,
        breaking=None,
        weak_points="",
        decision=None,
        sections=(*sections, *both.sections),
    )


def _other_images(a: Scores, b: Scores) -> tuple[str, ...]:
    """A notice if the runs are of different images or labels, or nobody knows whether they are."""
    difference = image_difference(a, b)
    if not difference:
        return ()
    if image_set(a).fingerprint and image_set(b).fingerprint:
        return (f"Not a fair comparison: {difference}. Changes may come from the images, not the models.",)
    return (f"{difference}: nothing says whether these are the same images.",)


def _other_classes(a: Scores, b: Scores, measure: str) -> tuple[str, ...]:
    """A notice if the models know different classes of the dataset, so that means are over other classes."""
    ours, theirs = classes_of(a, measure), classes_of(b, measure)
    if not ours or not theirs or ours == theirs:
        return ()
    apart = first_few(sorted(ours ^ theirs), 3)
    return (
        f"Not a fair comparison: {a.name} is scored over {len(ours)} of the dataset's classes, {b.name} over "
        f"{len(theirs)} (they differ in {apart}). Compare them over classes that both know: "
        "'stormproof score A B --classes …'.",
    )


def over_common(a: Scores, b: Scores) -> tuple[Scores, Scores]:
    """Both runs over the conditions that both hold, so that their means are of the same conditions."""
    common = tuple(text for text in a.conditions if text in b.conditions)
    benchmark = a.benchmark if a.benchmark == b.benchmark else None

    def reduced(scores: Scores) -> Scores:
        if scores.origin.given:
            return scores
        cells = {
            m: {text: row[text] for text in common if text in row} for m, row in scores.per_condition.items()
        }
        return replace(scores, conditions=common, benchmark=benchmark, per_condition=cells)

    return reduced(a), reduced(b)


def changes_of(a: Scores, b: Scores, measure: str) -> list[Change]:
    """Clean, the mean under corruption, then every corruption from what got worse to what got better.

    Only clean, if the runs share no corruption.
    """

    def change(name: str, before: float, after: float, sure: Difference | None = None) -> Change:
        return Change(name, per_cent(measure, before), per_cent(measure, after), sure)

    sure = differences(b, a, [measure]).get(measure, {}) if a.replicates and b.replicates else {}
    before, after = a.by_corruption(measure), b.by_corruption(measure)
    kind, sign = ("by_corruption", 1) if measures()[measure].higher else ("CE", -1)
    by_corruption = [
        change(name, before[name], after[name], sure.get(f"{kind}/{name}"))
        for name in before
        if name in after
    ]
    by_corruption.sort(key=lambda each: sign * each.exact)
    clean = change(CLEAN, a.score(measure), b.score(measure), sure.get("P"))
    if not by_corruption:
        return [clean]
    means = a.mean(measure), b.mean(measure)
    same = a.over.covered == b.over.covered and {*before} == {*after} == {c.name for c in by_corruption}
    if same and all(isinstance(value, float) for value in means):
        known = next((sure[name] for name in (*NAMED, MEAN) if name in sure), None)
        mean = change(name if (name := a.mean_name(measure)) in NAMED else MEAN, *means, known)
    else:
        old, new = (fmean(side[each.name] for each in by_corruption) for side in (before, after))
        mean = change(MEAN, old, new)
    return [clean, mean, *by_corruption]


class CurveChange(NamedTuple):
    """rP of both runs at one α of a curve, in % of clean."""

    measure: str
    space: str
    part: str
    alpha: float
    change: Change


def curve_changes(a: Scores, b: Scores, measure: str) -> list[CurveChange]:
    """What changed along α, by size of object, space and part of the image: at the first, the middle and the
    last α that both runs hold (*theodoridis*, section 4)."""
    sizes = [measure, *(f"{measure}{size}" for size in "sml")]
    paired = differences(b, a, sizes) if a.replicates and b.replicates else {}
    along = []
    for name in (name for name in sizes if name in a and name in b):
        theirs = curves_of(b, name)
        for (space, part), curve in curves_of(a, name).items():
            shared = sorted({*curve} & {*theirs.get((space, part), {})})
            for alpha in dict.fromkeys(shared[i] for i in (0, len(shared) // 2, -1) if shared):
                sure = paired.get(name, {}).get(f"rP/{space}/{part}/{alpha:g}")
                before, after = (100 * side[alpha] for side in (curve, theirs[space, part]))
                along.append(CurveChange(name, space, part, alpha, Change(name, before, after, sure)))
    return along


def curve_sentence(a: Scores, b: Scores, along: Sequence[CurveChange]) -> str:
    """The change at the end of a curve, that of whole images where both runs have it, in a sentence."""
    told = next((c for c in along if c.part == "image"), along[0])
    end = max((c for c in along if c[:3] == told[:3]), key=lambda c: c.alpha)
    points = with_interval(end.change.points, end.change.sure, 100)
    return (
        f"From {a.name} to {b.name}, the share of the clean {end.measure} that is left at α = {end.alpha:g} "
        f"({end.space} space, {end.part}) changes by {points} points."
    )


def curve_change_table(a: Scores, b: Scores, along: Sequence[CurveChange]) -> Table:
    sure = any(each.change.sure is not None for each in along)
    rows: list[tuple[Entry, ...]] = []
    for each in along:
        change = each.change
        known = _interval_cells(100.0, change.sure) if sure else ()
        rows.append((f"r{each.measure}", each.space, each.part, each.alpha, change.before, change.after,
                     change.points, *known))  # fmt: skip
    columns = ("measure", "space", "stylized", "α", a.name, b.name, "change",
               *(("95 % from", "to", "clear") if sure else ()))  # fmt: skip
    note = "At the first, the middle and the last α; all of them: 'stormproof score A B --table alpha'. "
    note += CHANGE_NOTE
    return Table(
        "changes", "Score left along α, in % of clean, and its change in points", columns, rows, 1, note
    )


def verdict(a: Scores, b: Scores, measure: str, changes: Sequence[Change]) -> str:
    """What changed from one run to the other, in a sentence."""
    clean, mean, *each = changes
    each = [change for change in each if not math.isnan(change.points)]
    sign = 1 if measures()[measure].higher else -1
    sure = any(change.sure is not None for change in each)
    moved = [c for c in each if (c.points if c.sure is None else c.sure.clear)]
    up, down = ([c.name for c in moved if s * sign * c.exact > 0] for s in (1, -1))
    clearly = "clearly " if sure else ""
    better, worse = (
        f" ({first_few([*map(spoken, names)], 3)})" if names else "" for names in (up[::-1], down)
    )
    places = ((clean, "on clean images"), (mean, "under corruption"))
    known = [f"by {with_interval(c.points, c.sure, per_cent(measure, 1.0))} {where}"
             for c, where in places if not math.isnan(c.points)]  # fmt: skip
    unknown = [f"{where} not both have a score" for c, where in places if math.isnan(c.points)]
    said = f"{measure} changes {' and '.join(known)}" if known else f"no change of {measure} is known"
    said += f" ({'; '.join(unknown)})" if unknown else ""
    said = (
        f"From {a.name} to {b.name}, {said}: {len(up)} of {len(each)} corruptions got {clearly}better{better}"
        f", {len(down)} {clearly}worse{worse}."
    )
    more = more_images(mean.sure, a)
    more = f"Under corruption: {more[:1].lower()}{more[1:]}" if more else ""
    ranked, _ = comparable([a, b], measure)
    return " ".join(filter(None, (said, more, keeping(ranked, measure) if len(ranked) == 2 else "")))


def ranks(values: Mapping[str, float], *, higher: bool) -> dict[str, int]:
    """Corruptions by how much they hurt, 1 first.

    >>> ranks({"fog": 0.3, "snow": 0.1}, higher=True)
    {'snow': 1, 'fog': 2}
    """
    ordered = sorted(values, key=lambda n: values[n] if higher else -values[n])
    return {name: i + 1 for i, name in enumerate(ordered)}


def change_table(a: Scores, b: Scores, measure: str, changes: Sequence[Change]) -> Table:
    """Every number before and after, how sure its change is, and its rank among what hurts."""
    higher = measures()[measure].higher
    old = ranks({change.name: change.before for change in changes[2:]}, higher=higher)
    new = ranks({change.name: change.after for change in changes[2:]}, higher=higher)
    sure = any(change.sure is not None for change in changes)
    columns = (
        "corruption", a.name, b.name, "change" if higher else "change of error",
        *(("95 % from", "to", "clear") if sure else ()), *RANKS,
    )  # fmt: skip
    rows: list[tuple[Entry, ...]] = []
    for change in changes:
        name = change.name
        place = (old[name], new[name], new[name] - old[name]) if name in old else (None, None, None)
        known = _interval_cells(measures()[measure].scale, change.sure) if sure else ()
        rows.append((name, change.before, change.after, change.points, *known, *place))
    note = f"Sorted from what got worse to what got better. {CHANGE_NOTE}{RANK_NOTE}"
    if sure:
        target = interval_target(a.clips)
        note += f" Intervals are for {target}; clear: below 5 % by chance over all corruptions, "
        note += "for which an interval that leaves out 0 is not enough."
    title = f"{unit(measure)} by corruption, and its change in points"
    return Table("changes", title, columns, rows, note=note)


def _interval_cells(scale: float, sure: Difference | None) -> tuple[Entry, Entry, Entry]:
    if sure is None or math.isnan(sure.interval.se):
        return None, None, None
    return scale * sure.interval.low, scale * sure.interval.high, "yes" if sure.clear else "no"


def _figures(a: Scores, b: Scores, measure: str, changes: Sequence[Change]) -> tuple[Figure, Figure]:
    points = Axis(f"change of {measure} (points)")
    bars: list[Datum] = []
    for change in changes:
        low, high, _ = _interval_cells(measures()[measure].scale, change.sure)
        limits = {} if low is None else {"low": low, "high": high}
        bars.append({"x": change.name, "y": change.points, "series": "change", **limits})
    cells: list[Datum] = [
        {
            "x": c.severity,
            "y": per_cent(measure, b.score(measure, str(c)) - a.score(measure, str(c))),
            "series": name,
        }
        for name, levels in group_by_severity(a.corrupted).items()
        for c in levels
        if len(levels) > 1
    ]
    note = "Lines are 95 % intervals." if any("low" in row for row in bars) else ""
    return (
        Figure(
            "change", f"Change of {measure} by corruption", Kind.BARS, Axis("corruption", names=True), points,
            bars, note=note,
        ),
        Figure(
            "change-severity", "Change at each severity", Kind.LINES, Axis("severity", whole=True), points,
            cells, series="corruption",
        ),
    )  # fmt: skip


def by_class(a: Scores, b: Scores, measure: str) -> list[Section]:
    """Every class before and after, over the corrupted conditions that both runs hold."""
    kind = class_measure(measure)
    declared = measures().get(kind, measures()[measure])
    percent, points = (" (%)", " (points)") if declared.fraction else ("", "")
    first, second = (_class_means(scores, kind) for scores in (a, b))
    objects = a.detail("objects").get(CLEAN, {})
    changes = [
        Change(name, declared.scale * first[name], declared.scale * second[name])
        for name in first
        if name in second and objects.get(name, FEW_OBJECTS) >= FEW_OBJECTS
    ]
    rows = [
        (each.name, objects.get(each.name, "–"), each.before, each.after, each.points)
        for each in sorted(changes, key=lambda each: each.exact)
    ]
    if not rows:
        return []
    columns = ("class", "objects", f"{a.name}{percent}", f"{b.name}{percent}", f"change{points}")
    note = (
        f"Without intervals: changes may be chance. {CHANGE_NOTE} Classes of fewer than {FEW_OBJECTS} "
        "objects are left out."
    )
    table = Table("class-changes", f"{kind} under corruption by class", columns, rows, note=note)
    text = f"{kind} of each class, averaged over the corrupted conditions that both runs hold."
    return [Section("class-changes", "By class", text, (), (table,))]


def _class_means(scores: Scores, kind: str) -> dict[str, float]:
    cells = [
        row
        for text, row in scores.per_class.get(kind, {}).items()
        if text != CLEAN and text in scores.conditions
    ]
    names = dict.fromkeys(name for row in cells for name in row)
    means = {name: fmean(row.get(name, math.nan) for row in cells) for name in names}
    return {name: mean for name, mean in means.items() if math.isfinite(mean)}


def by_image(a: Scores, b: Scores) -> list[Section]:
    """The images that changed most, where both runs are on the same ones."""
    if a.image_errors is None or b.image_errors is None or a.image_errors.ids != b.image_errors.ids:
        return []
    if image_difference(a, b):
        return []
    table = image_table(a, b, a.image_errors, b.image_errors)
    text = "The error of an image, averaged over the conditions that both runs hold; positive is worse."
    return [Section("image-changes", "Images that changed most", text, (), (table,), "Images changed")]


def image_table(a: Scores, b: Scores, first: ImageErrors, second: ImageErrors) -> Table:
    """The images whose error changed most, in points of a fraction, else in the measure's own unit."""
    measure = measures()[image_measure(a)]
    points = " (points)" if measure.fraction else ""
    common = [text for text in first.by_condition if text in second.by_condition]
    changes = np.array([second.by_condition[text] - first.by_condition[text] for text in common])
    known = ~np.isnan(changes)
    mean = np.where(known, changes, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    order = np.argsort(-np.abs(mean), kind="stable")[:_IMAGES]
    rows = []
    for i in order.tolist():
        column = np.nan_to_num(changes[:, i])
        most = int(np.argmax(np.abs(column)))
        there = measure.scale * float(column[most])
        rows.append((plain(first.ids[i]), measure.scale * float(mean[i]), common[most], there))
    columns = ("image", f"change of error, + is worse{points}", "most under", f"change there{points}")
    return Table("image-changes", f"From {a.name} to {b.name}", columns, rows)
