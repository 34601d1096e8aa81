"""What the numbers say in plain sentences: one run alone, and which of several to take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import counted, first_few
from stormproof.core.table import cell_text
from stormproof.metrics.grid import Score
from stormproof.metrics.metric import measures, ratio
from stormproof.report.sections import class_measure, group_by_severity, per_cent, printed_difference
from stormproof.results.aggregates import mean_of
from stormproof.results.comparable import ImageSet, classes_in, image_set
from stormproof.results.enough import advice, images_to_decide
from stormproof.results.interval import Difference, Interval, interval_around, paired_differences
from stormproof.results.leaders import leaders, standouts
from stormproof.results.scores import Scores

_NAMED = 4  # corruptions named in a sentence
_LOOKED_AT = 3  # corruptions named where chance may decide
_LEAST = 0.5  # points of a clean score below which shares of it say nothing
_FEW = 20  # images or clips below which no corruption is said to hurt most
_WHICH = "which corruption hurts most"

Values = Mapping[str, Score]  # cells and aggregates by flat name: numbers, or arrays of replicates
Number = Callable[[Values], Score]


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


def mean_kept(scores: Scores, measure: str) -> float:
    """The share of the clean score that is left on average; NaN where there is none."""
    clean, mean = scores.score(measure), scores.mean(measure)
    return float(ratio(mean, clean)) if isinstance(mean, float) else math.nan


def interval_of(scores: Scores, measure: str, number: Number) -> Interval | None:
    """The 95 % interval of a number, where the scores have replicates."""
    spread = scores.spread(measure)
    if not spread:
        return None
    interval = interval_around(float(number(scores.values(measure))), number(spread), images=scores.units)
    return (
        interval.of_fraction(math.inf) if measures()[measure].fraction else interval
    )  # a share may exceed 1


def change(a: Scores, b: Scores, measure: str, number: Number) -> Difference | None:
    """The paired difference of a number from `a` to `b`, where both have replicates of the same images."""
    return changes(a, {"": (b, number)}, measure).get("")


def changes(a: Scores, to: Mapping[str, tuple[Scores, Number]], measure: str) -> dict[str, Difference]:
    """The same of several numbers or runs, with Holm's correction over them; nothing without such
    replicates."""
    if not share_replicates([a, *(b for b, _ in to.values())], measure):
        return {}
    ours, before = a.spread(measure), a.values(measure)
    gaps = {name: float(number(b.values(measure)) - number(before)) for name, (b, number) in to.items()}
    drawn = {name: np.asarray(number(b.spread(measure)) - number(ours)) for name, (b, number) in to.items()}
    return paired_differences(gaps, drawn, images=a.units)


def share_replicates(runs: Sequence[Scores], measure: str) -> bool:
    """Whether all runs have replicates of the measure, as many each."""
    held = [scores.replicates for scores in runs]
    counts = {r.count if r is not None and r.per_condition.get(measure) else 0 for r in held}
    return len(counts) == 1 and 0 not in counts


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
    ranked = sorted(runs, key=lambda s: s.mean(measure), reverse=higher)
    said = _between_two(ranked[0], ranked[1], measure) if len(runs) == 2 else _among_several(ranked, measure)
    return " ".join(filter(None, (said, keeping(runs, measure))))


def _between_two(best: Scores, other: Scores, measure: str) -> str:
    gap = change(other, best, measure, mean_of)
    if gap is not None and not gap.clear:
        said = f"No clear difference between {best.name} and {other.name} under corruption"
    else:
        more = "scores higher" if measures()[measure].higher else "has a lower error"
        said = f"{best.name} {more} than {other.name} under corruption"
    _, take = choose([best, other], measure)
    more = more_images(gap, best)
    clean = _clean_difference(best, other, measure)
    return " ".join(filter(None, (take, f"{said}: {_numbers(best, other, measure, gap)}.", more, clean)))


def choose(runs: Sequence[Scores], measure: str) -> tuple[Scores | None, str]:
    """Of two runs the one that is clearly better, clean or under corruption, and clearly worse in neither;
    and why, in a sentence."""
    if len(runs) != 2:
        return None, ""
    first, second = runs
    gaps = changes(first, {where: (second, number) for where, number in _PLACES.items()}, measure)
    ahead = {  # by place: the run that is clearly better there
        where: second if (gap.interval.estimate > 0) == measures()[measure].higher else first
        for where, gap in gaps.items()
        if gap.clear
    }
    if len({scores.name for scores in ahead.values()}) > 1:
        both = " and ".join(f"{scores.name} {where}" for where, scores in ahead.items())
        return None, f"Neither is better in both: {both}."
    if not ahead:
        return None, ""
    taken = next(iter(ahead.values()))
    rest = "".join(f", and not clearly worse {where}" for where in gaps if where not in ahead)
    return taken, f"Take {taken.name}: clearly better {' and '.join(ahead)}{rest}."


def _clean_difference(best: Scores, other: Scores, measure: str) -> str:
    """Which of two is better on clean images: what the better one under corruption may cost."""
    sign = 1 if measures()[measure].higher else -1
    ahead, behind = sorted((best, other), key=lambda scores: -sign * scores.score(measure))
    ours, theirs = (per_cent(measure, each.score(measure)) for each in (ahead, behind))
    if math.isnan(ours - theirs):
        return ""
    gap = change(behind, ahead, measure, clean_of)
    by = with_interval(printed_difference(ours, theirs), gap, per_cent(measure, 1.0))
    both = f"{ours:.1f} against {theirs:.1f}"
    if ours == theirs or (gap is not None and not gap.clear):
        return f"No clear difference on clean images: {ahead.name} {both}, {by}."
    more = "scores higher" if sign > 0 else "has a lower error"
    return f"On clean images, {ahead.name} {more}: {both}, {by}."


def clean_of(values: Values) -> Score:
    """The clean score; NaN if the run has none."""
    return values.get("clean", math.nan)


_PLACES: dict[str, Number] = {"on clean images": clean_of, "under corruption": mean_of}


def more_images(gap: Difference | None, scores: Scores) -> str:
    """How many images would likely decide a difference that is not clear; empty if it is or nobody knows."""
    if gap is None or gap.clear or scores.record is None:
        return ""
    said = advice(images_to_decide(gap.interval, 0.0, scores.record.images), scores)
    return said.replace("the run's command", "both runs' commands")


def _among_several(ranked: Sequence[Scores], measure: str) -> str:
    """The runs that no other clearly beats; `ranked` has the best first."""
    higher, of = measures()[measure].higher, f"Of {len(ranked)} comparable runs,"
    best, other = ranked[:2]
    first = _leading(ranked, measure, mean_of, highest=higher)
    if len(first) == 1:
        numbers = _numbers(best, other, measure, change(other, best, measure, mean_of), whose=other.name)
        most = "scores highest" if higher else "has the lowest error"
        return f"{of} {best.name} {most} under corruption: {numbers}."
    shown = [f"{scores.name} ({per_cent(measure, scores.mean(measure)):.1f})" for scores in first]
    if len(first) == len(ranked):
        return f"{of} none is clearly better under corruption, in {measure}: {list_names(shown)}."
    most = f"{'score highest' if higher else 'have the lowest errors'} under corruption, in {measure}"
    return f"{of} {list_names(shown)} {most}, with no clear difference between them."


def _numbers(best: Scores, other: Scores, measure: str, gap: Difference | None, *, whose: str = "") -> str:
    """'AP 45.0 against 25.0, +20.0 (95 %: +15.1 to +24.9, clear)'."""
    first, second = (per_cent(measure, scores.mean(measure)) for scores in (best, other))
    by = with_interval(printed_difference(first, second), gap, per_cent(measure, 1.0))
    return f"{measure} {first:.1f} against {second:.1f}{f' of {whose}' if whose else ''}, {by}"


def _leading(runs: Sequence[Scores], measure: str, number: Number, *, highest: bool) -> list[Scores]:
    """The runs that may be first by a number; without replicates the first one."""
    values = {str(k): float(number(scores.values(measure))) for k, scores in enumerate(runs)}
    if not share_replicates(runs, measure):
        return [runs[int((max if highest else min)(values, key=lambda k: values[k]))]]
    drawn = {str(k): np.asarray(number(scores.spread(measure))) for k, scores in enumerate(runs)}
    return [runs[int(k)] for k in leaders(values, drawn, highest=highest, images=runs[0].units)]


def keeping(runs: Sequence[Scores], measure: str) -> str:
    """Which run keeps the largest share of its clean score, and against which other."""
    shares = {scores.name: mean_kept(scores, measure) for scores in runs}
    if not measures()[measure].higher or any(map(math.isnan, shares.values())):
        return ""
    steady, other = sorted(runs, key=lambda scores: -shares[scores.name])[:2]
    ours, theirs = 100 * shares[steady.name], 100 * shares[other.name]
    gap = change(other, steady, measure, share_kept)
    by = with_interval(printed_difference(ours, theirs, 0), gap, 100.0, digits=0)
    if len(runs) > 2:
        if len(_leading(runs, measure, share_kept, highest=True)) > 1:
            least = 100 * min(shares.values())
            return f"Which keeps most of its clean score is not clear ({least:.0f} to {ours:.0f} %)."
        whose = f" of {other.name}"
        return (
            f"{steady.name} keeps most of its clean score: {ours:.0f} % against {theirs:.0f} %{whose}, {by}."
        )
    if gap is not None and not gap.clear:
        both = f"{steady.name} {ours:.0f} %, {other.name} {theirs:.0f} %"
        return f"No clear difference in the share of the clean score that is kept: {both}, {by}."
    return f"{steady.name} keeps more of its clean score: {ours:.0f} % against {theirs:.0f} %, {by}."


def with_interval(difference: float, sure: Difference | None, unit: float, digits: int = 1) -> str:
    """A difference with its interval, times `unit`, and whether it is clear.

    >>> with_interval(7.0, None, 100.0, digits=0)
    '+7'
    """
    words = f"{difference:+z.{digits}f}"
    if sure is None or math.isnan(sure.interval.se):
        return words
    clear = "clear" if sure.clear else "not clear"
    return f"{words} (95 %: {sure.interval.span(unit, digits=digits, sign='+z')}, {clear})"


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
        under = f"{per_cent(measure, mean):.1f} {measure}"
        return f"{name} scores {under} under corruption; it has no clean score."
    if per_cent(measure, clean) < _LEAST:
        return (
            f"{name} scores {per_cent(measure, clean):.2f} {measure} on clean images, so there is nothing "
            "left to lose under corruption. Check its classes, boxes and preprocessing: 'stormproof inspect'."
        )
    interval = interval_of(scores, measure, share_kept)
    sure = ""
    if interval is not None and not math.isnan(interval.se):
        sure = f" (95 %: {interval.span(digits=0)})"
    said = (
        f"{name} keeps {100 * mean_kept(scores, measure):.0f} %{sure} of its clean {measure} under "
        f"corruption ({per_cent(measure, clean):.1f} clean, {per_cent(measure, mean):.1f} on average)."
    )
    return " ".join(filter(None, (said, weak_points(scores, measure))))


def weak_points(scores: Scores, measure: str, *, name: str = "") -> str:
    """What hurts most and least, and where less than half of the clean score is left.

    `name` is the run's name, if the sentence must say which run it is about.
    """
    means, clean = scores.by_corruption(measure), scores.score(measure)
    if len(means) < 2 or not measures()[measure].higher or not per_cent(measure, clean) >= _LEAST:
        return ""
    if few := too_few(scores, _WHICH):
        return few
    left = {name: f"{100 * value / clean:.0f} % left" for name, value in means.items()}
    said = _hardest(scores, measure, means, left, whom=f"{name} " if name else "")
    return " ".join(filter(None, (said, _below_half(scores, measure, name or "It"))))


def too_few(scores: Scores, to_say: str) -> str:
    """Said instead of a superlative that would be chance; published tables do not count images."""
    if scores.units is None or scores.units >= _FEW or scores.record is None:
        return ""
    what = "images" if scores.clips is None else "clips"
    return f"Too few {what} ({scores.units}) to say {to_say}."


def _hardest(
    scores: Scores, measure: str, means: Mapping[str, float], shown: Mapping[str, str], *, whom: str = ""
) -> str:
    """'Snow hurts most (55 % left), fog least (85 % left).'"""
    higher = measures()[measure].higher
    hardest = _extremes(scores, measure, means, highest=not higher)
    least = _extremes(scores, measure, means, highest=higher)
    if hardest is None or least is None:
        return ""
    if not hardest:
        lowest = lowest_here(means, higher=higher)
        named = list_names([f"{spoken(each)} ({shown[each]})" for each in lowest])
        return f"No corruption clearly hurts {whom}most; on these images, {named} do."
    said = f"{list_names([f'{spoken(each)} ({shown[each]})' for each in hardest])} hurt {whom}most"
    if len(hardest) == 1:
        said = f"{spoken(hardest[0])} hurts {whom}most ({shown[hardest[0]]})"
    if len(least) == 1:
        said += f", {spoken(least[0])} least ({shown[least[0]]})"
    return f"{said[:1].upper()}{said[1:]}."


def lowest_here(means: Mapping[str, float], *, higher: bool) -> list[str]:
    """The corruptions that hurt most on these images, be it by chance: where to look first."""
    return sorted(means, key=lambda name: means[name] if higher else -means[name])[:_LOOKED_AT]


def _extremes(scores: Scores, measure: str, means: Mapping[str, float], *, highest: bool) -> list[str] | None:
    """The corruptions that stand out as those with the highest (or lowest) mean; none if too many may be.

    None without replicates, unless the numbers are published: those are taken as they are.
    """
    spread, kind = scores.spread(measure), "by_corruption" if measures()[measure].higher else "CE"
    drawn = {name: spread[f"{kind}/{name}"] for name in means if f"{kind}/{name}" in spread}
    if len(drawn) == len(means):
        return standouts(means, drawn, highest=highest, images=scores.units)
    if scores.record is not None:
        return None
    return [(max if highest else min)(means, key=lambda name: means[name])]


def hurt_most(scores: Scores, measure: str, means: Mapping[str, float]) -> list[str] | None:
    """The corruptions that stand out as those that hurt most; none if too many may, None if nobody knows."""
    return _extremes(scores, measure, means, highest=not measures()[measure].higher)


def _below_half(scores: Scores, measure: str, name: str) -> str:
    """Where less than half of the clean score is left, clearly so if the scores have replicates."""
    levels = group_by_severity(scores.corrupted)
    if not levels:
        return ""
    less, known = _less_than_half(scores, measure, [str(c) for held in levels.values() for c in held])
    first = []
    for corruption, held in levels.items():
        if low := [c for c in held if less.get(str(c))]:
            severity = low[0].severity or 0
            # "from" says that lower severities do not do it, so they must have been run
            since = "from" if severity <= 1 or low[0] != held[0] else "at"
            first.append((severity, since, scores.score(measure, str(low[0])), corruption))
    clearly = "clearly " if known else ""
    if not known and scores.record is not None:  # a run scored without intervals
        name = f"On these images, {'it' if name == 'It' else name}"
    if not first:
        if all(each is False for each in less.values()):
            return f"{name} stays {clearly}above half of its clean score everywhere."
        left = {text: scores.score(measure, text) / scores.score(measure) for text in less}
        here = [under(text) for text in sorted(left, key=lambda text: left[text]) if left[text] < 0.5]
        more = (
            f"; on these images it is below half, not clearly, under {first_few(here, _LOOKED_AT)}"
            if here
            else ""
        )
        return f"{name} falls clearly below half of its clean score nowhere{more}."
    by_severity: dict[tuple[float, str], list[str]] = {}
    for severity, since, _, each in sorted(first)[:_NAMED]:
        by_severity.setdefault((severity, since), []).append(spoken(each))
    named = ", ".join(
        f"{list_names(each)} {since} severity {s:g}" for (s, since), each in by_severity.items()
    )
    more = f", and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
    return f"{name} falls {clearly}below half of its clean score under {named}{more}."


def _less_than_half(
    scores: Scores, measure: str, texts: Sequence[str]
) -> tuple[dict[str, bool | None], bool]:
    """Whether less than half of the clean score is left under each condition, None where that is not clear;
    and whether replicates decided it. Holm's correction is over the conditions."""
    clean = scores.score(measure)
    above = {text: scores.score(measure, text) - clean / 2 for text in texts}
    spread = scores.spread(measure)
    if not all(text in spread for text in ("clean", *texts)):
        return {text: value < 0 for text, value in above.items()}, False
    drawn = {text: spread[text] - spread["clean"] / 2 for text in texts}
    tested = paired_differences(above, drawn, images=scores.units)
    return {text: above[text] < 0 if tested[text].clear else None for text in texts}, True


def list_names(names: Sequence[str]) -> str:
    """Names as a list in prose.

    >>> list_names(["fog"]), list_names(["fog", "snow", "frost"])
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
    score = cell_text(per_cent(measure, scores.score(measure)))
    clean = f"{scores.name} scores {score} {measure} on clean images"
    if not known:
        return f"{clean}."
    low, high = min(known, key=lambda c: known[c]), max(known, key=lambda c: known[c])
    return (
        f"{clean}, and from {per_cent(measure, known[low]):.1f} ({low}) to "
        f"{per_cent(measure, known[high]):.1f} ({high}) under {counted(len(known), 'condition')}."
    )


def _error_sentence(scores: Scores, measure: str) -> str:
    errors, unit = scores.by_corruption(measure), " %" if measures()[measure].fraction else ""
    said = (
        f"The {measure} of {scores.name} is {per_cent(measure, scores.mean(measure)):.1f}{unit} on average "
        f"under corruption ({cell_text(per_cent(measure, scores.score(measure)))}{unit} clean)"
    )
    if len(errors) < 2:
        return f"{said}."
    if few := too_few(scores, _WHICH):
        return f"{said}. {few}"
    shown = {name: f"{per_cent(measure, value):.1f}{unit}" for name, value in errors.items()}
    return " ".join(filter(None, (f"{said}.", _hardest(scores, measure, errors, shown))))
