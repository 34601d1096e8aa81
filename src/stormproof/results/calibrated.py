"""Whether the interval of a measure may be trusted, by its declaration, for a run's classes and images.

An interval that misses the true value more often than it says is marked wherever it is printed, and decides
no requirement. Which ones do was simulated (docs/calibrated.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from stormproof.core.errors import first_few
from stormproof.metrics.metric import measures
from stormproof.results.scores import Scores

MARK = "†"
PAGE = "docs/calibrated.md"
SMALLEST = 50  # images of the smallest sets that were simulated


def doubt(scores: Scores, measure: str, *, enough: int = 0) -> str:
    """Why the interval of a measure is not known to be calibrated, in words; empty if it is.

    That there are fewer than `enough` images is left to others to say.
    """
    unit = "images" if scores.clips is None else "clips"
    return doubt_about(measure, len(scores.classes), scores.units, unit, enough=enough)


def doubt_about(measure: str, classes: int, units: int | None, unit: str, *, enough: int) -> str:
    """The same for a measure over so many classes, from so many units of that name."""
    declared, classes = measures()[measure], max(1, classes)
    if not declared.calibrated:
        return f"the interval of {measure} is not calibrated"
    needed = declared.calibrated_from(classes)
    if needed is None:
        most, _ = declared.calibrated[-1]
        return f"the interval of {measure} is calibrated for up to {_classes(most)} only"
    if units is not None and units < needed and needed > enough:
        return f"the interval of {measure} over {_classes(classes)} is calibrated from {needed} {unit} on"
    return ""


def _classes(count: int) -> str:
    return "1 class" if count == 1 else f"{count} classes"


def mark(scores: Scores, measure: str) -> str:
    """The name of a measure, with a mark if its interval is doubtful."""
    return f"{measure} {MARK}" if scores.replicates is not None and doubt(scores, measure) else measure


def footnote(scores: Scores, shown: Iterable[str]) -> str:
    """What the mark means, for the measures shown; empty if none is marked."""
    names = [name for name in shown if scores.replicates is not None and doubt(scores, name)]
    if not names:
        return ""
    return (
        f"{MARK} Not known to be calibrated for so many classes and so few images: the interval may miss the "
        f"true value more often than it says ({PAGE}): {first_few(names)}."
    )
