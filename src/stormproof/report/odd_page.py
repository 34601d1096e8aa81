"""The page of a domain: a matrix of its cells for each requirement, what to run next, and breaking lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, counted
from stormproof.core.table import Entry, Table
from stormproof.report.elements import Datum
from stormproof.report.page import environment
from stormproof.report.planes import COLOURS, Chart, plane_spec, segment_rows
from stormproof.results.domain import Dimension, DimensionPart, Domain, DomainCell, DomainRequirement
from stormproof.results.domain_records import row_id
from stormproof.results.domain_verdicts import DomainVerdict, DomainVerdicts
from stormproof.results.maps import level_segments
from stormproof.results.verdicts import Outcome

_MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.INCONCLUSIVE: "?"}
_OUTSIDE = "outside"
_STRIP = 0.04  # of an axis
_ORDER = (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL)  # from the best to the worst
_COLOURS = {
    Outcome.PASS: COLOURS["met"],
    Outcome.INCONCLUSIVE: COLOURS["open"],
    Outcome.FAIL: COLOURS["missed"],
}


def odd_page(verdicts: DomainVerdicts, again: str, maps: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page; `again` is the command that judges again, `maps` are maps of two of its quantities."""
    domain = verdicts.domain
    return environment().get_template("odd.html").render(
        title=f"{domain.name}: {verdicts.run}", sentence=verdicts.sentence, sure=verdicts.how_sure,
        matrices=[_matrix(verdicts, r) for r in domain.requirements], commands=verdicts.commands, again=again,
        charts=[_chart(verdicts, made, number) for number, made in enumerate(maps, 1)],
        dimensions=_dimensions(domain), apart=verdicts.apart,
        outside=[*domain.outside, *domain.gaps, *(domain.show(cell) for cell in domain.excluded)],
        table=_table(verdicts),
    )  # fmt: skip


def _matrix(verdicts: DomainVerdicts, r: DomainRequirement) -> dict[str, Any]:
    """One requirement: the first dimension across, every combination of the others down."""
    domain = verdicts.domain
    rows = {row.cell: row for row in verdicts.rows if row.requirement == r}
    names = [name for name, _ in next(iter(rows))]
    parts = {name: list(dict.fromkeys(dict(cell)[name] for cell in rows)) for name in names}
    across, *down = names or [""]
    columns = parts.get(across, [""])
    made = []
    for chosen in product(*(parts[name] for name in down)):
        rest = tuple(zip(down, chosen, strict=True))
        cells = [rows.get(_in_order(domain, ((across, column), *rest))) for column in columns]
        label = ", ".join(f"{name}: {_part(domain, name, part)}" for name, part in rest) or "all"
        made.append(
            {"name": label, "cells": [None if row is None else _show(verdicts, row) for row in cells]}
        )
    where = "; ".join(f"{name}: {', '.join(chosen)}" for name, chosen in r.where)
    return {
        "title": f"{r.id}: {r.text}" + (f" ({where})" if where else ""), "corner": across,
        "columns": [_part(domain, across, column) for column in columns], "rows": made,
        "note": (f"Found: IoU 0.5 or more, score {r.min_score:g} or more. " if r.found else "")
        + "In %, with the 95 % interval, under the worst condition in the cell.",
    }  # fmt: skip


def _in_order(domain: Domain, cell: DomainCell) -> DomainCell:
    place = [d.name for d in domain.dimensions]
    return tuple(sorted(cell, key=lambda pair: place.index(pair[0])))


def _part(domain: Domain, name: str, part: str) -> str:
    return domain.by_name[name].show(domain.part(name, part))


def _show(verdicts: DomainVerdicts, row: DomainVerdict) -> dict[str, str]:
    worst = row.worst
    numbers = ""
    if worst is not None:
        i = worst.interval
        span = f" ({i.span(digits=0, between='–')})" if math.isfinite(i.low) else ""
        numbers = f"{100 * i.estimate:.0f}{span}"
    objects = "" if row.objects is None else f", {counted(row.objects, 'object')}"
    basis = f"{counted(row.images, 'image')}{objects}" if row.tested else ""
    basis = "; ".join(filter(None, (basis, row.reason)))
    hint = f"{row_id(row)}. {worst.condition if worst else 'nothing run'}. {verdicts.advice(row)}"
    return {
        "verdict": str(row.outcome), "mark": _MARKS[row.outcome], "numbers": numbers, "basis": basis,
        "hint": hint,
    }  # fmt: skip


def _dimensions(domain: Domain) -> Table:
    rows: list[list[Entry]] = []
    for d in domain.dimensions:
        by = ", ".join(f"{q.corruption} ({q.parameter})" for q in d.quantities) or {
            "attribute": "objects themselves", "tag": f"tag {d.source}"
        }[d.kind]  # fmt: skip
        taxonomy = next((q.taxonomy for q in d.quantities if q.taxonomy), "–")
        rows.append([d.name, "; ".join(d.show(part) for part in d.parts), by, taxonomy])
    return Table("dimensions", "Dimensions", ("dimension", "cells", "varied by", "ISO 34503:2023"), rows)


def _table(verdicts: DomainVerdicts) -> Table:
    rows: list[list[Entry]] = []
    for row in verdicts.rows:
        worst = row.worst
        estimate, low, high = (
            (math.nan,) * 3 if worst is None
            else (100 * worst.interval.estimate, 100 * worst.interval.low, 100 * worst.interval.high)
        )  # fmt: skip
        rows.append(
            [
                row_id(row), str(row.outcome), worst.condition if worst else "–", estimate, low, high,
                row.images, row.objects, row.reason or "–", verdicts.advice(row) or "–",
            ]
        )  # fmt: skip
    columns = (
        "cell", "verdict", "worst condition", "estimate", "95 % from", "to", "images", "objects", "why",
        "to do",
    )  # fmt: skip
    return Table("verdicts", "Verdicts (in %)", columns, rows)


def _chart(verdicts: DomainVerdicts, made: Mapping[str, Any], number: int) -> Chart:
    """The cells of the two quantities of a map as rectangles, and its breaking line over them."""
    domain = verdicts.domain
    x, y = (_dimension(domain, made[axis]) for axis in ("x", "y"))
    cells: list[Datum] = []
    for px, py in product(x.parts, y.parts):
        pair = {(x.name, px.name), (y.name, py.name)}
        here = [row.outcome for row in verdicts.rows if pair <= {*row.cell}]
        across, up = _range_on_axis(x, px, made["x"]), _range_on_axis(y, py, made["y"])
        if across is None or up is None:
            continue
        cells.append(
            {
                "mark": "cell", "x": across[0], "x2": across[1], "y": up[0], "y2": up[1],
                "xm": x.show(px), "ym": y.show(py), "label": f"{len(here)} verdicts",
                "zone": str(max(here, key=_ORDER.index)) if here else _OUTSIDE,
            }
        )  # fmt: skip
    if not cells:
        raise InvalidOption("The map shows none of the domain's cells: draw it over the domain's ranges.")
    scale = {
        "domain": [*(str(o) for o in _ORDER), _OUTSIDE], "range": [*(_COLOURS[o] for o in _ORDER), "#0000"],
    }  # fmt: skip
    fill = {
        "field": "zone", "type": "nominal", "scale": scale,
        "legend": {"orient": "top", "title": "worst verdict of the cell", "symbolType": "square"},
    }  # fmt: skip
    tooltip = [
        {"field": "xm", "title": x.name}, {"field": "ym", "title": y.name},
        {"field": "zone", "title": "verdict"}, {"field": "label", "title": "of"},
    ]  # fmt: skip
    spec = plane_spec(made["x"], made["y"], fill, tooltip)
    requirement = f"{made['measure']} {'≥' if made['higher'] else '≤'} {made['threshold']:g}"
    return Chart(
        f"line-{number}", f"Cells by {x.name} and {y.name}, and where {requirement} breaks",
        f"Solid: the estimated breaking line of the map. Dashed: the edges of its band. {made['level']} "
        "Colours: verdicts on the requirements of the domain. Cells without a corruption are strips at the "
        "edge.",
        spec, [*cells, *_lines(made)], ("xm", "ym", "zone", "label"),
    )  # fmt: skip


def _dimension(domain: Domain, axis: Mapping[str, Any]) -> Dimension:
    for d in domain.dimensions:
        if any((q.corruption, q.parameter) == (axis["corruption"], axis["name"]) for q in d.quantities):
            return d
        if d.kind == "attribute" and axis["corruption"] is None and d.source == axis["name"]:
            return d
    raise InvalidOption(f"The map is over {axis['title']}, which is no dimension of {domain.name}.")


def _range_on_axis(
    dimension: Dimension, part: DimensionPart, axis: Mapping[str, Any]
) -> tuple[float, float] | None:
    """The range of a cell on an axis; None if it lies outside. Where the corruption is absent, the range is a
    strip at the milder end."""
    if part.low == part.high:
        return (
            (_at(axis, 1 - _STRIP), axis["to"])
            if dimension.lower_is_worse
            else (axis["from"], _at(axis, _STRIP))
        )
    low, high = max(part.low, axis["from"]), min(part.high, axis["to"])
    return (low, high) if low < high else None


def _lines(made: Mapping[str, Any]) -> list[Datum]:
    """The segments of a map's line and of its band's edges."""
    grid, places = made["grid"], (partial(_at, made["x"]), partial(_at, made["y"]))
    return [
        row
        for mark, name in (("edge", "low"), ("edge", "high"), ("line", "score"))
        for row in segment_rows(mark, level_segments(np.array(grid[name]), made["threshold"]), *places)
    ]


def _at(axis: Mapping[str, Any], place: float) -> float:
    if axis["scale"] == "linear":
        return float(axis["from"] + place * (axis["to"] - axis["from"]))
    return float(axis["from"] * (axis["to"] / axis["from"]) ** place)
