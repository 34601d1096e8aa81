"""Where runs break: the severity at which half of the clean score is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stormproof.core.condition import Condition
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Figure, Kind, Row
from stormproof.report.sections import all_conditions, graded
from stormproof.report.sentences import spoken
from stormproof.results.breaking import Seen, breaking_point, crossing
from stormproof.results.scores import Scores

_SHOWN = 3  # corruptions
_MOST = 7  # runs that bars beside each other can show


def breaking_points(runs: Sequence[Scores], measure: str) -> Figure:
    """The severity at which each run has lost half of its clean score, for the three corruptions where that
    comes first; straight lines between the severities that were run."""
    levels = graded(all_conditions(runs))
    rows = {
        name: [row for run in runs if (row := _row(run, measure, name, held)) is not None]
        for name, held in levels.items()
    }
    beyond = {name: 1.0 + max(c.severity or 0 for c in held) for name, held in levels.items()}
    early = {
        name: sum(row["y"] for row in held) + (len(runs) - len(held)) * beyond[name]
        for name, held in rows.items()
        if held
    }
    chosen = sorted(early, key=lambda name: early[name])[:_SHOWN]
    shown: list[Row] = [row for name in chosen for row in rows[name]] if len(runs) <= _MOST else []
    end = max((beyond[name] - 1 for name in chosen), default=None)
    lacking = any(len(rows[name]) < len(runs) for name in chosen)
    note = "Further right is better. Straight lines between the severities that were run."
    note += " No bar: more than half is left at every severity." if lacking else ""
    return Figure(
        "breaking", f"Where half of the clean {measure} is lost first", Kind.BARS,
        Axis("corruption", names=True), Axis("severity (0 is clean)", whole=True, end=end), shown,
        series="model", note=note,
    )  # fmt: skip


def _row(run: Scores, measure: str, name: str, levels: Sequence[Condition]) -> Row | None:
    """The crossing of a run under a corruption with its interval; nothing where it keeps more than half."""
    clean = run.score(measure)
    texts = {0.0: "clean", **{float(c.severity or 0): str(c) for c in levels}}
    scores = {strength: run.score(measure, text) for strength, text in texts.items()}
    if not (measures()[measure].higher and clean > 0 and np.isfinite([*scores.values()]).all()):
        return None
    strengths, last = np.array([*scores]), max(scores)
    at = crossing(strengths, np.minimum([*scores.values()], clean), clean / 2)
    if not math.isfinite(at):
        return None
    row: Row = {"x": spoken(name), "y": at, "series": run.name}
    spread = run.spread(measure)
    if not all(text in spread for text in texts.values()):
        return row
    seen = {strength: Seen(scores[strength], spread[text]) for strength, text in texts.items()}
    found = breaking_point(seen[0.0], seen, clean / 2)
    return {**row, "low": max(0.0, min(found.low, at)), "high": min(last, max(found.high, at))}
