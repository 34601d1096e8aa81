"""Averages over models that share a tag, as *theodoridis* and *kamann* compare backbones and necks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from stormproof.report.elements import Figure, Row, Section
from stormproof.results.scores import Scores

UNTAGGED = "(no tag)"
_AVERAGED = ("x", "y")


def common_tags(subjects: Sequence[Scores]) -> tuple[str, ...]:
    """Tags by which the runs fall into at least two groups."""
    keys = dict.fromkeys(key for subject in subjects for key in subject.tags)
    return tuple(key for key in keys if len({s.tags.get(key) for s in subjects}) > 1)


def with_groups(figure: Figure, subjects: Sequence[Scores]) -> Figure:
    """A figure whose series are runs, with its rows averaged by each tag as well."""
    if not figure.by_run:
        return figure
    tags = {key: {s.name: s.tags.get(key, UNTAGGED) for s in subjects} for key in common_tags(subjects)}
    return replace(figure, grouped={key: grouped(figure.rows, names) for key, names in tags.items()})


def grouped(rows: Sequence[Row], names: Mapping[str, str]) -> list[Row]:
    """Rows with runs replaced by their group; marks at one place become their mean.

    Numbers on the x axis are averaged too where every run has a place of its own (a scatter plot).

    >>> rows = [{"x": 1.0, "y": 2.0, "series": "a"}, {"x": 1.0, "y": 4.0, "series": "b"}]
    >>> grouped(rows, {"a": "r50", "b": "r50"})
    [{'x': 1.0, 'y': 3.0, 'series': 'r50', 'runs': 2}]
    """
    scatter = _one_per_run(rows)
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        at = (names.get(row["series"], row["series"]), row.get("panel"), row.get("pick"), row.get("label"))
        places.setdefault((*at, None if scatter else row["x"]), []).append(row)
    return [_mean(same, str(at[0]), scatter) for at, same in places.items()]


def _one_per_run(rows: Sequence[Row]) -> bool:
    seen = [(row["series"], row.get("panel"), row.get("pick"), row.get("label")) for row in rows]
    return len(set(seen)) == len(seen) and all(isinstance(row["x"], float) for row in rows)


def _mean(same: Sequence[Row], name: str, scatter: bool) -> Row:
    kept = {key: value for key, value in same[0].items() if key not in ("low", "high", "x2", "y2")}
    averaged = _AVERAGED if scatter else ("y",)
    return {
        **kept,
        **{key: fmean(row[key] for row in same) for key in averaged},
        "series": name,
        "runs": len(same),
    }


def only_grouped(section: Section, tag: str) -> Section:
    """A section whose figures show groups instead of runs, where they can."""
    figures = (
        replace(figure, rows=figure.grouped[tag], series=tag) if tag in figure.grouped else figure
        for figure in section.figures
    )
    return replace(section, figures=tuple(figures))
