"""Scores by an attribute of images: weather, city, brightness, the number of objects …

A slice is a row of weights that are 0 outside it, so slices need no matching of their own. A slice is scored
as if its images were the whole dataset: thresholds that are fixed on clean images are fixed on its own.

A mean over classes covers those that a slice shows. Each slice is compared with all images over the same
classes, so that a missing class is not mistaken for a difference. Average precision is too high on few
images, so a slice would seem better than the whole for being small: it is compared with the mean score of
random subsets of all images, as large as the slice. Holm's correction is over the slices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Bools, Floats
from stormproof.core.table import Entry, Table
from stormproof.core.text import plain
from stormproof.datasets.attributes import Attribute, read_attribute
from stormproof.metrics.metric import Scored, Weights, mean_of_known, measures, ratio
from stormproof.results.interval import (
    FEW,
    LEADING,
    Difference,
    Interval,
    interval_around,
    paired_differences,
)
from stormproof.results.run import Run
from stormproof.results.scores import Replicates, Scores
from stormproof.results.scoring import drawn_under, fewest_units, measured_inputs, weights_of
from stormproof.results.truths import ClassSelection, check_classes
from stormproof.results.weights import REPLICATES, subset_weights

_ALL, _RANDOM = "", "\0"  # the rows of all images; the beginning of the names of those of random subsets
_SUBSETS = 100  # random subsets, as large as a slice, that it is compared with
_ENOUGH = 1000  # images or clips from which a slice's score is not too high any more
_SHOWN = ("P", "mPC", "mean", "rPC", "mCE")  # aggregates that a table of slices has, where there are any


@dataclass(frozen=True, eq=False, repr=False)
class Slices(Mapping[str, Scores]):
    """The scores of each slice, by the attribute's value: `slices["rainy"].mpc`.

    `whole` are the scores of all images. Each slice is compared with `baselines[name]`, what as many random
    images score on average over the classes that the slice shows. `clean` are those of the clean
    counterpart, if one was named.
    """

    attribute: Attribute
    measure: str
    whole: Scores
    slices: Mapping[str, Scores]
    baselines: Mapping[str, Scores]
    clean: Scores | None = None

    def __getitem__(self, name: str) -> Scores:
        if name not in self.slices:
            raise UnknownName(f"slice by {self.attribute.name}", name, self.slices, "")
        return self.slices[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def names(self) -> list[str]:
        """The aggregates that can be compared between slices: 'P', 'mPC' or 'mean', 'rPC'."""
        held = self.whole.values(self.measure)
        return [name for name in _SHOWN if name in held]

    def differences(self, name: str) -> dict[str, Difference]:
        """Each slice minus as many random images over its classes, for a condition ('fog@3') or an aggregate
        ('mPC'). On few images both are too high by as much, so no optimism is left in the difference.

        Holm's correction is over the slices. A slice that shows no object has no score and no difference.
        """
        values: dict[str, float] = {}
        drawn: dict[str, Floats] = {}
        for each, ours in self.slices.items():
            theirs = self.baselines[each]
            if name in (mine := ours.values(self.measure)):
                values[each] = float(mine[name] - theirs.values(self.measure)[name])
                drawn[each] = ours.spread(self.measure)[name] - theirs.spread(self.measure)[name]
                drawn[each][:LEADING] = values[each]
        if not values:
            raise UnknownName(f"number of {self.measure}", name, self.names, "")
        return paired_differences(
            values, drawn, images={each: self.slices[each].units_of(self.measure) or 0 for each in values},
            most=measures()[self.measure].most,
        )  # fmt: skip

    def relative(self) -> dict[str, Interval]:
        """The score of each slice relative to that of the clean counterpart, with its interval.

        Both are of images as they are; nothing is corrupted.
        """
        if self.clean is None:
            raise InvalidOption("Nothing to be relative to: name the clean counterpart, a slice or a run.")
        base, drawn = self.clean.score(self.measure), self.clean.spread(self.measure)["clean"]
        return {
            name: interval_around(
                float(ratio(scores.score(self.measure), base)),
                ratio(scores.spread(self.measure)["clean"], drawn),
                images=min(one.units_of(self.measure) or 0 for one in (scores, self.clean)),
            )
            for name, scores in self.slices.items()
        }

    def table(self) -> Table:
        """A line for each slice: its images, its aggregates with intervals, and how it differs from all."""
        compared = [name for name in self.names if name != "rPC"]
        differences = {name: self.differences(name) for name in compared}
        rows: list[list[Entry]] = [_row("all images", self.whole, self, {}, compared)]
        rows += [
            _row(each, scores, self, {n: d[each] for n, d in differences.items() if each in d}, compared)
            for each, scores in self.slices.items()
        ]
        columns = ["slice", "images", "classes"]
        for name in self.names:
            columns += [name, f"{name}, 95 %"]
        for name in compared:
            columns += [f"{name} against all", "p (Holm)"]
        if self.clean is not None:
            columns += [f"% of {self.clean.label}", "% of it, 95 %"]
            kept = self.relative()
            for row in rows:
                part = kept.get(str(row[0]))
                row += [None, None] if part is None else [100 * part.estimate, _span(part, 100.0)]
        few = [each for each, scores in self.slices.items() if (scores.units or 0) < FEW]
        note = f"{self.attribute.note} " if self.attribute.note else ""
        note += (
            "Against all: points above or below what as many random images score, over the slice's classes."
        )
        if few:
            units = "images" if self.whole.clips is None else "clips"
            note += f" Fewer than {FEW} {units}: {', '.join(few)}."
        unit = " (in %)" if measures()[self.measure].fraction else ""
        title = f"{self.measure} by {self.attribute.name}{unit}"
        return Table(f"slices-{self.attribute.name}", title, tuple(_unique_names(columns)), rows, note=note)

    def as_dict(self) -> dict[str, Any]:
        """Every slice with its conditions, aggregates, intervals and differences, for JSON."""
        differences = {name: self.differences(name) for name in self.names}
        return {
            "by": self.attribute.name, "note": self.attribute.note, "measure": self.measure,
            "slices": {
                each: {
                    "images": scores.images, "classes": list(scores.classes),
                    "scores": dict(scores.per_condition[self.measure]),
                    "intervals": {k: v.as_dict() for k, v in scores.intervals(self.measure).items()},
                    "against_all": {name: d[each].as_dict() for name, d in differences.items() if each in d},
                    **({"of_clean": self.relative()[each].as_dict()} if self.clean is not None else {}),
                }
                for each, scores in self.slices.items()
            },
        }  # fmt: skip

    def __repr__(self) -> str:
        parts = ", ".join(f"{each} ({scores.images})" for each, scores in self.slices.items())
        return f"<{self.measure} of {self.whole.model} by {self.attribute.name}: {parts}>"


def _row(
    name: str, scores: Scores, of: Slices, against: Mapping[str, Difference], compared: Sequence[str]
) -> list[Entry]:
    row: list[Entry] = [name, scores.images, len(scores.classes)]
    intervals, values = scores.intervals(of.measure), scores.values(of.measure)
    scale = measures()[of.measure].scale
    for each in of.names:
        times = 100.0 if each == "rPC" else scale
        row += [times * values.get(each, math.nan), _span(intervals.get(each), times)]
    for each in compared:
        difference = against.get(each)
        row += (
            [scale * difference.interval.estimate, _chance(difference.holm)] if difference else [None, None]
        )
    return row


def _span(interval: Interval | None, scale: float) -> str:
    if interval is None or math.isnan(interval.se):
        return "?"
    return interval.span(scale)


def _chance(p: float) -> str:
    return "?" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _unique_names(columns: Sequence[str]) -> list[str]:
    """Make column names unique: a repeated one is prefixed by the name of the column before it."""
    return [
        f"{columns[k - 1]}: {name}" if columns.count(name) > 1 else name for k, name in enumerate(columns)
    ]


def slice_scores(
    run: Run, by: str, *,
    measure: str | None = None, classes: ClassSelection = None, clean: Run | str | None = None,
    replicates: int = REPLICATES,
) -> Slices:  # fmt: skip
    """The scores of a run by an attribute of its images (`datasets.attributes.read_attribute`).

    `clean` is what slices are relative to: one of them, or a run on the clean counterpart of the dataset.
    """
    attribute = read_attribute(run.dataset, by, run.readable)
    inside = {name: np.array([v == name for v in attribute.values]) for name in attribute.slices}
    ones = weights_of(run, replicates)
    rows: dict[str, Weights] = {name: ones * chosen for name, chosen in inside.items()}
    random = {
        f"{_RANDOM}{name}": np.concatenate([ones[:1], subset_weights(run.units, count, subsets=_SUBSETS)])
        for name, chosen in inside.items()
        if (count := units_in(run, chosen)) < _ENOUGH
    }
    collected = collect(run, {_ALL: ones, **rows, **random}, measure=measure, classes=classes)
    subsets = {name: collected.by_slice.pop(f"{_RANDOM}{name}", {}) for name in inside}
    whole = collected.by_slice.pop(_ALL)
    every = np.ones(len(run.readable), np.bool_)
    baselines = {
        name: {
            text: _as_many(_over_its_classes(whole[text], part), subsets[name].get(text), part)
            for text, part in by_condition.items()
        }
        for name, by_condition in collected.by_slice.items()
    }
    slices = {
        name: _scores(run, collected, by_condition, name, inside[name])
        for name, by_condition in collected.by_slice.items()
    }
    return Slices(
        attribute, collected.measure, _scores(run, collected, whole, "all images", every), slices,
        {name: _scores(run, collected, each, name, every) for name, each in baselines.items()},
        None if clean is None else _counterpart(clean, collected.measure, slices, classes, replicates),
    )  # fmt: skip


def _counterpart(
    clean: Run | str, measure: str, slices: Mapping[str, Scores], classes: ClassSelection, replicates: int
) -> Scores:
    """The scores of the clean counterpart: a slice, or all images of another run."""
    if isinstance(clean, str) and clean in slices:
        return slices[clean]
    if isinstance(clean, str) and not Path(clean).is_dir():
        raise UnknownName("slice or run folder", clean, slices, f"Slices: {', '.join(slices)}.")
    run = Run(clean) if isinstance(clean, str) else clean
    collected = collect(run, {_ALL: weights_of(run, replicates)}, measure=measure, classes=classes)
    if "clean" not in collected.by_slice[_ALL]:
        raise InvalidOption(f"{run.folder} holds no clean images, so it cannot be the clean counterpart.")
    return _scores(run, collected, collected.by_slice[_ALL], run.name, np.ones(len(run.readable), np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """The numbers of a run under rows of weights: by the name of the rows, then by condition."""

    measure: str
    classes: tuple[str, ...]
    by_slice: dict[str, dict[str, Scored]]


def collect(
    run: Run, rows: Mapping[str, Weights], *, measure: str | None = None, classes: ClassSelection = None
) -> Collected:
    """Score a complete run under several sets of weights with one matching; the headline measure by
    default."""
    run.check()
    run.require_complete("score")
    check_classes(classes, run.dataset.classes, run.dataset.semantic_classes)
    by_slice: dict[str, dict[str, Scored]] = {name: {} for name in rows}
    chosen: str = ""
    names: tuple[str, ...] = ()
    for text, metric_input, metric, chosen in measured_inputs(run, classes, run.conditions, measure):  # noqa: B007
        names = metric_input.scored_names
        for name, weights in rows.items():
            by_slice[name][text] = metric.score(metric_input, weights)
    if not chosen:
        raise InvalidOption(f"{run.name}: the run has no {measure or run.record.metric}.")
    return Collected(chosen, names, by_slice)


def _over_its_classes(whole: Scored, part: Scored) -> Scored:
    """The numbers of all images over what the slice has a value for: its classes.

    A number that does not depend on which classes there are stays as it is.
    """
    numbers = dict(whole.numbers)
    for name, values in whole.parts.items():
        there = ~np.isnan(part.parts[name][0])
        numbers[name] = mean_of_known(values[:, there]) if there.any() else np.full(len(values), np.nan)
    if whole.by_class is not None and part.by_class is not None:
        there = ~np.isnan(part.by_class.values[0, 0])
        numbers |= whole.by_class.numbers(whole.by_class.values[..., there])
    optimism = {
        name: np.where(np.isnan(part.optimism[name]), np.nan, values)
        for name, values in whole.optimism.items()
    }
    return Scored(numbers, whole.per_class, optimism=optimism, by_class=part.by_class)


def _as_many(whole: Scored, subsets: Scored | None, part: Scored) -> Scored:
    """The numbers of all images, with the mean over random subsets, as large as a slice, as the score.

    Over the slice's classes: of each class, the mean over the subsets that show it. `subsets` has a row for
    all images, then one for each subset.
    """
    if subsets is None:
        return whole
    means = {name: float(mean_of_known(values[1:])) for name, values in subsets.numbers.items()}
    for name, values in subsets.parts.items():
        there = ~np.isnan(part.parts[name][0])
        by_part = mean_of_known(values[1:, there], axis=0)
        by_part = np.where(np.isnan(by_part), values[0, there], by_part)  # of a class that no subset shows
        means[name] = float(mean_of_known(by_part))
    if subsets.by_class is not None and part.by_class is not None:
        there = ~np.isnan(part.by_class.values[0, 0])
        numbers = subsets.by_class.numbers(subsets.by_class.values[1:][..., there])
        means |= {name: float(mean_of_known(values)) for name, values in numbers.items()}
    numbers = {
        name: np.concatenate([[means[name] if name in means else values[0]], values[1:]])
        for name, values in whole.numbers.items()
    }
    return replace(whole, numbers=numbers)


def _scores(
    run: Run, collected: Collected, scored: Mapping[str, Scored], label: str, inside: Bools
) -> Scores:
    images, units = int(inside.sum()), units_in(run, inside)
    first = next(iter(scored.values()))
    measured = list(first.numbers)
    shown = _scored_classes(first, collected.classes)
    whole = Scores.before_scoring(run, units if units < images else None)
    return replace(
        whole, origin=replace(whole.origin, left_out=(), tags={}), images=images, metric=collected.measure,
        classes=tuple(map(plain, shown)), label=label,
        per_condition={m: {text: float(s.numbers[m][0]) for text, s in scored.items()} for m in measured},
        replicates=Replicates(
            {m: {text: drawn_under(text, s, m) for text, s in scored.items()} for m in measured}, {},
            fewest_units(scored.values()),
        ),
    )  # fmt: skip


def units_in(run: Run, inside: Bools) -> int:
    """The number of independent units, clips or images, among some of a run's images."""
    return len({unit for unit, there in zip(run.units, inside, strict=True) if there})


def _scored_classes(scored: Scored, classes: Sequence[str]) -> list[str]:
    """The classes that the numbers are over: those with a value, or all if there is none by class."""
    tables = [*scored.per_class.values(), *scored.parts.values()]
    tables += [scored.by_class.values[:, 0]] if scored.by_class is not None else []
    values = next((table[0] for table in tables if table.shape[1] == len(classes)), np.zeros(len(classes)))
    return [name for name, value in zip(classes, values.tolist(), strict=True) if not math.isnan(value)]


def mean_name(slices: Slices) -> str | None:
    """The aggregate that says how a slice fares under corruption; None where there is no mean."""
    return next((name for name in ("mPC", "mean", "mCE") if name in slices.names), None)
