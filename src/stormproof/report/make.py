"""A report from start to finish: scores, view, images, page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import StormproofError
from stormproof.core.files import make_folder, write_text
from stormproof.report import worst
from stormproof.report.album import Album
from stormproof.report.elements import View
from stormproof.report.imagery import RunPredictions, Scene, browser, facts
from stormproof.report.page import as_json, page
from stormproof.report.sources import scores_of
from stormproof.report.view import make_view
from stormproof.results.run import Run
from stormproof.results.scores import ImageErrors, Scores, disambiguate_names

BUDGET = 15.0  # MB of the file
_SHARE_OF_WORST = 12  # images shown of those that lose most per visible change
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a report may be asked for."""

    measure: str | None = None
    reference: str | None = None
    data: str | None = None
    images: int = 4
    budget: float = BUDGET


def make_report(sources: Sequence[str], out: Path, options: Options, say: Say = lambda _: None) -> list[Path]:
    """Write the page and, beside it, the same for machines."""
    make_folder(out.parent)  # before the work, lest it be for nothing
    found: list[Scores] = []
    for source in sources:
        say(f"scoring {source}, with intervals")
        found += scores_of(source, options.data, interval=True)
    subjects = disambiguate_names(found)
    view = make_view(subjects, measure=options.measure, reference=options.reference)
    say("drawing")
    empty = page(view)
    imagery = make_imagery(subjects, options, int(options.budget * 1e6) - len(empty.encode()), say)
    return write_page(out, view, page(view, imagery))


def write_page(out: Path, view: View, content: str) -> list[Path]:
    """A page and its JSON, each whole or not at all."""
    make_folder(out.parent)
    beside = out.with_suffix(".json")
    for path, text in ((out, content), (beside, as_json(view))):
        write_text(path, text)
    return [out, beside]


def make_imagery(subjects: Sequence[Scores], options: Options, budget: int, say: Say) -> dict[str, Any]:
    """Images for a page, or a notice of why there are none."""
    runs = [s for s in subjects if s.record is not None and s.folder is not None]
    if not runs or options.images == 0:
        return {}
    record = runs[0].record
    assert record is not None
    same = [
        s
        for s in runs
        if s.record
        and (s.record.dataset.fingerprint, s.record.seed, s.record.images)
        == (record.dataset.fingerprint, record.seed, record.images)
    ]
    notices = []
    if record.copies is not None:
        return {"notices": ["Images are not shown: the run read corrupted copies instead of making them."]}
    if len(same) < len(runs):
        notices.append(
            f"Images are shown for the runs on {runs[0].dataset} ({len(same)} of {len(runs)} runs)."
        )
    try:
        dataset = Run(runs[0].folder or "", data=options.data).dataset
        errors = [s.image_errors for s in same if s.image_errors is not None]
        return _imagery(
            same,
            errors,
            Scene(dataset, record.seed, any("mask AP" in s.cells for s in same)),
            options,
            budget,
            notices,
            say,
        )
    except StormproofError as error:
        return {"notices": [*notices, f"Images are not shown: {error}"]}


def _imagery(
    subjects: Sequence[Scores],
    errors: Sequence[ImageErrors],
    scene: Scene,
    options: Options,
    budget: int,
    notices: list[str],
    say: Say,
) -> dict[str, Any]:
    say("looking for the worst images")
    losses = worst.measured(worst.hardest(subjects), scene)
    chosen = spread(errors, options.images)
    shown = frozenset((*chosen, *(loss.image for loss in losses)))
    said = [RunPredictions(subject, scene, shown) for subject in subjects]
    album = Album(max(0, budget))
    cards = worst.cards(losses, said, scene, album, _SHARE_OF_WORST)
    conditions = list(dict.fromkeys(text for s in subjects if s.record for text in s.record.conditions))
    say(f"making {len(chosen)} images under {len(conditions)} conditions")
    browse = browser(scene, said, chosen, conditions, album)
    whole = sum(entry.pop("whole") for entry in browse["images"])
    if whole < len(chosen):
        notices.append(
            f"{len(chosen) - whole} of {len(chosen)} images of the browser are left out or lack conditions, "
            f"to stay within {options.budget:g} MB; raise it with --budget, or ask for fewer with --images."
        )
    made = facts(notices, album, {"worst": cards, "browser": browse if browse["images"] else None})
    return {**made, "worst_table": worst.table(losses, subjects) if losses else None}


def spread(errors: Sequence[ImageErrors], count: int) -> list[str]:
    """Images from those that suffer most to those that suffer least, evenly spread."""
    ids = errors[0].ids
    rises = [held.rise(text) for held in errors for text in held.by_condition if text != "clean"]
    mean = np.nan_to_num(np.array(rises), nan=0.0).mean(axis=0) if rises else np.zeros(len(ids))
    order = np.argsort(-mean, kind="stable")
    places = np.unique(np.linspace(0, len(ids) - 1, min(count, len(ids))).round().astype(int))
    return [ids[order[place]] for place in places.tolist()]
