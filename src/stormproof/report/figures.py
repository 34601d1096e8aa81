"""Figures for a paper: the same rows as on the page, drawn by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from stormproof.core.errors import UnknownName
from stormproof.core.files import make_folder, whole_file, write_text
from stormproof.core.table import file_name
from stormproof.report.elements import Axis, Figure, Kind, Row, View

COLOURS = ("#0072b2", "#d55e00", "#779966", "#9911ff", "#661100", "#442244", "#002288")  # told apart by all
_DASHES = ("-", "--", ":")
_MARKERS = "osD^vPX"
STYLES: Mapping[str, Any] = {
    "paper": {
        "font.family": "serif",
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "lines.linewidth": 1.1,
        "lines.markersize": 3,
        "axes.linewidth": 0.6,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    },
    "slides": {"font.size": 13, "lines.linewidth": 2.2, "lines.markersize": 6, "svg.fonttype": "none"},
}
_WIDTHS = {"paper": 6.9, "slides": 11.0}  # inches: two columns of a page, a slide


def write_figures(
    view: View, out: Path, *, style: str = "paper", formats: Sequence[str] = ("pdf", "png")
) -> list[Path]:
    """Every figure of a view, one file per choice and format, and every table as CSV, LaTeX and Markdown."""
    if style not in STYLES:
        raise UnknownName("style", style, STYLES, f"There are {', '.join(STYLES)}.")
    make_folder(out)
    written = []
    with mpl.rc_context({"svg.hashsalt": "stormproof", "path.sketch": None, **STYLES[style]}):
        for figure in view.figures():
            for choice, rows in choices(figure):
                canvas = draw(figure, rows, _WIDTHS[style])
                for kind in formats:
                    path = out / f"{file_name(figure.id, *choice)}.{kind}"
                    with whole_file(path) as file:
                        canvas.savefig(file, format=kind, dpi=300, bbox_inches="tight", metadata=_stamp(kind))
                    written.append(path)
    for table in view.tables():
        for kind, text in (("csv", table.as_csv()), ("tex", table.as_latex()), ("md", table.as_markdown())):
            path = out / f"table-{file_name(table.id)}.{kind}"
            write_text(path, text)
            written.append(path)
    return written


def _stamp(kind: str) -> dict[str, Any]:
    """No date in the file: equal runs give equal bytes."""
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})


def choices(figure: Figure) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    """The rows of each choice that the page offers."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in figure.rows:
        found.setdefault(tuple(row.get("pick", ())), []).append(row)
    yield from found.items()


def draw(figure: Figure, rows: Sequence[Row], width: float) -> Canvas:
    """One figure, its panels side by side."""
    panels = list(dict.fromkeys(row.get("panel", "") for row in rows)) if figure.panel else [""]
    columns = min(len(panels), 4 if figure.kind is Kind.LINES else 2)
    lines = math.ceil(len(panels) / columns)
    height = _height(figure.kind, rows, len(panels))
    canvas = Canvas(figsize=(width * min(1.0, 0.42 * columns + 0.16), height * lines), layout="constrained")
    polar = {"projection": "polar"} if figure.kind is Kind.RADAR else {}
    axes = canvas.subplots(lines, columns, squeeze=False, subplot_kw=polar)
    names = list(dict.fromkeys(row["series"] for row in rows if row.get("series") is not None))
    for place, panel in zip(axes.flat, panels, strict=False):
        mine = [row for row in rows if not figure.panel or row.get("panel", "") == panel]
        _DRAWERS[figure.kind](place, figure, mine, names)
        if panel:
            place.set_title(_words(panel))
    for empty in axes.flat[len(panels) :]:
        empty.set_axis_off()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    for place in axes.flat[1:]:
        more = place.get_legend_handles_labels()
        new = [(h, t) for h, t in zip(*more, strict=True) if t not in labels]
        handles, labels = [*handles, *(h for h, _ in new)], [*labels, *(t for _, t in new)]
    if labels:
        canvas.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    return canvas


def _height(kind: Kind, rows: Sequence[Row], panels: int) -> float:
    if kind is Kind.HEAT:
        return 0.9 + 0.17 * len({row["y"] for row in rows})
    if kind in (Kind.BARS, Kind.STACK):
        count = len({row["x"] for row in rows})
        each = len({row["series"] for row in rows}) if kind is Kind.BARS else 1
        return 1.0 + 0.07 * count * max(2, each)
    return 1.7 if panels > 2 else 2.6


def _words(text: str) -> str:
    """Names as they are: matplotlib would read a $ as mathematics."""
    return text.replace("$", r"\$")


def _label(place: Axes, x: Axis, y: Axis) -> None:
    place.set_xlabel(_words(x.title))
    place.set_ylabel(_words(y.title))
    if x.log:
        place.set_xscale("log")
    for axis, limit in ((x, place.set_xlim), (y, place.set_ylim)):
        if axis.percent:
            limit(0, 100)
        elif axis.zero and not axis.names:
            top = max(place.dataLim.x1 if axis is x else place.dataLim.y1, 0.0)
            limit(0, 1.06 * top or 1)
        if axis.whole and axis is x:
            place.xaxis.set_major_locator(MaxNLocator(integer=True))
    place.grid(True, linewidth=0.3, alpha=0.6)
    place.spines[["top", "right"]].set_visible(False)


def _style(names: Sequence[str], name: str) -> dict[str, Any]:
    i = names.index(name)
    return {"color": COLOURS[i % 7], "linestyle": _DASHES[(i // 7) % 3], "marker": _MARKERS[i % 7]}


def _lines(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    for name in dict.fromkeys(row["series"] for row in rows):
        mine = sorted((r for r in rows if r["series"] == name and not r.get("mark")), key=lambda r: r["x"])
        style = _style(names, name)
        if figure.stepped:
            style |= {"marker": "", "drawstyle": "steps-post"}
        place.plot([r["x"] for r in mine], [r["y"] for r in mine], label=_words(name), **style)
        dots = [r for r in rows if r["series"] == name and r.get("mark")]
        place.plot([r["x"] for r in dots], [r["y"] for r in dots], "o", color=style["color"])
    _label(place, figure.x, figure.y)


def _points(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    for name in dict.fromkeys(row["series"] for row in rows):
        mine, style = [r for r in rows if r["series"] == name], {**_style(names, name), "linestyle": "none"}
        place.plot([r["x"] for r in mine], [r["y"] for r in mine], label=_words(name), **style)
        for r in mine:
            if r.get("x2") is not None:
                arrow = {"arrowstyle": "->", "color": style["color"], "lw": 0.8}
                place.annotate("", (r["x2"], r["y2"]), (r["x"], r["y"]), arrowprops=arrow)
            if r.get("label") and not figure.panel:
                place.annotate(
                    _words(r["label"]), (r["x"], r["y"]), (3, 3), textcoords="offset points", fontsize=6
                )
    _label(place, figure.x, figure.y)


def _bars(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    places = list(dict.fromkeys(row["x"] for row in rows))
    thick = 0.8 / max(1, len(names))
    for i, name in enumerate(names):
        mine = {r["x"]: r for r in rows if r["series"] == name}
        at = [k + (i - (len(names) - 1) / 2) * thick for k, x in enumerate(places) if x in mine]
        held = [mine[x] for x in places if x in mine]
        error = [
            [r["y"] - r.get("low", r["y"]) for r in held],
            [r.get("high", r["y"]) - r["y"] for r in held],
        ]
        place.barh(
            at,
            [r["y"] for r in held],
            thick,
            xerr=error if any(map(any, error)) else None,
            color=COLOURS[i % 7],
            label=_words(name),
            error_kw={"lw": 0.6},
        )
    place.set_yticks(range(len(places)), [_words(x) for x in places])
    place.invert_yaxis()
    place.set_xlabel(_words(figure.y.title))
    place.spines[["top", "right"]].set_visible(False)


def _stack(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    places = list(dict.fromkeys(row["x"] for row in rows))
    start = np.zeros(len(places))
    for i, name in enumerate(names):
        mine = {r["x"]: r["y"] for r in rows if r["series"] == name}
        values = np.array([mine.get(x, 0.0) for x in places])
        place.barh(range(len(places)), values, 0.7, left=start, color=COLOURS[i % 7], label=_words(name))
        start = start + values
    place.set_yticks(range(len(places)), [_words(x) for x in places])
    place.invert_yaxis()
    place.set_xlabel(_words(figure.y.title))


def _heat(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    xs, ys = (list(dict.fromkeys(row[key] for row in rows)) for key in ("x", "y"))
    cells = np.full((len(ys), len(xs)), np.nan)
    for row in rows:
        cells[ys.index(row["y"]), xs.index(row["x"])] = row["v"]
    most = figure.top or float(np.nanmax(cells)) or 1.0
    shown = place.imshow(cells, cmap="viridis", vmin=0, vmax=most, aspect="auto")
    for i, j in np.ndindex(*cells.shape):
        if np.isfinite(cells[i, j]) and len(xs) <= 20:
            ink = "white" if cells[i, j] < 0.6 * most else "black"
            place.text(j, i, f"{cells[i, j]:.1f}", ha="center", va="center", color=ink, fontsize=6)
    turned: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if any(len(x) > 3 for x in xs) else {}
    )
    place.set_xticks(range(len(xs)), [_words(x) for x in xs], **turned)
    place.set_yticks(range(len(ys)), [_words(y) for y in ys])
    place.set_xlabel(_words(figure.x.title))
    bar = place.figure.colorbar(shown, ax=place, shrink=0.9)
    bar.set_label(_words(figure.value))


def _radar(place: Axes, figure: Figure, rows: Sequence[Row], names: Sequence[str]) -> None:
    spokes = list(dict.fromkeys(row["x"] for row in rows))
    angles = [(math.pi / 2 - 2 * math.pi * i / len(spokes)) % (2 * math.pi) for i in range(len(spokes))]
    for name in names:
        mine = {r["x"]: r["y"] for r in rows if r["series"] == name}
        at = [(a, mine[x]) for a, x in zip(angles, spokes, strict=True) if x in mine]
        at.append(at[0])
        place.plot([a for a, _ in at], [v for _, v in at], label=_words(name), **_style(names, name))
    place.set_xticks(angles, [_words(x) for x in spokes])
    place.set_xlim(0, 2 * math.pi)
    place.set_ylim(0, 1.05 * max(row["y"] for row in rows))
    place.set_title(_words(figure.y.title), fontsize=7)


_DRAWERS = {
    Kind.LINES: _lines,
    Kind.POINTS: _points,
    Kind.BARS: _bars,
    Kind.STACK: _stack,
    Kind.HEAT: _heat,
    Kind.RADAR: _radar,
}
