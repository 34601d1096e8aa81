"""Interaction: what a composed condition costs beyond its parts alone.

A model that scores P clean, a and b under two corruptions, and ab under both together has lost P − ab. Two
predictions of that loss follow from the single corruptions:

    sum        (P − a) + (P − b)           each takes as many points as it does alone
    product    P − P · (a / P) · (b / P)   each keeps the share of the score that it keeps alone

The interaction is the loss minus a prediction: above zero, the two are worse together. A chain of more parts
is compared with all of them. An error is taken as 1 − error, and of counts, such as false positives, a loss
is a rise.

Among many pairs some seem to interact by chance. So the intervals of a run hold together: all of them, over
every composed condition and both predictions, contain the true value for 95 % of sets of images (Bonferroni).
Only an interaction whose whole interval is above zero is said to be worse together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.table import Table
from stormproof.metrics.grid import Score
from stormproof.metrics.metric import measures, ratio
from stormproof.results.interval import FEWEST, WRONG, Interval, interval_around
from stormproof.results.scores import Scores
from stormproof.results.sets import same_condition

PREDICTIONS = ("sum", "product")


@dataclass(frozen=True, slots=True)
class Interaction:
    """What a composed condition costs, as a fraction, and how much more than its parts predict.

    Intervals of `beyond` hold together over all interactions of a run; they are NaN without replicates.
    """

    condition: str
    parts: tuple[str, ...]  # as the run names them
    cost: Interval
    beyond: Mapping[str, Interval]  # by prediction: sum, product

    def predicted(self, by: str) -> float:
        """What the parts alone predict that it costs."""
        return self.cost.estimate - self.beyond[by].estimate

    def worse(self, by: str) -> bool:
        """Whether the parts are clearly worse together than predicted."""
        return self.beyond[by].low > 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "parts": list(self.parts),
            "cost": self.cost.as_dict(),
            "beyond": {
                by: {**each.as_dict(), "predicted": self.predicted(by), "worse": self.worse(by)}
                for by, each in self.beyond.items()
            },
        }


def interactions(scores: Scores, measure: str) -> dict[str, Interaction]:
    """The interaction of every composed condition whose parts were run alone too, the largest first.

    >>> values = {"AP": {"clean": 0.5, "fog@3": 0.4, "snow@3": 0.3, "fog@3+snow@3": 0.1}}
    >>> one = interactions(Scores("m", "d", 100, values, tuple(values["AP"])), "AP")["fog@3+snow@3"]
    >>> {by: round(each.estimate, 3) for by, each in one.beyond.items()}
    {'sum': 0.1, 'product': 0.14}
    """
    declared, values = measures()[measure], scores.per_condition.get(measure, {})
    kept, drawn = _as_kept(measure, values), _as_kept(measure, scores.spread(measure))
    sign = -1 if not declared.higher and not declared.fraction else 1
    composed = {text: parts for text in values if (parts := _parts(text, values)) and "clean" in values}
    wrong = WRONG / max(1, len(PREDICTIONS) * len(composed))

    def number(by: str, text: str, parts: Sequence[str], chance: float) -> Interval:
        value = sign * float(_beyond(by, kept, text, parts))
        if not all(name in drawn for name in ("clean", text, *parts)):
            return Interval(value, math.nan, math.nan, math.nan)
        spread = sign * _beyond(by, drawn, text, parts)
        around = interval_around(value, spread, images=scores.units_of(measure), wrong=chance)
        return around.of_difference(declared.most, wrong=chance)

    made = [
        Interaction(
            text, parts, number("sum", text, (), WRONG),
            {by: number(by, text, parts, wrong) for by in PREDICTIONS},
        )
        for text, parts in composed.items()
    ]  # fmt: skip
    return {one.condition: one for one in sorted(made, key=lambda one: -one.beyond["sum"].estimate)}


def _as_kept(measure: str, values: Mapping[str, Score]) -> Mapping[str, Score]:
    """Scores of which more is better, and counts: an error as what is right."""
    declared = measures()[measure]
    if declared.higher or not declared.fraction:
        return values
    return {text: 1 - value for text, value in values.items()}


def _beyond(by: str, values: Mapping[str, Score], text: str, parts: Sequence[str]) -> Score:
    """The score that the parts predict, minus the score: of numbers, or of arrays of replicates.

    Without parts, the clean score is predicted.
    """
    clean = predicted = values["clean"]
    for part in parts:
        change = values[part] - clean if by == "sum" else predicted * (ratio(values[part], clean) - 1)
        predicted = predicted + change
    return predicted - values[text]


def _parts(text: str, values: Mapping[str, float]) -> tuple[str, ...]:
    """The parts of a composed condition as the run names them; none if it is single, or if a part is
    missing."""
    condition = Condition.parse(text)
    if not condition.is_composed:
        return ()
    named = [same_condition(str(part), values) for part in condition.parts]
    return tuple(name for name in named if name is not None) if None not in named else ()


def lacking_parts(scores: Scores, measure: str) -> list[str]:
    """The conditions to run so that every composed condition of a run has an interaction."""
    values = scores.per_condition.get(measure, {})
    composed = [condition for condition in map(Condition.parse, values) if condition.is_composed]
    parts = dict.fromkeys(str(part) for condition in composed for part in condition.parts)
    return [text for text in parts if same_condition(text, values) is None]


def why_undecided(scores: Scores, measure: str) -> str:
    """Why no interaction may be called clear, in words; empty if one may."""
    if scores.replicates is None or measure not in scores.replicates.per_condition:
        return "without intervals nobody knows which are chance; add --interval"
    units = scores.units_of(measure)
    if units is not None and units < FEWEST:
        return f"{units} images are too few to say which are not chance"
    return ""


def sentence(one: Interaction, measure: str) -> str:
    """'night@3+rain@3 costs 31.0 points of AP, 12.0 more than night@3 and rain@3 alone (8.0 to 16.0).'"""
    scale = measures()[measure].scale
    over = one.beyond["sum"]
    cost, more, low, high = (
        scale * value for value in (one.cost.estimate, over.estimate, over.low, over.high)
    )
    unit = "points of " if measures()[measure].fraction else ""
    alone = f"{', '.join(one.parts[:-1])} and {one.parts[-1]} alone"
    return (
        f"{one.condition} costs {cost:.1f} {unit}{measure}, {more:.1f} more than {alone} "
        f"({low:.1f} to {high:.1f})."
    )


def worse_together(scores: Scores, measure: str, *, most: int = 3) -> str:
    """What is clearly worse together than its parts, in sentences; empty without composed conditions."""
    tested = interactions(scores, measure)
    if not tested:
        lacking = lacking_parts(scores, measure)
        return (
            f"To see what is worse together, run the parts alone too: {', '.join(lacking)}."
            if lacking
            else ""
        )
    if why := why_undecided(scores, measure):
        return f"What is worse together: {why}."
    clear = [one for one in tested.values() if one.worse("sum")]
    count = f"{len(tested)} composed condition{'s' if len(tested) > 1 else ''}"
    if not clear:
        return f"None of {count} is clearly worse than its parts together."
    said = [sentence(one, measure) for one in clear[:most]]
    if len(clear) > most:
        said.append(f"{len(clear)} of {count} are clearly worse than their parts together.")
    return " ".join(said)


def interaction_table(scores: Scores, measure: str, *, most: int | None = None) -> Table:
    """What composed conditions cost, and how much more than their parts predict, the largest first."""
    scale, tested = measures()[measure].scale, interactions(scores, measure)
    decided = not why_undecided(scores, measure)

    def spoken(interval: Interval) -> str:
        value = f"{scale * interval.estimate:+.1f}"
        if math.isnan(interval.se):
            return value
        ends = interval.span(scale, sign="+")
        return f"{value} ({ends}){' *' if decided and interval.low > 0 else ''}"

    rows: list[tuple[str | float, ...]] = [
        (one.condition, scale * one.cost.estimate, *(spoken(one.beyond[by]) for by in PREDICTIONS))
        for one in list(tested.values())[:most]
    ]
    unit = f" (in {measures()[measure].unit})" if measures()[measure].unit else ""
    shown = f", the {most} largest of {len(tested)}" if most is not None and len(tested) > most else ""
    return Table(
        "interactions",
        f"What is worse together: loss of {measure}{unit}{shown}",
        ("composed condition", "costs", "beyond the sum of its parts", "beyond the product"),
        rows,
        note="Intervals hold together for all composed conditions of a run and both predictions, at 95 %. "
        "*: clearly worse together than predicted. Where the sum of the parts is more than the clean score, "
        "the loss cannot reach it.",
    )  # fmt: skip
