"""Figures as Vega-Lite: one specification per shape of figure, drawn over rows that come beside it.

A specification holds no row and no name of a user, so equal shapes share one. The page sets widths,
columns and colours, which depend on the screen and on light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt

from stormproof.report.elements import Axis, Figure, Kind, Row
from stormproof.report.places import around, beside

_DASHED = 4  # series that colours alone tell apart at a glance; more get dashes and shapes
_ROWS = alt.NamedData(name="rows")


class Shape(NamedTuple):
    """All that a specification depends on."""

    kind: Kind
    x: Axis
    y: Axis
    series: str
    panel: str
    value: str
    top: float | None
    many: bool  # more series than colours
    labels: bool
    bars: bool  # error bars
    arrows: bool
    stepped: bool  # stairs, with dots apart from them


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
        figure.value,
        figure.top,
        count > _DASHED,
        has("label"),
        has("low"),
        has("x2"),
        figure.stepped,
    )


def spec_of(figure: Figure) -> dict[str, Any]:
    """The Vega-Lite specification of a figure, without its rows."""
    return _spec(shape_of(figure))


def prepared(figure: Figure, rows: Sequence[Row]) -> list[Row]:
    """Rows as the specification reads them: those of a radar get places in the plane, labels theirs."""
    if figure.kind is Kind.RADAR:
        return around(rows)
    if figure.kind is Kind.POINTS and not figure.panel:
        return beside(rows, figure.x, figure.y)
    return list(rows)


@lru_cache(maxsize=256)
def _spec(shape: Shape) -> dict[str, Any]:
    chart = _MAKERS[shape.kind](shape)
    if shape.panel:
        header = alt.Header(title=None, labelFontWeight="bold", labelLimit=240)
        chart = chart.facet(alt.Facet("panel:N", sort=None, header=header), columns=3)
        chart = chart.resolve_axis(x="independent", y="independent")
    found: dict[str, Any] = chart.to_dict()
    found.pop("config", None)  # the page brings its own
    return found


def _position(axis: Axis, *, field: str) -> dict[str, Any]:
    """Arguments of a position channel."""
    if axis.names:
        return {
            "shorthand": f"{field}:N",
            "sort": None,
            "title": axis.title,
            "axis": alt.Axis(labelLimit=340),
        }
    scale: dict[str, Any] = {"type": "log"} if axis.log else {"zero": axis.zero}
    if axis.percent:
        scale["domain"] = [0, 100]
    if not axis.log:
        scale["nice"] = True
    ticks = alt.Axis(tickMinStep=1, format="d", tickCount=5) if axis.whole else alt.Axis(tickCount=6)
    return {"shorthand": f"{field}:Q", "title": axis.title, "scale": alt.Scale(**scale), "axis": ticks}


def _tooltip(shape: Shape, *, value: bool = False) -> list[alt.Tooltip]:
    tips = []
    if shape.panel:
        tips.append(alt.Tooltip("panel:N", title=shape.panel))
    if shape.series:
        tips.append(alt.Tooltip("series:N", title=shape.series))
    if shape.labels:
        tips.append(alt.Tooltip("label:N", title="of"))
    for axis, field in ((shape.x, "x"), (shape.y, "y")):
        kind = "N" if axis.names else "Q"
        tips.append(alt.Tooltip(f"{field}:{kind}", title=axis.title, format="" if axis.names else ".3~f"))
    if value:
        tips.append(alt.Tooltip("v:Q", title=shape.value, format=".3~f"))
    return tips


def _legend(shape: Shape) -> Any:
    return alt.Legend(title=shape.series, labelLimit=280, orient="bottom", symbolStrokeWidth=2)


def _colour(shape: Shape) -> dict[str, Any]:
    return {"color": alt.Color("series:N", sort=None, legend=_legend(shape))} if shape.series else {}


def _lines(shape: Shape) -> Any:
    places: dict[str, Any] = {
        "x": alt.X(**_position(shape.x, field="x")),
        "y": alt.Y(**_position(shape.y, field="y")),
    }
    if shape.many:  # of both layers, or their legends would not be one
        places["strokeDash"] = alt.StrokeDash("series:N", sort=None, legend=_legend(shape))
    base = alt.Chart().encode(**places, **_colour(shape), tooltip=_tooltip(shape))
    if not shape.stepped:
        return _over(shape, base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=36))
    line = base.transform_filter("!datum.mark").mark_line(strokeWidth=2, interpolate="step-after")
    dots = base.transform_filter("datum.mark").mark_point(filled=True, size=50)
    return _over(shape, line, dots)


def _points(shape: Shape) -> Any:
    places: dict[str, Any] = {
        "x": alt.X(**_position(shape.x, field="x")),
        "y": alt.Y(**_position(shape.y, field="y")),
    }
    base = alt.Chart().encode(**places, **_colour(shape), tooltip=_tooltip(shape))
    many: dict[str, Any] = (
        {"shape": alt.Shape("series:N", sort=None, legend=_legend(shape))} if shape.many else {}
    )
    layers = [base.mark_point(filled=True, size=80, opacity=0.9).encode(**many)]
    if shape.arrows:
        moved = base.transform_filter("isValid(datum.y2)")
        layers.append(moved.mark_rule(strokeWidth=1.5).encode(x2="x2:Q", y2="y2:Q"))
        for symbol, test in (("triangle-up", "datum.y2 >= datum.y"), ("triangle-down", "datum.y2 < datum.y")):
            head = moved.transform_filter(test).mark_point(filled=True, size=70, shape=symbol)
            layers.append(head.encode(x=alt.X("x2:Q"), y=alt.Y("y2:Q")))
    if shape.labels and not shape.panel:
        words = base.transform_filter("isValid(datum.lx)").mark_text(
            align="left", baseline="middle", fontSize=10
        )
        layers.append(words.encode(x=alt.X("lx:Q"), y=alt.Y("ly:Q"), text="label:N"))
    return _over(shape, *layers)


def _bars(shape: Shape) -> Any:
    """Lying bars: names stay readable however many there are."""
    names = alt.Y(**_position(shape.x, field="x"))
    value = alt.X(**_position(shape.y, field="y"), stack=None)
    side: dict[str, Any] = {"yOffset": alt.YOffset("series:N", sort=None)} if shape.series else {}
    base = alt.Chart().encode(y=names, x=value, **side, tooltip=_tooltip(shape))
    layers = [base.mark_bar().encode(**_colour(shape))]
    if shape.bars:
        layers.append(base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q"))
    return _over(shape, *layers)


def _stack(shape: Shape) -> Any:
    names = alt.Y(**_position(shape.x, field="x"))
    value = alt.X(**_position(shape.y, field="y"))
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(y=names, x=value, order="order:Q", **_colour(shape), tooltip=_tooltip(shape))
    )
    return _over(shape, bars)


def _heat(shape: Shape) -> Any:
    x = _position(shape.x, field="x")
    x["axis"] = alt.Axis(labelLimit=220, orient="top", labelAngle=0 if shape.x.title == "severity" else -90)
    base = alt.Chart().encode(
        x=alt.X(**x), y=alt.Y(**_position(shape.y, field="y")), tooltip=_tooltip(shape, value=True)
    )
    legend = alt.Legend(title=shape.value, orient="bottom")
    limits: dict[str, Any] = {"domainMin": 0}
    if shape.top is not None:
        limits |= {"domainMax": shape.top, "clamp": True}
    scale = alt.Scale(scheme="viridis", **limits)
    cells = base.mark_rect().encode(color=alt.Color("v:Q", scale=scale, legend=legend))
    # Viridis runs from dark to bright: the ink turns where both are readable.
    most = "datum.most" if shape.top is None else f"{shape.top:g}"
    ink = alt.condition(f"datum.v < 0.6 * {most}", alt.value("white"), alt.value("black"))
    words = base.transform_joinaggregate(most="max(v)").mark_text(fontSize=11)
    return _over(shape, cells, words.encode(text=alt.Text("v:Q", format=".1f"), color=ink))


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
    return _over(shape, frame, line, dots, words, values.encode(text="label:N"))


def _over(shape: Shape, *layers: Any) -> Any:
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
