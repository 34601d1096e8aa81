"""Figures as Vega-Lite: one specification per shape of figure, drawn over rows that come beside it.

A specification holds no row and no name of a user, so equal shapes share one. The page and the files of
`stormproof figures` draw the same specifications: they only set widths, columns and a theme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt

from stormproof.report.elements import Axis, Datum, Figure, Kind

# Colours that colour-blind readers can tell apart, by theme: text, less important text, lines, background,
# series.
THEMES: dict[str, dict[str, Any]] = {
    "light": {
        "ink": "#1c2126", "dim": "#55606b", "line": "#d5dade", "paper": "#ffffff",
        "range": ["#0072b2", "#d55e00", "#779966", "#9911ff", "#661100", "#442244", "#002288"],
    },
    "dark": {
        "ink": "#e8ebee", "dim": "#a9b4be", "line": "#36414b", "paper": "#1c2228",
        "range": ["#56b4e9", "#ff9a57", "#bbddaa", "#8855ff", "#ffdd00", "#ee0088", "#aaffff"],
    },
}  # fmt: skip
_COLOURS = 7  # in each theme
# Marks on a step line, as *pezzementi* draws them: thresholds that allow one false positive in so many images
_STAR = "M0,-1L.22,-.3L.95,-.3L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.3L-.22,-.3Z"
SYMBOLS = {"1 in 10": "triangle-up", "1 in 100": _STAR, "1 in 1000": "circle"}
_DASHED = 4  # series that colours alone distinguish at a glance; more get dashes and shapes
_ROWS = alt.NamedData(name="rows")
# On a logarithmic axis, grid lines between the powers of ten would merge into a grey area.
_POWER = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 0.001"
# Vega puts a tick at 1.5 of an axis from 1 to 3, whatever its tickMinStep, and would print it as 2.
_WHOLE = "datum.value % 1 == 0"
_ABOVE = 0.05  # how far above the top of a heat map's colours a value gets an arrow
_WIDE, _TALL, _SMALL = 1000, 320, 150  # pixels: a figure, and the height of one of several panels
_RINGS = (0.25, 0.5, 0.75, 1.0)
# The width of a label's letter, its height and its gap, as shares of the plot's size on a page.
_LETTER, _LINE, _GAP = 0.0062, 0.045, 0.008
# Steps of a rounded axis by how many of the next lower power of ten they hold, as d3-scale chooses them.
_STEPS = ((10, math.sqrt(50)), (5, math.sqrt(10)), (2, math.sqrt(2)), (1, 0.0))


def config(theme: str) -> dict[str, Any]:
    """How Vega-Lite draws anything in a theme."""
    c = THEMES[theme]
    words = {"labelColor": c["ink"], "titleColor": c["ink"], "titleFontWeight": 500}
    sizes = {"labelFontSize": 11, "titleFontSize": 12}
    lines = {"gridColor": c["line"], "domainColor": c["dim"], "tickColor": c["dim"]}
    first = {"color": c["range"][0]}
    return {
        "aria": False, "background": c["paper"], "font": "system-ui, sans-serif",
        "axis": {**words, **sizes, **lines, "titleLimit": 400, "titlePadding": 10, "labelSeparation": 5},
        "legend": {**words, **sizes}, "header": {**words, "labelFontSize": 12},
        "text": {"color": c["ink"], "fill": c["ink"]}, "rule": {"color": c["ink"]}, "view": {"stroke": None},
        "style": {"halo": {"color": c["paper"]}},  # lines stay visible on bars of the same brightness
        "range": {"category": c["range"]}, "line": first, "point": first, "bar": first,
    }  # fmt: skip


class Shape(NamedTuple):
    """Everything that a specification depends on."""

    kind: Kind
    x: Axis
    y: Axis
    series: str
    panel: str
    dash: str
    value: str
    top: float | None
    many: bool  # more series than colours
    labels: bool
    bars: bool  # error bars
    arrows: bool
    stepped: bool  # step lines, with separate dots
    bars_each: int  # series in each group of bars
    legend: bool
    diverging: bool
    trend: bool


def shape_of(figure: Figure) -> Shape:
    def has(key: str) -> bool:
        return any(row.get(key) is not None for row in figure.rows)

    count = len({row.get("series") for row in figure.rows})
    panels = figure.panel if has("panel") else ""
    return Shape(
        figure.kind,
        figure.x,
        figure.y,
        figure.series,
        panels,
        figure.dash if has("dash") else "",
        figure.value,
        figure.top,
        count > _DASHED,
        has("label"),
        has("low"),
        has("x2"),
        figure.stepped,
        count if figure.kind is Kind.BARS else 0,
        bool(figure.series) and (count > 1 or bool(figure.grouped)),
        figure.diverging,
        figure.trend and len(figure.rows) > 2,
    )


def spec_of(figure: Figure) -> dict[str, Any]:
    """The Vega-Lite specification of a figure, without its rows."""
    return _spec(shape_of(figure))


def prepare_rows(figure: Figure, rows: Sequence[Datum], *, width: int = _WIDE) -> list[Datum]:
    """Rows as the specification reads them: with positions of labels and radar marks, colours of cells."""
    if figure.kind is Kind.RADAR:
        return place_on_circle(rows)
    if figure.kind is Kind.HEAT:
        return with_shades(rows, figure.top, diverging=figure.diverging)
    if figure.kind is Kind.POINTS and not figure.panel:
        return with_labels(rows, figure.x, figure.y, width=width)
    return list(rows)


@lru_cache(maxsize=256)
def _spec(shape: Shape) -> dict[str, Any]:
    chart = _MAKERS[shape.kind](shape).properties(height=_height(shape))
    if shape.panel:
        header = alt.Header(title=None, labelFontWeight="bold", labelLimit=240)
        chart = chart.facet(alt.Facet("panel:N", sort=None, header=header), columns=3)
        if shape.kind is not Kind.HEAT:
            chart = chart.resolve_axis(x="independent", y="independent")
    made: dict[str, Any] = chart.to_dict()
    made.pop("config", None)  # themes bring their own
    return made


def _height(shape: Shape) -> Any:
    if shape.kind is Kind.HEAT:
        return alt.Step(24)
    if shape.kind is Kind.STACK:
        return alt.Step(18 if shape.panel else 28)
    if shape.kind is Kind.BARS:
        return alt.Step(max(4, (10 if shape.panel else 16) - shape.bars_each))
    return _SMALL if shape.panel else _TALL


def _position(axis: Axis, *, field: str) -> dict[str, Any]:
    """Arguments of a position channel."""
    if axis.names:
        return {
            "shorthand": f"{field}:N",
            "sort": None,
            "title": axis.title,
            "axis": alt.Axis(labelLimit=340, maxExtent=360),
        }
    scale: dict[str, Any] = {"type": "log"} if axis.log else {"zero": axis.zero}
    if axis.end is not None:
        scale["domain"] = [0, axis.end]
    if not axis.log:
        scale["nice"] = True
    if axis.whole:
        ticks = _ticks_where(_WHOLE, "format(datum.value, 'd')", count=5)
    elif axis.log:
        ticks = _ticks_where(_POWER, "datum.label", count=6)
    else:
        ticks = alt.Axis(tickCount=6, labelSeparation=3)
    return {"shorthand": f"{field}:Q", "title": axis.title, "scale": alt.Scale(**scale), "axis": ticks}


def _ticks_where(test: str, label: str, *, count: int) -> alt.Axis:
    """About so many ticks, of which those that pass a test are shown with a label."""
    shown: Any = {"condition": {"test": test, "value": 1}, "value": 0}
    words = f"{test} ? {label} : ''"
    return alt.Axis(tickCount=count, gridOpacity=shown, tickOpacity=shown, labelExpr=words)


def _tooltip(shape: Shape, *, value: bool = False) -> list[alt.Tooltip]:
    tips = []
    if shape.panel:
        tips.append(alt.Tooltip("panel:N", title=shape.panel))
    if shape.series:
        tips.append(alt.Tooltip("series:N", title=shape.series))
    if shape.dash:
        tips.append(alt.Tooltip("dash:N", title=shape.dash))
    if shape.labels:
        tips.append(alt.Tooltip("label:N", title="of"))
    for axis, field in ((shape.x, "x"), (shape.y, "y")):
        kind = "N" if axis.names else "Q"
        tips.append(alt.Tooltip(f"{field}:{kind}", title=axis.title, format="" if axis.names else ".3~f"))
    if value:
        tips.append(alt.Tooltip("v:Q", title=shape.value, format=".3~f"))
        if shape.bars:
            tips += [alt.Tooltip(f"{end}:Q", title=f"95 %, {end}", format=".1f") for end in ("low", "high")]
    return tips


def _legend(shape: Shape) -> Any:
    if not shape.legend:
        return None
    title = None if shape.kind is Kind.BARS else shape.series
    return alt.Legend(title=title, labelLimit=280, orient="bottom", symbolStrokeWidth=2)


def _colour(shape: Shape) -> dict[str, Any]:
    if not shape.series:
        return {}
    # Bars have neither dashes nor symbols: with more series than colours, they need more colours.
    more: dict[str, Any] = {"scale": alt.Scale(scheme="tableau20")} if shape.bars_each > _COLOURS else {}
    return {"color": alt.Color("series:N", sort=None, legend=_legend(shape), **more)}


def _plane(shape: Shape) -> dict[str, Any]:
    return {"x": alt.X(**_position(shape.x, field="x")), "y": alt.Y(**_position(shape.y, field="y"))}


def _lines(shape: Shape) -> Any:
    places = _plane(shape)
    lined: dict[str, Any] = {}
    if shape.dash:  # in the lines alone, or the legend would show dots
        legend = alt.Legend(
            title=shape.dash, orient="bottom", labelLimit=280, symbolSize=400, symbolStrokeWidth=2
        )
        lined["strokeDash"] = alt.StrokeDash("dash:N", sort=None, legend=legend)
    elif shape.many:  # in both layers, or each would have a legend of its own
        places["strokeDash"] = alt.StrokeDash("series:N", sort=None, legend=_legend(shape))
    base = alt.Chart().encode(**places, **_colour(shape), tooltip=_tooltip(shape))
    if not shape.stepped:
        layers = [base.mark_line(strokeWidth=2).encode(**lined), base.mark_point(filled=True, size=36)]
        if shape.bars:
            layers.append(base.mark_rule(strokeWidth=1, opacity=0.5).encode(y=alt.Y("low:Q"), y2="high:Q"))
        return _layer(*layers)
    line = base.transform_filter("!datum.mark").mark_line(strokeWidth=2, interpolate="step-after")
    line = line.encode(**lined)
    symbol = alt.Shape("mark:N", scale=alt.Scale(domain=[*SYMBOLS], range=[*SYMBOLS.values()]), legend=None)
    dots = base.transform_filter("datum.mark").mark_point(filled=True, size=70).encode(shape=symbol)
    return _layer(line, dots)


def _points(shape: Shape) -> Any:
    base = alt.Chart().encode(**_plane(shape), tooltip=_tooltip(shape))
    many: dict[str, Any] = (
        {"shape": alt.Shape("series:N", sort=None, legend=_legend(shape))} if shape.many else {}
    )
    layers = [base.mark_point(filled=True, size=80, opacity=0.9).encode(**_colour(shape), **many)]
    if shape.trend:
        fitted = alt.Chart().transform_regression("x", "y").encode(**_plane(shape))
        layers.insert(0, fitted.mark_line(strokeDash=[5, 4], strokeWidth=1.5, color="gray"))
    # The other layers have the colour of text: coloured by series, each would have a legend of its own.
    if shape.arrows:
        moved = base.transform_filter("isValid(datum.y2)")
        layers.append(moved.mark_rule(strokeWidth=1).encode(x2="x2:Q", y2="y2:Q"))
        for head, test in (("▲", "datum.y2 >= datum.y"), ("▼", "datum.y2 < datum.y")):
            end = moved.transform_filter(test).mark_text(text=head, fontSize=9)
            layers.append(end.encode(x=alt.X("x2:Q"), y=alt.Y("y2:Q")))
    if shape.labels and not shape.panel:
        words = base.transform_filter("isValid(datum.lx)").mark_text(
            align="left", baseline="middle", fontSize=10
        )
        layers.append(words.encode(x=alt.X("lx:Q"), y=alt.Y("ly:Q"), text="label:N"))
    return _layer(*layers)


def _bars(shape: Shape) -> Any:
    """Horizontal bars: names stay readable however many there are."""
    names = alt.Y(**{**_position(shape.x, field="x"), "title": None})  # the names need none
    value = alt.X(**_position(shape.y, field="y"), stack=None)
    side: dict[str, Any] = {"yOffset": alt.YOffset("series:N", sort=None)} if shape.series else {}
    base = alt.Chart().encode(y=names, x=value, **side, tooltip=_tooltip(shape))
    layers = [base.mark_bar().encode(**_colour(shape))]
    if shape.bars:
        ends = base.encode(x=alt.X("low:Q"), x2="high:Q")
        if shape.bars_each <= _DASHED:  # on thin bars a halo would hide the bar itself
            layers.append(ends.mark_rule(strokeWidth=2.5, style="halo"))
        layers.append(ends.mark_rule(strokeWidth=1.5 if shape.bars_each <= _DASHED else 1))
    return _layer(*layers)


def _stack(shape: Shape) -> Any:
    names, value = alt.Y(**_position(shape.x, field="x")), alt.X(**_position(shape.y, field="y"))
    base = alt.Chart().encode(y=names, x=value, order="order:Q", **_colour(shape), tooltip=_tooltip(shape))
    return _layer(base.mark_bar())


def _heat(shape: Shape) -> Any:
    x = _position(shape.x, field="x")
    flat = shape.x.title in ("severity", "group")  # short names
    if shape.x.title == "severity":  # 1 to 5, then the mean, whichever row comes first
        x["sort"] = "ascending"
    x["axis"] = alt.Axis(
        labelLimit=220, orient="bottom" if shape.panel else "top", labelAngle=0 if flat else -90
    )
    base = alt.Chart().encode(
        x=alt.X(**x), y=alt.Y(**_position(shape.y, field="y")), tooltip=_tooltip(shape, value=True)
    )
    legend = alt.Legend(title=shape.value, orient="bottom")
    limits: dict[str, Any] = {"domainMin": 0}
    if shape.top is not None:
        limits |= {"domainMax": shape.top, "clamp": True}
    if shape.diverging:
        limits |= {"domainMin": -(shape.top or 1.0), "reverse": True}  # blue is more
    scale = alt.Scale(scheme="blueorange" if shape.diverging else "viridis", **limits)
    cells = base.mark_rect().encode(color=alt.Color("shade:Q", scale=scale, legend=legend))
    ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
    return _layer(cells, base.mark_text(fontSize=11).encode(text="text:N", color=ink))


def _radar(shape: Shape) -> Any:
    plane: dict[str, Any] = {
        "x": alt.X("px:Q", axis=None, scale=alt.Scale(domain=[-1.45, 1.45])),
        "y": alt.Y("py:Q", axis=None, scale=alt.Scale(domain=[-1.25, 1.25])),
    }
    base = alt.Chart().encode(**plane)
    frame = base.transform_filter("datum.part == 'ring' || datum.part == 'spoke'").mark_line(
        strokeWidth=0.7, opacity=0.5
    )
    frame = frame.encode(detail="frame:N", order="order:Q", color=alt.value("grey"))
    words = base.transform_filter("datum.part == 'name'").mark_text(fontSize=12).encode(text="label:N")
    values = base.transform_filter("datum.part == 'level'").mark_text(fontSize=9, dx=12, dy=-4, opacity=0.8)
    mine = base.transform_filter("!isValid(datum.part)").encode(**_colour(shape))
    tips = [
        alt.Tooltip("series:N", title=shape.series),
        alt.Tooltip("x:N", title=shape.x.title),
        alt.Tooltip("y:Q", title=shape.y.title, format=".1f"),
    ]
    line = mine.mark_line(strokeWidth=2).encode(order="order:Q")
    dots = mine.mark_point(filled=True, size=40).encode(tooltip=tips)
    return _layer(frame, line, dots, words, values.encode(text="label:N"))


def _layer(*layers: Any) -> Any:
    chart = alt.layer(*layers) if len(layers) > 1 else layers[0]
    return chart.properties(data=_ROWS)


_MAKERS = {
    Kind.LINES: _lines,
    Kind.POINTS: _points,
    Kind.BARS: _bars,
    Kind.STACK: _stack,
    Kind.HEAT: _heat,
    Kind.RADAR: _radar,
}


def place_on_circle(rows: Sequence[Datum]) -> list[Datum]:
    """Rows of a radar with positions in the unit circle, closed outlines, and the rings and spokes behind."""
    names = list(dict.fromkeys(row["x"] for row in rows))
    most = max((row["y"] for row in rows), default=1.0) or 1.0
    top = _round_up(most)
    angle = {name: math.pi / 2 - 2 * math.pi * i / len(names) for i, name in enumerate(names)}

    def at(name: str, radius: float) -> dict[str, float]:
        return {"px": radius * math.cos(angle[name]), "py": radius * math.sin(angle[name])}

    placed: list[Datum] = []
    for series in dict.fromkeys(row["series"] for row in rows):
        mine = sorted((row for row in rows if row["series"] == series), key=lambda row: names.index(row["x"]))
        placed += [
            {**row, **at(row["x"], row["y"] / top), "order": i} for i, row in enumerate([*mine, *mine[:1]])
        ]
    for ring in _RINGS:
        placed += [
            {**at(name, ring), "part": "ring", "frame": f"ring {ring}", "order": i}
            for i, name in enumerate([*names, names[0]])
        ]
        placed.append({**at(names[0], ring), "part": "level", "label": f"{ring * top:g}"})
    for name in names:
        placed += [
            {**at(name, r), "part": "spoke", "frame": f"spoke {name}", "order": i}
            for i, r in enumerate((0, 1))
        ]
        placed.append({**at(name, 1.16), "part": "name", "label": name})
    return placed


def with_shades(rows: Sequence[Datum], top: float | None, *, diverging: bool = False) -> list[Datum]:
    """Rows of a heat map with the value that each colour shows, and the cell's text and its colour.

    Without a `top`, colours end at the largest value shown at the same time. An arrow marks values above it.
    """
    if diverging and top is not None:  # dark at both ends, bright in the middle
        return [{**row, "text": f"{row['v']:+z.1f}", "dark": abs(row["v"]) > 0.6 * top} for row in rows]
    most: dict[object, float] = {}  # by what is picked
    shades: list[float] = [row["shade"] if "shade" in row else row["v"] for row in rows]
    for row, shade in zip(rows, shades, strict=True):
        pick = row.get("pick")
        most[pick] = max(most.get(pick, 0.0), shade) if top is None else top
    shaded: list[Datum] = []
    for row, shade in zip(rows, shades, strict=True):
        words = f"{row['v']:z.1f}{'↑' if top is not None and shade > top + _ABOVE else ''}"
        # Viridis runs from dark to bright: the ink turns where both are readable.
        shaded.append({**row, "shade": shade, "text": words, "dark": shade < 0.6 * most[row.get("pick")]})
    return shaded


def _round_up(value: float) -> float:
    step = 10 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return math.ceil(value / step) * step


def with_labels(rows: Sequence[Datum], x_axis: Axis, y_axis: Axis, *, width: int = _WIDE) -> list[Datum]:
    """Rows with a position for each label, beside its mark and clear of the others.

    A label that fits nowhere appears only in the tooltip.
    """
    named = [row for row in rows if row.get("label")]
    if not named:
        return list(rows)
    left, long = _extent([row[key] for row in rows for key in ("x", "x2") if key in row], x_axis)
    low, height = _extent([row[key] for row in rows for key in ("y", "y2") if key in row], y_axis)
    marks = [((row["x"] - left) / long, (at - low) / height) for row in rows for at in _stroke(row, height)]
    taken = [(x - 0.5 * _GAP, x + 0.5 * _GAP, y) for x, y in marks]  # left, right, middle
    placed: dict[int, Datum] = {}
    for row in sorted(named, key=lambda row: (-row["y"], row["x"])):
        x, y = (row["x"] - left) / long, (row["y"] - low) / height
        letters = _LETTER * _WIDE / width * len(row["label"])
        end = ((row["y2"] if "y2" in row else row["y"]) - low) / height
        free = next((place for place in _around_mark(x, y, end, letters) if _is_free(place, taken)), None)
        if free is None:
            continue
        taken.append(free)
        lx, _, ly = free
        placed[id(row)] = {**row, "lx": left + lx * long, "ly": low + ly * height}
    return [placed.get(id(row), row) for row in rows]


def _stroke(row: Datum, height: float) -> list[float]:
    """The heights that a mark covers: its own, and those along its arrow, which is almost vertical."""
    end = row.get("y2", row["y"])
    count = 1 + int(abs(end - row["y"]) / (0.5 * _LINE * height))
    return [row["y"] + (end - row["y"]) * i / count for i in range(count + 1)]


def _around_mark(x: float, y: float, end: float, letters: float) -> list[tuple[float, float, float]]:
    """Positions for a label (left, right, middle), the nearest first: beside the mark, below or above the
    mark and its arrow, and beside it but higher or lower."""
    heights = [y + side * step * 0.5 * _LINE for step in range(6) for side in ((1, -1) if step else (1,))]
    beside = [(lx, ly) for ly in heights for lx in (x + _GAP, x - _GAP - letters)]
    beyond = [(x - letters / 2, ly) for ly in (min(y, end) - 1.2 * _LINE, max(y, end) + 1.2 * _LINE)]
    return [(lx, lx + letters, ly) for lx, ly in (*beside[:2], *beyond, *beside[2:])]


def _is_free(place: tuple[float, float, float], taken: Sequence[tuple[float, float, float]]) -> bool:
    left, right, middle = place
    inside = left >= 0 and right <= 1.02 and 0 <= middle <= 1
    return inside and all(right < a or left > b or abs(middle - at) >= _LINE for a, b, at in taken)


def _extent(values: Sequence[float], axis: Axis) -> tuple[float, float]:
    """Where an axis begins and how long it is, once a chart has rounded its ends.

    >>> _extent([8.0, 93.0], Axis("RMSE", zero=True)), _extent([8.0, 93.0], Axis("SNR"))
    ((0, 100), (0, 100))
    """
    low, high = min(values), max(values)
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return low, 1.0
    step = 10 ** math.floor(math.log10((high - low) / 10))
    step *= next(factor for factor, least in _STEPS if (high - low) / 10 / step >= least)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    return low, high - low
