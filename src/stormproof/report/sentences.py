"""What a run's numbers say in one plain sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stormproof.core.table import shown
from stormproof.metrics.metric import measures
from stormproof.report.sections.cells import graded, scaled
from stormproof.results.scores import Scores

_NAMED = 4
_LEAST = 0.5  # points of a clean score below which shares of it say nothing


def sentence(subject: Scores, measure: str) -> str:
    """What hurts most, what least, and where less than half of the clean score is left."""
    clean, mean = subject.score(measure), subject.mean(measure)
    if measure not in subject.cells and measure not in subject.aggregates:
        return f"{subject.name} has no {measure}."
    if subject.missing:
        return (
            f"{subject.name} is incomplete: {len(subject.missing)} conditions lack images, so there is no "
            "mean under corruption."
        )
    if mean is None and subject.corrupted:
        return _range(subject, measure)
    if not measures()[measure].higher or mean is None or not math.isfinite(clean):
        return _error_sentence(subject, measure)
    means = subject.total(measure, "by_corruption") or {}
    if scaled(measure, clean) < _LEAST:
        return (
            f"{subject.name} scores {scaled(measure, clean):.2f} {measure} on clean images, so there is nothing "
            "left to lose under corruption. Check its classes, boxes and preprocessing: 'stormproof inspect'."
        )
    if not means:
        return f"{subject.name} scores {scaled(measure, clean):.1f} {measure} on clean images."
    worst, best = min(means, key=lambda n: means[n]), max(means, key=lambda n: means[n])
    said = (
        f"{subject.name} keeps {100 * mean / clean:.0f} % of its clean {measure} under corruption "
        f"({scaled(measure, clean):.1f} clean, {scaled(measure, mean):.1f} on average)"
    )
    if len(means) > 1:
        said += (
            f": {worst} hurts most ({100 * means[worst] / clean:.0f} % left), {best} least "
            f"({100 * means[best] / clean:.0f} % left)"
        )
    return f"{said}. {_below_half(subject, measure, clean)}"


def _range(subject: Scores, measure: str) -> str:
    """The least and the most under conditions that no mean is taken of, such as those along α."""
    held = {str(c): subject.score(measure, str(c)) for c in subject.corrupted}
    known = {text: value for text, value in held.items() if math.isfinite(value)}
    clean = (
        f"{subject.name} scores {shown(scaled(measure, subject.score(measure)))} {measure} on clean images"
    )
    if not known:
        return f"{clean}."
    low, high = min(known, key=lambda c: known[c]), max(known, key=lambda c: known[c])
    return (
        f"{clean}, and from {scaled(measure, known[low]):.1f} ({low}) to {scaled(measure, known[high]):.1f} "
        f"({high}) under {len(known)} conditions."
    )


def _below_half(subject: Scores, measure: str, clean: float) -> str:
    first = []
    for name, levels in graded(subject.corrupted).items():
        low = [c for c in levels if subject.score(measure, str(c)) < clean / 2]
        if low:
            first.append((low[0].severity or 0, name))
    if not first:
        graded_at_all = bool(graded(subject.corrupted))
        return "It stays above half of its clean score everywhere." if graded_at_all else ""
    first.sort()
    named = ", ".join(f"{name} from severity {severity:g}" for severity, name in first[:_NAMED])
    more = f" and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return f"It falls below half of its clean score under {named}{more}."


def _error_sentence(subject: Scores, measure: str) -> str:
    errors = subject.total(measure, "CE") or {}
    if not errors:
        return f"{subject.name} was scored on clean images only."
    worst, best = max(errors, key=lambda n: errors[n]), min(errors, key=lambda n: errors[n])
    return (
        f"{subject.name} has a mean object error of {100 * subject.mean(measure):.1f} % under "
        f"corruption ({scaled(measure, subject.score(measure)):.1f} % clean): {worst} hurts most "
        f"({100 * errors[worst]:.1f} %), {best} least ({100 * errors[best]:.1f} %)."
    )


def ranking(subjects: Sequence[Scores], measure: str) -> str:
    """Which of several runs to take; nothing for a single one, where few are complete or means differ."""
    whole = [s for s in subjects if isinstance(s.mean(measure), float)]
    if (
        len(whole) < 2
        or len({frozenset(s.over.covered) for s in whole}) > 1
        or not measures()[measure].higher
    ):
        return ""
    best = max(whole, key=lambda s: s.mean(measure))
    steady = max(whole, key=lambda s: kept(s, measure))
    said = (
        f"Of {len(whole)} complete runs {best.name} scores most under corruption ({best.mean_name(measure)} "
        f"{scaled(measure, best.mean(measure)):.1f})"
    )
    if steady is best:
        return f"{said} and also loses least of its clean score."
    left = f"{100 * kept(steady, measure):.0f} % left"
    return f"{said}; {steady.name} loses least of its clean score ({left})."


def kept(subject: Scores, measure: str) -> float:
    """The share of the clean score that is left on average: rPC, where the mean is mPC."""
    clean, mean = subject.score(measure), subject.mean(measure)
    return mean / clean if isinstance(mean, float) and clean > 0 else -math.inf
