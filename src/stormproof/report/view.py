"""All that a report says: one pure function of the runs' scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stormproof.errors import InvalidOption, UnknownName
from stormproof.metrics.measure import measures
from stormproof.report.elements import Section, Table, View
from stormproof.report.grouping import common_tags, with_groups
from stormproof.report.sections import Asked, all_sections
from stormproof.report.sections.cells import scaled
from stormproof.report.sentences import ranking, sentence
from stormproof.report.subject import Subject, told_apart
from stormproof.report.text import Cell, plain

_SURE = ("P", "mPC", "rPC")  # numbers that intervals are shown of
_FIRST = ("grid", "conditions")  # figures for the first screen


def make_view(
    subjects: Sequence[Subject], *, measure: str | None = None, reference: str | None = None
) -> View:
    """The view of one or more runs, compared by one measure (by default the first run's headline)."""
    if not subjects:
        raise InvalidOption("A report needs at least one run.")
    named = told_apart(subjects)
    chosen = _measure(named, measure)
    shown = [s for s in named if chosen in s.scores or chosen in s.aggregates]
    asked = Asked(shown, chosen, _reference(shown, reference))
    sections = tuple(_grouped(section, shown) for section in all_sections(asked))
    first = next((f for section in sections for f in section.figures if f.id in _FIRST), None)
    rest = tuple(replace(s, figures=tuple(f for f in s.figures if f is not first)) for s in sections)
    return View(
        title=_title(named),
        sentences=_sentences(shown, chosen),
        summary=summary(named, chosen),
        sections=rest,
        first=first,
        provenance=tuple(map(provenance, named)),
        notices=_notices(named, chosen),
        tags=common_tags(shown),
    )


def _sentences(subjects: Sequence[Subject], measure: str) -> tuple[str, ...]:
    """The best run first, with its rank before it; then every other in one sentence."""

    def mean(subject: Subject) -> float:
        value = subject.total(measure, "mPC")
        return value if isinstance(value, float) else -math.inf

    ordered = sorted(subjects, key=mean, reverse=True)
    said = [sentence(subject, measure) for subject in ordered]
    return (" ".join(line for line in (ranking(subjects, measure), said[0]) if line), *said[1:])


def _title(subjects: Sequence[Subject]) -> str:
    models = ", ".join(s.model for s in subjects[:3]) + (
        f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""
    )
    datasets = ", ".join(dict.fromkeys(s.dataset for s in subjects))
    return f"{models} on {datasets}"


def _measure(subjects: Sequence[Subject], asked: str | None) -> str:
    known = list(
        dict.fromkeys(name for s in subjects for name in (*s.scores, *s.aggregates) if name in measures())
    )
    if asked is None:
        return subjects[0].headline
    if asked not in known:
        raise UnknownName("measure", asked, known, f"These runs have: {', '.join(known)}.")
    return asked


def _reference(subjects: Sequence[Subject], name: str | None) -> Subject:
    if name is None:
        return subjects[0]
    for subject in subjects:
        if name in (subject.name, subject.model, subject.folder and subject.folder.name):
            return subject
    raise UnknownName("reference", name, [s.name for s in subjects], "Name one of the runs.")


def _grouped(section: Section, subjects: Sequence[Subject]) -> Section:
    return replace(section, figures=tuple(with_groups(figure, subjects) for figure in section.figures))


def summary(subjects: Sequence[Subject], measure: str) -> Table:
    """The first table: a line per run, its headline numbers, and how much they stand on."""
    columns = ["model", "dataset", "measure", "P", "mPC", "rPC"]
    extra = [name for name in ("mCE", "ADR") if any(_extra(s, name) is not None for s in subjects)]
    lines = [[*_line(s, measure, extra)] for s in subjects]
    if any(s.intervals for s in subjects):
        columns = [part for name in columns for part in ((name, f"± {name}") if name in _SURE else (name,))]
        lines = [_with_intervals(s, line) for s, line in zip(subjects, lines, strict=True)]
    return Table(
        "summary",
        "Runs",
        (*columns, *extra, "images", "conditions"),
        lines,
        note="In per cent. P: clean score; mPC: mean under corruption; rPC: mPC / P. A dash: no number.",
    )


def _line(subject: Subject, measure: str, extra: Sequence[str]) -> list[Cell]:
    here = measure if measure in subject.scores or measure in subject.aggregates else subject.headline
    clean, mean = subject.score(here), subject.total(here, "mPC")
    rpc = subject.total(here, "rPC")
    conditions: Cell = len(subject.conditions) or None
    if subject.missing:
        conditions = (
            f"incomplete: {len(subject.missing)} of {len(subject.missing) + len(subject.conditions)} missing"
        )
    return [
        subject.name,
        subject.dataset,
        here,
        scaled(here, clean) if math.isfinite(clean) else None,
        scaled(here, mean) if isinstance(mean, float) else None,
        100 * rpc if isinstance(rpc, float) and math.isfinite(rpc) else None,
        *(_extra(subject, name) for name in extra),
        subject.images,
        conditions,
    ]


def _with_intervals(subject: Subject, line: list[Cell]) -> list[Cell]:
    """A line with half the 95 % interval behind each of P, mPC and rPC, where the run's were kept."""
    held = subject.intervals.get(str(line[2]), {})
    found = list(line[:3])
    for name, value in zip(_SURE, line[3:6], strict=True):
        found += [value, 100 * held[name] if name in held else None]
    return [*found, *line[6:]]


def _extra(subject: Subject, name: str) -> float | None:
    value = subject.total("E", "mCE") if name == "mCE" else subject.score("ADR")
    return 100 * value if isinstance(value, float) and math.isfinite(value) else None


def _notices(subjects: Sequence[Subject], measure: str) -> tuple[str, ...]:
    """What a reader must know before trusting a comparison."""
    found = []
    without = [s.name for s in subjects if measure not in s.scores and measure not in s.aggregates]
    if without:
        found.append(f"Not in the figures, having no {measure}: {', '.join(without)}.")
    if len({(s.dataset, s.images) for s in subjects}) > 1:
        found.append("The runs are on different images; their scores cannot be compared point by point.")
    found += [
        f"{s.name} is incomplete: {', '.join(s.missing[:5])}{' …' if len(s.missing) > 5 else ''}. "
        "Its means are left out."
        for s in subjects
        if s.missing
    ]
    found += [_estimated(s) for s in subjects if s.estimate]
    few = [s.name for s in subjects if s.images is not None and s.images < 100 and s.record is not None]
    if few:
        found.append(f"Fewer than 100 images ({', '.join(few)}): differences of a few points mean nothing.")
    return tuple(found)


def _estimated(subject: Subject) -> str:
    """What a run of part of the grid lets one expect of the whole."""
    assert subject.estimate is not None
    mean, part = subject.estimate["mpc"], 100 * subject.estimate["inferences"]
    low, value, high = (100 * mean[key] for key in ("low", "estimate", "high"))
    return (
        f"{subject.name} was run on part of the grid ({part:.1f} % of the inferences). Estimated mPC of "
        f"{subject.estimate['measure']}: {value:.1f} (95 %: {low:.1f} to {high:.1f}); "
        "it is not ranked with full grids."
    )


def provenance(subject: Subject) -> Mapping[str, Any]:
    """What it takes to repeat a run: command, versions, seed and hashes."""
    if subject.record is None:
        return {"name": subject.name, "published": subject.citation}
    record = subject.record
    made = record.provenance
    return {
        "name": subject.name,
        "command": plain(" ".join(map(_quoted, made.get("command", ())))),
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


def _quoted(word: object) -> str:
    import shlex

    return shlex.quote(str(word))
