"""Sections of a report, in the order of the page, and what they share: how conditions are laid out.

Each section is a function from a `Scope` to a `Section`, or to nothing where the runs lack what it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from stormproof.core import extensions
from stormproof.core.condition import PLUS, Condition, corruption_of
from stormproof.core.registry import Registry
from stormproof.core.table import Entry
from stormproof.corruptions import CORRUPTIONS
from stormproof.corruptions.suites import KAMANN, MICHAELIS
from stormproof.metrics.metric import measures
from stormproof.metrics.task import per_class_measure
from stormproof.report.elements import Axis, Datum, Section
from stormproof.results.interval import Interval
from stormproof.results.scores import Scores

SEVERITY = Axis("severity (0 is clean)", whole=True)
RELATIVE = Axis("share of the clean score (%)", zero=True)
FEW_OBJECTS = 10  # of a class; below, what becomes of its score is chance


@dataclass(frozen=True, slots=True)
class Scope:
    """What a report is about: its runs, the measure that compares them, and the run that is the reference.

    `others` are runs of another task, which lack that measure; a figure that shows one run at a time shows
    them by their own.
    """

    runs: Sequence[Scores]
    measure: str
    reference: Scores
    others: Sequence[Scores] = ()

    def every(self) -> list[tuple[Scores, str]]:
        """Every run with the measure it is shown by."""
        return [*((run, self.measure) for run in self.runs), *((run, run.headline) for run in self.others)]


Make = Callable[[Scope], Section | None]


@dataclass(frozen=True, slots=True)
class Maker:
    """A function that makes a section, its place on the page, and whether it remakes a paper's figure."""

    make: Make
    place: int
    paper: bool


SECTIONS: Registry[Maker] = Registry(
    extensions.SECTIONS, "stormproof.report.sections", order=lambda maker: (maker.paper, maker.place)
)


def section(*, place: int, paper: bool = False) -> Callable[[Make], Make]:
    """Declare a function as a section. Sections are shown by rising `place`, those of the papers last."""

    def register(make: Make) -> Make:
        SECTIONS.add(make.__name__, Maker(make, place, paper), module=make.__module__)
        return make

    return register


def all_sections(scope: Scope) -> tuple[Section, ...]:
    """Every section that the runs allow."""
    made = ((maker, maker.make(scope)) for maker in SECTIONS.values())
    return tuple(replace(one, paper=maker.paper) for maker, one in made if one is not None)


def unit(measure: str) -> str:
    """A measure's name with its unit, as axes and columns print it."""
    known = measures()[measure]
    return f"{measure} ({known.unit})" if known.unit else measure


def per_cent(measure: str, value: float) -> float:
    """A score as it is printed: fractions in per cent."""
    return measures()[measure].scale * value


def printed_difference(ours: float, theirs: float, digits: int = 1) -> float:
    """The difference of two numbers as they are printed, so that whoever subtracts them finds the same.

    >>> printed_difference(61.6, 50.4, 0), round(61.6 - 50.4)
    (12.0, 11)
    """
    return round(round(ours, digits) - round(theirs, digits), digits)


def class_measure(measure: str) -> str:
    """The per-class measure that goes with a measure of whole runs."""
    return per_class_measure(measure) or "AP"


def share(value: float, clean: float) -> float:
    """A score in per cent of the clean one; NaN if that is 0."""
    return 100 * value / clean if clean else math.nan


def limits(
    interval: Interval | None, scale: float = 100.0, *, least: float = -math.inf, most: float = math.inf
) -> Datum:
    """The ends of an interval as an error bar; nothing where there is no interval."""
    if interval is None or math.isnan(interval.se):
        return {}
    return {"low": max(least, scale * interval.low), "high": min(most, scale * interval.high)}


def group_by_severity(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Conditions that have a severity, by corruption, in order of severity."""
    groups: dict[str, list[Condition]] = {}
    for condition in conditions:
        if condition.severity is not None:
            groups.setdefault(condition.series, []).append(condition)
    return {name: sorted(levels, key=lambda c: c.severity or 0) for name, levels in groups.items()}


def without_severity(conditions: Iterable[Condition]) -> list[str]:
    """Conditions that have parameters instead of a severity."""
    return [str(condition) for condition in conditions if condition.severity is None]


def all_levels(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Every condition by corruption; a condition without a severity is its own group."""
    held = list(conditions)
    return group_by_severity(held) | {str(c): [c] for c in held if c.severity is None}


def level_name(condition: Condition) -> str:
    """What a condition is called among those of its corruption: its severity, if it has one."""
    return "corrupted" if condition.severity is None else f"{condition.severity:g}"


def corruption_means(
    run: Scores, name: str, columns: Sequence[str], *, scale: float = 100.0
) -> list[tuple[Entry, ...]]:
    """A line for clean and for each corruption: means of each measure over its conditions, times `scale`."""
    levels = {head: [str(c) for c in held] for head, held in all_levels(run.corrupted).items()}
    return [
        (name, head, *(scale * fmean(run.score(m, text) for text in texts) for m in columns))
        for head, texts in {"clean": ["clean"], **levels}.items()
    ]


def all_conditions(runs: Iterable[Scores]) -> list[Condition]:
    """Every corrupted condition that any of the runs has a score for."""
    return list(dict.fromkeys(condition for scores in runs for condition in scores.corrupted))


def group_of(corruption: str) -> str:
    """The papers' group of a corruption, or the family of its recipe; 'composed' for several in a row."""
    name = corruption_of(corruption)
    if PLUS in name:
        return "composed"
    for groups in (MICHAELIS, KAMANN):
        for group, members in groups.items():
            if name in members:
                return group
    known = CORRUPTIONS.get(name)
    return known.family if known else "other"
