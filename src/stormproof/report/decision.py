"""The decision table: what each run scores clean and under corruption, what hurts it, and which to take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stormproof.core.table import Entry, Table
from stormproof.metrics.metric import measures
from stormproof.report.sections import per_cent, printed_difference
from stormproof.report.sentences import (
    Number,
    changes,
    clean_of,
    comparable,
    hurt_most,
    interval_of,
    lowest_here,
    mean_kept,
    share_kept,
    spoken,
    too_few,
)
from stormproof.results.aggregates import mean_of
from stormproof.results.calibrated import MARK, footnote
from stormproof.results.documents import images_scored
from stormproof.results.interval import Interval
from stormproof.results.scores import Scores

_WORST = "hurt most by"
_NOT_CLEAR = "not clear"
# Both, for a run that keeps more of a lower clean score may be the worse one to ship.
_AGAINST: dict[str, Number] = {
    "clean, against the first": clean_of,
    "corrupted, against the first": mean_of,
}


def decision(runs: Sequence[Scores], measure: str) -> Table:
    """A line per run that has the measure: clean, under corruption, what is kept, what hurts most where that
    is clear, and how both compare with the first run; 95 % intervals where the scores have them."""
    having = [scores for scores in runs if measure in scores]
    numbers = _AGAINST if len(having) > 1 else {}
    against = {name: _against_first(having, measure, number) for name, number in numbers.items()}
    lines = [
        _line(scores, measure) | {name: said.get(scores.name) for name, said in against.items()}
        for scores in having
    ]
    columns = [name for name in (lines[0] if lines else ()) if any(line[name] for line in lines)]
    rows = [[line[name] for name in columns] for line in lines]
    return Table(
        "decision", _title(having, measure), tuple(columns), rows, note=_note(having, measure, columns)
    )


def _title(runs: Sequence[Scores], measure: str) -> str:
    """'AP (%) on val2017, 500 images', as far as all runs share it."""
    mark = f" {MARK}" if any(footnote(scores, [measure]) for scores in runs) else ""
    said = f"{measure}{mark} (%)" if measures()[measure].fraction else f"{measure}{mark}"
    datasets, images = {scores.dataset for scores in runs}, {images_scored(scores) for scores in runs}
    said += f" on {datasets.pop()}" if len(datasets) == 1 else ""
    return f"{said}, {images.pop()}" if len(images) == 1 and runs[0].images is not None else said


def _note(runs: Sequence[Scores], measure: str, columns: Sequence[str]) -> str:
    over = {scores.over.name if scores.over.whole else "the conditions that were run" for scores in runs}
    averaged = len(over) == 1 and "under corruption" in columns
    said = [f"Under corruption: the mean over {over.pop()}"] if averaged else []
    said += ["kept: its share of the clean score, in %"] if "kept" in columns else []
    if any(scores.spread(measure) for scores in runs):
        said.append("in brackets: 95 % intervals for new images like these")
    if any(_reaches_down(scores, measure) for scores in runs):
        said.append("they reach further down where few objects of a class make its AP too high by chance")
    if _WORST in columns:
        said.append(f"{_WORST}: those that no other corruption clearly exceeds, if they are few")
    if len(runs) > 1 and not all(scores.spread(measure) for scores in runs):
        said.append("differences without an interval may be chance")
    doubts = [footnote(scores, [measure]) for scores in runs]
    words = f"{'; '.join(said)}. " if said else ""
    return f"{words[:1].upper()}{words[1:]}{next(filter(None, doubts), '')}".strip()


def _reaches_down(scores: Scores, measure: str) -> bool:
    """Whether a clean AP is much nearer to the upper end of its interval."""
    if "AP" not in measure or scores.replicates is None:
        return False
    clean = scores.intervals(measure).get("clean")
    return clean is not None and clean.estimate - clean.low > 2 * (clean.high - clean.estimate)


def _line(scores: Scores, measure: str) -> dict[str, Entry]:
    unit, mean = measures()[measure].scale, scores.mean(measure)
    intervals = scores.intervals(measure) if scores.replicates is not None else {}
    line: dict[str, Entry] = {
        "model": scores.name,
        "clean": _with_ends(per_cent(measure, scores.score(measure)), intervals.get("clean"), unit),
        "under corruption": None,
        "kept": None,
    }
    if isinstance(mean, float) and not scores.missing:
        line["under corruption"] = _with_ends(per_cent(measure, mean), mean_of(intervals), unit)
        if measures()[measure].higher and math.isfinite(mean_kept(scores, measure)):
            share = interval_of(scores, measure, share_kept)
            line["kept"] = _with_ends(100 * mean_kept(scores, measure), share, 100.0, digits=0)
    elif scores.missing:
        line["under corruption"] = "incomplete"
    return {**line, _WORST: _worst(scores, measure)}


def _with_ends(
    value: float, interval: Interval | None, unit: float, digits: int = 1, *, sign: str = "z",
    between: str = " – ",
) -> str | None:  # fmt: skip
    """'53.8 (48.1 – 59.0)'."""
    if not math.isfinite(value):
        return None
    said = f"{value:{sign}.{digits}f}"
    if interval is None or math.isnan(interval.se):
        return said
    return f"{said} ({interval.span(unit, digits=digits, between=between, sign=sign)})"


def _worst(scores: Scores, measure: str) -> str | None:
    """The corruptions that clearly hurt most, if they are few."""
    means = scores.by_corruption(measure)
    if len(means) < 2 or scores.missing:
        return None
    if too_few(scores, ""):
        return _NOT_CLEAR
    named = hurt_most(scores, measure, means)
    if named is None:
        return None
    lowest = lowest_here(means, higher=measures()[measure].higher)
    return ", ".join(map(spoken, named)) or f"{_NOT_CLEAR}; on these images {', '.join(map(spoken, lowest))}"


def _against_first(runs: Sequence[Scores], measure: str, number: Number) -> dict[str, Entry]:
    """By name, whether a number is clearly better or worse than the first run's; with Holm's correction over
    the runs."""
    ranked, _ = comparable(runs, measure)
    first = runs[0]
    said: dict[str, Entry] = {scores.name: "not comparable" for scores in runs[1:]}
    said[first.name] = "the first"
    if first not in ranked:
        return said
    others = [scores for scores in ranked if scores is not first]
    base = float(number(first.values(measure)))
    values = {s.name: float(number(s.values(measure))) for s in others}
    gaps = {name: value - base for name, value in values.items()}
    if any(map(math.isnan, gaps.values())):
        return {}
    sure = changes(first, {s.name: (s, number) for s in others}, measure)
    sign = 1 if measures()[measure].higher else -1
    for name, gap in gaps.items():
        difference = printed_difference(per_cent(measure, values[name]), per_cent(measure, base))
        interval = sure[name].interval if name in sure else None
        words = _with_ends(difference, interval, measures()[measure].scale, sign="+z", between=" to ")
        if name in sure:
            better = "better" if sign * gap > 0 else "worse" if gap else "equal"
            words = f"{better if sure[name].clear else _NOT_CLEAR}: {words}"
        said[name] = words
    return said
