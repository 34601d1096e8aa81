"""The one place where scores of conditions become aggregates.

Scores are numbers, or arrays with one entry per replicate. Intervals, differences, gates, estimates
and reports all call these two functions, so a number means the same wherever it is printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid
from stormproof.metrics.aggregate import aggregates_of
from stormproof.metrics.grid import Grid, Score, mean
from stormproof.metrics.metric import measures
from stormproof.metrics.sequences import split
from stormproof.results.interval import WRONG, Interval
from stormproof.results.sets import ConditionSet

Values = Mapping[str, Score]  # by condition
NAMED = ("mPC", "mCE")  # means over a benchmark or suite
OBJECT_ERROR = "E"  # *liu*'s: of other errors, the number called mCE here is a plain mean
MEAN = "mean"  # of the conditions there are, if they are not a benchmark or suite
_OF_CLEAN = ("delta_P", "delta_E")  # changes of the clean score, whatever conditions there are
SLASH = "/"  # between an aggregate and its entry: by_corruption/fog
# The highest possible value of aggregates of fractions; differences, and ratios to a reference, have none.
MOST = {
    **dict.fromkeys(("P", "mPC", "mCE", "CE", MEAN, "by_corruption", "by_severity"), 1.0),
    **dict.fromkeys(("by_group_michaelis", "by_group_kamann", "CE_by_group_liu"), 1.0),
    **dict.fromkeys(("rPC", "rPC_by_severity", "rPC_by_group_michaelis", "rPC_by_group_kamann"), math.inf),
}


def aggregates(measure: str, values: Values, over: ConditionSet) -> dict[str, Any]:
    """Every aggregate of one measure over a set of conditions that needs no missing condition.

    A number over all conditions is called mPC, rPC or mCE if the set is a whole benchmark or suite; otherwise
    it is a mean over the conditions there are.
    """
    declared_measure = measures()[measure]
    everything, levels = grid_of(values, over.conditions), grid_of(values, over.covered)
    _, along = split(everything)
    parts = {"any": everything}
    if declared_measure.aggregate and levels.expected and not levels.missing:
        parts["scores" if declared_measure.higher else "errors"] = levels
    if declared_measure.aggregate and along.expected and not along.missing:
        parts["sequence"] = along
    totals: dict[str, Any] = {}
    for declared in aggregates_of(*parts):
        with suppress(IncompleteGrid):  # a condition that it needs, most often clean, is missing
            value = declared.of(parts[declared.given])
            if over.whole or declared.given == "any" or isinstance(value, Mapping):
                totals[declared.name] = value
    if not over.whole and ("scores" in parts or "errors" in parts):
        totals[MEAN] = mean(levels.scores[condition] for condition in levels.expected)
    return totals


def against(measure: str, values: Values, reference: Values, over: ConditionSet) -> dict[str, Any]:
    """Every aggregate of a measure that compares a run with a reference run, over the same conditions."""
    declared_measure = measures()[measure]
    grids = [grid_of(side, over.covered) for side in (values, reference)]
    if not declared_measure.aggregate or any(grid.missing for grid in grids):
        return {}
    totals: dict[str, Any] = {}
    for declared in aggregates_of("reference" if declared_measure.higher else "error reference"):
        with suppress(IncompleteGrid):  # a group that the run does not have, or a grid without clean
            value = declared.of(*grids)
            if over.whole or declared.name in _OF_CLEAN or isinstance(value, Mapping):
                totals[declared.name] = value
    return totals


def bound_interval(interval: Interval, measure: str, aggregate: str, *, wrong: float = WRONG) -> Interval:
    """The interval of an aggregate of a measure, within the values that are possible; 'P' for a condition."""
    most, declared = MOST.get(aggregate.partition(SLASH)[0]), measures()[measure]
    if most is None:
        return interval
    if declared.share and most == 1.0:
        return interval.of_share(wrong=wrong)
    if declared.fraction or math.isinf(most):
        return interval.of_fraction(max(most, declared.most), wrong=wrong)
    return interval.of_count(declared.most, wrong=wrong)


def grid_of(values: Values, conditions: Iterable[str]) -> Grid:
    """The grid of a measure's values over some conditions."""
    return Grid.of(dict(values), conditions=map(Condition.parse, conditions))


def flatten(totals: Mapping[str, Any], prefix: str = "") -> dict[str, Score]:
    """Nested aggregates under flat names.

    >>> flatten({"mPC": 0.3, "by_corruption": {"fog": 0.2}})
    {'mPC': 0.3, 'by_corruption/fog': 0.2}
    """
    result: dict[str, Score] = {}
    for name, value in totals.items():
        if isinstance(value, Mapping):
            result |= flatten(value, f"{prefix}{name}{SLASH}")
        else:
            result[f"{prefix}{name}"] = value
    return result


def mean_of(totals: Mapping[str, Any]) -> Any:
    """The mean under corruption among a measure's aggregates; None if the grid does not allow one."""
    return next((totals[name] for name in (*NAMED, MEAN) if totals.get(name) is not None), None)
