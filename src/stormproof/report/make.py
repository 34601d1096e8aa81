"""A report from start to finish: scores, view, images, page. `stormproof.report` writes one from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, StormproofError, counted
from stormproof.core.files import make_folder, write_text
from stormproof.core.private import shareable_words
from stormproof.core.sample import Floats
from stormproof.datasets.dataset import abilities
from stormproof.report import worst
from stormproof.report.elements import View
from stormproof.report.imagery import Album, Imagery, RunPredictions, browser
from stormproof.report.page import as_json, page
from stormproof.report.sections.clips import filmstrip
from stormproof.report.sections.slices import rate_section, slice_section
from stormproof.report.sources import Source, disambiguate_names, scores_of
from stormproof.report.view import drawable, make_view
from stormproof.results.detection_rate import SCALES
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.store.record import RunRecord
from stormproof.results.worst import ImageErrors

Say = Callable[[str], None]
BUDGET = 3.0  # MB that a page may have; what it cannot hold, 'stormproof explore' shows


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a report."""

    measure: str | None = None
    reference: str | None = None
    data: str | None = None
    images: int = 4
    budget: float = BUDGET  # MB of the page
    by: str | None = None


def report(
    runs: Source | Iterable[Source],
    *,
    out: str | PathLike[str] = "report.html",
    measure: str | None = None,
    reference: str | None = None,
    images: int = 4,
    budget: float = BUDGET,
) -> Path:
    """Write one self-contained page about one or more runs, and its numbers beside it as JSON.

    A run is a `Run`, its `Scores`, or what `stormproof report` takes: a folder, a submission's file,
    'published:…'. Runs are scored if need be, with 95 % intervals. `images` is how many the page's
    browser shows, each under every condition; `budget` is in MB. Returns the page's path.
    """
    several = [runs] if isinstance(runs, Run | Scores | str | PathLike) else list(runs)
    options = Options(measure, reference, images=images, budget=budget)
    return make_report(several, Path(out), options)[0]


def make_report(
    sources: Sequence[Source], out: Path, options: Options, say: Say = lambda _: None
) -> list[Path]:
    """Write the page and, beside it, the same numbers as JSON."""
    beside(out)  # so that it fails before the work, if it fails
    scored: list[Scores] = []
    for source in sources:
        say(f"scoring {source}, with intervals")
        scored += scores_of(source, options.data, interval=True)
    opened = {source.folder: source for source in sources if isinstance(source, Run)}
    runs = disambiguate_names(scored)
    view = make_view(runs, measure=options.measure, reference=options.reference)
    if options.by is not None:
        view = _with_slices(view, options.by, runs, opened, options, say)
    say("drawing")
    room = int(options.budget * 1e6) - len(page(view).encode())
    imagery = _make_imagery(runs, opened, options, room, say)
    return write_page(out, view, page(view, imagery))


def _with_slices(
    view: View, by: str, runs: Sequence[Scores], opened: Mapping[Path, Run], options: Options, say: Say
) -> View:
    """The view with a section of scores by an attribute, for runs only: published tables have no images."""
    say(f"slicing by {by}")
    by_name = {
        scores.name: opened.get(scores.folder) or Run(scores.folder, data=options.data)
        for scores in runs
        if scores.folder is not None
    }
    if not by_name:
        raise InvalidOption(f"--by {by} needs run folders: published tables have no images.")
    attribute, _, classes = by.partition(":")
    if attribute in SCALES:
        rates = {
            name: run.detection_rates(attribute, classes=classes or None) for name, run in by_name.items()
        }
        section = rate_section(rates)
    else:
        section = slice_section({n: run.slices(by, measure=options.measure) for n, run in by_name.items()})
    return replace(view, sections=(*view.sections, *drawable([section], runs)))


def write_page(out: Path, view: View, content: str) -> list[Path]:
    """Write a page and its JSON, each completely or not at all."""
    numbers = beside(out)
    write_text(out, content)
    write_text(numbers, as_json(view))
    return [out, numbers]


def beside(page: Path) -> Path:
    """Where the numbers of a page go; its folder is made."""
    numbers = page.with_suffix(".json")
    if numbers == page:
        raise InvalidOption(f"{page} is where the page's numbers go; name the page {page.stem}.html.")
    make_folder(page.parent)
    return numbers


def _make_imagery(
    scored: Sequence[Scores], opened: Mapping[Path, Run], options: Options, budget: int, say: Say
) -> dict[str, Any]:
    """Images for a page, or a notice of why there are none. `opened` are runs that know their dataset."""
    runs = [scores for scores in scored if scores.record is not None and scores.folder is not None]
    if not runs or options.images == 0:
        return {}
    first = runs[0].record
    assert first is not None
    if first.copies is not None:
        return {"notices": ["Images are not shown: the run read corrupted copies instead of making them."]}
    same = [scores for scores in runs if scores.record and _pixels(scores.record) == _pixels(first)]
    notices = []
    if len(same) < len(runs):
        notices.append(f"Images are shown for {len(same)} of {len(runs)} runs, those on {runs[0].dataset}.")
    try:
        folder = runs[0].folder or Path()
        dataset = (opened.get(folder) or Run(folder, data=options.data)).dataset
        scene = Imagery(dataset, first.seed, any("mask AP" in scores.per_condition for scores in same))
        return _images_of(same, scene, options, budget, notices, say)
    except StormproofError as error:
        return {"notices": [*notices, f"Images are not shown: {shareable_words(str(error))}"]}


def _pixels(record: RunRecord) -> tuple[str, int, int]:
    """The facts that determine the pixels of a run's images."""
    return record.dataset.fingerprint, record.seed, record.images


def _images_of(
    runs: Sequence[Scores], scene: Imagery, options: Options, budget: int, notices: list[str], say: Say
) -> dict[str, Any]:
    say("looking for the worst images")
    ranked = worst.worst_first(runs)
    listed = worst.measure_losses(ranked[: worst.LISTED], scene)
    shown = worst.measure_losses(worst.telling(ranked)[: worst.SHOWN], scene)
    chosen = spread([s.image_errors for s in runs if s.image_errors is not None], options.images)
    drawn = frozenset((*chosen, *(each.loss.image for each in shown)))
    predictions = [RunPredictions(scores, scene, drawn) for scores in runs]
    album = Album(max(0, budget))
    cards = worst.cards(shown, predictions, scene, album)
    conditions = list(dict.fromkeys(text for s in runs if s.record for text in s.record.conditions))
    strip = None
    if "flicker" in runs[0].per_condition:
        frames = abilities(scene.dataset).frames
        strip = filmstrip(RunPredictions(runs[0], scene, frozenset(frames)), frames, album)
    say(f"making {counted(len(chosen), 'image')} under {counted(len(conditions), 'condition')}")
    browse = browser(scene, predictions, chosen, conditions, album)
    whole = sum(entry.pop("whole") for entry in browse["images"])
    if whole < len(chosen):
        notices.append(
            f"{len(chosen) - whole} of {len(chosen)} images of the browser are left out or lack conditions, "
            f"to stay within {options.budget:g} MB; 'stormproof explore' shows all, --budget allows more."
        )
    return {
        "notices": notices,
        "webp": album.webp,
        "scenes": {"worst": cards, "browser": browse if browse["images"] else None},
        "worst_table": worst.table(listed) if listed else None,
        "filmstrip": strip,
    }


def spread(errors: Sequence[ImageErrors], count: int) -> list[str]:
    """Images that all runs could read, from those that suffer most to those that suffer least, evenly spread;
    none of runs on clean images only."""
    if not errors:
        return []
    shared = set.intersection(*(set(held.ids) for held in errors))
    ids = [name for name in errors[0].ids if name in shared]
    rises: list[Floats] = []
    for held in errors:
        where = {name: row for row, name in enumerate(held.ids)}
        rows = [where[name] for name in ids]
        rises += [held.rise(text)[rows] for text in held.by_condition if text != "clean"]
    if not rises:
        return []
    mean = np.nan_to_num(np.array(rises)).mean(axis=0)
    order = np.argsort(-mean, kind="stable")
    places = np.unique(np.linspace(0, len(ids) - 1, min(count, len(ids))).round().astype(int))
    return [ids[order[place]] for place in places.tolist()]
