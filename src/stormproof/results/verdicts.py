"""Requirements against what is known of a run: pass, fail, or inconclusive where the interval straddles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName, some
from stormproof.core.sample import Floats
from stormproof.corruptions import find, find_suite
from stormproof.metrics.measure import measures
from stormproof.results.grids import aggregated
from stormproof.results.interval import Interval, around, percentile
from stormproof.results.intervals import Known, require_pair
from stormproof.results.requirements import AGGREGATES, Requirement
from stormproof.results.resample import resample
from stormproof.results.score import score_run
from stormproof.results.sets import mean_name
from stormproof.results.store.record import RunRecord
from stormproof.results.weights import REPLICATES


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a requirement. `margin` is positive on the good side of the threshold."""

    requirement: Requirement
    outcome: Outcome
    interval: Interval
    margin: float

    @property
    def text(self) -> str:
        i = self.interval
        return (
            f"{self.requirement.text}: {self.outcome}, {i.estimate:.4f} [{i.low:.4f}, {i.high:.4f}], "
            f"margin {self.margin:+.4f}"
        )

    def as_dict(self) -> dict[str, Any]:
        r = self.requirement
        return {
            "id": r.id, "requirement": r.text, "metric": r.metric, "of": r.of, "condition": r.condition,
            "suite": r.suite, "bound": r.bound, "threshold": r.threshold, **self.interval.as_dict(),
            "margin": self.margin, "verdict": str(self.outcome),
        }  # fmt: skip


def check_run(
    run: Path, requirements: Sequence[Requirement], *, against: Path | None = None,
    data: str | None = None, replicates: int = REPLICATES,
) -> list[Verdict]:  # fmt: skip
    """The verdicts on a run folder, beside a baseline where a requirement asks for one."""
    known = known_of(run, data=data, replicates=replicates)
    baseline = None if against is None else known_of(against, data=data, replicates=replicates)
    if baseline is not None:
        require_pair(known, baseline)
    return [judge(requirement, known, baseline) for requirement in requirements]


def known_of(run: Path, *, data: str | None = None, replicates: int = REPLICATES) -> Known:
    """A run's scores and their replicates."""
    return score_run(run, data=data), resample(run, data=data, replicates=replicates)


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 when all pass, 1 when one fails, 3 when the worst is inconclusive."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return 1 if Outcome.FAIL in outcomes else 3 if Outcome.INCONCLUSIVE in outcomes else 0


def judge(requirement: Requirement, known: Known, baseline: Known | None = None) -> Verdict:
    """The verdict on one requirement; one that the run cannot answer is an error that names it."""
    interval = _asked(requirement, known, baseline)
    requirement = replace(requirement, called=_called(requirement, known[1].record))
    if math.isnan(interval.estimate) or math.isnan(interval.se):
        raise InvalidOption(f"{requirement.id}: {requirement.text} has no value in this run.")
    good = requirement.bound == "at_least"
    margin = interval.estimate - requirement.threshold if good else requirement.threshold - interval.estimate
    safe = interval.low >= requirement.threshold if good else interval.high <= requirement.threshold
    lost = interval.high < requirement.threshold if good else interval.low > requirement.threshold
    outcome = Outcome.PASS if safe else Outcome.FAIL if lost else Outcome.INCONCLUSIVE
    return Verdict(requirement, outcome, interval, margin)


def _called(r: Requirement, record: RunRecord) -> str:
    """A mean over conditions that are no benchmark or suite is said to be one."""
    if r.suite is not None or r.metric not in ("mPC", "rPC", "mCE"):
        return ""
    name = mean_name(record.conditions, record.benchmark)
    if name == "mPC":
        return ""
    return f"{name}, relative to P," if r.metric == "rPC" else name


def _asked(r: Requirement, known: Known, baseline: Known | None) -> Interval:
    estimate, replicates = _value(r, known)
    if r.bound == "at_most_drop":
        if baseline is None:
            raise InvalidOption(f"{r.id}: at_most_drop needs a baseline; give one with --against RUN.")
        before, theirs = _value(r, baseline)
        sign = 1 if _higher(r) else -1
        return percentile(sign * (before - estimate), sign * (theirs - replicates))
    if r.bound == "at_most_loss":
        clean, theirs = _cell(r, known, "clean")
        sign = 1 if _higher(r) else -1
        return percentile(sign * (clean - estimate), sign * (theirs - replicates))
    return around(estimate, replicates)


def _higher(r: Requirement) -> bool:
    return r.metric != "mCE" and (r.metric in AGGREGATES or measures()[r.metric].higher)


def _value(r: Requirement, known: Known) -> tuple[float, Floats]:
    """The quantity a requirement speaks of: its estimate and its replicates."""
    if r.condition is not None:
        return _cell(r, known, r.condition)
    scores, replicates = known
    measure = r.of or ("E" if r.metric == "mCE" else scores.headline)
    _require_measure(r, known, measure)
    wanted = _conditions(r, known)
    lacking = [text for text in wanted if text not in replicates.by_measure[measure]]
    if lacking:
        what = r.suite or "the run"
        raise InvalidOption(f"{r.id}: {what} has conditions that were not run: {some(lacking)}.")
    spread = aggregated(measure, {text: replicates.by_measure[measure][text] for text in wanted})
    point = aggregated(measure, {text: np.array([scores.by_measure[measure][text]]) for text in wanted})
    if r.metric not in point:
        raise InvalidOption(f"{r.id}: {measure} has no {r.metric}; it has {', '.join(AGGREGATES)} as fits.")
    return float(point[r.metric][0]), spread[r.metric]


def _conditions(r: Requirement, known: Known) -> list[str]:
    if r.suite is None:
        return list(known[1].record.conditions)
    clean = ["clean"] if "clean" in known[1].record.conditions else []
    return [*clean, *(str(c) for c in find_suite(r.suite))]


def _cell(r: Requirement, known: Known, text: str) -> tuple[float, Floats]:
    scores, replicates = known
    _require_measure(r, known, r.metric)
    found = _same(text, [*replicates.by_measure[r.metric]])
    if found is None:
        close = UnknownName("condition", text, replicates.record.conditions)
        raise InvalidOption(f"{r.id}: {text} was not run, so {r.metric} under it is not known. {close}")
    return scores.by_measure[r.metric][found], replicates.by_measure[r.metric][found]


def _same(text: str, held: Sequence[str]) -> str | None:
    """The condition of a run that is this one, under its own name or with its numbers given otherwise."""
    if text in held:
        return text
    wanted = Condition.parse(text)
    if wanted.corruption is None:
        return None
    values = find(wanted.corruption).parameters(wanted)
    for other in held:
        condition = Condition.parse(other)
        same = condition.corruption == wanted.corruption and condition.severity is None is wanted.severity
        if same and find(wanted.corruption).parameters(condition) == values:
            return other
    return None


def _require_measure(r: Requirement, known: Known, measure: str) -> None:
    scores, replicates = known
    if measure not in scores.by_measure:
        has = ", ".join(replicates.by_measure)
        raise InvalidOption(f"{r.id}: the run has no {measure}; it has {has}.")
    if measure not in replicates.by_measure:
        has = ", ".join(replicates.by_measure)
        raise InvalidOption(f"{r.id}: {measure} has no interval, so it cannot be judged; these have: {has}.")
