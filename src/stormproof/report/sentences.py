"""What the numbers say in plain sentences: one run alone, and which of several to take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import counted
from stormproof.core.table import cell_text
from stormproof.metrics.grid import Score
from stormproof.metrics.metric import measures, ratio
from stormproof.report.sections import class_measure, graded, scaled
from stormproof.results.aggregates import mean_of
from stormproof.results.comparable import ImageSet, classes_in, image_set
from stormproof.results.interval import LEADING, Difference, Interval, around, paired
from stormproof.results.scores import Scores

_NAMED = 4  # corruptions named in a sentence
_LEAST = 0.5  # points of a clean score below which shares of it say nothing
_FEW = 20  # images below which no corruption is said to hurt most
_LIKELY = 0.1  # share of replicates in which a corruption is the hardest, for it to be named

Values = Mapping[str, Score]  # cells and aggregates by flat name: numbers, or arrays of replicates


def spoken(name: str) -> str:
    """A corruption's name in prose.

    >>> spoken("zoom_blur")
    'zoom blur'
    """
    return name.replace("_", " ")


def under(condition: str) -> str:
    """A condition in prose.

    >>> under("zoom_blur@3"), under("haze[beta=0.04]")
    ('zoom blur, severity 3', 'haze[beta=0.04]')
    """
    parsed = Condition.parse(condition)
    if parsed.severity is None or parsed.params:
        return spoken(condition)
    return f"{spoken(parsed.series)}, severity {parsed.severity:g}"


# Numbers in sentences: functions of scores, or of arrays of their replicates


def share_kept(values: Values) -> Score:
    """The mean under corruption as a share of the clean score: rPC, where the mean is mPC."""
    return ratio(mean_of(values), values["clean"])


def kept(scores: Scores, measure: str) -> float:
    """The share of the clean score that is left on average; NaN where there is none."""
    clean, mean = scores.score(measure), scores.mean(measure)
    return float(ratio(mean, clean)) if isinstance(mean, float) else math.nan


def interval_of(scores: Scores, measure: str, number: Callable[[Values], Score]) -> Interval | None:
    """The 95 % interval of a number, where the scores have replicates."""
    spread = scores.spread(measure)
    if not spread:
        return None
    found = around(float(number(scores.values(measure))), number(spread), images=scores.units)
    return found.of_fraction(math.inf) if measures()[measure].fraction else found  # a share may exceed 1


def change(a: Scores, b: Scores, measure: str, number: Callable[[Values], Score]) -> Difference | None:
    """The paired difference of a number from `a` to `b`, where both have replicates of the same images."""
    ours, theirs = a.spread(measure), b.spread(measure)
    if not ours or not theirs or a.replicates is None or b.replicates is None:
        return None
    if a.replicates.count != b.replicates.count:
        return None
    estimate = float(number(b.values(measure)) - number(a.values(measure)))
    return paired({"": estimate}, {"": number(theirs) - number(ours)}, images=a.units)[""]


# Which runs one number can rank


class _Facts(NamedTuple):
    """What must be equal for two means to be compared."""

    images: ImageSet
    conditions: frozenset[str]
    classes: frozenset[str]
    options: str


def comparable(runs: Sequence[Scores], measure: str) -> tuple[list[Scores], dict[str, str]]:
    """The runs that one number can rank, and for each of the others the reason why not.

    Of several groups the largest is taken, the first run's among equals.
    """
    reasons: dict[str, str] = {}
    facts: dict[str, _Facts] = {}
    for scores in runs:
        if measure not in scores:
            reasons[scores.name] = f"it has no {measure}, only {scores.headline}"
        elif scores.missing:
            reasons[scores.name] = f"{counted(len(scores.missing), 'condition')} lack images"
        elif not isinstance(scores.mean(measure), float):
            reasons[scores.name] = "it has no mean under corruption"
        else:
            facts[scores.name] = _facts(scores, measure)
    held = list(facts.values())
    if not held:
        return [], reasons
    usual = max(held, key=held.count)
    reasons |= {name: _reason(fact, usual) for name, fact in facts.items() if fact != usual}
    return [scores for scores in runs if scores.name not in reasons], reasons


def _facts(scores: Scores, measure: str) -> _Facts:
    covered = scores.over.covered or tuple(scores.by_corruption(measure))
    return _Facts(image_set(scores), frozenset(covered), classes_of(scores, measure), scores.options.words)


def classes_of(scores: Scores, measure: str) -> frozenset[str]:
    """The classes that a measure covers: by default those that model and dataset share."""
    return classes_in(scores, class_measure(measure))


def _reason(fact: _Facts, usual: _Facts) -> str:
    if fact.images != usual.images:
        return "it was run on other images"
    if fact.conditions != usual.conditions:
        return f"its mean is over another set of {counted(len(fact.conditions), 'condition')}"
    if fact.options == usual.options:
        return f"its scores are over other classes ({len(fact.classes)}, not {len(usual.classes)})"
    return f"it was scored with {fact.options or 'the usual options'}"


def verdict(runs: Sequence[Scores], measure: str) -> str:
    """Which of several comparable runs to take, by how much, and how sure that is; nothing for one."""
    if len(runs) < 2:
        return ""
    higher = measures()[measure].higher
    best, other = sorted(runs, key=lambda s: s.mean(measure), reverse=higher)[:2]
    found = change(other, best, measure, mean_of)
    first, second = (f"{scaled(measure, scores.mean(measure)):.1f}" for scores in (best, other))
    difference = scaled(measure, best.mean(measure) - other.mean(measure))
    by = with_interval(difference, found, scaled(measure, 1.0))
    several = len(runs) > 2
    numbers = f"{measure} {first} against {second}{f' of {other.name}' if several else ''}, {by}"
    of = f"Of {len(runs)} comparable runs, " if several else ""
    if found is not None and not found.clear:
        both, most = f"{best.name} and {other.name}", "score highest" if higher else "have the lowest errors"
        said = f"No clear difference between {both} under corruption"
        if several:
            said = f"{both} {most} under corruption, with no clear difference between them"
    elif several:
        said = f"{best.name} {'scores highest' if higher else 'has the lowest error'} under corruption"
    else:
        more = "scores higher" if higher else "has a lower error"
        said = f"{best.name} {more} than {other.name} under corruption"
    return " ".join(filter(None, (f"{of}{said}: {numbers}.", _keeping(runs, best, other, measure))))


def _keeping(runs: Sequence[Scores], best: Scores, other: Scores, measure: str) -> str:
    """Which run keeps the largest share of its clean score, against the best run (or the next after it)."""
    shares = [kept(scores, measure) for scores in runs]
    if not measures()[measure].higher or any(map(math.isnan, shares)):
        return ""
    steady = runs[int(np.argmax(shares))]
    against = other if steady is best else best
    ours, theirs = kept(steady, measure), kept(against, measure)
    by = with_interval(100 * (ours - theirs), change(against, steady, measure, share_kept), 100.0, digits=0)
    most = "more" if len(runs) == 2 else "the largest share"
    numbers = f"{100 * ours:.0f} % against {100 * theirs:.0f} %, {by}"
    return f"{steady.name} keeps {most} of its clean score: {numbers}."


def with_interval(difference: float, found: Difference | None, unit: float, digits: int = 1) -> str:
    """A difference with its interval, times `unit`, and whether it is clear.

    >>> with_interval(7.0, None, 100.0, digits=0)
    '+7'
    """
    words = f"{difference:+z.{digits}f}"
    if found is None or math.isnan(found.interval.se):
        return words
    low, high = unit * found.interval.low, unit * found.interval.high
    clear = "clear" if found.clear else "not clear"
    return f"{words} (95 %: {low:+z.{digits}f} to {high:+z.{digits}f}, {clear})"


# One run


def sentence(scores: Scores, measure: str) -> str:
    """How much is left under corruption, what hurts most, and where less than half of it is left."""
    name, clean, mean = scores.name, scores.score(measure), scores.mean(measure)
    if measure not in scores:
        return f"{name} has no {measure}."
    if scores.missing:
        lacking = counted(len(scores.missing), "condition")
        return f"{name} is incomplete: {lacking} lack images, so there is no mean under corruption."
    if mean is None:
        return _range(scores, measure) if scores.corrupted else f"{name} was scored on clean images only."
    if not measures()[measure].higher:
        return _error_sentence(scores, measure)
    if not math.isfinite(clean):
        under = f"{scaled(measure, mean):.1f} {measure}"
        return f"{name} scores {under} under corruption; it has no clean score."
    if scaled(measure, clean) < _LEAST:
        return (
            f"{name} scores {scaled(measure, clean):.2f} {measure} on clean images, so there is nothing left "
            "to lose under corruption. Check its classes, boxes and preprocessing: 'stormproof inspect'."
        )
    found = interval_of(scores, measure, share_kept)
    sure = ""
    if found is not None and not math.isnan(found.se):
        sure = f" (95 %: {100 * found.low:.0f} to {100 * found.high:.0f})"
    said = (
        f"{name} keeps {100 * kept(scores, measure):.0f} %{sure} of its clean {measure} under corruption "
        f"({scaled(measure, clean):.1f} clean, {scaled(measure, mean):.1f} on average)."
    )
    return " ".join(filter(None, (said, weak_points(scores, measure))))


def weak_points(scores: Scores, measure: str, *, name: str = "") -> str:
    """What hurts most and least, and where less than half of the clean score is left.

    `name` is the run's name, if the sentence must say which run it is about.
    """
    means, clean = scores.by_corruption(measure), scores.score(measure)
    if len(means) < 2 or not measures()[measure].higher or not scaled(measure, clean) >= _LEAST:
        return ""
    if few := _too_few(scores):
        return few
    left = {name: f"{100 * value / clean:.0f} % left" for name, value in means.items()}
    whom = f"{name} " if name else ""
    hardest = _extremes(scores, measure, means, np.argmin)
    least = _extremes(scores, measure, means, np.argmax)
    if len(hardest) == 1:
        said = f"{spoken(hardest[0])} hurts {whom}most ({left[hardest[0]]})"
    else:
        said = " and ".join(f"{spoken(each)} ({left[each]})" for each in hardest) + f" hurt {whom}most"
    if len(least) == 1:
        said += f", {spoken(least[0])} least ({left[least[0]]})"
    said = said[:1].upper() + said[1:] + "."
    return f"{said if hardest else ''} {_below_half(scores, measure, name or 'It')}".strip()


def _too_few(scores: Scores) -> str:
    """Said instead of what hurts most, where it would be chance; published tables do not count images."""
    if scores.images is None or scores.images >= _FEW or scores.record is None:
        return ""
    return f"Too few images ({scores.images}) to say which corruption hurts most."


def _extremes(
    scores: Scores, measure: str, means: Mapping[str, float], where: Callable[..., Any]
) -> list[str]:
    """The corruptions that may hurt most (or least): one if replicates agree, none if more than two may."""
    names = list(means)
    spread, kind = scores.spread(measure), "by_corruption" if measures()[measure].higher else "CE"
    table = [spread[f"{kind}/{name}"][LEADING:] for name in names if f"{kind}/{name}" in spread]
    if len(table) < len(names):
        return [names[int(where([means[name] for name in names]))]]
    often = np.bincount(where(np.nan_to_num(np.stack(table)), axis=0), minlength=len(names))
    likely = [name for name, count in zip(names, often / often.sum(), strict=True) if count >= _LIKELY]
    likely.sort(key=lambda name: -often[names.index(name)])
    return likely if len(likely) <= 2 else []


def _below_half(scores: Scores, measure: str, name: str) -> str:
    first, clean = [], scores.score(measure)
    for corruption, levels in graded(scores.corrupted).items():
        low = [c for c in levels if scores.score(measure, str(c)) < clean / 2]
        if low:
            severity = low[0].severity or 0
            # "from" says that lower severities do not do it, so they must have been run
            first.append((severity, "from" if severity <= 1 or low[0] != levels[0] else "at", corruption))
    if not first:
        return f"{name} stays above half of its clean score everywhere." if graded(scores.corrupted) else ""
    by_severity: dict[tuple[float, str], list[str]] = {}
    for severity, since, each in sorted(first)[:_NAMED]:
        by_severity.setdefault((severity, since), []).append(spoken(each))
    named = ", ".join(f"{_listed(each)} {since} severity {s:g}" for (s, since), each in by_severity.items())
    more = f", and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return f"{name} falls below half of its clean score under {named}{more}."


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["fog"]), _listed(["fog", "snow", "frost"])
    ('fog', 'fog, snow and frost')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _range(scores: Scores, measure: str) -> str:
    """The lowest and highest score under conditions without a mean, such as those along α."""
    held = {str(c): scores.score(measure, str(c)) for c in scores.corrupted}
    known = {text: value for text, value in held.items() if math.isfinite(value)}
    if not known and math.isnan(scores.score(measure)):
        return f"{scores.name} has no {measure}: no image shows anything that it could find."
    clean = (
        f"{scores.name} scores {cell_text(scaled(measure, scores.score(measure)))} {measure} on clean images"
    )
    if not known:
        return f"{clean}."
    low, high = min(known, key=lambda c: known[c]), max(known, key=lambda c: known[c])
    return (
        f"{clean}, and from {scaled(measure, known[low]):.1f} ({low}) to {scaled(measure, known[high]):.1f} "
        f"({high}) under {len(known)} conditions."
    )


def _error_sentence(scores: Scores, measure: str) -> str:
    errors = scores.by_corruption(measure)
    said = (
        f"{scores.name} has a mean {measure} of {scaled(measure, scores.mean(measure)):.1f} % under "
        f"corruption ({cell_text(scaled(measure, scores.score(measure)))} % clean)"
    )
    if len(errors) < 2:
        return f"{said}."
    if few := _too_few(scores):
        return f"{said}. {few}"
    shown = {name: f"{scaled(measure, value):.1f} %" for name, value in errors.items()}
    worst, best = (_extremes(scores, measure, errors, where) for where in (np.argmax, np.argmin))
    if len(worst) == 1:
        said += f": {spoken(worst[0])} hurts most ({shown[worst[0]]})"
    elif worst:
        said += ": " + " and ".join(f"{spoken(each)} ({shown[each]})" for each in worst) + " hurt most"
    if worst and len(best) == 1:
        said += f", {spoken(best[0])} least ({shown[best[0]]})"
    return f"{said}."
