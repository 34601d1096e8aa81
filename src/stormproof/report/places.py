"""Where marks stand that no axis places: the outline of a radar, and labels that do not cover each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stormproof.report.elements import Axis, Row

_RINGS = (0.25, 0.5, 0.75, 1.0)
# A label's letters and height, as shares of a plot of usual size.
_LETTER, _LINE, _GAP = 0.0062, 0.045, 0.008
# Steps of a rounded axis by how many of the next lower power of ten they hold, as d3-scale chooses them.
_STEPS = ((10, math.sqrt(50)), (5, math.sqrt(10)), (2, math.sqrt(2)), (1, 0.0))


def around(rows: Sequence[Row]) -> list[Row]:
    """Rows of a radar with places in the unit circle, the outline closed, and the frame to draw it in."""
    names = list(dict.fromkeys(row["x"] for row in rows))
    most = max((row["y"] for row in rows), default=1.0) or 1.0
    top = _round_up(most)
    angle = {name: math.pi / 2 - 2 * math.pi * i / len(names) for i, name in enumerate(names)}

    def at(name: str, radius: float) -> dict[str, float]:
        return {"px": radius * math.cos(angle[name]), "py": radius * math.sin(angle[name])}

    found: list[Row] = []
    for series in dict.fromkeys(row["series"] for row in rows):
        mine = sorted((row for row in rows if row["series"] == series), key=lambda row: names.index(row["x"]))
        found += [
            {**row, **at(row["x"], row["y"] / top), "order": i} for i, row in enumerate([*mine, *mine[:1]])
        ]
    for ring in _RINGS:
        found += [
            {**at(name, ring), "part": "ring", "frame": f"ring {ring}", "order": i}
            for i, name in enumerate([*names, names[0]])
        ]
        found.append({**at(names[0], ring), "part": "level", "label": f"{ring * top:g}"})
    for name in names:
        found += [
            {**at(name, r), "part": "spoke", "frame": f"spoke {name}", "order": i}
            for i, r in enumerate((0, 1))
        ]
        found.append({**at(name, 1.16), "part": "name", "label": name})
    return found


def _round_up(value: float) -> float:
    step = 10 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return math.ceil(value / step) * step


def beside(rows: Sequence[Row], x_axis: Axis, y_axis: Axis) -> list[Row]:
    """Rows whose labels have places of their own, each beside its mark and off the others.

    A label that finds none is left to the tooltip.
    """
    named = [row for row in rows if row.get("label")]
    if not named:
        return list(rows)
    left, width = _extent([row[key] for row in rows for key in ("x", "x2") if key in row], x_axis)
    low, height = _extent([row[key] for row in rows for key in ("y", "y2") if key in row], y_axis)
    marks = [((row["x"] - left) / width, (at - low) / height) for row in rows for at in _stroke(row, height)]
    taken = [(x - 0.5 * _GAP, x + 0.5 * _GAP, y) for x, y in marks]  # left, right, middle
    placed: dict[int, Row] = {}
    for row in sorted(named, key=lambda row: (-row["y"], row["x"])):
        x, y = (row["x"] - left) / width, (row["y"] - low) / height
        letters = _LETTER * len(row["label"])
        free = next((place for place in _around_mark(x, y, letters) if _is_free(place, taken)), None)
        if free is None:
            continue
        taken.append(free)
        lx, _, ly = free
        placed[id(row)] = {**row, "lx": left + lx * width, "ly": low + ly * height}
    return [placed.get(id(row), row) for row in rows]


def _stroke(row: Row, height: float) -> list[float]:
    """The heights that a mark covers: its own, and those along its arrow, which stands almost upright."""
    end = row.get("y2", row["y"])
    count = 1 + int(abs(end - row["y"]) / (0.5 * _LINE * height))
    return [row["y"] + (end - row["y"]) * i / count for i in range(count + 1)]


def _around_mark(x: float, y: float, letters: float) -> list[tuple[float, float, float]]:
    """Places for a label, the nearest first."""
    heights = [y + side * step * 0.5 * _LINE for step in range(9) for side in ((1, -1) if step else (1,))]
    return [(lx, lx + letters, ly) for ly in heights for lx in (x + _GAP, x - _GAP - letters)]


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
