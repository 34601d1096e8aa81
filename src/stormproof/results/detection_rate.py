"""The share of objects that are found, by an attribute of objects: their distance, size or occlusion.

An object is found if COCO's matching assigns it a detection of its class with a score of at least `min_score`
at IoU 0.5, or what the run's task has instead (OKS of key points). A false positive has no distance, so
precision and AP by distance are undefined.

Where the rate falls below a half, objects are lost: the breaking distance. It comes from a monotone fit of
the rates (`results.breaking`), its interval from random halves of the images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName, counted, first_few
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.core.table import Entry, Table
from stormproof.metrics.metric import Weights, ratio, weighted_sums
from stormproof.metrics.records import DetectionTruth
from stormproof.results.breaking import Answer, BreakingPoint, Observed, breaking_point
from stormproof.results.interval import WRONG, Interval, draws, interval_around
from stormproof.results.run import Run
from stormproof.results.scoring import weights_of
from stormproof.results.truths import (
    ClassSelection,
    Truths,
    check_classes,
    counting_objects,
    iter_judged,
    judging_task,
)
from stormproof.results.weights import REPLICATES

MIN_SCORE = 0.4
LOST = 0.5  # the rate below which objects count as lost
LEAST = 30  # objects of a bin; one with fewer joins its neighbour


@dataclass(frozen=True, slots=True)
class Scale:
    """An attribute of objects: how to read it, and where bins begin and end."""

    unit: str
    values: Callable[[DetectionTruth], Floats]
    edges: tuple[float, ...]
    names: tuple[str, ...] = ()  # of the bins; without names, bins are called by their edges


SCALES = {
    "distance": Scale("m", lambda truth: truth.distance, (5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150)),
    "size": Scale("px²", lambda truth: truth.area, (32.0**2, 96.0**2), ("small", "medium", "large")),
    "occlusion": Scale("", lambda truth: truth.occlusion, (0.1, 0.5), ("visible", "partly", "largely")),
}


@dataclass(frozen=True, eq=False)
class Share:
    """The share found of some objects: its value and its value on every random half of the images."""

    values: Floats
    objects: int
    units: int  # images, or clips, that show any of them
    rarer: int  # of those: with a hit or with a miss, whichever are fewer

    @cached_property
    def drawn(self) -> Floats:
        return draws(self.values)

    def interval(self, wrong: float = WRONG) -> Interval:
        """The true share is beyond either end with a chance of `wrong`.

        If misses are rare, the few images that show them are all that the spread is known from, so Student's
        t has as many degrees of freedom.
        """
        known = max(2, self.rarer + 1) if self.rarer else self.units
        around = interval_around(float(self.values[0]), self.drawn, images=known, wrong=wrong)
        return replace(around.of_share(wrong=wrong), images=self.units)


@dataclass(frozen=True, slots=True, eq=False)
class FoundObjects:
    """The objects under one condition: which were found, in which image (by place) they are, and attributes
    by name."""

    hit: Bools
    image: Ints
    attributes: dict[str, Floats]
    unit: Ints  # of each image
    weights: Weights

    def within(self, by: str, low: float, high: float) -> Bools:
        """The objects whose attribute lies from `low` to below `high`."""
        return (self.attributes[by] >= low) & (self.attributes[by] < high)

    def share(self, inside: Bools, images: Bools | None = None) -> Share:
        """The share found of the objects inside, in some of the images if given."""
        if images is not None:
            inside = inside & images[self.image]
        count = self.weights.shape[1]
        columns = [np.bincount(self.image[chosen], minlength=count) for chosen in (inside & self.hit, inside)]
        sums = weighted_sums(self.weights, np.stack(columns, axis=1).astype(np.float64))
        units, hits, misses = (
            len(np.unique(self.unit[self.image[chosen]]))
            for chosen in (inside, inside & self.hit, inside & ~self.hit)
        )
        return Share(ratio(sums[:, 0], sums[:, 1]), int(inside.sum()), units, min(hits, misses))


def _checked_truths(
    run: Run, conditions: Sequence[str], classes: ClassSelection, attributes: Sequence[str]
) -> Truths:
    """The objects of some classes with their attributes; a run that cannot have found them is refused."""
    run.check()
    if any(text in run.missing for text in conditions):
        run.require_complete("score")  # what was not run is not missed
    check_classes(classes, run.dataset.classes)
    truths = replace(Truths.of_run(run, classes), distances="distance" in attributes)
    if not truths.answered_by(run):
        raise InvalidOption(f"{run.name}: there are no such objects, so no share of them is found.")
    return truths


def iter_found_objects(
    run: Run, conditions: Sequence[str], *,
    classes: ClassSelection, attributes: Sequence[str], replicates: int, min_score: float = MIN_SCORE,
) -> Iterator[tuple[str, FoundObjects]]:  # fmt: skip
    """The objects of some classes under each condition, with 'distance', 'size' or 'occlusion'."""
    truths = _checked_truths(run, conditions, classes, attributes)
    yield from _iter_found(run, truths, conditions, attributes, weights_of(run, replicates), min_score)


def _iter_found(
    run: Run, truths: Truths, conditions: Sequence[str], attributes: Sequence[str], weights: Weights,
    min_score: float,
) -> Iterator[tuple[str, FoundObjects]]:  # fmt: skip
    _, unit = np.unique(run.units, return_inverse=True)  # of each image: its clip, else itself
    for text, judged in iter_judged(run, truths, conditions):
        located, counting = judged.located, judged.counting(judged.truth)
        values = {name: SCALES[name].values(judged.truth)[counting] for name in attributes}
        yield text, FoundObjects(located.found_at >= min_score, located.truth_image, values, unit, weights)


@dataclass(frozen=True, slots=True)
class Bin:
    """Objects whose attribute lies from `low` to below `high`; `middle` is their median."""

    name: str
    low: float
    high: float
    middle: float
    objects: int
    units: int  # images that show any of them, or clips


@dataclass(frozen=True, eq=False, repr=False)
class DetectionRates:
    """Detection rates by bin of an attribute, under every condition: `rates.interval("clean", 0)`.

    `drawn[condition]` has a column for each bin, and a row for the score and each random half of the images.
    """

    model: str
    by: str
    unit: str
    classes: tuple[str, ...]
    min_score: float
    bins: tuple[Bin, ...]
    drawn: dict[str, Floats]
    images: int
    unknown: int = 0  # objects whose attribute is unknown
    alike: str = "IoU"  # what must be 0.5 or more

    def rate(self, condition: str) -> list[float]:
        """The rate of each bin."""
        return [float(value) for value in self._of(condition)[0]]

    def interval(self, condition: str, place: int) -> Interval:
        """The 95 % interval of a bin's rate, for new images like these."""
        values = self._of(condition)[:, place]
        return interval_around(float(values[0]), draws(values), images=self.bins[place].units).of_share()

    def lost_from(self, condition: str, rate: float = LOST) -> BreakingPoint:
        """Where the rate falls below a value as the attribute grows, with its interval."""
        table = self._of(condition)
        seen = {
            each.middle: Observed(float(table[0, k]), draws(table[:, k]))
            for k, each in enumerate(self.bins)
            if math.isfinite(table[0, k])
        }
        sure = Observed(1.0, draws(np.ones(len(table))))
        return breaking_point(sure, seen, rate, tolerance=math.inf)

    def _of(self, condition: str) -> Floats:
        if condition not in self.drawn:
            raise UnknownName(
                "condition of the run", condition, self.drawn, f"It has {first_few([*self.drawn])}."
            )
        return self.drawn[condition]

    @property
    def what(self) -> str:
        return self.classes[0] if len(self.classes) == 1 else "objects"

    def table(self) -> Table:
        """A line for each condition: each bin's rate ± its interval; by distance, where objects are lost."""
        ranged = self.by == "distance"
        rows: list[list[Entry]] = [["objects", *(str(each.objects) for each in self.bins), *([""] * ranged)]]
        for text in self.drawn:
            rates = [_plus_minus(self.interval(text, k)) for k in range(len(self.bins))]
            rows.append([text, *rates, *([lost_words(self.lost_from(text))] if ranged else [])])
        title = f"Detection rate of {self.what} by {self.by} (in %)"
        columns = ("condition", *(each.name for each in self.bins), *(["lost from"] if ranged else []))
        rule = f"Found: {self.alike} 0.5 or more, score {self.min_score:g} or more."
        note = f"{rule} ± is half of the 95 % interval."
        if ranged:
            note += f" Lost: where a monotone fit of the rates falls below {100 * LOST:g} %."
        if self.unknown:
            note += f" Left out: {counted(self.unknown, 'object')} of unknown {self.by}."
        return Table(f"rates-{self.by}", title, columns, rows, note=note)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "by": self.by, "unit": self.unit, "classes": list(self.classes), "min_score": self.min_score,
            "bins": [
                {"from": b.low, "to": b.high, "median": b.middle, "objects": b.objects} for b in self.bins
            ],
            "rates": {
                text: [self.interval(text, k).as_dict() for k in range(len(self.bins))] for text in self.drawn
            },
            "lost_from": {
                text: {
                    "answer": point.answer, "at": point.strength, "low": point.low, "high": point.high,
                }
                for text, point in ((text, self.lost_from(text)) for text in self.drawn)
            } if self.by == "distance" else {},
        }  # fmt: skip

    def __repr__(self) -> str:
        grid = f"{counted(len(self.bins), 'bin')}, {counted(len(self.drawn), 'condition')}"
        return f"<detection rates of {self.what} by {self.by}: {grid}>"


def detection_rates(
    run: Run, by: str, *,
    classes: ClassSelection = None, min_score: float = MIN_SCORE, replicates: int = REPLICATES,
) -> DetectionRates:  # fmt: skip
    """The share of objects that a run found, by 'distance', 'size' or 'occlusion' of the objects."""
    if by not in SCALES:
        raise UnknownName("attribute of objects", by, SCALES, f"Known: {', '.join(SCALES)}.")
    truths = _checked_truths(run, run.conditions, classes, [by])
    scale, still = SCALES[by], truths.still
    _, units = np.unique(run.units, return_inverse=True)
    counting = counting_objects(run, truths)
    bins = make_bins(scale, scale.values(still), units[still.image], counting)
    objects = _iter_found(run, truths, run.conditions, [by], weights_of(run, replicates), min_score)
    drawn = {
        text: np.stack([each.share(each.within(by, b.low, b.high)).values for b in bins], axis=1)
        for text, each in objects
    }
    unknown = int((np.isnan(scale.values(still)) & counting).sum())
    return DetectionRates(
        run.record.model.name, by, scale.unit, truths.classes, min_score, bins,
        {text: drawn[text] for text in run.conditions}, len(run.readable), unknown,
        judging_task(run, truths).alike,
    )  # fmt: skip


def make_bins(scale: Scale, values: Floats, unit: Ints, counting: Bools) -> tuple[Bin, ...]:
    """Bins between the edges of a scale. A bin with fewer than `LEAST` objects is joined to the next one, the
    last to the one before. Named bins are never joined; empty ones are left out."""
    known = counting & np.isfinite(values)
    if not known.any():
        raise InvalidOption(
            "The dataset does not give this attribute for any object; distance needs depth (depth=FOLDER in "
            "the dataset's spec), KITTI's labels or the built-in street."
        )
    bins: list[Bin] = []
    for low, high in pairwise(_bounds(scale, values[known])):
        inside = known & (values >= low) & (values < high)
        name = scale.names[len(bins)] if scale.names else _name(low, high, scale.unit)
        middle = float(np.median(values[inside])) if inside.any() else math.nan
        bins.append(Bin(name, low, high, middle, int(inside.sum()), len(np.unique(unit[inside]))))
    return tuple(each for each in bins if each.objects)


def _bounds(scale: Scale, values: Floats) -> list[float]:
    bounds = [-math.inf, *scale.edges, math.inf]
    if scale.names:
        return bounds
    joined = bounds[:1]
    for bound in bounds[1:]:
        if ((values >= joined[-1]) & (values < bound)).sum() >= LEAST:
            joined.append(bound)
    return [*joined[: max(1, len(joined) - 1)], math.inf]


def _name(low: float, high: float, unit: str) -> str:
    """
    >>> _name(-math.inf, 5, "m"), _name(5, 10, "m"), _name(80, math.inf, "m")
    ('below 5 m', '5–10 m', '80 m on')
    """
    if low == -math.inf:
        return f"below {high:g} {unit}" if high < math.inf else "all"
    return f"{low:g}–{high:g} {unit}" if high < math.inf else f"{low:g} {unit} on"


def lost_words(point: BreakingPoint, unit: str = "m") -> str:
    """'41 m (95 %: 36 to 47)', or why there is no such distance."""
    if point.answer is Answer.NEVER:
        return "nowhere"
    if point.answer is Answer.WEAKEST or point.strength is None:
        return "from the nearest on"
    ends = ["…" if not math.isfinite(end) else f"{end:.0f}" for end in (point.low, point.high)]
    return f"{point.strength:.0f} {unit} (95 %: {ends[0]} to {ends[1]})"


def _plus_minus(interval: Interval) -> str:
    if math.isnan(interval.estimate):
        return "–"
    width = "?" if math.isnan(interval.se) else f"{100 * interval.half_width:.0f}"
    return f"{100 * interval.estimate:.0f} ± {width}"


def series_of(text: str) -> tuple[str, str]:
    """The panel and the line that a condition is drawn as: ('haze', 'visibility=100')."""
    condition = Condition.parse(text)
    if condition.is_clean:
        return "", "clean"
    if condition.severity is not None:
        return condition.series, f"severity {condition.severity:g}"
    if condition.is_composed:
        return str(condition.corruption), text
    return str(condition.corruption), text.partition("[")[2].rstrip("]") or text
