"""Everything a report says: a pure function of the runs' scores."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from stormproof.core.errors import InvalidOption, UnknownName, counted, first_few
from stormproof.core.private import shareable
from stormproof.core.table import Entry, Table
from stormproof.core.text import plain
from stormproof.metrics.metric import measures
from stormproof.report.decision import decision
from stormproof.report.elements import Datum, Figure, Section, View
from stormproof.report.sections import Scope, all_sections, per_cent
from stormproof.report.sections.overview import kept_by_group
from stormproof.report.sections.severity import breaking_points
from stormproof.report.sentences import (
    choose,
    comparable,
    interval_of,
    mean_kept,
    sentence,
    share_kept,
    verdict,
    weak_points,
)
from stormproof.report.sources import disambiguate_names
from stormproof.results.aggregates import MEAN, NAMED
from stormproof.results.calibrated import footnote, mark
from stormproof.results.documents import few_images, images_scored
from stormproof.results.scores import Scores

_MEAN, _LEFT = "mean over its conditions", "% of P left"  # where the conditions are not a benchmark or suite
_GROUND = ("measure", "dataset", "images", "conditions")  # what the numbers describe
_INCOMPLETE = "incomplete"
_FIRST = ("grid", "conditions")  # figures for the first screen, if shares of the clean score cannot be drawn
_FEW = 100  # images below which a notice says so
UNTAGGED = "(no tag)"


def make_view(runs: Sequence[Scores], *, measure: str | None = None, reference: str | None = None) -> View:
    """The view of one or more runs, compared by one measure (by default the first run's headline)."""
    if not runs:
        raise InvalidOption("A report needs at least one run.")
    named = [_visible(scores) for scores in disambiguate_names(runs)]
    chosen = _measure(named, measure)
    having = [scores for scores in named if chosen in scores]
    others = [scores for scores in named if chosen not in scores]
    scope = Scope(having, chosen, _reference(having, reference), others)
    ranked, reasons = comparable(named, chosen)
    sections = drawable(all_sections(scope), having)
    first = kept_by_group(ranked, chosen)
    if not first.rows:
        first = next((f for s in sections for f in s.figures if f.id in _FIRST), first)
    rest = tuple(replace(s, figures=tuple(f for f in s.figures if f is not first)) for s in sections)
    breaking = breaking_points(ranked, chosen)
    return View(
        title=_title(named),
        sentences=_sentences(ranked, named, chosen),
        summary=summary(named, chosen),
        sections=rest,
        first=with_groups(first, having) if first.rows else None,
        breaking=breaking if breaking.rows else None,
        provenance=tuple(map(provenance, named)),
        notices=_notices(named),
        apart=tuple(f"{name}: {reason}." for name, reason in reasons.items()) if len(named) > 1 else (),
        tags=common_tags(having),
        weak_points=_weak_points(ranked, chosen),
        decision=decision(named, chosen),
    )


def _visible(scores: Scores) -> Scores:
    """The same scores, with names reduced to one line of visible characters."""
    origin = replace(scores.origin, tags={plain(k): plain(v) for k, v in scores.tags.items()})
    model, dataset, label = map(plain, (scores.model, scores.dataset, scores.name))
    return replace(scores, model=model, dataset=dataset, label=label, origin=origin)


def _sentences(ranked: Sequence[Scores], named: Sequence[Scores], measure: str) -> tuple[str, ...]:
    """The answer first: which of several runs, or how the one fares. Then every run in a sentence."""
    every = [sentence(scores, measure if measure in scores else scores.headline) for scores in named]
    if len(named) == 1:
        return (every[0],)
    if len(ranked) < 2:
        return ("No two of these runs can be compared by one number; the reasons are below.", *every)
    return (verdict(ranked, measure), *every)


def _weak_points(ranked: Sequence[Scores], measure: str) -> str:
    """What hurts the run to take, or the best of several under corruption."""
    if len(ranked) < 2:
        return ""
    taken, _ = choose(ranked, measure)
    best = taken or (max if measures()[measure].higher else min)(ranked, key=lambda s: s.mean(measure))
    return weak_points(best, measure, name=best.name)


def _title(runs: Sequence[Scores]) -> str:
    datasets = ", ".join(dict.fromkeys(scores.dataset for scores in runs))
    return f"{first_few([plain(scores.called) for scores in runs], 3)} on {datasets}"


def _measure(runs: Sequence[Scores], asked: str | None) -> str:
    known = list(dict.fromkeys(name for scores in runs for name in scores if name in measures()))
    if asked is None:  # the headline that most of the runs have, the first run's among equals
        headlines = dict.fromkeys(scores.headline for scores in runs)
        return max(headlines, key=lambda m: sum(m in scores for scores in runs))
    if asked not in known:
        raise UnknownName("measure", asked, known, f"These runs have: {', '.join(known)}.")
    return asked


def _reference(runs: Sequence[Scores], name: str | None) -> Scores:
    if name is None:
        return runs[0]
    for scores in runs:
        if name in (scores.name, scores.model) or (
            scores.folder and name in (scores.folder.name, str(scores.folder))
        ):
            return scores
    raise UnknownName("reference", name, [scores.name for scores in runs], "Name one of the runs.")


def drawable(sections: Iterable[Section], runs: Sequence[Scores]) -> tuple[Section, ...]:
    """Drop marks without a position, then figures without marks, then empty sections."""
    kept = []
    for section in sections:
        figures = (replace(f, rows=[row for row in f.rows if _has_place(row)]) for f in section.figures)
        kept_figures = tuple(with_groups(figure, runs) for figure in figures if figure.rows)
        if kept_figures or section.tables:
            kept.append(replace(section, figures=kept_figures))
    return tuple(kept)


def _has_place(row: Datum) -> bool:
    return all(not isinstance(row.get(k), float) or math.isfinite(row[k]) for k in ("x", "y", "v", "shade"))


# Averages over models that share a tag, as *theodoridis* and *kamann* compare backbones and necks


def common_tags(runs: Sequence[Scores]) -> tuple[str, ...]:
    """Tags by which the runs fall into at least two groups."""
    keys = dict.fromkeys(key for scores in runs for key in scores.tags)
    return tuple(key for key in keys if len({scores.tags.get(key) for scores in runs}) > 1)


def with_groups(figure: Figure, runs: Sequence[Scores]) -> Figure:
    """A figure whose series are runs, with its rows averaged by each tag as well."""
    if not figure.by_run:
        return figure
    tags = {key: {s.name: s.tags.get(key, UNTAGGED) for s in runs} for key in common_tags(runs)}
    return replace(figure, grouped={key: group_rows(figure.rows, names) for key, names in tags.items()})


def group_rows(rows: Sequence[Datum], names: Mapping[str, str]) -> list[Datum]:
    """Rows with runs replaced by their group; marks at one place become their mean.

    Numbers on the x axis are averaged too where every run has a place of its own (a scatter plot).

    >>> rows = [{"x": 1.0, "y": 2.0, "series": "a"}, {"x": 1.0, "y": 4.0, "series": "b"}]
    >>> group_rows(rows, {"a": "r50", "b": "r50"})
    [{'x': 1.0, 'y': 3.0, 'series': 'r50', 'runs': 2}]
    """
    keys = [(row["series"], row.get("panel"), row.get("pick"), row.get("label")) for row in rows]
    scatter = len(set(keys)) == len(keys) and all(isinstance(row["x"], float) for row in rows)
    places: dict[tuple[object, ...], list[Datum]] = {}
    for (series, *at), row in zip(keys, rows, strict=True):
        place = (names.get(series, series), *at, None if scatter else row["x"])
        places.setdefault(place, []).append(row)
    return [_mean(same, str(place[0]), scatter) for place, same in places.items()]


def _mean(same: Sequence[Datum], name: str, scatter: bool) -> Datum:
    rest = {key: value for key, value in same[0].items() if key not in ("low", "high", "x2", "y2")}
    means = {key: fmean(row[key] for row in same) for key in (("x", "y") if scatter else ("y",))}
    return {**rest, **means, "series": name, "runs": len(same)}


def only_grouped(view: View, tag: str) -> View:
    """A view whose figures show groups instead of runs, where they can."""
    if tag not in view.tags:
        known = f"Tags that tell these runs apart: {', '.join(view.tags) or 'none'}."
        raise UnknownName("tag", tag, view.tags, known)

    def by_tag(figure: Figure) -> Figure:
        return replace(figure, rows=figure.grouped[tag], series=tag) if tag in figure.grouped else figure

    sections = (replace(s, figures=tuple(map(by_tag, s.figures))) for s in view.sections)
    return replace(view, sections=tuple(sections), first=by_tag(view.first) if view.first else None)


# The table of the first screen


def summary(runs: Sequence[Scores], measure: str) -> Table:
    """A line per run: its headline numbers, and the images and conditions behind them.

    Facts that all runs share are in the title instead.
    """
    lines = [_line(scores, measure) for scores in runs]
    means = [scores for scores, line in zip(runs, lines, strict=True) if line[_MEAN] is not None]
    named = measures()[measure].higher and len(means) < len(runs)
    always = ("model", "P", *(("mPC", "rPC") if named else ()))
    alike = [name for name in _GROUND if len({line[name] for line in lines}) == 1]
    same = {name: lines[0][name] for name in alike if not str(lines[0][name]).startswith(_INCOMPLETE)}
    held = [name for name in lines[0] if any(line[name] is not None for line in lines) or name in always]
    columns = [name for name in held if name not in same]
    names = {
        scores.mean_name(measure if measure in scores.per_condition else scores.headline) for scores in means
    }
    heads = {f"95 % of {_LEFT}": "95 % of that"}
    if len(names) == 1:
        heads |= {_MEAN: names.pop(), f"95 % of {_MEAN}": "95 % of the mean"}
    return Table(
        "summary",
        _summary_title(same),
        tuple(heads.get(name, name) for name in columns),
        [[line[name] for name in columns] for line in lines],
        note=_explain(runs, columns, measure),
    )


def _summary_title(same: Mapping[str, Entry]) -> str:
    """
    >>> _summary_title({"measure": "AP", "dataset": "val2017", "images": 500, "conditions": 75})
    'AP of runs on val2017, 500 images, 75 conditions'
    """
    measure, dataset, images, conditions = (same.get(name) for name in _GROUND)
    words = [f"{measure} of runs" if measure is not None else "Runs"]
    words[0] += f" on {dataset}" if dataset is not None else ""
    words += [counted(images, "image")] if isinstance(images, int) else []
    words += [counted(conditions, "condition")] if isinstance(conditions, int) else []
    return ", ".join(words)


def _explain(runs: Sequence[Scores], columns: Sequence[str], measure: str) -> str:
    """The note that explains the columns."""
    over = dict.fromkeys(scores.over.name for scores in runs if scores.over.whole)
    shown = [measures()[measure if measure in s else s.headline] for s in runs]
    higher = {each.higher for each in shown}
    better = {True: ", higher is better", False: ", lower is better"}
    in_percent = "In per cent" if all(each.fraction for each in shown) else "Shares in per cent"
    said = [f"{in_percent}{better[higher.pop()] if len(higher) == 1 else ''}", "P: clean score"]
    if "mPC" in columns:
        said.append(f"mPC: mean under corruption{', over ' + ' or '.join(over) if over else ''}")
        said.append("rPC: mPC / P")
    if _MEAN in columns:
        said.append("only the mean over a whole benchmark or suite is called mPC")
    if "95 % of P" in columns:
        said.append("95 %: the interval for new images like these")
    doubts = [footnote(s, [measure if measure in s else s.headline]) for s in runs]
    return " ".join(filter(None, [f"{'; '.join(said)}. A dash: no number.", next(filter(None, doubts), "")]))


def _line(scores: Scores, measure: str) -> dict[str, Entry]:
    """Every column of the summary; those that no run fills are left out."""
    m = measure if measure in scores else scores.headline
    mean, totals = scores.mean(m), scores.aggregates_of(m)
    unnamed = isinstance(mean, float) and scores.mean_name(m) not in NAMED
    intervals = scores.intervals(m)
    if unnamed and measures()[m].higher and (left := interval_of(scores, m, share_kept)) is not None:
        intervals |= {_LEFT: left}
    values = {
        "P": per_cent(m, scores.score(m)),
        "mPC": _scaled(totals.get("mPC"), measures()[m].scale),
        "rPC": _scaled(totals.get("rPC")),
        _MEAN: per_cent(m, mean) if unnamed else math.nan,
        _LEFT: 100 * mean_kept(scores, m) if unnamed and measures()[m].higher else math.nan,
        "mCE": _scaled(scores.total("E", "mCE")),
        "ADR": _scaled(scores.score("ADR")),
    }
    line: dict[str, Entry] = {"model": scores.name, "measure": mark(scores, m)}
    for name, value in values.items():
        line[name] = value if math.isfinite(value) else None
        if name not in ("mCE", "ADR"):
            interval = intervals.get(MEAN if name == _MEAN else name)
            known = line[name] is not None and interval is not None and not math.isnan(interval.se)
            scale = 100.0 if name in ("rPC", _LEFT) else measures()[m].scale
            line[f"95 % of {name}"] = interval.span(scale, between=" – ") if known and interval else None
    conditions: Entry = len(scores.corrupted) or None
    if scores.missing:
        of = len(scores.missing) + len(scores.corrupted)
        conditions = f"{_INCOMPLETE}: {len(scores.missing)} of {of} missing"
    return {**line, "dataset": scores.dataset, "images": scores.images, "conditions": conditions}


def _scaled(value: object, scale: float = 100.0) -> float:
    return scale * value if isinstance(value, float) else math.nan


def _notices(runs: Sequence[Scores]) -> tuple[str, ...]:
    """What a reader must know before trusting the numbers."""
    notices = [
        f"{s.name} is scored on {images_scored(s)}; left out: {first_few(s.left_out)}."
        for s in runs
        if s.left_out
    ]
    notices += [
        f"{s.name} is incomplete, so it has no mean under corruption. Missing: {first_few(s.missing)}."
        for s in runs
        if s.missing
    ]
    notices += [_estimate(s, s.estimate) for s in runs if s.estimate]
    notices += [f"{s.name}: {notice}" for s in runs for notice in s.notices]
    notices += [f"{s.name} is scored with {s.options.words}." for s in runs if s.options.words]
    clips = [s for s in runs if s.clips is not None and s.record is not None]
    notices += [f"{s.name}: {warning}" for s in clips if (warning := few_images(s.images, s.clips))]
    few = [s.name for s in runs if s.images is not None and s.images < _FEW and s.record is not None]
    if few:
        whose = "" if len(few) == len(runs) else f" ({first_few(few)})"
        notices.append(f"Fewer than {_FEW} images{whose}: a difference of a few points may be chance.")
    return tuple(notices)


def _estimate(scores: Scores, estimate: Mapping[str, Any]) -> str:
    """The estimate for the whole grid, from a run of part of it."""
    mean, part = estimate["mpc"], 100 * estimate["inferences"]
    low, value, high = (
        100 * (math.nan if mean[key] is None else mean[key]) for key in ("low", "estimate", "high")
    )
    return (
        f"{scores.name} was run on part of the grid ({part:.1f} % of the inferences). Estimated mPC of "
        f"{estimate['measure']}: {value:.1f} (95 %: {low:.1f} to {high:.1f}); "
        "it is not ranked with full grids."
    )


def provenance(scores: Scores) -> Mapping[str, Any]:
    """What it takes to repeat a run: command, versions, seed and hashes; and the options of its scores."""
    if scores.record is None:
        return {"name": scores.name, "published": scores.origin.citation}
    record = scores.record
    made = record.provenance
    folder = str(made.get("folder") or "") or None
    versions: dict[str, Any] = {name: made[name] for name in ("stormproof", "python") if name in made}
    return {
        "name": scores.name,
        "command": plain(shlex.join(shareable(str(word), folder) for word in made.get("command", ()))),
        "model": plain(shareable(record.model.spec, folder)),
        "model fingerprint": record.model.fingerprint,
        "enhancement": ", ".join(map(plain, record.model.enhance)),
        "dataset": plain(shareable(record.dataset.spec, folder)),
        "dataset fingerprint": record.dataset.fingerprint,
        "images": f"{record.images} of {record.dataset.images}",
        "seed": str(record.seed),
        "conditions": f"{len(record.conditions)}",
        "recipe versions": ", ".join(f"{name} {version}" for name, version in record.recipes.items()),
        "scored with": scores.options.words or "the usual options",
        "tags": _list(scores.tags, "="),
        "made": plain(made.get("created", "")),
        "versions": _list({**versions, **(made.get("packages") or {})}, " "),
        "hardware": _list({k: v for k, v in (made.get("hardware") or {}).items() if v}, ": "),
    }


def _list(facts: Mapping[str, Any], between: str) -> str:
    return ", ".join(f"{plain(key)}{between}{plain(value)}" for key, value in facts.items())
