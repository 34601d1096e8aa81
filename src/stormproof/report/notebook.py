"""What a notebook shows: runs and scores as small tables, and a measure by corruption as a chart."""

from __future__ import annotations

import math
import sys
from html import escape
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.display import DISPLAYS
from stormproof.core.loading import framework
from stormproof.core.table import cell_text, html_table
from stormproof.metrics.metric import measures
from stormproof.report.tables import percent, scores_by_severity, severity_columns, summary_columns
from stormproof.results.aggregates import MEAN
from stormproof.results.documents import images_scored
from stormproof.results.run import Run
from stormproof.results.scores import Scores

_TINT = "rgba(33, 102, 172, {:.2f})"  # the more of the clean score is left, the stronger


def run_html(run: Run) -> str:
    """What was run, and how complete it is."""
    missing = sum(run.missing.values())
    facts = {
        "model": run.record.model.name,
        "dataset": run.record.dataset.name,
        "images": str(len(run.readable)),
        "conditions": str(len(run.conditions)),
        "state": f"{missing} predictions missing" if missing else "complete",
        "folder": str(run.folder),
    }
    rows = [[escape(key), escape(value)] for key, value in facts.items()]
    return html_table(f"Run of {run.name}", (), rows)


def scores_html(scores: Scores) -> str:
    """The aggregates of every measure, then the headline measure by corruption and severity."""
    columns = summary_columns(scores)
    totals = [
        [escape(name), *(percent(held.get(key)) or "–" for key, _ in columns)]
        for name, held in scores.aggregates.items()
        if measures()[name].fraction
    ]
    title = f"{scores.name} on {scores.dataset}, {images_scored(scores)} (in %)"
    summary = html_table(title, ("measure", *(words for _, words in columns)), totals)
    return summary + _grid_html(scores, scores.headline)


def _grid_html(scores: Scores, measure: str) -> str:
    """A line for each corruption, what hurts most first; cells tinted by the share of the clean score."""
    lines = scores_by_severity(scores, measure)
    if not lines:
        return ""
    means = [MEAN] if any(MEAN in line for line in lines.values()) else []
    columns = [*severity_columns(lines), *means]
    shown, clean = measures()[measure].scale, scores.score(measure)
    rows = [["clean", *[""] * (len(columns) - 1), _tint(clean, clean, shown)]]
    rows += [
        [escape(name), *(_tint(line.get(column, math.nan), clean, shown) for column in columns)]
        for name, line in lines.items()
    ]
    title = f"{measure} by corruption and severity{' (in %)' if shown == 100 else ''}"
    return html_table(title, ("corruption", *columns), rows)


def _tint(value: float, clean: float, unit: float) -> str:
    part = min(1.0, max(0.0, value / clean)) if clean > 0 and math.isfinite(value) else 0.0
    style = f"background:{_TINT.format(0.6 * part)};padding:1px 6px"
    return f'<span style="{style}">{cell_text(unit * value)}</span>'


def plot(scores: Scores, measure: str) -> Any:
    """An Altair chart: a dot for each severity, darker is stronger; a tick for their mean; clean as a
    line."""
    altair, shown = framework("altair", install="pip install altair"), measures()[measure]
    rows = [
        {"corruption": c.series, "severity": float(c.severity or 3), "score": shown.scale * value}
        for text, value in scores.per_condition[measure].items()
        if not (c := Condition.parse(text)).is_clean
    ]
    means = [
        {"corruption": name, "score": shown.scale * v} for name, v in scores.by_corruption(measure).items()
    ]
    x = altair.X("score:Q", title=f"{measure} (%)" if shown.fraction else measure)
    y = altair.Y("corruption:N", title=None, sort=None)
    shade = altair.Color("severity:Q", scale=altair.Scale(scheme="blues", domain=[-1, 5]))
    dots = altair.Chart(altair.Data(values=rows)).mark_circle(size=60).encode(x=x, y=y, color=shade)
    ticks = altair.Chart(altair.Data(values=means)).mark_tick(thickness=2, color="black").encode(x=x, y=y)
    clean = altair.Data(values=[{"score": shown.scale * scores.score(measure)}])
    line = altair.Chart(clean).mark_rule(strokeDash=[4, 3]).encode(x=x)
    return altair.layer(dots, ticks, line).properties(title=f"{scores.name} on {scores.dataset}")


DISPLAYS.add("notebook", sys.modules[__name__], module=__name__)
