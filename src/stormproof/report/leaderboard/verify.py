"""A submission checked by running a few of its cells again."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import stormproof
from stormproof.core.errors import InvalidOption, RunError, counted
from stormproof.engine.config import make_config
from stormproof.engine.run import Observer
from stormproof.engine.run import run as run_again
from stormproof.report.leaderboard.submission import Submission, Verification
from stormproof.results.run import Run

TOLERANCE = 0.001  # of a score: libraries and machines differ in the last bits of a network's sums


@dataclass(frozen=True, slots=True)
class RepeatedScore:
    """One condition as submitted and as run again."""

    condition: str
    submitted: float
    again: float

    @property
    def difference(self) -> float:
        return abs(self.submitted - self.again)


@dataclass(frozen=True, slots=True)
class Repetition:
    """The conditions run again. `surprises` are other mismatches: another model, other images."""

    scores: tuple[RepeatedScore, ...]
    surprises: tuple[str, ...]
    tolerance: float

    @property
    def agrees(self) -> bool:
        return not self.surprises and all(each.difference <= self.tolerance for each in self.scores)

    def verification(self) -> Verification:
        """What is written into a submission that agrees."""
        return Verification(
            conditions=tuple(each.condition for each in self.scores),
            largest_difference=max(each.difference for each in self.scores),
            tolerance=self.tolerance,
            date=datetime.now(UTC).date().isoformat(),
            stormproof=stormproof.__version__,
        )


def choose_conditions(submission: Submission, count: int, seed: int) -> list[str]:
    """Clean, and random conditions among those that have a score."""
    held = [text for text in submission.conditions if text in submission.grid]
    if not held or "clean" not in submission.grid:
        raise InvalidOption("The submission has no grid to check: means over severities cannot be run again.")
    return ["clean", *random.Random(seed).sample(held, min(count, len(held)))]


def verify(
    submission: Submission,
    out: Path,
    *,
    model: str,
    data: str,
    count: int,
    seed: int,
    enhance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    watches: Sequence[Observer] = (),
) -> Repetition:
    """Run `count` random conditions of a submission again and compare; the run stays in `out`."""
    chosen = choose_conditions(submission, count, seed)
    conditions = [text for text in chosen if text != "clean"]
    images, unreadable = submission.dataset.images, submission.dataset.unreadable
    config = make_config(
        {
            "model": model,
            "data": data,
            "out": str(out),
            "conditions": conditions,
            "seed": submission.seed or 0,
            "enhance": list(enhance),
            "limit": None if images is None else images + unreadable,
            "allow_missing": unreadable > 0,
        }
    )
    summary = run_again(config, watches)
    if summary.failed:
        failed = counted(len(summary.failed), "cell")
        raise RunError(f"{failed} failed when run again; the first: {summary.failed[0]}")
    run = Run(out, data=data)
    scores = run.score().per_condition
    if submission.measure not in scores:
        raise InvalidOption(
            f"This model and dataset give no {submission.measure}, which the submission reports."
        )
    again: Mapping[str, float] = scores[submission.measure]
    repeated = tuple(RepeatedScore(text, submission.grid[text], again[text]) for text in chosen)
    return Repetition(repeated, _surprises(submission, run), tolerance)


def _surprises(submission: Submission, run: Run) -> tuple[str, ...]:
    record = run.record
    sides = (
        ("model.fingerprint", submission.model.fingerprint, record.model.fingerprint),
        ("dataset.fingerprint", submission.dataset.fingerprint, record.dataset.fingerprint),
        ("dataset.images", submission.dataset.images, len(run.readable)),
        ("dataset.unreadable", submission.dataset.unreadable, len(run.unreadable)),
    )
    surprises = [
        f"{field} is {theirs} in the submission, {ours} here"
        for field, theirs, ours in sides
        if theirs not in (None, ours)
    ]
    surprises += [
        f"recipes.{name} is {submission.recipes[name]} in the submission, {version} here"
        for name, version in record.recipes.items()
        if submission.recipes.get(name, version) != version
    ]
    return tuple(surprises)
