"""What is drawn, read off the SVG: colours, arrows, error bars and scales mean what the rows say."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import fromstring

import pytest
import vl_convert

from stormproof.report.charts import config, place_on_circle, prepare_rows, spec_of
from stormproof.report.elements import Axis, Datum, Figure, Kind

NAMES = Axis("name", names=True)
PERCENT = Axis("share (%)", end=100.0)


class Mark(NamedTuple):
    """A mark of a drawing: what it is, what it says, where it is, and how it looks."""

    kind: str
    says: dict[str, str]
    at: tuple[float, float]
    words: str
    looks: dict[str, str]


def draw(figure: Figure) -> list[Mark]:
    """The marks of a figure; Vega labels each with its values for screen readers."""
    rows = prepare_rows(figure, figure.rows)
    spec = {**spec_of(figure), "datasets": {"rows": rows}, "config": {**config("light"), "aria": True}}
    found = []
    for element in fromstring(vl_convert.vegalite_to_svg(spec)).iter():
        kind = element.get("aria-roledescription")
        if kind is None or kind == "axis":
            continue
        said = element.get("aria-label", "").replace("−", "-")
        says = dict(part.split(": ", 1) for part in said.split("; ") if ": " in part)
        place = re.search(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", ""))
        at = (float(place[1]), float(place[2])) if place else (math.nan, math.nan)
        found.append(Mark(kind, says, at, element.text or "", dict(element.attrib)))
    return found


def of_kind(marks: Sequence[Mark], kind: str) -> list[Mark]:
    return [mark for mark in marks if mark.kind == kind]


def heat(rows: Sequence[Datum], **more: Any) -> Figure:
    return Figure("heat", "", Kind.HEAT, Axis("severity", names=True), NAMES, rows, value="score", **more)


def colour(mark: Mark) -> tuple[int, int, int]:
    red, green, blue = (int(value) for value in re.findall(r"\d+", mark.looks["fill"]))
    return red, green, blue


def brightness(mark: Mark) -> float:
    return sum(share * value for share, value in zip((0.299, 0.587, 0.114), colour(mark), strict=True))


def test_blue_is_more_and_orange_less_than_the_reference() -> None:
    rows = [
        {"x": "1", "y": name, "v": v, "shade": v} for name, v in (("up", 4.0), ("same", 0.0), ("down", -4.0))
    ]
    marks = draw(heat(rows, top=5.0, diverging=True))
    cells = {mark.says["name"]: colour(mark) for mark in of_kind(marks, "rect mark")}
    assert cells["up"][2] > cells["up"][0] + 50, "blue"
    assert cells["down"][0] > cells["down"][2] + 50, "orange"
    assert min(cells["same"]) > 200, "nearly white"
    assert [mark.words for mark in of_kind(marks, "text mark")] == ["+4.0", "+0.0", "-4.0"]


@pytest.mark.parametrize("diverging", [False, True])
def test_numbers_can_be_read_on_their_cells(diverging: bool) -> None:
    values = [-99.0, -50, 0, 50, 99] if diverging else [1.0, 30, 50, 70, 99]
    rows = [{"x": "1", "y": f"row {v}", "v": v, "shade": v} for v in values]
    marks = draw(heat(rows, top=100.0, diverging=diverging))
    cells = {mark.says["name"]: brightness(mark) for mark in of_kind(marks, "rect mark")}
    ink = {mark.says["name"]: mark.looks["fill"] for mark in of_kind(marks, "text mark")}
    assert {*ink.values()} == {"white", "black"}
    for name, behind in cells.items():
        assert abs(behind - (255 if ink[name] == "white" else 0)) > 90, name


def test_a_cell_shows_its_value_and_its_colour_the_shade() -> None:
    """The absolute scale: 30 points, coloured by the 90 % of the clean score that they are."""
    rows = [
        {"x": "1", "y": "fog", "v": 30.0, "shade": 90.0},
        {"x": "1", "y": "snow", "v": 90.0, "shade": 30.0},
    ]
    marks = draw(heat(rows, top=100.0))
    assert [mark.words for mark in of_kind(marks, "text mark")] == ["30.0", "90.0"]
    fog, snow = (brightness(mark) for mark in of_kind(marks, "rect mark"))
    assert fog > snow


def test_an_arrow_marks_values_above_the_top_of_the_colours() -> None:
    shown = {100.0: "100.0", 99.98: "100.0", 100.04: "100.0", 100.06: "100.1↑", 130.0: "130.0↑", 20.0: "20.0"}
    rows = [{"x": "1", "y": f"row {v}", "v": v, "shade": v} for v in shown]
    assert [mark.words for mark in of_kind(draw(heat(rows, top=100.0)), "text mark")] == [*shown.values()]


def test_without_a_top_colours_end_at_the_largest_value_of_what_is_picked() -> None:
    rows = [
        {"x": "1", "y": f"{p}{v}", "v": v, "pick": (p,)}
        for p, v in (("a", 10.0), ("a", 4.0), ("b", 1.0), ("b", 0.9))
    ]
    dark = [row["dark"] for row in prepare_rows(heat(rows), rows)]
    assert dark == [False, True, False, False]


def test_arrows_run_from_the_first_run_to_the_second() -> None:
    rows = [
        {"x": 10.0, "y": 50.0, "x2": 14.0, "y2": 80.0, "series": "noise", "label": "up"},
        {"x": 20.0, "y": 50.0, "x2": 24.0, "y2": 30.0, "series": "noise", "label": "down"},
    ]
    marks = draw(
        Figure("rmse", "", Kind.POINTS, Axis("RMSE", zero=True), Axis("share", zero=True), rows, "group")
    )
    dots = {mark.says["of"]: mark.at for mark in of_kind(marks, "point")}
    heads = {mark.says["of"]: mark for mark in of_kind(marks, "text mark") if mark.words in "▲▼"}
    lines = {mark.says["of"]: mark for mark in of_kind(marks, "rule mark")}
    assert {name: mark.words for name, mark in heads.items()} == {"up": "▲", "down": "▼"}
    assert heads["up"].at[1] < dots["up"][1], "up is a smaller y in SVG"
    assert heads["down"].at[1] > dots["down"][1]
    for name, line in lines.items():
        assert line.at == dots[name]
        end = (line.at[0] + float(line.looks["x2"]), line.at[1] + float(line.looks["y2"]))
        assert end == pytest.approx(heads[name].at, abs=4)  # text stands a little lower
        assert end[0] > line.at[0], "to the larger RMSE"


def test_error_bars_of_bars_run_from_low_to_high() -> None:
    rows = [{"x": "fog", "y": 50.0, "low": 40.0, "high": 75.0, "series": "net"}]
    marks = draw(Figure("kept", "", Kind.BARS, NAMES, PERCENT, rows, "model"))
    (bar,) = of_kind(marks, "bar")
    (width,) = re.findall(r"M0,[\d.]+h([\d.]+)", bar.looks["d"])
    point = float(width) / 50
    for rule in of_kind(marks, "rule mark"):  # the line, and its halo
        assert rule.at[0] == pytest.approx(40 * point)
        assert float(rule.looks["x2"]) == pytest.approx(35 * point)


def test_error_bars_of_lines_run_from_low_to_high() -> None:
    rows = [
        {"x": 0.0, "y": 50.0, "low": 40.0, "high": 75.0, "series": "net"},
        {"x": 1.0, "y": 30.0, "low": 20.0, "high": 32.0, "series": "net"},
    ]
    marks = draw(Figure("rates", "", Kind.LINES, Axis("distance (m)"), PERCENT, rows, "condition"))
    first, second = (mark.at[1] for mark in of_kind(marks, "point"))
    point = (second - first) / 20  # of the axis, downwards
    assert point > 0, "more is higher"
    for rule, row, dot in zip(of_kind(marks, "rule mark"), rows, (first, second), strict=True):
        assert rule.at[1] == pytest.approx(dot + (row["y"] - row["low"]) * point)
        assert float(rule.looks["y2"]) == pytest.approx((row["low"] - row["high"]) * point)


def test_a_detection_rate_is_reached_at_its_false_positives_and_holds_from_there() -> None:
    """At one false positive per image the rate rises to 60 %: between 0.1 and 1 it is that of 0.1."""
    rows = [{"x": 0.1, "y": 20.0, "series": "net"}, {"x": 1.0, "y": 60.0, "series": "net"}]
    dot = {"x": 0.1, "y": 25.0, "series": "net", "mark": True}
    figure = Figure(
        "roc", "", Kind.LINES, Axis("FPPI", log=True), PERCENT, [*rows, dot], "model", stepped=True
    )
    marks = draw(figure)
    (line,) = of_kind(marks, "line mark")
    places = [tuple(map(float, pair.split(","))) for pair in re.split("[ML]", line.looks["d"])[1:]]
    start, corner, end = places
    assert corner == (end[0], start[1]), "first to the right, then up"
    (mark,) = of_kind(marks, "point")
    assert end[1] < mark.at[1] < start[1]


def test_an_axis_with_an_end_begins_at_zero() -> None:
    rows = [{"x": "a", "y": 40.0, "series": "net"}, {"x": "b", "y": 80.0, "series": "net"}]
    scale = spec_of(Figure("kept", "", Kind.BARS, NAMES, PERCENT, rows, "model"))["encoding"]["x"]["scale"]
    assert scale["domain"] == [0, 100.0]


@pytest.mark.parametrize("last", [2, 3, 5])
def test_an_axis_of_severities_is_labelled_at_each_once(last: int) -> None:
    rows = [{"x": x, "y": x / 10, "series": "net"} for x in range(1, last + 1)]
    figure = Figure("lines", "", Kind.LINES, Axis("severity", whole=True), Axis("change"), rows)
    spec = {**spec_of(figure), "datasets": {"rows": prepare_rows(figure, figure.rows)}}
    first = vl_convert.vegalite_to_svg(spec).split("role-axis-label")[1].split("role-axis-domain")[0]
    assert [*map(str, range(1, last + 1))] == re.findall(r">([^<]+)</text>", first)


def test_rings_and_outlines_of_a_radar_share_a_scale() -> None:
    """The largest value is 67: the outermost ring is 70, and 67 lies just within it."""
    rows = place_on_circle(
        [{"x": name, "y": y, "series": "net"} for name, y in (("a", 67.0), ("b", 35.0), ("c", 0.0))]
    )
    radius = {row["x"]: math.hypot(row["px"], row["py"]) for row in rows if row.get("series") == "net"}
    assert radius == pytest.approx({"a": 67 / 70, "b": 0.5, "c": 0.0})
    rings = {row["label"]: row["py"] for row in rows if row.get("part") == "level"}
    assert rings == pytest.approx({"17.5": 0.25, "35": 0.5, "52.5": 0.75, "70": 1.0})
    names = {row["label"]: (row["px"], row["py"]) for row in rows if row.get("part") == "name"}
    for row in rows:  # every outline points to its own name
        if row.get("series") == "net" and row["y"]:
            x, y = names[row["x"]]
            assert (row["px"] * y, row["px"] * x >= 0, row["py"] * y >= 0) == (
                pytest.approx(row["py"] * x),
                True,
                True,
            )


def test_a_radar_ends_at_a_round_value() -> None:
    rows = place_on_circle([{"x": name, "y": 40.0, "series": "net"} for name in "abc"])
    assert max(math.hypot(row["px"], row["py"]) for row in rows if row.get("series")) == pytest.approx(1)
    assert [row["label"] for row in rows if row.get("part") == "level"][-1] == "40"
