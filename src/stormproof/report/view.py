"""All that a report says: one pure function of the runs' scores."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.table import Cell, Table
from stormproof.core.text import plain
from stormproof.metrics.metric import measures
from stormproof.report.elements import Section, View
from stormproof.report.grouping import common_tags, with_groups
from stormproof.report.sections import Asked, all_sections
from stormproof.report.sections.cells import scaled
from stormproof.report.sentences import kept, ranking, sentence
from stormproof.results.scores import NAMED, Scores, disambiguate_names

_SURE = ("P", "mPC", "rPC")  # numbers that intervals are shown of
_SPAN = ("low", "estimate", "high")
_MEAN, _LEFT = "mean over its conditions", "% of P left"  # where the conditions are no benchmark or suite
_ALWAYS = ("model", "dataset", "measure", "P", "images", "conditions")
_FIRST = ("grid", "conditions")  # figures for the first screen


def make_view(
    subjects: Sequence[Scores], *, measure: str | None = None, reference: str | None = None
) -> View:
    """The view of one or more runs, compared by one measure (by default the first run's headline)."""
    if not subjects:
        raise InvalidOption("A report needs at least one run.")
    named = [_visible(scores) for scores in disambiguate_names(subjects)]
    chosen = _measure(named, measure)
    shown = [s for s in named if chosen in s.cells or chosen in s.aggregates]
    others = [s for s in named if s not in shown]
    asked = Asked(shown, chosen, _reference(shown, reference), others)
    sections = tuple(_grouped(section, shown) for section in all_sections(asked))
    first = next((f for section in sections for f in section.figures if f.id in _FIRST), None)
    rest = tuple(replace(s, figures=tuple(f for f in s.figures if f is not first)) for s in sections)
    return View(
        title=_title(named),
        sentences=(*_sentences(shown, chosen), *(sentence(s, s.headline) for s in others)),
        summary=summary(named, chosen),
        sections=rest,
        first=first,
        provenance=tuple(map(provenance, named)),
        notices=_notices(named, chosen),
        tags=common_tags(shown),
    )


def _visible(scores: Scores) -> Scores:
    """The same scores under names that are one visible line each, whoever made them."""
    tags = {plain(key): plain(value) for key, value in scores.tags.items()}
    model, dataset, label = map(plain, (scores.model, scores.dataset, scores.label))
    return replace(scores, model=model, dataset=dataset, label=label, tags=tags)


def _sentences(subjects: Sequence[Scores], measure: str) -> tuple[str, ...]:
    """The best run first, with its rank before it; then every other in one sentence."""

    def mean(subject: Scores) -> float:
        value = subject.mean(measure)
        return (value if higher else -value) if isinstance(value, float) else -math.inf

    higher = measures()[measure].higher
    ordered = sorted(subjects, key=mean, reverse=True)
    said = [sentence(subject, measure) for subject in ordered]
    return (" ".join(line for line in (ranking(subjects, measure), said[0]) if line), *said[1:])


def _title(subjects: Sequence[Scores]) -> str:
    models = ", ".join(s.model for s in subjects[:3]) + (
        f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""
    )
    datasets = ", ".join(dict.fromkeys(s.dataset for s in subjects))
    return f"{models} on {datasets}"


def _measure(subjects: Sequence[Scores], asked: str | None) -> str:
    known = list(
        dict.fromkeys(name for s in subjects for name in (*s.cells, *s.aggregates) if name in measures())
    )
    if asked is None:  # the headline that most of the runs have, the first run's among equals
        headlines = dict.fromkeys(s.headline for s in subjects)
        return max(headlines, key=lambda m: sum(m in s.cells or m in s.aggregates for s in subjects))
    if asked not in known:
        raise UnknownName("measure", asked, known, f"These runs have: {', '.join(known)}.")
    return asked


def _reference(subjects: Sequence[Scores], name: str | None) -> Scores:
    if name is None:
        return subjects[0]
    for subject in subjects:
        if name in (subject.name, subject.model, subject.folder and subject.folder.name):
            return subject
    raise UnknownName("reference", name, [s.name for s in subjects], "Name one of the runs.")


def _grouped(section: Section, subjects: Sequence[Scores]) -> Section:
    return replace(section, figures=tuple(with_groups(figure, subjects) for figure in section.figures))


def summary(subjects: Sequence[Scores], measure: str) -> Table:
    """The first table: a line per run, its headline numbers, and how much they stand on."""
    lines = [_line(s, measure) for s in subjects]
    means = [s for s, line in zip(subjects, lines, strict=True) if line[_MEAN] is not None]
    always = _ALWAYS if means and len(means) == len(subjects) else (*_ALWAYS, "mPC", "rPC")
    columns = [name for name in lines[0] if name in always or any(line[name] is not None for line in lines)]
    names = {s.mean_name(measure if measure in s.cells else s.headline) for s in means}
    return Table(
        "summary",
        "Runs",
        tuple(names.pop() if name == _MEAN and len(names) == 1 else name for name in columns),
        [[line[name] for name in columns] for line in lines],
        note=_explained(subjects, columns),
    )


def _explained(subjects: Sequence[Scores], columns: Sequence[str]) -> str:
    """What the columns are."""
    over = dict.fromkeys(s.over.name for s in subjects if s.over.whole)
    said = ["In per cent", "P: clean score"]
    if "mPC" in columns:
        said.append(f"mPC: mean under corruption{', over ' + ' or '.join(over) if over else ''}")
        said.append("rPC: mPC / P")
    if _MEAN in columns:
        said.append("mPC is of a whole benchmark or suite; other conditions have a mean")
    return f"{'; '.join(said)}. A dash: no number."


def _line(subject: Scores, measure: str) -> dict[str, Cell]:
    """Every column of the summary; those that no run fills are left out."""
    here = measure if measure in subject.cells or measure in subject.aggregates else subject.headline
    mean = subject.mean(here)
    sure = {name: i.half_width for name, i in subject.intervals(here).items() if not math.isnan(i.se)}
    mpc, rpc = subject.total(here, "mPC"), subject.total(here, "rPC")
    unnamed = isinstance(mean, float) and subject.mean_name(here) not in NAMED
    conditions: Cell = len(subject.corrupted) or None
    if subject.missing:
        conditions = (
            f"incomplete: {len(subject.missing)} of {len(subject.missing) + len(subject.corrupted)} missing"
        )
    values = {
        "P": scaled(here, subject.score(here)),
        "mPC": scaled(here, mpc) if isinstance(mpc, float) else math.nan,
        "rPC": 100 * rpc if isinstance(rpc, float) else math.nan,
        _MEAN: scaled(here, mean) if unnamed else math.nan,
        _LEFT: 100 * kept(subject, here) if unnamed and measures()[here].higher else math.nan,
        "mCE": _extra(subject.total("E", "mCE")),
        "ADR": _extra(subject.score("ADR")),
    }
    found: dict[str, Cell] = {"model": subject.name, "measure": here}
    for name, value in values.items():
        found[name] = value if math.isfinite(value) else None
        if name in _SURE:
            found[f"± {name}"] = 100 * sure[name] if name in sure else None
    return {**found, "dataset": subject.dataset, "images": subject.images, "conditions": conditions}


def _extra(value: object) -> float:
    return 100 * value if isinstance(value, float) else math.nan


def _notices(subjects: Sequence[Scores], measure: str) -> tuple[str, ...]:
    """What a reader must know before trusting a comparison."""
    found = []
    without = [s.name for s in subjects if measure not in s.cells and measure not in s.aggregates]
    if without:
        found.append(
            f"Compared by {measure}. No {measure} of {', '.join(without)}: shown by its own measure, "
            "one run at a time."
        )
    if len({(s.dataset, s.images) for s in subjects}) > 1:
        found.append("The runs are on different images; their scores cannot be compared point by point.")
    found += [
        f"{s.name} is incomplete: {', '.join(s.missing[:5])}{' …' if len(s.missing) > 5 else ''}. "
        "Its means are left out."
        for s in subjects
        if s.missing
    ]
    found += [_estimated(s) for s in subjects if s.estimate]
    found += [f"{s.name}: {notice}" for s in subjects for notice in s.notices]
    found += [f"{s.name} is scored with {s.options.words}." for s in subjects if s.options.words]
    found += [
        f"{s.name}: {len(s.left_out)} images could not be read and are left out."
        for s in subjects
        if s.left_out
    ]
    few = [s.name for s in subjects if s.images is not None and s.images < 100 and s.record is not None]
    if few:
        found.append(f"Fewer than 100 images ({', '.join(few)}): differences of a few points mean nothing.")
    return tuple(found)


def _estimated(subject: Scores) -> str:
    """What a run of part of the grid lets one expect of the whole."""
    assert subject.estimate is not None
    mean, part = subject.estimate["mpc"], 100 * subject.estimate["inferences"]
    low, value, high = (100 * (math.nan if mean[key] is None else mean[key]) for key in _SPAN)
    return (
        f"{subject.name} was run on part of the grid ({part:.1f} % of the inferences). Estimated mPC of "
        f"{subject.estimate['measure']}: {value:.1f} (95 %: {low:.1f} to {high:.1f}); "
        "it is not ranked with full grids."
    )


def provenance(subject: Scores) -> Mapping[str, Any]:
    """What it takes to repeat a run: command, versions, seed and hashes."""
    if subject.record is None:
        return {"name": subject.name, "published": subject.citation}
    record = subject.record
    made = record.provenance
    return {
        "name": subject.name,
        "command": plain(shlex.join(map(str, made.get("command", ())))),
        "model": plain(record.model.spec),
        "model fingerprint": record.model.fingerprint,
        "enhancement": ", ".join(map(plain, record.model.enhance)),
        "dataset": plain(record.dataset.spec),
        "dataset fingerprint": record.dataset.fingerprint,
        "images": f"{record.images} of {record.dataset.images}",
        "seed": str(record.seed),
        "conditions": f"{len(record.conditions)}",
        "recipes": ", ".join(f"{name} {version}" for name, version in record.recipes.items()),
        "tags": ", ".join(f"{key}={value}" for key, value in subject.tags.items()),
        "made": plain(made.get("created", "")),
        "versions": ", ".join(f"{plain(k)} {plain(v)}" for k, v in _versions(made).items()),
        "hardware": ", ".join(
            f"{plain(k)}: {plain(v)}" for k, v in (made.get("hardware") or {}).items() if v
        ),
    }


def _versions(made: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: made[name] for name in ("stormproof", "python") if name in made}
    return {**own, **(made.get("packages") or {})}
