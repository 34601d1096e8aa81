"""Charts over a plane of two physical quantities, and the page of a map.

Rows of one chart are of several kinds (`mark`): cells of the plane, segments of lines, points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stormproof.core.sample import Floats
from stormproof.core.table import Entry, Table
from stormproof.core.text import as_csv
from stormproof.report.elements import Datum
from stormproof.report.page import environment
from stormproof.results.maps import SURE, ScoreMap
from stormproof.results.surface import GRID, MET, MISSED, OPEN

ZONES = {MET: "met", OPEN: "open", MISSED: "missed"}
_WORDS = {"met": "met with confidence", "open": "not decided", "missed": "missed with confidence"}
_SKETCHED = {"met": "seems met", "open": "not decided", "missed": "seems missed"}
# Colours that colour-blind readers can tell apart, which both themes of the page can show.
COLOURS = {"met": "#3b8bc2", "open": "#b9bec4", "missed": "#e0813a"}
_HEIGHT = 420
Place = Callable[[float], float]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A figure with its own Vega-Lite specification; rows come as the dataset `rows`."""

    id: str
    title: str
    note: str
    spec: Mapping[str, Any]
    rows: Sequence[Datum]
    columns: tuple[str, ...]  # of the CSV file: keys of rows

    @property
    def blob(self) -> dict[str, Any]:
        """What the page needs to draw it and to save its numbers."""
        cells = [row for row in self.rows if row["mark"] == self.rows[0]["mark"]]
        table = as_csv(list(self.columns), [[row.get(key) for key in self.columns] for row in cells])
        return {"spec": self.spec, "rows": list(self.rows), "grouped": {}, "pick": [], "csv": table}


def axis(made: Mapping[str, Any]) -> dict[str, Any]:
    """The encoding of an axis: logarithmic for quantities, from end to end."""
    scale = {"type": made["scale"], "domain": [made["from"], made["to"]], "nice": False}
    return {
        "title": made["title"],
        "scale": scale,
        "type": "quantitative",
        "axis": {"grid": False, "format": "~g"},
    }


def layer(mark: str, drawn: Mapping[str, Any], **encoding: Any) -> dict[str, Any]:
    """One layer: the rows of one mark."""
    only = {"filter": f"datum.mark === '{mark}'"}
    return {"transform": [only], "mark": dict(drawn), "encoding": encoding}


def plane_spec(
    x: Mapping[str, Any], y: Mapping[str, Any], fill: Mapping[str, Any], tooltip: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Cells with a colour, and over them the line, the edges of the band and the points."""
    ends = {
        "x": {**axis(x), "field": "x"},
        "x2": {"field": "x2"},
        "y": {**axis(y), "field": "y"},
        "y2": {"field": "y2"},
    }
    point = {
        "type": "point",
        "filled": True,
        "size": 34,
        "color": "#111",
        "stroke": "white",
        "strokeWidth": 1,
    }
    spots = {"x": ends["x"], "y": ends["y"]}
    rect = {"type": "rect", "strokeWidth": 0.7}  # in its own colour, so that no seams show
    colours = {"color": dict(fill), "stroke": dict(fill)}
    return {
        "data": {"name": "rows"},
        "height": _HEIGHT,
        "layer": [
            layer("cell", rect, **ends, **colours, tooltip=list(tooltip)),
            layer("edge", {"type": "rule", "strokeWidth": 1, "strokeDash": [4, 3]}, **ends),
            layer("line", {"type": "rule", "strokeWidth": 2.5}, **ends),
            layer("point", point, **spots, tooltip=[
                {"field": "label", "title": "condition"}, {"field": "v", "title": "score", "format": ".3f"},
            ]),
        ],
    }  # fmt: skip


def map_charts(made: ScoreMap) -> tuple[Chart, Chart]:
    """The zones of a map, and its surface, both with the breaking line, its band and the points."""
    plane, estimate = made.plane, made.estimate
    x, y = plane.x.as_dict(), plane.y.as_dict()
    cells, lines = _cells(made), _lines(made)
    points = [
        {"mark": "point", "x": row["x"], "y": row["y"], "v": row["estimate"], "label": row["condition"]}
        for row in (point.as_dict(plane) for point in made.points)
    ]
    measure = plane.measure
    tooltip = [
        {"field": "xm", "title": x["title"], "format": ".4~g"},
        {"field": "ym", "title": y["title"], "format": ".4~g"},
        {"field": "v", "title": measure, "format": ".3f"},
        {"field": "low", "title": "at least", "format": ".3f"},
        {"field": "high", "title": "at most", "format": ".3f"}, {"field": "zone", "title": "requirement"},
    ]  # fmt: skip
    legend = {"orient": "top", "title": None, "symbolType": "square"}
    words = _zone_words(made)
    scale = {"domain": list(words.values()), "range": [COLOURS[name] for name in words]}
    zones = {"field": "zone", "type": "nominal", "scale": scale, "legend": legend}
    top = float(max(estimate.score.max() * plane.sign, plane.threshold))
    score = {
        "field": "v", "type": "quantitative", "title": measure,
        "scale": {"scheme": "viridis", "domain": [0, round(top, 2)], "clamp": True},
    }  # fmt: skip
    columns = ("xm", "ym", "v", "low", "high", "zone")
    rows = [*cells, *lines, *points]
    band = "Solid: the estimated breaking line. Dashed: the edges of its band. Dots: what was run."
    return (
        Chart(
            "zones", f"Where {plane.requirement} holds",
            band if made.doubt else f"{band} {SURE}",
            plane_spec(x, y, zones, tooltip), rows, columns,
        ),
        Chart("score", f"{measure} over the plane", band, plane_spec(x, y, score, tooltip), rows, columns),
    )  # fmt: skip


def _zone_words(made: ScoreMap) -> dict[str, str]:
    """What the zones are called: a sketch claims no confidence."""
    return _SKETCHED if made.doubt else _WORDS


def _cells(made: ScoreMap) -> list[Datum]:
    """The grid as rectangles around its places."""
    plane, estimate, sign = made.plane, made.estimate, made.plane.sign
    half, step = 0.5 / (GRID - 1), 1 / (GRID - 1)
    words = _zone_words(made)
    rows = []
    for k, zone in enumerate(estimate.zones.tolist()):
        u, v = (k % GRID) * step, (k // GRID) * step
        low, high = sorted((sign * float(estimate.low[k]), sign * float(estimate.high[k])))
        rows.append(
            {
                "mark": "cell", "zone": words[ZONES[zone]], "v": round(sign * float(estimate.score[k]), 4),
                "low": round(low, 4), "high": round(high, 4),
                "x": _at(plane.x, u - half), "x2": _at(plane.x, u + half), "xm": _at(plane.x, u),
                "y": _at(plane.y, v - half), "y2": _at(plane.y, v + half), "ym": _at(plane.y, v),
            }
        )  # fmt: skip
    return rows


def _at(axis: Any, place: float) -> float:
    return float(axis.value(min(max(place, 0.0), 1.0)))


def _lines(made: ScoreMap) -> list[Datum]:
    """The breaking line, and where its band ends."""
    plane, estimate = made.plane, made.estimate
    places = partial(_at, plane.x), partial(_at, plane.y)
    drawn = (("line", estimate.score), ("edge", estimate.low), ("edge", estimate.high))
    return [
        row
        for mark, values in drawn
        for row in segment_rows(mark, made.segments(values, estimate.threshold), *places)
    ]


def segment_rows(mark: str, segments: Floats, x: Place, y: Place) -> list[Datum]:
    """Segments (x, y, x2, y2) on a plane of sides 1; `x` and `y` give the values of the axes there."""
    return [{"mark": mark, "x": x(a), "y": y(b), "x2": x(c), "y2": y(d)} for a, b, c, d in segments.tolist()]


def map_page(made: ScoreMap, name: str) -> str:
    """The page of a map."""
    plane = made.plane
    zones, surface = map_charts(made)
    rows: list[list[Entry]] = [
        [
            p["condition"], f"{p['x']:g}", f"{p['y']:g}", 100 * p["estimate"], 100 * p["low"],
            100 * p["high"], p["objects"] if p["objects"] is not None else "–",
        ]
        for p in (point.as_dict(plane) for point in made.points)
    ]  # fmt: skip
    columns = ("condition", plane.x.title, plane.y.title, plane.measure, "95 % from", "to", "objects")
    return environment().get_template("map.html").render(
        title=f"{name}: {plane.requirement}", words=made.words, zones=zones, surface=surface,
        notices=[f"The zones are a sketch: {made.doubt}."] if made.doubt else [],
        points=Table("points", f"Scores of the conditions run ({plane.measure} in %)", columns, rows),
        cost=f"{made.inferences:,} inferences: {made.inferences // made.images} conditions, clean among "
        f"them, on {made.images} images. Each condition after the first ones is where the estimate was "
        "uncertain and close to the requirement.",
    )  # fmt: skip
