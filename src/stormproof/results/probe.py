"""Breaking points of a model: one corruption at the strengths a search asks for, on the same images."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.condition import Condition, Value
from stormproof.core.errors import InvalidCondition, InvalidOption, UnknownName
from stormproof.corruptions import find
from stormproof.corruptions.units import physical
from stormproof.metrics.metric import measures
from stormproof.results.breaking import Answer, BreakingPoint, Seen, search
from stormproof.results.run import Run
from stormproof.results.weights import REPLICATES

Execute = Callable[[Sequence[Condition]], None]  # runs the conditions, clean images included, into the folder
TOLERANCE = 0.1
_FORM = re.compile(r"\s*(?P<measure>[\w ]+?)\s*(?P<sign>>=|<=)\s*(?P<threshold>[0-9.eE+-]+)\s*")
_SPAN = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<weak>[0-9.eE+-]+?)\s*\.\.\s*(?P<strong>[0-9.eE+-]+)\s*")
_ENDS = (1.0, 5.0)  # the scale on which a parameter's range is searched, by equal factors


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows: the severity of a corruption, or one parameter from a weak to a strong value."""

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
        values = {**dict(self.params), self.parameter: self.value(strength)}
        return Condition.of(self.corruption, None, values)

    def value(self, strength: float) -> float:
        """The parameter's value at a strength, to four digits."""
        share = (strength - _ENDS[0]) / (_ENDS[1] - _ENDS[0])
        return float(f"{self.weak * (self.strong / self.weak) ** share:.4g}")


@dataclass(frozen=True, slots=True)
class Breaking:
    """A breaking point with the conditions and physical quantities of its strengths."""

    axis: Axis
    measure: str
    found: BreakingPoint

    @property
    def row(self) -> dict[str, Any]:
        """As a table and JSON have it."""
        found = self.found
        edges = {"at": found.strength, "low": found.low, "high": found.high}
        broken = found.answer is Answer.BREAKS
        return {
            "corruption": str(Condition(self.axis.corruption, None, self.axis.params))
            if self.axis.params
            else self.axis.corruption,
            "over": self.axis.parameter or "severity",
            "measure": self.measure, "threshold": found.threshold, "answer": str(found.answer),
            "clean": found.clean, "confirmed": found.confirmed,
            "strength": {k: self._strength(v) for k, v in edges.items()} if broken else None,
            "physical": {k: self._physical(v) for k, v in edges.items()} if broken else None,
            "scores": {str(self.axis.condition(s)): score for s, score in found.scores.items()},
        }  # fmt: skip

    def _strength(self, strength: float | None) -> float | None:
        if strength is None or not np.isfinite(strength):
            return None
        return self.axis.value(strength) if self.axis.parameter else round(strength, 3)

    def _physical(self, strength: float | None) -> list[str]:
        if strength is None or not np.isfinite(strength):
            return []
        return [str(quantity) for quantity in physical(self.axis.condition(round(strength, 3)))]


def parse_axis(corruption: str, over: str | None) -> Axis:
    """From 'haze', or 'defocus[focus=5]' over 'kappa=0.5..8' (from weak to strong)."""
    name, bracket, rest = corruption.partition("[")
    params = Condition.parse(f"{name}[{rest}").params if bracket else ()
    known = find(name)
    if over is None:
        if not known.severities:
            fix = "say which parameter grows, as in --over " + f"{next(iter(known.ladders), 'name')}=0.5..8"
            raise InvalidCondition(f"{name} has no severities; {fix}.")
        axis = Axis(name, params)
        known.parameters(axis.condition(known.severities[0] + 0.5))  # what switches has no breaking point
        return axis
    match = _SPAN.fullmatch(over)
    if match is None:
        raise InvalidOption(f"--over {over}: write name=weak..strong, such as visibility=500..20.")
    weak, strong = float(match["weak"]), float(match["strong"])
    if weak <= 0 or strong <= 0 or weak == strong:
        raise InvalidOption(f"--over {over}: both ends must be above 0, and different.")
    axis = Axis(name, params, match["name"], weak, strong)
    for end in _ENDS:
        known.parameters(axis.condition(end))  # a mistake must not wait for a run
    return axis


def parse_requirement(text: str) -> tuple[str, float]:
    """The measure and the threshold of 'AP50>=0.4'."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidOption(f"--require {text!r}: write a measure and a threshold, such as 'AP50>=0.4'.")
    if match["measure"] not in measures():
        raise UnknownName("measure", match["measure"], measures(), f"Known: {', '.join(measures())}.")
    measure, threshold = measures()[match["measure"]], float(match["threshold"])
    if not measure.fraction or measure.higher != (match["sign"] == ">="):
        raise InvalidOption(f"--require {text!r}: write {measure.name}{'>=' if measure.higher else '<='}….")
    if not 0 < threshold < 1:
        raise InvalidOption(f"--require {text!r}: the threshold is a fraction, such as 0.4.")
    return measure.name, threshold


def find_breaking_point(
    axis: Axis, measure: str, threshold: float, *, out: Path, run: Execute,
    tolerance: float = TOLERANCE, replicates: int = REPLICATES,
) -> Breaking:  # fmt: skip
    """Search along an axis; `run` fills the folder `out` with the conditions asked for."""
    sign = 1.0 if measures()[measure].higher else -1.0

    def look(strengths: Sequence[float]) -> Mapping[float, Seen]:
        conditions = {strength: axis.condition(strength) for strength in strengths}
        run(list(conditions.values()))
        seen = _seen(out, [str(c) for c in conditions.values()], measure, sign, replicates)
        return {strength: seen[str(condition)] for strength, condition in conditions.items()}

    run([])
    clean = _seen(out, [], measure, sign, replicates)["clean"]
    found = search(look, clean, axis.first, sign * threshold, tolerance=tolerance)
    if sign < 0:
        plain = {strength: -score for strength, score in found.scores.items()}
        found = BreakingPoint(
            found.answer, threshold, found.strength, found.low, found.high, -found.clean, plain
        )
    return Breaking(axis, measure, found)


def _seen(folder: Path, texts: list[str], measure: str, sign: float, replicates: int) -> dict[str, Seen]:
    """The scores of some conditions and of the clean images, with their replicates."""
    conditions = ("clean", *(text for text in texts if text != "clean"))
    scores = Run(folder).score(conditions=conditions, replicates=replicates)
    if measure not in scores.cells:
        raise InvalidOption(f"The run has no {measure}; it has {', '.join(scores.cells)}.")
    spread = scores.spread(measure)
    return {text: Seen(sign * scores.score(measure, text), sign * spread[text]) for text in conditions}
