"""Two runs side by side: what got better or worse, by corruption, class and image; which ranks changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stormproof.core.table import Cell, Table
from stormproof.core.text import plain
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Figure, Kind, Row, Section, View
from stormproof.report.sections.cells import graded, of_a_class, scaled, unit
from stormproof.report.view import make_view
from stormproof.results.interval import NEW_IMAGES, Difference
from stormproof.results.scores import ImageErrors, Scores, disambiguate_names

_IMAGES = 20  # of those that changed most


Differences = Mapping[str, Difference]  # by 'P', 'by_corruption/fog' …, second run minus first


def compare_view(
    a: Scores,
    b: Scores,
    *,
    measure: str | None = None,
) -> View:
    """The view of a comparison: the changes first, then both runs as in any report.

    Changes have intervals where both runs have them, on the same images.
    """
    first, second = disambiguate_names([a, b])
    both = make_view([first, second], measure=measure)
    chosen = measure or first.headline
    sure = (second - first).get(chosen, {}) if first.replicates and second.replicates else {}
    changes = (
        corruptions(first, second, chosen, sure),
        classes(first, second, chosen),
        images(first, second),
    )
    return replace(
        both,
        title=f"{first.name} → {second.name}",
        sentences=(verdict(first, second, chosen), *both.sentences[1:]),
        sections=(*filter(None, changes), *both.sections),
    )


def verdict(a: Scores, b: Scores, measure: str) -> str:
    """What changed from one run to the other, in a sentence."""
    before, after = a.by_corruption(measure), b.by_corruption(measure)
    common = [name for name in before if name in after]
    if not common:
        return f"{a.name} and {b.name} share no complete corruption of {measure}."
    gain = {name: _better(measure, after[name] - before[name]) for name in common}
    up, down = [n for n in common if gain[n] > 0], [n for n in common if gain[n] < 0]
    best, worst = max(common, key=lambda n: gain[n]), min(common, key=lambda n: gain[n])
    clean = scaled(measure, b.score(measure) - a.score(measure))
    if frozenset(a.over.covered) == frozenset(b.over.covered):
        mean = scaled(measure, b.mean(measure) - a.mean(measure))
    else:
        mean = scaled(measure, sum(after[n] - before[n] for n in common) / len(common))
    return (
        f"From {a.name} to {b.name}, {measure} changes by {clean:+.1f} points on clean images and by "
        f"{mean:+.1f} under corruption: {len(up)} of {len(common)} corruptions got better"
        f"{f' (most {best})' if up else ''}, {len(down)} worse{f' (most {worst})' if down else ''}."
    )


def _better(measure: str, change: float) -> float:
    return change if measures()[measure].higher else -change


def ranks(values: Mapping[str, float], *, higher: bool) -> dict[str, int]:
    """Corruptions by how much they hurt, 1 first.

    >>> ranks({"fog": 0.3, "snow": 0.1}, higher=True)
    {'snow': 1, 'fog': 2}
    """
    return {
        name: i + 1
        for i, name in enumerate(sorted(values, key=lambda n: values[n] if higher else -values[n]))
    }


def change_table(a: Scores, b: Scores, measure: str, sure: Differences | None = None) -> Table | None:
    """Every corruption before and after, with its rank among what hurts, and how sure the change is."""
    before, after = a.by_corruption(measure), b.by_corruption(measure)
    common = [name for name in before if name in after]
    if not common:
        return None
    higher = measures()[measure].higher
    old = ranks({n: before[n] for n in common}, higher=higher)
    new = ranks({n: after[n] for n in common}, higher=higher)
    rows = [
        (
            name,
            scaled(measure, before[name]),
            scaled(measure, after[name]),
            scaled(measure, after[name] - before[name]),
            old[name],
            new[name],
            new[name] - old[name],
        )
        for name in sorted(common, key=lambda n: _better(measure, after[n] - before[n]))
    ]
    clean = (a.score(measure), b.score(measure))
    head = (
        "clean",
        scaled(measure, clean[0]),
        scaled(measure, clean[1]),
        scaled(measure, clean[1] - clean[0]),
        None,
        None,
        None,
    )
    columns: tuple[str, ...] = (
        "corruption",
        f"{a.name}, {unit(measure)}",
        f"{b.name}, {unit(measure)}",
        "change (points)",
        "rank before",
        "rank after",
        "change of rank",
    )
    note = "Rank 1 hurts most. Sorted from what got worse to what got better."
    lines: list[tuple[Cell, ...]] = [head, *rows]
    if sure:
        columns += ("95 % from", "to", "clear")
        note += f" Intervals are for {NEW_IMAGES}; clear: below 5 % by chance, corrected over corruptions."
        lines = [(*line, *_sureness(line[0], sure)) for line in lines]
    return Table("changes", "Change by corruption", columns, lines, note=note)


def _sureness(name: Cell, sure: Differences) -> tuple[Cell, Cell, Cell]:
    found = sure.get("P" if name == "clean" else f"by_corruption/{name}")
    if found is None:
        return None, None, None
    return 100 * found.interval.low, 100 * found.interval.high, "yes" if found.clear else "no"


def corruptions(a: Scores, b: Scores, measure: str, sure: Differences) -> Section | None:
    table = change_table(a, b, measure, sure)
    if table is None:
        return None
    cells: list[Row] = []
    for name, levels in graded(a.corrupted).items():
        for c in levels:
            change = scaled(measure, b.score(measure, str(c)) - a.score(measure, str(c)))
            if math.isfinite(change):
                cells.append({"x": c.severity, "y": change, "series": name})
    by_mean: list[Row] = [{"x": row[0], "y": row[3], "series": "change"} for row in table.rows]
    figures = [
        Figure(
            "change",
            "Change of each corruption",
            Kind.BARS,
            Axis("corruption", names=True),
            Axis(f"change of {measure} (points)"),
            by_mean,
            series="",
        )
    ]
    if cells:
        figures.append(
            Figure(
                "change-severity",
                "Change at each severity",
                Kind.LINES,
                Axis("severity", whole=True),
                Axis(f"change of {measure} (points)"),
                cells,
                series="corruption",
            )
        )
    moved = [row[0] for row in table.rows[1:] if row[6]]
    text = (
        f"{len(moved)} corruptions changed their rank among what hurts most." if moved else "No rank changed."
    )
    return Section("changes", "What got better or worse", text, tuple(figures), (table,))


def classes(a: Scores, b: Scores, measure: str) -> Section | None:
    kind = of_a_class(measure)
    first, second = _class_means(a, kind), _class_means(b, kind)
    common = [name for name in first if name in second]
    if not common:
        return None
    change = {n: second[n] - first[n] for n in common}
    rows = [
        (n, 100 * first[n], 100 * second[n], 100 * change[n]) for n in sorted(common, key=lambda n: change[n])
    ]
    columns = ("class", f"{a.name} (%)", f"{b.name} (%)", "change (points)")
    table = Table(
        "class-changes",
        f"{kind} under corruption by class",
        columns,
        rows,
        note="The mean over all corrupted conditions that both runs hold.",
    )
    return Section(
        "class-changes",
        "By class",
        f"{kind} of each class, averaged over corrupted conditions.",
        (),
        (table,),
    )


def _class_means(subject: Scores, kind: str) -> dict[str, float]:
    cells = [row for text, row in subject.per_class.get(kind, {}).items() if text != "clean"]
    names = dict.fromkeys(name for row in cells for name in row)
    found = {}
    for name in names:
        values = [row.get(name, math.nan) for row in cells]
        if values and all(map(math.isfinite, values)):
            found[name] = float(np.mean(values))
    return found


def images(a: Scores, b: Scores) -> Section | None:
    """The images that changed most, where both runs are on the same ones."""
    if a.image_errors is None or b.image_errors is None or a.image_errors.ids != b.image_errors.ids:
        return None
    table = image_table(a, b, a.image_errors, b.image_errors)
    return Section(
        "image-changes",
        "Images that changed most",
        "The error of an image, averaged over the conditions that both runs hold; positive is worse.",
        (),
        (table,),
    )


def image_table(a: Scores, b: Scores, first: ImageErrors, second: ImageErrors) -> Table:
    """The images whose error changed most, in points."""
    common = [text for text in first.by_condition if text in second.by_condition]
    changes = np.array([second.by_condition[text] - first.by_condition[text] for text in common])
    known = ~np.isnan(changes)
    mean = np.where(known, changes, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    order = np.argsort(-np.abs(mean), kind="stable")[:_IMAGES]
    rows = []
    for i in order.tolist():
        column = np.nan_to_num(changes[:, i])
        most = int(np.argmax(np.abs(column)))
        rows.append((plain(first.ids[i]), 100 * float(mean[i]), common[most], 100 * float(column[most])))
    columns = ("image", "mean change of error (points)", "most under", "change there (points)")
    return Table("image-changes", f"From {a.name} to {b.name}", columns, rows)
