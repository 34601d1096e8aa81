"""Figures as files for papers and slides: the page's charts through vl-convert, and tables beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stormproof.core.errors import UnknownName
from stormproof.core.files import make_folder, whole_file, write_text
from stormproof.core.table import file_name
from stormproof.report.charts import config, prepare_rows, spec_of
from stormproof.report.elements import Datum, Figure, Kind, View
from stormproof.report.vega import draw_charts


@dataclass(frozen=True, slots=True)
class Style:
    """A width in points, a font, sizes of letters in points, and how narrow they are beside the page's."""

    width: int
    font: str
    label: int
    title: int
    narrow: float = 1.0


STYLES = {
    "paper": Style(497, "Liberation Serif, Times New Roman, serif", 8, 9, 0.8),  # two columns of a page
    "slides": Style(960, "Liberation Sans, Arial, sans-serif", 14, 16),
}
FORMATS = ("pdf", "svg", "png")
_NAMES = 12  # letters that names beside a plot take
_PANELS = 24  # that a page can show of what a reader would pick among
_CELL = 22  # points that a number in a heat map needs


def write_figures(
    view: View, out: Path, *, style: str = "paper", formats: Sequence[str] = ("pdf", "png")
) -> list[Path]:
    """Every figure of a view, one file per format (several for very many panels), and every table as CSV,
    LaTeX and Markdown."""
    if style not in STYLES:
        raise UnknownName("style", style, STYLES, f"There are {', '.join(STYLES)}.")
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("format", name, FORMATS, f"There are {', '.join(FORMATS)}.")
    make_folder(out)
    charts = {
        out / f"{file_name(sheet.id)}.{kind}": (kind, print_spec(sheet, STYLES[style]))
        for figure in view.figures()
        for sheet in sheets(as_panels(figure))
        for kind in formats
    }
    for path, content in zip(charts, draw_charts([*charts.values()]), strict=True):
        with whole_file(path) as file:
            file.write(content)
    written = [*charts]
    for table in view.tables():
        for kind, text in (("csv", table.as_csv()), ("tex", table.as_latex()), ("md", table.as_markdown())):
            path = out / f"table-{file_name(table.id)}.{kind}"
            write_text(path, text)
            written.append(path)
    return written


def print_spec(figure: Figure, style: Style) -> dict[str, Any]:
    """A complete Vega-Lite specification: rows, sizes and letters for print."""
    shown = as_panels(figure)
    rows = prepare_rows(shown, shown.rows, width=round(style.width / style.narrow))
    spec = {**spec_of(shown), "datasets": {"rows": rows}, "config": _config(style, rows)}
    across = len({row.get("x") for row in rows})
    if "facet" not in spec:
        width = min(style.width, 420) if figure.kind is Kind.RADAR else style.width
        height = {"height": round(0.86 * width)} if figure.kind is Kind.RADAR else {}
        fit = {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        return _readable({**spec, **fit, **height}, figure.kind, (width - _NAMES * style.label) / across)
    names = list(dict.fromkeys(row["panel"] for row in rows))
    columns = _columns(figure.kind, len(names), across, style)
    beside = _NAMES if figure.kind in (Kind.BARS, Kind.STACK) else 6  # letters of the y axis
    width = style.width // columns - (beside + 2) * style.label
    if figure.kind is Kind.HEAT:  # whose panels share the names
        width = (style.width - _NAMES * style.label) // columns - 2 * style.label
    height = {"height": round(0.8 * width)} if figure.kind in (Kind.LINES, Kind.POINTS) else {}
    inner = _readable({**spec["spec"], "width": max(60, width), **height}, figure.kind, width / across)
    return {**spec, "columns": columns, "facet": {**spec["facet"], "sort": names}, "spec": inner}


def _readable(spec: dict[str, Any], kind: Kind, cell: float) -> dict[str, Any]:
    """A heat map without its numbers, where its cells are too narrow for them."""
    if kind is not Kind.HEAT or cell >= _CELL:
        return spec
    return {**spec, "layer": spec["layer"][:1]}


def as_panels(figure: Figure) -> Figure:
    """The figure with what a reader picks on the page as panels beside each other."""
    if not figure.pick:
        return figure
    picks = chosen_picks(list(dict.fromkeys(row.get("pick", ()) for row in figure.rows)))
    kept = [row for row in figure.rows if row.get("pick", ()) in picks]
    rows: list[Datum] = [
        {**row, "panel": ", ".join(filter(None, (*row.get("pick", ()), row.get("panel"))))}
        for row in sorted(kept, key=lambda row: picks.index(row.get("pick", ())))
    ]
    several = len({row["panel"] for row in rows}) > 1
    return replace(figure, rows=rows, panel="panel" if several else "", pick=())


def sheets(figure: Figure) -> list[Figure]:
    """A figure of very many panels as several: `alpha`, `alpha-2` and so on."""
    panels = list(dict.fromkeys(row.get("panel") for row in figure.rows)) or [None]
    made = []
    for start in range(0, len(panels), _PANELS):
        name = f"{figure.id}-{start // _PANELS + 1}" if start else figure.id
        rows = [row for row in figure.rows if row.get("panel") in panels[start : start + _PANELS]]
        made.append(replace(figure, id=name, rows=rows))
    return made


def chosen_picks(picks: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """All of them, or of many one for each corruption: its hardest severity, or the last of its parameters.

    >>> chosen_picks([("clean", ""), *((f"blur[sigma={k}]", "") for k in range(40))])
    [('clean', ''), ('blur[sigma=39]', '')]
    """
    if len(picks) <= _PANELS:
        return picks
    chosen: dict[str, tuple[str, ...]] = {}
    for pick in picks:
        corruption, parameters, _ = pick[0].partition("[")
        if parameters or corruption not in chosen:  # severities come hardest first
            chosen[corruption] = pick
    return [*chosen.values()][:_PANELS]


def _columns(kind: Kind, panels: int, across: int, style: Style) -> int:
    most = {Kind.LINES: 3, Kind.STACK: 3}.get(kind, 2)
    if kind is Kind.HEAT:
        most = max(1, min(3, round((style.width - _NAMES * style.label) / (across * _CELL + 20))))
    rows = math.ceil(panels / most)
    return math.ceil(panels / rows)  # four panels in two rows of two rather than three and one


def _config(style: Style, rows: Sequence[Datum]) -> dict[str, Any]:
    """The light theme with the style's letters."""
    base = config("light")
    sizes = {"labelFontSize": style.label, "titleFontSize": style.label}
    longest = max((len(str(row.get("series", ""))) for row in rows), default=0)
    columns = max(1, style.width // round((longest + 5) * 0.55 * style.label))
    return {
        **base,
        "font": style.font,
        "axis": {**base["axis"], **sizes, "titlePadding": 4},
        "legend": {**base["legend"], **sizes, "columns": columns},
        "header": {**base["header"], "labelFontSize": style.title},
        "text": {**base["text"], "fontSize": style.label},
    }
