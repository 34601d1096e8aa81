"""Where a report's scores come from: run folders, folders of runs, submissions, and published tables; and the
names that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, first_few
from stormproof.core.text import plain
from stormproof.metrics.published import measured_change
from stormproof.report.leaderboard.published import published_submissions
from stormproof.report.leaderboard.submission import Submission, read_submission
from stormproof.results.estimate import read_estimate
from stormproof.results.origin import ScoreOrigin
from stormproof.results.run import DatasetGone, Run, runs_in
from stormproof.results.scores import Scores

PUBLISHED = "published:"
Source = Run | Scores | str | PathLike[str]


def scores_of(source: Source, data: str | None = None, *, interval: bool = False) -> list[Scores]:
    """The scores of a run, a run folder, a folder of runs, a submission's file, or 'published:PAPER[/PART…]';
    scores as they are."""
    if isinstance(source, Scores):
        return [source]
    if isinstance(source, Run):
        return [run_scores(source, interval=interval)]
    if str(source).startswith(PUBLISHED):
        return published_scores(str(source).removeprefix(PUBLISHED))
    path = Path(source)
    if path.is_file():
        return [submitted_scores(read_submission(path))]
    return [run_scores(Run(run, data=data), interval=interval) for run in runs_in([path]).values()]


def one_run(source: Source, data: str | None = None, *, interval: bool) -> Scores:
    """The scores of a source that is one run; several are refused by name."""
    several = scores_of(source, data, interval=interval)
    if len(several) != 1:
        names = first_few([scores.name for scores in several])
        raise InvalidOption(f"{source} holds {len(several)} runs ({names}); name one of them.")
    return several[0]


def run_scores(run: Run, *, interval: bool = False) -> Scores:
    """A run's scores, complete or partial, with its estimate where it is one.

    If the dataset is gone and no intervals were kept, the scores have none, and a notice says so.
    """
    try:
        scores = run.score(partial=True, interval=interval)
    except DatasetGone:
        if not interval:
            raise
        scores = run.score(partial=True)
        scores = replace(scores, notices=(*scores.notices, "Intervals need the dataset, so there are none."))
    return replace(scores, estimate=read_estimate(run))


def published_scores(name: str) -> list[Scores]:
    """A paper's numbers, such as 'michaelis/coco/detection', 'kamann/cityscapes', 'liu' or 'pezzementi'."""
    parts = name.split("/")
    entries = list(published_submissions())
    chosen = [e for e in entries if all(part in _words(e) for part in parts)]
    if not chosen:
        known = sorted({f"{e.provenance['paper']}/{e.dataset.name}/{e.task}" for e in entries})
        raise InvalidOption(f"There is no published:{name}. Known: {', '.join(known)}.")
    names = [_readable(entry) for entry in chosen]
    return [
        replace(scores, model=scores.model if names.count(name) > 1 else name, details=_change(scores))
        for name, scores in zip(names, map(submitted_scores, chosen), strict=True)
    ]


def _change(scores: Scores) -> dict[str, dict[str, dict[str, float]]]:
    """How far the conditions of a published grid move images, where that was measured."""
    known = {t: change for t, change in measured_change(scores.dataset).items() if t in scores.conditions}
    return {"quality": known} if known else {}


def _readable(entry: Submission) -> str:
    """A network of *michaelis* in words ('Faster R-CNN r50, combined') instead of its authors' file name;
    others as the papers call them."""
    tags = entry.model.tags
    if not {"framework", "backbone", "training data"} <= tags.keys():
        return plain(entry.model.name)
    head = "" if tags["framework"] in ("RetinaNet", "HTC") else " R-CNN"
    training = "" if tags["training data"] == "standard" else f", {tags['training data']}"
    return f"{tags['framework']}{head} {tags['backbone']}{training}"


def _words(entry: Submission) -> set[str]:
    return {
        str(entry.provenance["paper"]),
        entry.dataset.name,
        entry.task,
        entry.model.name,
        *entry.model.tags.values(),
    }


def submitted_scores(entry: Submission) -> Scores:
    """The scores of a submission; a table that averages over severities gives only its means."""
    measure = entry.measure
    given: dict[str, Any] = {}
    if entry.by_corruption:
        key = "by_corruption" if entry.higher else "CE"
        given = {"P": entry.P, ("mPC" if entry.higher else "mCE"): entry.mPC, key: dict(entry.by_corruption)}
        if entry.rPC is not None:
            given["rPC"] = entry.rPC
    cells = dict(entry.grid) or ({"clean": entry.P} if entry.P is not None else {})
    conditions = dict.fromkeys(entry.conditions or cells)
    if "clean" in cells:  # submissions list the corrupted conditions alone
        conditions = {"clean": None} | conditions
    origin = ScoreOrigin(
        tags={plain(k): plain(v) for k, v in entry.model.tags.items()},
        fingerprint=entry.dataset.fingerprint or "",
        citation=plain(entry.citation or f"{entry.origin}, {entry.predictions or 'no hash of predictions'}"),
        given={measure: given} if given else {},
    )
    return Scores(
        plain(entry.model.name), plain(entry.dataset.name), entry.dataset.images, {measure: cells},
        tuple(conditions), measure, entry.benchmark, missing=entry.missing, origin=origin,
    )  # fmt: skip


def disambiguate_names(several: Sequence[Scores]) -> list[Scores]:
    """The same scores with unique labels: what the run is called, and whatever distinguishes them."""
    names = [scores.called for scores in several]
    for more in (_on_dataset, _enhancement_of, _in_folder):
        names = [
            f"{name}{more(scores)}" if names.count(name) > 1 else name
            for name, scores in zip(names, several, strict=True)
        ]
    names = [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return [replace(scores, label=name) for scores, name in zip(several, names, strict=True)]


def _enhancement_of(scores: Scores) -> str:
    enhance = scores.record.model.enhance if scores.record else ()
    return f" + {', '.join(enhance)}" if enhance else ""


def _on_dataset(scores: Scores) -> str:
    return f" on {scores.dataset}"


def _in_folder(scores: Scores) -> str:
    return f" ({scores.folder.name})" if scores.folder else ""
