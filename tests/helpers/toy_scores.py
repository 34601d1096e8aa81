"""Scores made by hand, without a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stormproof.core.condition import SEVERITIES
from stormproof.results.origin import ScoreOrigin
from stormproof.results.scores import Scores


def toy_scores(name: str = "net", measure: str = "AP", *, clean: float = 0.4, **more: Any) -> Scores:
    """Scores made by hand: fog falls from the clean score by 0.02 a severity, snow by 0.06."""
    cells = {"clean": clean}
    cells |= {f"fog@{s}": clean - 0.02 * s for s in SEVERITIES}
    cells |= {f"snow@{s}": clean - 0.06 * s for s in SEVERITIES}
    origin = ScoreOrigin(**{key: more.pop(key) for key in ScoreOrigin.__dataclass_fields__ if key in more})
    return replace(Scores(name, "toy", 500, {measure: cells}, tuple(cells), origin=origin), **more)


def weather_scores(name: str = "net", clean: float = 0.4) -> Scores:
    """The same over a whole suite, so that its mean is mPC: frost falls like fog, brightness not at all."""
    made = toy_scores(name, clean=clean)
    cells = {**made.per_condition["AP"]}
    cells |= {f"frost@{s}": clean - 0.02 * s for s in SEVERITIES}
    cells |= {f"brightness@{s}": clean for s in SEVERITIES}
    return replace(made, per_condition={"AP": cells}, conditions=tuple(cells))
