"""The one figure of a notebook: a measure by corruption and severity."""

from __future__ import annotations

from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.loading import framework
from stormproof.results.scores import Scores


def plot(scores: Scores, measure: str) -> Any:
    """An Altair chart: a dot for each severity, darker is stronger; a tick for their mean; clean as a
    line."""
    altair = framework("altair", install="pip install altair")
    rows = [
        {"corruption": c.series, "severity": float(c.severity or 3), "score": 100 * value}
        for text, value in scores.cells[measure].items()
        if not (c := Condition.parse(text)).is_clean
    ]
    means = [{"corruption": name, "score": 100 * v} for name, v in scores.by_corruption(measure).items()]
    x = altair.X("score:Q", title=f"{measure} (%)")
    y = altair.Y("corruption:N", title=None, sort=None)
    shade = altair.Color("severity:Q", scale=altair.Scale(scheme="blues", domain=[-1, 5]))
    dots = altair.Chart(altair.Data(values=rows)).mark_circle(size=60).encode(x=x, y=y, color=shade)
    ticks = altair.Chart(altair.Data(values=means)).mark_tick(thickness=2, color="black").encode(x=x, y=y)
    clean = altair.Data(values=[{"score": 100 * scores.score(measure)}])
    line = altair.Chart(clean).mark_rule(strokeDash=[4, 3]).encode(x=x)
    return altair.layer(dots, ticks, line).properties(title=f"{scores.name} on {scores.dataset}")
