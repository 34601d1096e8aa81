"""The strength of a corruption at which a score falls below a requirement: search, crossing and interval.

One corruption is run at the strengths that the search asks for, all on the same images. More corruption is
assumed not to help: the fit is the isotonic regression of the scores, capped by the clean one, with straight
lines between its points. The same fit on every random half of the images gives the interval of the crossing.
If a score was below the requirement well before the fit crosses it, the answer is "not monotone", with the
strength at which that was seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from stormproof.core.condition import Condition, Value, split_parts
from stormproof.core.errors import InvalidCondition, InvalidOption, UnknownName
from stormproof.core.sample import Floats
from stormproof.corruptions import find
from stormproof.corruptions.units import physical
from stormproof.metrics.metric import measures
from stormproof.results.interval import LEADING
from stormproof.results.run import Run
from stormproof.results.weights import REPLICATES

Execute = Callable[[Sequence[Condition]], None]  # runs the conditions, clean images included, into the folder
TOLERANCE = 0.1
_FORM = re.compile(r"\s*(?P<measure>[\w ]+?)\s*(?P<sign>>=|<=)\s*(?P<threshold>[0-9.eE+-]+)\s*")
_SPAN = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<weak>[0-9.eE+-]+?)\s*\.\.\s*(?P<strong>[0-9.eE+-]+)\s*")
_ENDS = (1.0, 5.0)  # the scale on which a parameter's range is searched, by equal factors


class Answer(StrEnum):
    BREAKS = "breaks"
    NOT_MONOTONE = "not monotone"
    NEVER = "never in this range"
    WEAKEST = "already below at the weakest strength"
    CLEAN = "already below when clean"


@dataclass(frozen=True, slots=True)
class Observed:
    """The score at one strength: its estimate and its draws (`results.interval`)."""

    score: float
    drawn: Floats

    def halves(self, center: float) -> Floats:
        """The scores on random halves of the images, shifted so that their mean is `center`."""
        every = self.drawn[LEADING:]
        known = every[np.isfinite(every)]
        moved: Floats = every + (center - known.mean() if len(known) else 0.0)
        return moved

    @property
    def sides(self) -> tuple[float, float]:
        """The score minus its optimism, and the score itself, the lower first."""
        safe = float(self.drawn[0])
        return min(self.score, safe), max(self.score, safe)


@dataclass(frozen=True, slots=True)
class BreakingPoint:
    """Where a score falls below `threshold`. Strengths are None if there is no crossing in the range.

    `low` and `high` bound 95 % of the crossings on halves of the images, −∞ and +∞ if they lie outside the
    range or if most halves show no object. `breaks` is the share of those crossings within the range or
    before it. `first_below` is the weakest strength at which the score was below, if that is well before the
    crossing. `confirmed` says that a score on the weak side of the interval meets the threshold and one
    beyond it does not, with none below before.
    """

    answer: Answer
    threshold: float
    strength: float | None
    low: float
    high: float
    clean: float
    scores: Mapping[float, float]  # strength → score, by rising strength
    breaks: float
    first_below: float | None
    confirmed: bool


Observe = Callable[[Sequence[float]], Mapping[float, Observed]]


def crossing(strengths: Floats, scores: Floats, threshold: float) -> float:
    """Where the falling monotone fit goes below the threshold; ∓∞ before the first and after the last.

    >>> round(crossing(np.array([1.0, 2, 3]), np.array([0.6, 0.5, 0.2]), 0.4), 3)
    2.333
    """
    fit = isotonic_regression(scores, increasing=False).x
    if fit[0] < threshold:
        return -math.inf
    if fit[-1] >= threshold:
        return math.inf
    after = int(np.argmax(fit < threshold))
    share = (fit[after - 1] - threshold) / (fit[after - 1] - fit[after])
    return float(strengths[after - 1] + share * (strengths[after] - strengths[after - 1]))


def breaking_point(
    clean: Observed, seen: Mapping[float, Observed], threshold: float, *, tolerance: float = TOLERANCE
) -> BreakingPoint:
    """The crossing of the scores seen so far, with its interval."""
    strengths = np.array(sorted(seen))
    points = [seen[strength] for strength in strengths.tolist()]
    scores = np.array([one.score for one in points])
    held = dict(zip(strengths.tolist(), scores.tolist(), strict=True))
    if not len(scores) or not np.isfinite([clean.score, *scores]).all():
        raise InvalidOption(
            "These images have no score: none of them shows an object. Search on more images."
        )
    # The fit may not rise above the clean score: corruption does not help.
    point = crossing(strengths, np.minimum(scores, clean.score), threshold)
    weak, strong = (_crossings(strengths, clean, points, threshold, side) for side in (0, 1))
    low = float(np.quantile(weak, 0.025, method="inverted_cdf")) if len(weak) else -math.inf
    high = float(np.quantile(strong, 0.975, method="inverted_cdf")) if len(strong) else math.inf
    below = min((strength for strength, score in held.items() if score < threshold), default=math.inf)
    first = below if below < point - tolerance else None
    if clean.score < threshold:
        answer, first = Answer.CLEAN, None
    elif point == -math.inf:
        answer = Answer.WEAKEST
    elif first is not None:
        answer = Answer.NOT_MONOTONE
    else:
        answer = Answer.NEVER if point == math.inf else Answer.BREAKS
    strength = point if answer in (Answer.BREAKS, Answer.NOT_MONOTONE) and math.isfinite(point) else None
    breaks = float(np.mean(weak < math.inf)) if len(weak) else math.nan
    met = [score for strength, score in held.items() if strength <= low][-1:]
    missed = [score for strength, score in held.items() if strength >= high][:1]
    confirmed = answer is Answer.BREAKS and bool(met and missed) and met[0] >= threshold > missed[0]
    return BreakingPoint(answer, threshold, strength, low, high, clean.score, held, breaks, first, confirmed)


def _crossings(
    strengths: Floats, clean: Observed, points: Sequence[Observed], threshold: float, side: int
) -> Floats:
    """The crossing on every half of the images, with scores minus their optimism (side 0) or unchanged (1).

    Empty if most halves show no object.
    """
    table = np.stack([one.halves(one.sides[side]) for one in points])
    capped = np.minimum(table, clean.halves(clean.sides[side]))
    known = capped[:, np.isfinite(capped).all(axis=0)]
    if 2 * known.shape[1] < capped.shape[1]:
        return np.empty(0)
    return np.array([crossing(strengths, column, threshold) for column in known.T])


def search(
    observe: Observe,
    clean: Observed,
    first: Sequence[float],
    threshold: float,
    *,
    tolerance: float,
    digits: int = 2,
) -> BreakingPoint:
    """Score the `first` strengths, then strengths near the crossing until its neighbours are `tolerance`
    apart, and finally one on either side of the interval, to confirm it.

    Strengths are rounded to `digits` decimals.
    """
    if len(first) < 2:
        raise InvalidOption(f"A search needs two strengths at least, not {len(first)}.")
    seen = dict(observe(first))
    lowest, highest = min(first), max(first)
    point = breaking_point(clean, seen, threshold, tolerance=tolerance)
    while point.strength is not None:
        asked = round(point.strength, digits)
        below = max((s for s in seen if s <= point.strength), default=lowest)
        above = min((s for s in seen if s >= point.strength), default=highest)
        if above - below <= tolerance:
            break
        if asked - below < tolerance / 4 or above - asked < tolerance / 4:
            asked = round((below + above) / 2, digits)
        if asked in seen:
            break
        seen |= observe([asked])
        point = breaking_point(clean, seen, threshold, tolerance=tolerance)
    if point.strength is None:
        return point
    for _ in range(3):  # each side moves the interval a little, which may require another
        sides = [
            round(min(max(edge, lowest), highest), digits)
            for edge in (point.low - tolerance / 2, point.high + tolerance / 2)
        ]
        asked_sides = [side for side in dict.fromkeys(sides) if side not in seen]
        if point.confirmed or not asked_sides:
            break
        seen |= observe(asked_sides)
        point = breaking_point(clean, seen, threshold, tolerance=tolerance)
    return point


@dataclass(frozen=True, slots=True)
class StrengthAxis:
    """What is increased: the severity of a corruption, or one parameter from a weak to a strong value."""

    corruption: str
    params: tuple[tuple[str, Value], ...] = ()
    parameter: str | None = None
    weak: float = 0.0
    strong: float = 0.0

    @property
    def first(self) -> tuple[float, ...]:
        """The strengths that a search begins with."""
        if self.parameter is None:
            return tuple(map(float, find(self.corruption).severities))
        return (1.0, 2.0, 3.0, 4.0, 5.0)

    def condition(self, strength: float) -> Condition:
        """The condition of a strength."""
        if self.parameter is None:
            level = int(strength) if strength == int(strength) else strength
            return Condition.of(self.corruption, level, dict(self.params))
        return self.where(self.value(strength))

    def where(self, value: float) -> Condition:
        """The condition in which the parameter has a value."""
        assert self.parameter is not None, "a severity is no parameter"
        return Condition.of(self.corruption, None, {**dict(self.params), self.parameter: value})

    def value(self, strength: float) -> float:
        """The parameter's value at a strength, to four digits."""
        share = (strength - _ENDS[0]) / (_ENDS[1] - _ENDS[0])
        return float(f"{self.weak * (self.strong / self.weak) ** share:.4g}")


@dataclass(frozen=True, slots=True)
class Breaking:
    """A breaking point with the conditions and physical quantities of its strengths."""

    axis: StrengthAxis
    measure: str
    point: BreakingPoint

    @property
    def row(self) -> dict[str, Any]:
        """As a row of the table and of the JSON file."""
        point = self.point
        edges = {"at": point.strength, "low": point.low, "high": point.high}
        broken = point.strength is not None
        first = None if point.first_below is None else self.axis.condition(point.first_below)
        return {
            "corruption": str(Condition(self.axis.corruption, None, self.axis.params))
            if self.axis.params
            else self.axis.corruption,
            "over": self.axis.parameter or "severity",
            "measure": self.measure, "threshold": point.threshold, "answer": str(point.answer),
            "words": self.words, "clean": point.clean, "confirmed": point.confirmed,
            "breaks": None if math.isnan(point.breaks) else point.breaks,
            "first_below": None if first is None else str(first),
            "strength": {k: self._strength(v) for k, v in edges.items()} if broken else None,
            "physical": {k: self._physical(v) for k, v in edges.items()} if broken else None,
            "scores": {str(self.axis.condition(s)): score for s, score in point.scores.items()},
        }  # fmt: skip

    @property
    def words(self) -> str:
        """The answer, with any reservation."""
        point = self.point
        if point.first_below is not None:
            seen = self._strength(point.first_below)
            return f"{point.answer}; first seen below at {self.axis.parameter or 'severity'} {seen:g}"
        if point.answer is Answer.NEVER and not math.isnan(point.breaks):
            return f"{point.answer}; on {100 * point.breaks:.0f} % of random halves of the images it does"
        return str(point.answer)

    def _strength(self, strength: float | None) -> float | None:
        if strength is None or not np.isfinite(strength):
            return None
        return self.axis.value(strength) if self.axis.parameter else round(strength, 3)

    def _physical(self, strength: float | None) -> list[str]:
        if strength is None or not np.isfinite(strength):
            return []
        return [str(quantity) for quantity in physical(self.axis.condition(round(strength, 3)))]


def parse_axis(corruption: str, over: str | None) -> StrengthAxis:
    """From 'haze', or 'defocus[focus=5]' over 'kappa=0.5..8' (from weak to strong)."""
    if len(split_parts(corruption)) > 1:
        raise InvalidCondition(
            f"{corruption}: a breaking point is along one corruption's severity or parameter; name one."
        )
    name, bracket, rest = corruption.partition("[")
    params = Condition.parse(f"{name}[{rest}").params if bracket else ()
    known = find(name)
    if over is None:
        if not known.severities:
            fix = "say which parameter grows, as in --over " + f"{next(iter(known.ladders), 'name')}=0.5..8"
            raise InvalidCondition(f"{name} has no severities; {fix}.")
        axis = StrengthAxis(name, params)
        known.parameters(axis.condition(known.severities[0] + 0.5))  # a switch has no breaking point
        return axis
    match = _SPAN.fullmatch(over)
    if match is None:
        raise InvalidOption(f"--over {over}: write name=weak..strong, such as visibility=500..20.")
    weak, strong = _number(match["weak"]), _number(match["strong"])
    if not (weak > 0 and strong > 0 and weak != strong):
        raise InvalidOption(f"--over {over}: both ends must be numbers above 0, and different.")
    axis = StrengthAxis(name, params, match["name"], weak, strong)
    for end in _ENDS:
        known.parameters(axis.condition(end))  # report a mistake before the run
    return axis


def parse_requirement(text: str) -> tuple[str, float]:
    """The measure and the threshold of 'AP50>=0.4'."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidOption(f"--require {text!r}: write a measure and a threshold, such as 'AP50>=0.4'.")
    if match["measure"] not in measures():
        raise UnknownName("measure", match["measure"], measures(), f"Known: {', '.join(measures())}.")
    measure, threshold = measures()[match["measure"]], _number(match["threshold"])
    if not measure.fraction or measure.higher != (match["sign"] == ">="):
        raise InvalidOption(f"--require {text!r}: write {measure.name}{'>=' if measure.higher else '<='}….")
    if not 0 < threshold < 1:
        raise InvalidOption(f"--require {text!r}: the threshold is a fraction, such as 0.4.")
    return measure.name, threshold


def _number(text: str) -> float:
    """The number, or NaN, which lies in no range."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def find_breaking_point(
    axis: StrengthAxis, measure: str, threshold: float, *, out: Path, run: Execute,
    tolerance: float = TOLERANCE, replicates: int = REPLICATES,
) -> Breaking:  # fmt: skip
    """Search along an axis; `run` runs conditions into the folder `out`."""
    sign = 1.0 if measures()[measure].higher else -1.0

    def observe(strengths: Sequence[float]) -> Mapping[float, Observed]:
        conditions = {strength: axis.condition(strength) for strength in strengths}
        run(list(conditions.values()))
        seen = _observe(out, [str(c) for c in conditions.values()], measure, sign, replicates)
        return {strength: seen[str(condition)] for strength, condition in conditions.items()}

    run([])
    clean = _observe(out, [], measure, sign, replicates)["clean"]
    point = search(observe, clean, axis.first, sign * threshold, tolerance=tolerance)
    if sign < 0:
        plain = {strength: -score for strength, score in point.scores.items()}
        point = replace(point, threshold=threshold, clean=-point.clean, scores=plain)
    return Breaking(axis, measure, point)


def _observe(
    folder: Path, texts: list[str], measure: str, sign: float, replicates: int
) -> dict[str, Observed]:
    """The scores of some conditions and of the clean images, with their draws."""
    conditions = ("clean", *(text for text in texts if text != "clean"))
    scores = Run(folder).score(conditions=conditions, replicates=replicates)
    if measure not in scores.per_condition:
        raise InvalidOption(f"The run has no {measure}; it has {', '.join(scores.per_condition)}.")
    spread = scores.spread(measure)
    return {text: Observed(sign * scores.score(measure, text), sign * spread[text]) for text in conditions}
