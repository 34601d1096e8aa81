"""Where a report's subjects come from: run folders, submissions, and the papers' published tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption
from stormproof.report.leaderboard.published import published_submissions
from stormproof.report.leaderboard.submission import Submission, read_submission
from stormproof.report.subject import Subject, subject_from
from stormproof.report.text import plain
from stormproof.results.aggregates import aggregates, grid_of
from stormproof.results.interval_tables import read_intervals
from stormproof.results.partial import read_estimate
from stormproof.results.store.record import read_record

PUBLISHED = "published:"


def subjects_of(source: str, data: str | None = None) -> list[Subject]:
    """The subject of a run folder or of a submission's file, or those of 'published:PAPER[/PART…]'."""
    if source.startswith(PUBLISHED):
        return published_subjects(source.removeprefix(PUBLISHED))
    path = Path(source)
    return [submitted_subject(read_submission(path))] if path.is_file() else [run_subject(path, data)]


def run_subject(run: Path, data: str | None = None) -> Subject:
    """A run's scores: those kept with it, or made now."""
    from stormproof.results.kept import kept_scores

    found = subject_from(kept_scores(run, data), read_record(run), run)
    return replace(found, intervals=kept_intervals(run, found), estimate=read_estimate(run))


def kept_intervals(run: Path, subject: Subject) -> dict[str, dict[str, float]]:
    """Half-widths of the intervals that 'score --interval' kept, as long as they are of these scores."""
    held = read_intervals(run)
    found: dict[str, dict[str, float]] = {}
    for measure, row in held["aggregates"].items() if held is not None else ():
        for name, interval in row.items():
            low, high = interval["low"], interval["high"]
            if low is not None and high is not None and interval["estimate"] == subject.total(measure, name):
                found.setdefault(measure, {})[name] = (high - low) / 2
    return found


def published_subjects(name: str) -> list[Subject]:
    """A paper's numbers, such as 'michaelis/coco/detection', 'kamann/cityscapes', 'liu' or 'pezzementi'."""
    parts = name.split("/")
    entries = list(published_submissions())
    chosen = [e for e in entries if all(part in _words(e) for part in parts)]
    if not chosen:
        known = sorted({f"{e.provenance['paper']}/{e.dataset.name}/{e.task}" for e in entries})
        raise InvalidOption(f"published:{name} names nothing; there are {', '.join(known)}.")
    return [submitted_subject(entry) for entry in chosen]


def _words(entry: Submission) -> set[str]:
    return {
        str(entry.provenance["paper"]),
        entry.dataset.name,
        entry.task,
        entry.model.name,
        *entry.model.tags.values(),
    }


def submitted_subject(entry: Submission) -> Subject:
    """A submission as a report reads it."""
    measure = entry.measure
    scores = dict(entry.grid) or ({"clean": entry.P} if entry.P is not None else {})
    totals: dict[str, Any] = {}
    if entry.by_corruption:
        key = "by_corruption" if entry.higher else "CE"
        totals = {"P": entry.P, ("mPC" if entry.higher else "mCE"): entry.mPC, key: dict(entry.by_corruption)}
        if entry.rPC is not None:
            totals["rPC"] = entry.rPC
    elif not entry.missing:
        totals = aggregates(measure, grid_of(scores, entry.conditions))
    return Subject(
        name=plain(entry.model.name),
        model=plain(entry.model.name),
        dataset=plain(entry.dataset.name),
        images=entry.dataset.images,
        headline=measure,
        scores={measure: scores},
        aggregates={measure: totals},
        tags={plain(k): plain(v) for k, v in entry.model.tags.items()},
        missing=entry.missing,
        citation=plain(entry.citation or f"{entry.origin}, {entry.predictions or 'no hash of predictions'}"),
    )
