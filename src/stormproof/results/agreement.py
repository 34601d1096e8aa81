"""Whether synthetic corruption and a real shift rank models, or classes, alike: Spearman's correlation.

A grid of corruptions stands in for real weather. If it is a good proxy, models that do well under it do well
in real weather, and classes that suffer under it suffer there. With runs of three models or more on both
sides, models are ranked; with one model, its classes. The clean score is listed, too: a corruption that
ranks no better than the clean score does says nothing new.

Intervals come from random halves of the images of both sets. They are about new images, not about other
models or classes. Student's t has the degrees of freedom of the smaller side: the images, or clips, of the
grid or of that part of the real set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, first_few
from stormproof.core.sample import Bools, Floats
from stormproof.core.table import Entry, Table
from stormproof.datasets.attributes import read_attribute
from stormproof.metrics.metric import Scored, Weights, ratio
from stormproof.metrics.task import per_class_measure
from stormproof.results.interval import Interval, draws, interval_around
from stormproof.results.run import Run
from stormproof.results.scoring import weights_of
from stormproof.results.slices import Collected, collect, units_in
from stormproof.results.weights import REPLICATES

LEAST = 3  # models or classes that can be ranked
CLEAN, MEAN, ALL = "clean score", "mean under corruption", "all images"
Items = Mapping[str, Floats]  # by model or class: the score, then its value on every half of the images


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Rank correlations: `correlations[synthetic][real]`, each with its interval, over `items`."""

    over: str  # "models" or "classes"
    items: tuple[str, ...]
    measure: str
    correlations: dict[str, dict[str, Interval]]

    def table(self) -> Table:
        """A line for each corruption, a column for each part of the real set."""
        parts = list(next(iter(self.correlations.values())))
        rows: list[list[Entry]] = [
            [name, *(_words(row[part]) for part in parts)] for name, row in self.correlations.items()
        ]
        note = (
            f"Over {len(self.items)} {self.over}: {first_few(self.items)}. 95 % intervals are for new "
            f"images; they do not say what other {self.over} would give."
        )
        title = f"Spearman's correlation of {self.measure}, synthetic against real"
        return Table("agreement", title, ("synthetic", *parts), rows, digits=2, note=note)


def agree(
    synthetic: Sequence[Run], real: Sequence[Run], *,
    by: str | None = None, measure: str | None = None, replicates: int = REPLICATES,
) -> Agreement:  # fmt: skip
    """Correlate a grid of corruptions with a real set, over models or, with one model, over its classes.

    `by` is the attribute that cuts the real set into conditions or domains.
    """
    pairs, others = _by_name(synthetic), _by_name(real)
    common = [name for name in pairs if name in others]
    if not common:
        raise InvalidOption(f"No model was run on both sides: {first_few([*pairs])}; {first_few([*others])}.")
    if len(common) > 1 and len(common) < LEAST:
        raise InvalidOption(f"Two models ({', '.join(common)}) cannot be ranked; give one, or {LEAST}.")
    one = len(common) == 1
    grids = {name: _synthetic(pairs[name], measure, replicates) for name in common}
    parts = {name: _parts(others[name], by) for name in common}
    sets = {name: _real(others[name], parts[name], measure, replicates) for name in common}
    measures_used = {grid.measure for grid in (*grids.values(), *sets.values())}
    if len(measures_used) > 1:
        raise InvalidOption(
            f"The runs differ in their measures: {', '.join(sorted(measures_used))}; name one."
        )
    ours, theirs = _rows(grids, _group, by_class=one), _rows(sets, _as_is, by_class=one)
    items = _items(ours, theirs)
    if len(items) < LEAST:
        what = "classes" if one else "models"
        raise InvalidOption(f"{len(items)} {what} have scores on both sides; ranks need {LEAST} or more.")
    ranked = common if one else items
    images = {
        part: min(
            count
            for name in ranked
            for count in (len({*pairs[name].units}), units_in(others[name], parts[name][part]))
        )
        for part in theirs
    }
    table = {
        name: {part: spearman(row, other, items, images=images[part]) for part, other in theirs.items()}
        for name, row in ours.items()
    }
    return Agreement("classes" if one else "models", items, measures_used.pop(), table)


def spearman(ours: Items, theirs: Items, items: Sequence[str], *, images: int | None = None) -> Interval:
    """Spearman's rank correlation over the items, with its interval from the halves of the images.

    >>> ours = {name: np.array([k, k, k]) * 1.0 for k, name in enumerate("abcd")}
    >>> theirs = {name: np.array([k, -k, k]) * 1.0 for k, name in enumerate("abcd")}
    >>> spearman(ours, theirs, "abcd").estimate
    1.0
    """
    x, y = (np.stack([side[name] for name in items]) for side in (ours, theirs))
    rho = _correlation(rankdata(x, axis=0), rankdata(y, axis=0))
    rho[~np.isfinite(x).all(axis=0) | ~np.isfinite(y).all(axis=0)] = np.nan
    return interval_around(float(rho[0]), draws(rho), images=images)


def _correlation(x: Floats, y: Floats) -> Floats:
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    correlation: Floats = ratio((x * y).sum(axis=0), np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0)))
    return correlation


def _by_name(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by their model's name; two runs of one name are refused as ambiguous."""
    named: dict[str, Run] = {}
    for run in runs:
        name = run.record.model.name
        if name in named:
            folders = f"{named[name].folder} and {run.folder}"
            raise InvalidOption(f"{folders} are runs of {name} on the same side; give one of them.")
        named[name] = run
    return named


def _synthetic(run: Run, measure: str | None, replicates: int) -> Collected:
    if "clean" not in run.conditions or len(run.conditions) < 2:
        raise InvalidOption(
            f"{run.folder} holds no corrupted conditions, or no clean images; ranks need both."
        )
    return collect(run, {ALL: weights_of(run, replicates)}, measure=measure)


def _parts(run: Run, by: str | None) -> dict[str, Bools]:
    """Which images are in each part of a real set: all of it, and the values of an attribute."""
    inside = {ALL: np.ones(len(run.readable), np.bool_)}
    if by is not None:
        attribute = read_attribute(run.dataset, by, run.readable)
        inside |= {name: np.array([v == name for v in attribute.values]) for name in attribute.slices}
    return inside


def _real(run: Run, parts: Mapping[str, Bools], measure: str | None, replicates: int) -> Collected:
    ones = weights_of(run, replicates)
    rows: dict[str, Weights] = {name: ones * inside for name, inside in parts.items()}
    return collect(run, rows, measure=measure)


Values = Mapping[str, Mapping[str, Floats]]  # by slice, then by condition: a row for each replicate
Reduce = Callable[[Values], dict[str, Floats]]


def _group(values: Values) -> dict[str, Floats]:
    """The clean score of a grid, the mean of each corruption, and the mean of those means."""
    (by_condition,) = values.values()
    by_corruption: dict[str, list[Floats]] = {}
    for text, scores in by_condition.items():
        if text != "clean":
            by_corruption.setdefault(Condition.parse(text).series, []).append(scores)
    means = {name: np.mean(levels, axis=0) for name, levels in by_corruption.items()}
    return {CLEAN: by_condition["clean"], MEAN: np.mean([*means.values()], axis=0), **means}


def _as_is(values: Values) -> dict[str, Floats]:
    """The score of each part of a real set, whose images are used as they are."""
    return {name: by_condition["clean"] for name, by_condition in values.items()}


def _rows(every: Mapping[str, Collected], reduce: Reduce, *, by_class: bool) -> dict[str, dict[str, Floats]]:
    """What `reduce` makes of the runs of some models: by its name, then by model or by class."""
    rows: dict[str, dict[str, Floats]] = {}
    for model, collected in every.items():
        numbers = {
            part: {
                text: _numbers(scored, collected.measure, by_class=by_class) for text, scored in held.items()
            }
            for part, held in collected.by_slice.items()
        }
        for name, values in reduce(numbers).items():
            items = dict(zip(collected.classes, values.T, strict=True)) if by_class else {model: values}
            rows.setdefault(name, {}).update(items)
    return rows


def _numbers(scored: Scored, measure: str, *, by_class: bool) -> Floats:
    """The measure by replicate, and by class if asked for."""
    if not by_class:
        return scored.numbers[measure]
    name = per_class_measure(measure) or measure
    if name not in scored.per_class:
        raise InvalidOption(f"{measure} has no scores by class: rank three models, or classes by AP or mIoU.")
    return scored.per_class[name]


def _items(*sides: Mapping[str, Items]) -> tuple[str, ...]:
    """Models or classes that have a score in every row of both sides."""
    every = [row for side in sides for row in side.values()]
    return tuple(
        name for name in every[0] if all(name in row and math.isfinite(row[name][0]) for row in every)
    )


def _words(interval: Interval) -> str:
    if math.isnan(interval.se):
        return f"{interval.estimate:.2f}"
    low, high = max(-1.0, interval.low), min(1.0, interval.high)
    return f"{interval.estimate:.2f} ({low:.2f} to {high:.2f})"
