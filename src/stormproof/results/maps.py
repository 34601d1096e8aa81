"""Maps of two parameters: the score over a plane, and the line along which it breaks a requirement.

    --x 'haze[visibility=50..1000]'   a parameter of a corruption, by equal factors
    --y 'fog@1..5'                    the severity of a corruption
    --y 'distance=5..80'              an attribute of objects: distance in metres, or size in square pixels

A point of a plane of two corruptions is a composed condition: x, then y. Where y is an attribute of objects,
the score is the share of objects found, and every condition gives a whole column of points, one for each bin
of the attribute. Which conditions are run follows from the scores so far (`results.surface`); the budget is
in inferences, and a condition takes as many of them as there are images.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Floats
from stormproof.corruptions import find
from stormproof.corruptions.units import physical
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.metric import measures
from stormproof.results.aggregates import bound_interval
from stormproof.results.breaking import Execute, StrengthAxis, parse_axis
from stormproof.results.calibrated import doubt
from stormproof.results.detection_rate import LEAST, SCALES, iter_found_objects
from stormproof.results.interval import FEWEST, LEADING, Interval, interval_around
from stormproof.results.run import Run
from stormproof.results.surface import (
    GRID,
    MET,
    MISSED,
    OPEN,
    Points,
    SurfaceEstimate,
    first_places,
    fit_surface,
    grid_places,
    halves_of,
)
from stormproof.results.weights import REPLICATES

SURE = "With a chance of 95 %, the true line lies within the band everywhere."
FOUND = "found"  # the measure of a map over an attribute of objects
USUAL_CONDITIONS = 30  # that a map of two corruptions is drawn from, unless a budget is given
USUAL_COLUMNS = 8  # and one over an attribute of objects
_BATCH = 4  # conditions that are run before the surface is estimated again
_BINS = 10  # of an attribute of objects, at most
_NUMBER = r"[0-9.eE+-]+?"
_SPAN = rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>[0-9.eE+-]+)"
_PARAMETER = re.compile(
    rf"(?P<name>\w+)\[(?P<before>.*?,)?\s*(?P<parameter>\w+)\s*=\s*{_SPAN}(?P<after>,.*)?\]"
)
_SEVERITY = re.compile(rf"(?P<name>\w+)@{_SPAN}(?P<params>\[.*\])?")
_ATTRIBUTE = re.compile(rf"(?P<name>\w+)\s*=\s*{_SPAN}")


@dataclass(frozen=True, slots=True)
class MapAxis:
    """One axis: what varies from `low`, at place 0, to `high`, at place 1. `over` is the corruption's axis;
    None for an attribute of objects."""

    name: str
    unit: str
    low: float
    high: float
    over: StrengthAxis | None
    label: str = ""  # of the physical quantity, if it is one

    @property
    def is_severity(self) -> bool:
        return self.over is not None and self.over.parameter is None

    @property
    def title(self) -> str:
        """'visibility (m)', 'light in the street (lux)', 'severity of fog', 'distance (m)'."""
        if self.is_severity:
            return f"severity of {self.name}"
        return f"{self.label or self.name}{f' ({self.unit})' if self.unit else ''}"

    def value(self, place: float) -> float:
        """The value at a place, to four digits."""
        if self.is_severity:
            return round(self.low + place * (self.high - self.low), 2)
        return float(f"{self.low * (self.high / self.low) ** place:.4g}")

    def place(self, value: float) -> float:
        """Where a value is."""
        if self.is_severity:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def condition(self, place: float) -> Condition:
        """What is done to images at a place."""
        assert self.over is not None, "an attribute of objects is no condition"
        value = self.value(place)
        return self.over.condition(value) if self.is_severity else self.over.where(value)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "title": self.title, "unit": self.unit, "from": self.low, "to": self.high,
            "scale": "linear" if self.is_severity else "log",
            "corruption": None if self.over is None else self.over.corruption,
        }  # fmt: skip


def parse_map_axis(text: str, flag: str) -> MapAxis:
    """An axis from its text; `flag` is named in errors."""
    text = text.strip()
    if match := _PARAMETER.fullmatch(text):
        low, high = _span(match, text, flag)
        rest = ",".join(part.strip(", ") for part in (match["before"], match["after"]) if part)
        corruption = f"{match['name']}[{rest}]" if rest else match["name"]
        axis = parse_axis(corruption, f"{match['parameter']}={low:g}..{high:g}")
        label, unit = _quantity(axis, low)
        return MapAxis(match["parameter"], unit, low, high, axis, label)
    if match := _SEVERITY.fullmatch(text):
        low, high = _span(match, text, flag)
        axis = parse_axis(f"{match['name']}{match['params'] or ''}", None)
        return MapAxis(match["name"], "", low, high, axis)
    if (match := _ATTRIBUTE.fullmatch(text)) and match["name"] in SCALES:
        low, high = _span(match, text, flag)
        return MapAxis(match["name"], SCALES[match["name"]].unit, low, high, None)
    raise InvalidOption(
        f"{flag} {text!r}: write a parameter of a corruption with its range, such as "
        f"'haze[visibility=50..1000]', a severity, such as 'fog@1..5', or an attribute of objects "
        f"({', '.join(SCALES)}), such as 'distance=5..80'."
    )


def _span(match: re.Match[str], text: str, flag: str) -> tuple[float, float]:
    try:
        low, high = sorted((float(match["low"]), float(match["high"])))
    except ValueError:
        raise InvalidOption(f"{flag} {text!r}: the ends of a range are numbers, as in 50..1000.") from None
    if not 0 < low < high < math.inf:
        raise InvalidOption(f"{flag} {text!r}: both ends must be above 0, and different.")
    return low, high


def _quantity(axis: StrengthAxis, value: float) -> tuple[str, str]:
    """The physical quantity that a parameter is, and its unit; else a name and the unit as declared."""
    same = [q for q in physical(axis.where(value)) if math.isclose(q.value, value, rel_tol=1e-6)]
    if same and same[0].unit:
        return same[0].name, same[0].unit
    declared = find(axis.corruption).ladders.get(str(axis.parameter))
    return f"{axis.parameter} of {axis.corruption}", declared.unit if declared is not None else ""


@dataclass(frozen=True, slots=True)
class Plane:
    """Two axes and the requirement; `classes` are those whose objects count, None for all that are scored."""

    x: MapAxis
    y: MapAxis
    measure: str
    threshold: float
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.x.over is None:
            raise InvalidOption(f"--x {self.x.name}: x is a corruption; make the attribute of objects --y.")
        if self.by_objects and self.measure != FOUND:
            raise InvalidOption(
                f"--require {self.measure}: false positives have no {self.y.name}, so such a map is of the "
                "share of objects found; write 'found>=0.5'."
            )
        if not self.by_objects and self.measure == FOUND:
            raise InvalidOption(
                "--require found: maps of two corruptions take measures of 'stormproof score', such as AP50."
            )
        if self.y.over is not None and self.y.over.corruption == self.x.over.corruption:
            raise InvalidOption(f"--x and --y both vary {self.x.over.corruption}; vary two corruptions.")

    @property
    def by_objects(self) -> bool:
        """Whether y is an attribute of objects."""
        return self.y.over is None

    @property
    def sign(self) -> float:
        return 1.0 if measures()[self.measure].higher else -1.0

    def condition(self, place: Sequence[float]) -> Condition:
        """The condition of a place."""
        x = self.x.condition(place[0])
        return x if self.by_objects else Condition.composed([x, self.y.condition(place[1])])

    @property
    def requirement(self) -> str:
        return f"{self.measure} {'≥' if self.sign > 0 else '≤'} {self.threshold:g}"


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A score on the plane with its 95 % interval; `drawn` are its draws."""

    condition: str
    place: tuple[float, float]
    interval: Interval
    drawn: Floats = field(repr=False)
    objects: int | None = None
    doubt: str = ""  # why the interval is not known to be calibrated

    def as_dict(self, plane: Plane) -> dict[str, Any]:
        return {
            "condition": self.condition, "x": plane.x.value(self.place[0]), "y": plane.y.value(self.place[1]),
            "objects": self.objects, **self.interval.as_dict(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """The map: its points, and the surface through them on a grid (the first axis varying fastest)."""

    plane: Plane
    points: tuple[MapPoint, ...]
    estimate: SurfaceEstimate
    images: int
    inferences: int
    precise: bool  # more points would not have narrowed the band

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the plane where the requirement is met and missed with confidence, and the rest."""
        names = {"met": MET, "open": OPEN, "missed": MISSED}
        return {name: float(np.mean(self.estimate.zones == zone)) for name, zone in names.items()}

    @property
    def doubt(self) -> str:
        """Why the band is not known to contain the line as often as it should; empty if it is."""
        fewest = min(point.interval.images or 0 for point in self.points)
        if fewest < FEWEST:
            return f"only {fewest} images, and fewer than {FEWEST} are not calibrated"
        return next((point.doubt for point in self.points if point.doubt), "")

    @property
    def words(self) -> str:
        """The map in a sentence or two."""
        shares = {name: f"{100 * share:.0f} %" for name, share in self.shares.items()}
        if self.doubt:
            return (
                f"A sketch: {self.doubt}. {self.plane.requirement} seems met on {shares['met']} of the plane "
                f"and missed on {shares['missed']}."
            )
        said = (
            f"{self.plane.requirement} is met with confidence on {shares['met']} of the plane and missed "
            f"with confidence on {shares['missed']}; on the {shares['open']} between, these images do not "
            "decide."
        )
        if self.precise:
            said += " More points would not narrow that band; more images would."
        return said

    def as_dict(self) -> dict[str, Any]:
        sign, e = self.plane.sign, self.estimate
        low, high = (e.low, e.high) if sign > 0 else (-e.high, -e.low)
        return {
            "x": self.plane.x.as_dict(), "y": self.plane.y.as_dict(), "measure": self.plane.measure,
            "threshold": self.plane.threshold, "higher": sign > 0, "classes": self.plane.classes,
            "images": self.images, "inferences": self.inferences, "words": self.words,
            "level": "" if self.doubt else SURE, "doubt": self.doubt, "shares": self.shares,
            "points": [point.as_dict(self.plane) for point in self.points],
            "grid": {
                "along": GRID,
                "score": (sign * e.score).round(5).tolist(), "low": low.round(5).tolist(),
                "high": high.round(5).tolist(), "zone": self.estimate.zones.tolist(),
            },
            "line": self.line(sign * self.plane.threshold),
        }  # fmt: skip

    def line(self, threshold: float) -> list[list[float]]:
        """The breaking line as short segments: x, y and x2, y2 in the units of the axes."""
        x, y = self.plane.x, self.plane.y
        made = self.segments(self.estimate.score, threshold).tolist()
        return [[x.value(a), y.value(b), x.value(c), y.value(d)] for a, b, c, d in made]

    def segments(self, values: Floats, level: float) -> Floats:
        """Where a function on the grid has a value, in places of the plane.

        There is no line nearer or farther than the objects that were seen: the estimate knows nothing there.
        """
        made = level_segments(np.asarray(values), level)
        if not self.plane.by_objects or not len(made):
            return made
        seen = [point.place[1] for point in self.points]
        inside = (made[:, [1, 3]] >= min(seen)) & (made[:, [1, 3]] <= max(seen))
        return made[inside.all(axis=1)]


def level_segments(values: Floats, level: float) -> Floats:
    """The line on which a function on the square grid has a value, as segments (x, y, x2, y2).

    Every square of the grid is two triangles, on each of which the function is linear.

    >>> x, y = np.meshgrid(np.linspace(0, 1, GRID), np.linspace(0, 1, GRID))
    >>> made = level_segments((x + y).ravel(), 0.5)
    >>> bool(np.allclose(made[:, 0] + made[:, 1], 0.5))
    True
    """
    table = values.reshape(GRID, GRID) - level
    table = np.where(table == 0, 1e-12, table)
    step = 1 / (GRID - 1)
    segments = []
    for i, j in np.ndindex(GRID - 1, GRID - 1):
        corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
        if len({table[corner] > 0 for corner in corners}) == 1:
            continue
        for triangle in ((0, 1, 2), (0, 2, 3)):
            ends = []
            for a, b in ((0, 1), (1, 2), (2, 0)):
                one, two = corners[triangle[a]], corners[triangle[b]]
                if (table[one] > 0) != (table[two] > 0):
                    share = table[one] / (table[one] - table[two])
                    ends += [
                        (one[1] + share * (two[1] - one[1])) * step,
                        (one[0] + share * (two[0] - one[0])) * step,
                    ]
            if len(ends) == 4:
                segments.append(ends)
    return np.array(segments).reshape(-1, 4)


def draw_map(
    plane: Plane, *, out: Path, run: Execute, images: int,
    budget: int | None = None, replicates: int = REPLICATES, candidates: Floats | None = None,
    data: Dataset | None = None,
) -> ScoreMap:  # fmt: skip
    """Sample the plane and estimate the surface; `run` runs conditions into the folder `out`.

    Conditions are chosen among `candidates`, by default a grid. `images` is what one condition costs, `data`
    the dataset if it was made in Python.
    """
    usual = USUAL_COLUMNS if plane.by_objects else USUAL_CONDITIONS
    most = usual if budget is None else budget // images
    places = first_places(plane.by_objects)
    done = {"clean"}  # every run has the clean images too
    if most < len(places) + len(done):
        raise InvalidOption(
            f"--budget {budget}: a map begins with clean images and {len(places)} conditions, on "
            f"{counted(images, 'image')} each; give at least {(len(places) + len(done)) * images}, or fewer "
            "images with --limit."
        )
    candidates = grid_places() if candidates is None else candidates
    threshold = plane.sign * plane.threshold
    points: list[MapPoint] = []
    precise = False
    while True:
        asked = [condition for place in places if str(condition := plane.condition(place)) not in done]
        run(asked)
        opened = Run(out, data=data)
        points += _observe(plane, opened, [str(condition) for condition in asked], places, replicates)
        data = opened.dataset  # which need not be read again
        done |= {str(condition) for condition in asked}
        surface = fit_surface(_laid_out(plane, points))
        left = min(_BATCH if not plane.by_objects else 1, most - len(done))
        places = surface.following(candidates, threshold, left) if left > 0 else np.empty((0, 2))
        places = np.array([place for place in places if str(plane.condition(place)) not in done])
        if not len(places):
            precise = left > 0
            break
    estimate = surface.estimate(grid_places(), threshold)
    return ScoreMap(plane, tuple(points), estimate, images, images * len(done), precise)


def _laid_out(plane: Plane, points: Sequence[MapPoint]) -> Points:
    """The points as a surface takes them: higher is better."""
    sign, intervals = plane.sign, [point.interval for point in points]
    spread = np.array([_spread(point.drawn) for point in points])
    unseen = np.sqrt(np.maximum(np.array([i.se for i in intervals]) ** 2 - spread**2, 0.0))
    return Points(
        np.array([point.place for point in points]), sign * np.array([i.estimate for i in intervals]),
        sign * halves_of([point.drawn for point in points]),
        sign * np.nan_to_num([i.optimism for i in intervals]), unseen, min(i.images or 2 for i in intervals),
    )  # fmt: skip


def _spread(drawn: Floats) -> float:
    halves = drawn[LEADING:]
    return float(np.nanstd(halves[np.isfinite(halves)], ddof=1))


def _observe(plane: Plane, run: Run, texts: Sequence[str], places: Floats, replicates: int) -> list[MapPoint]:
    if not texts:
        return []
    where = {str(plane.condition(place)): place for place in places}
    if plane.by_objects:
        return _columns(plane, run, texts, where, replicates)
    scores = run.score(classes=plane.classes, conditions=tuple(texts), replicates=replicates)
    if plane.measure not in scores.per_condition:
        raise InvalidOption(f"The run has no {plane.measure}; it has {', '.join(scores.per_condition)}.")
    spread, units = scores.spread(plane.measure), scores.units_of(plane.measure)
    reason = doubt(scores, plane.measure, enough=FEWEST)
    made = []
    for text in texts:
        value = scores.score(plane.measure, text)
        if math.isnan(value):
            raise InvalidOption("These images have no score: none of them shows an object. Use more images.")
        interval = bound_interval(interval_around(value, spread[text], images=units), plane.measure, "P")
        made.append(MapPoint(text, _pair(*where[text]), interval, spread[text], doubt=reason))
    return made


def _columns(
    plane: Plane, run: Run, texts: Sequence[str], where: Mapping[str, Floats], replicates: int
) -> list[MapPoint]:
    """The points of whole columns: the share found in each bin of the attribute."""
    made = []
    objects = iter_found_objects(
        run, texts, classes=plane.classes, attributes=[plane.y.name], replicates=replicates
    )
    for text, objects_found in objects:
        values = objects_found.attributes[plane.y.name]
        for low, high in attribute_bins(values, plane.y):
            inside = (values >= low) & (values < high)
            share = objects_found.share(inside)
            place = plane.y.place(float(np.median(values[inside])))
            made.append(
                MapPoint(text, _pair(where[text][0], place), share.interval(), share.drawn, share.objects)
            )
    return made


def _pair(x: float, y: float) -> tuple[float, float]:
    return float(x), float(y)


def attribute_bins(values: Floats, axis: MapAxis) -> list[tuple[float, float]]:
    """Bins of objects within the range of an axis: as many objects in each, at least `LEAST`."""
    known = np.sort(values[(values >= axis.low) & (values <= axis.high)])
    count = min(_BINS, len(known) // LEAST)
    if count < 2:
        raise InvalidOption(
            f"--y {axis.name}={axis.low:g}..{axis.high:g}: {counted(len(known), 'object')} lie in this "
            f"range; a map needs {2 * LEAST}. Use more images, or a wider range."
        )
    edges = [float(known[round(k * len(known) / count)]) for k in range(count)] + [math.inf]
    edges[-1] = float(np.nextafter(known[-1], np.inf))
    return [(low, high) for low, high in pairwise(edges) if high > low]
