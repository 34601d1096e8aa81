"""A run as a submission: its headline grid, what made it, and a hash of its predictions."""

from __future__ import annotations

import hashlib
import math

from stormproof.core.errors import InvalidOption
from stormproof.metrics.metric import measures
from stormproof.report.leaderboard.submission import (
    Submission,
    SubmittedDataset,
    SubmittedModel,
    Task,
    derive,
)
from stormproof.results.run import Run

# Of provenance: nothing about folders or machines.
_KEPT = ("created", "stormproof", "python", "packages", "decoder")
_BLOCK = 1 << 20


def submission_of(run: Run, *, measure: str | None = None, note: str = "") -> Submission:
    """The submission of a run, of its usual scores. One with holes says so and has no mean."""
    record, scores = run.record, run.score(partial=True)
    chosen = measure or scores.headline
    if chosen not in scores:
        raise InvalidOption(f"{run.folder} has no {chosen}; it has {', '.join(scores)}.")
    if not measures()[chosen].aggregate:
        raise InvalidOption(f"{chosen} is not a measure that a mean over conditions says anything about.")
    grid = {text: value for text, value in scores.cells[chosen].items() if math.isfinite(value)}
    conditions = tuple(text for text in record.conditions if text != "clean")
    return Submission(
        origin="self-reported",
        task=task_of(chosen),
        model=SubmittedModel(
            name=" + ".join((record.model.name, *record.model.enhance)),
            fingerprint=record.model.fingerprint,
            tags=record.tags,
        ),
        dataset=SubmittedDataset(
            name=record.dataset.name, fingerprint=record.dataset.fingerprint, images=scores.images
        ),
        measure=chosen,
        conditions=conditions,
        grid=grid,
        benchmark=record.benchmark,
        **derive(chosen, grid, conditions, record.benchmark),  # type: ignore[arg-type]
        seed=record.seed,
        recipes=record.recipes,
        predictions=predictions_hash(run),
        note=note,
        provenance={key: record.provenance[key] for key in _KEPT if key in record.provenance},
    )


def task_of(measure: str) -> Task:
    """The task that a measure is about."""
    if measure in ("mIoU", "pixel accuracy"):
        return "semantic segmentation"
    if measure.startswith("mask "):
        return "instance segmentation"
    return "person detection" if measure == "ADR" else "detection"


def predictions_hash(run: Run) -> str:
    """A hash over the part files of a run, in order: equal runs of one version have equal ones."""
    found = hashlib.blake2b(digest_size=32)
    for path in run.parts:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    return found.hexdigest()
