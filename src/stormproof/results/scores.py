"""`Scores`: a model's numbers on a dataset, in the one form that everything reads.

Scores come from a run folder (`Run.score`), a stored file, a submission or a paper's table. Aggregates,
intervals and differences all follow from the scores of conditions, in one place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.display import DISPLAYS
from stormproof.core.errors import IncompleteGrid, InvalidOption, UnknownName, first_few
from stormproof.core.loading import framework
from stormproof.core.sample import Floats
from stormproof.core.text import plain
from stormproof.metrics.grid import Grid, mean
from stormproof.metrics.metric import measures
from stormproof.metrics.object_error import MatchingRule
from stormproof.metrics.task import all_tasks
from stormproof.results.aggregates import (
    NAMED,
    OBJECT_ERROR,
    Values,
    against,
    aggregates,
    bound_interval,
    flatten,
    grid_of,
    mean_of,
)
from stormproof.results.comparable import differences, require_same_classes, require_same_images
from stormproof.results.interval import LEADING, Difference, Interval, interval_around
from stormproof.results.origin import ScoreOrigin
from stormproof.results.sets import NO_CONDITIONS, ConditionSet, chosen_set, sets_of
from stormproof.results.store.record import RunRecord
from stormproof.results.truths import ClassSelection, class_names
from stormproof.results.worst import ImageErrors

if TYPE_CHECKING:
    from stormproof.results.run import Run

Numbers = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class ScoreOptions:
    """The options that determine scores, besides the run itself; part of the key under which they are stored.

    `classes` are names, "all", or None for those that model and dataset share; `conditions` are some of the
    run's, or empty for all of them.
    """

    classes: tuple[str, ...] | str | None = None
    rule: MatchingRule = field(default_factory=MatchingRule)
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, classes: ClassSelection, rule: MatchingRule | None, conditions: Sequence[str]
    ) -> ScoreOptions:
        named = classes if classes is None or classes == "all" else class_names(classes)
        return cls(named, rule or MatchingRule(), tuple(conditions))

    def as_dict(self) -> dict[str, Any]:
        return {
            "classes": list(self.classes) if isinstance(self.classes, tuple) else self.classes,
            "conditions": list(self.conditions),
            **self.rule.as_dict(),
        }

    @property
    def words(self) -> str:
        """The options that are not the defaults, in words; empty if all are.

        >>> ScoreOptions(("person", "car"), MatchingRule(min_score=0.5)).words
        'classes: person, car; min score: 0.5'
        """
        usual = ScoreOptions().as_dict()
        return "; ".join(
            f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}"
            for name, value in self.as_dict().items()
            if value != usual[name]
        )


@dataclass(frozen=True, eq=False)
class Replicates:
    """The draws of every condition (`interval.draws`), from which intervals follow; the intervals of classes.

    Aggregates and differences of draws are draws again.
    """

    per_condition: Mapping[str, Mapping[str, Floats]]  # measure → condition → draws
    per_class: Mapping[str, Mapping[str, Mapping[str, Interval]]]  # measure → condition → class
    units: Mapping[str, int] = field(default_factory=dict)  # measure → images or clips that decide it, if few

    @property
    def count(self) -> int:
        every = (drawn for row in self.per_condition.values() for drawn in row.values())
        return next((len(drawn) - LEADING for drawn in every), 0)


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores by measure and condition, as fractions: `scores["AP50"].rpc`, `scores.mpc`, `scores - others`.

    `conditions` are those of a complete grid, clean included; `missing` names those that lack images.
    `per_class` is by measure, condition and class. `details` is plain data by name and condition: `quality`,
    how far each condition moves images from the clean ones; `roc` and `lost`, about people; `reliability`,
    mean score, precision with its interval, and number of detections by bin of the score. A published table
    that averages over severities has only clean scores; its origin gives the aggregates.
    """

    model: str
    dataset: str
    images: int | None
    per_condition: Numbers
    conditions: tuple[str, ...]
    metric: str | None = None  # the measure asked for, or the benchmark's own
    benchmark: str | None = None
    per_class: Mapping[str, Numbers] = field(default_factory=dict)
    classes: tuple[str, ...] = ()  # those that were scored
    missing: tuple[str, ...] = ()
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    image_errors: ImageErrors | None = None
    replicates: Replicates | None = None
    options: ScoreOptions = field(default_factory=ScoreOptions)
    reference: Scores | None = None
    estimate: Mapping[str, Any] | None = None  # if only part of the grid was run
    notices: tuple[str, ...] = ()
    origin: ScoreOrigin = field(default_factory=ScoreOrigin)
    label: str = ""  # the name in tables, where the run's own name is ambiguous

    @classmethod
    def before_scoring(cls, run: Run, clips: int | None) -> Scores:
        """A run, without its numbers; `clips` is how many its images are frames of."""
        record = run.record
        tags = {plain(key): plain(value) for key, value in record.tags.items()}
        return cls(
            plain(record.model.name), plain(record.dataset.name), len(run.readable), {}, run.conditions,
            record.metric, record.benchmark,
            origin=ScoreOrigin(record, run.folder, tags, tuple(run.unreadable.values()), clips),
        )  # fmt: skip

    @property
    def record(self) -> RunRecord | None:
        return self.origin.record

    @property
    def folder(self) -> Path | None:
        return self.origin.folder

    @property
    def tags(self) -> Mapping[str, str]:
        return self.origin.tags

    @property
    def left_out(self) -> tuple[str, ...]:
        """The images that could not be read."""
        return self.origin.left_out

    @property
    def clips(self) -> int | None:
        """The number of clips, if images are frames of clips."""
        return self.origin.clips

    @property
    def units(self) -> int | None:
        """The number of independent units: clips, or images."""
        return self.images if self.clips is None else self.clips

    def units_of(self, measure: str) -> int | None:
        """Those that decide a measure: for ADR, the images that show people."""
        return self.units if self.replicates is None else self.replicates.units.get(measure, self.units)

    @property
    def called(self) -> str:
        """The run's own name (`--name`), by default the model's."""
        return (self.record.name if self.record else None) or self.model

    @property
    def name(self) -> str:
        return self.label or self.called

    @property
    def headline(self) -> str:
        """The measure that tables print first: the one asked for, the benchmark's, else the task's own."""
        usual = (self.metric, *(task.headline for task in all_tasks()), *self)
        return next(str(name) for name in usual if name is not None and name in self)

    def detail(self, name: str) -> Mapping[str, Any]:
        """The details of that name by condition; empty if there are none."""
        return self.details.get(name, {})

    def showing(self, measure: str) -> Scores:
        """The same scores with another measure first."""
        if measure not in self:
            there = f"There are {', '.join(self)}."
            raise UnknownName("measure of this run", measure, list(self), there)
        return replace(self, metric=measure)

    def with_reference(self, reference: Scores) -> Scores:
        """The same scores with CD, rCD and gains against a reference run on the same images."""
        require_same_images(self, reference)
        require_same_classes(self, reference)
        # Every condition, not just every corruption: means over different severities cannot be compared.
        lacking = [text for text in self.conditions if text not in reference.conditions]
        if lacking:
            raise InvalidOption(
                f"The reference {reference.name} lacks {first_few(lacking)}; run it under these as well."
            )
        return replace(self, reference=reference)

    # Aggregates

    @cached_property
    def sets(self) -> tuple[ConditionSet, ...]:
        """The benchmark or suites that the conditions form, then the other conditions; none while images are
        missing."""
        return () if self.missing else sets_of(self.conditions, self.benchmark)

    @property
    def over(self) -> ConditionSet:
        """The set of conditions that aggregates cover: the first."""
        return self.sets[0] if self.sets else NO_CONDITIONS

    @cached_property
    def aggregates(self) -> Mapping[str, Mapping[str, Any]]:
        """Every aggregate by measure, over the first set; none while images are missing."""
        return {} if self.missing else {measure: self.totals(measure) for measure in self}

    def aggregates_of(self, measure: str) -> Mapping[str, Any]:
        """Those of one measure; the other measures, which may be many, are not computed."""
        return {} if self.missing or measure not in self else self.totals(measure)

    def totals(self, measure: str, over: ConditionSet | None = None) -> Mapping[str, Any]:
        """The aggregates of a measure over a set of conditions, including those against the reference if
        there is one."""
        if measure in self.origin.given:
            return self.origin.given[measure]
        key = measure, self.over if over is None else over
        if key not in self._known_totals:
            theirs = self.reference.per_condition.get(measure) if self.reference is not None else None
            self._known_totals[key] = _totals(measure, self.per_condition[measure], theirs, key[1])
        return self._known_totals[key]

    @cached_property
    def _known_totals(self) -> dict[tuple[str, ConditionSet], Mapping[str, Any]]:
        return {}

    def total(self, measure: str, name: str) -> Any:
        """One aggregate: 'mPC', 'by_corruption' …; None if the grid does not allow it."""
        return self.aggregates_of(measure).get(name)

    def mean(self, measure: str | None = None, *, conditions: str | Iterable[str] | None = None) -> Any:
        """The mean under corruption: mPC or mCE of a benchmark or suite, else of the conditions there are, or
        of those named, such as "fog,snow@1-3". None where the grid is incomplete."""
        chosen = self.headline if measure is None else measure
        if conditions is None:
            return mean_of(self.aggregates_of(chosen))
        known = self.per_condition.get(self[chosen].name, {})
        return mean_of(self.totals(chosen, chosen_set(conditions, known)))

    def plain_mean(self, conditions: Iterable[str], measure: str | None = None) -> float:
        """The mean over the conditions that were run, each counted once; NaN if none was."""
        values = self.per_condition.get(self[measure or self.headline].name, {})
        known = [values[text] for text in conditions if text in values]
        return float(mean(known)) if known else math.nan

    def mean_name(self, measure: str) -> str:
        """The name of that mean: only over a benchmark or suite is it 'mPC' or, of E alone, 'mCE'."""
        named = next((name for name in NAMED if self.total(measure, name) is not None), None)
        if named == "mCE" and measure != OBJECT_ERROR:
            return self.over.mean_words
        return named or self.over.mean_name

    def by_corruption(self, measure: str) -> dict[str, float]:
        """The mean over severities of each corruption (of errors: CE); none where the grid is incomplete."""
        return dict(self.total(measure, "by_corruption") or self.total(measure, "CE") or {})

    def score(self, measure: str, condition: str = "clean") -> float:
        """The score of a condition, NaN where there is none."""
        return self.per_condition.get(measure, {}).get(condition, math.nan)

    @cached_property
    def corrupted(self) -> tuple[Condition, ...]:
        """Every corrupted condition that has a score."""
        texts = dict.fromkeys(text for row in self.per_condition.values() for text in row)
        return tuple(c for c in map(Condition.parse, texts) if not c.is_clean)

    def grid(self, measure: str) -> Grid:
        """A measure's grid over the single conditions of the run; empty if the run lacks the measure."""
        single = (text for text in self.conditions if not Condition.parse(text).is_composed)
        return grid_of(self.per_condition.get(measure, {}), single)

    def covered(self, measure: str) -> Grid:
        """A measure's grid over the conditions that means cover."""
        return grid_of(self.per_condition.get(measure, {}), self.over.covered)

    def complete(self, measure: str) -> bool:
        """Whether a measure has a score for clean and for every condition."""
        try:
            grid_of(self.per_condition.get(measure, {}), self.conditions).require_complete()
        except IncompleteGrid:
            return False
        return math.isfinite(self.score(measure))

    # Intervals and differences

    def spread(self, measure: str, over: ConditionSet | None = None) -> Mapping[str, Floats]:
        """The draws of every condition and, under flat names, of every aggregate of a measure."""
        if self.replicates is None or measure not in self.replicates.per_condition:
            return {}
        key = measure, self.over if over is None else over
        if key not in self._known_spreads:
            values = self.replicates.per_condition[measure]
            theirs = None
            if self.reference is not None and self.reference.replicates is not None:
                theirs = self.reference.replicates.per_condition.get(measure)
            totals = flatten(_totals(measure, values, theirs, key[1]))
            drawn = {name: drawn for name, drawn in totals.items() if np.ndim(drawn)}  # not counts
            self._known_spreads[key] = {**values, **drawn}
        return self._known_spreads[key]

    @cached_property
    def _known_spreads(self) -> dict[tuple[str, ConditionSet], Mapping[str, Floats]]:
        return {}

    def values(self, measure: str, over: ConditionSet | None = None) -> dict[str, float]:
        """Every condition and, under flat names, every aggregate of a measure, as in `spread`."""
        return {**self.per_condition.get(measure, {}), **flatten(self.totals(measure, over))}

    def intervals(self, measure: str) -> dict[str, Interval]:
        """The 95 % interval of every condition and aggregate of a measure, for new images like these."""
        spread, values = self.spread(measure), self.values(measure)
        bounded: dict[str, Interval] = {}
        for name in (name for name in values if name in spread):
            one = interval_around(values[name], spread[name], images=self.units_of(measure))
            bounded[name] = bound_interval(one, measure, "P" if name in self.per_condition[measure] else name)
        return bounded

    def interval(self, name: str, measure: str | None = None) -> Interval:
        """The 95 % interval of an aggregate ('mPC', 'by_corruption/fog') or of a condition ('fog@3')."""
        chosen = self[measure or self.headline].name
        if self.replicates is None:
            raise InvalidOption("These scores have no intervals; ask for them with score(interval=True).")
        intervals = self.intervals(chosen)
        if name not in intervals:
            known = [each for each in intervals if "@" not in each and "/" not in each]
            raise UnknownName(f"number of {chosen}", name, intervals, f"There are {', '.join(known)}.")
        return intervals[name]

    def __sub__(self, other: Scores) -> dict[str, dict[str, Difference]]:
        """The paired differences of two runs on the same images, by measure and name."""
        return differences(self, other, tuple(self))

    # One measure at a time, as Python reads it

    def __getitem__(self, measure: str) -> Measured:
        if measure not in self:
            raise UnknownName("measure", measure, list(self), f"There are {', '.join(self)}.")
        return Measured(measure, self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.per_condition, *self.origin.given)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, measure: str) -> bool:
        return measure in self.per_condition or measure in self.origin.given

    @property
    def p(self) -> float:
        """The clean score of the headline measure."""
        return self[self.headline].p

    @property
    def mpc(self) -> float:
        """Mean performance under corruption of the headline measure."""
        return self[self.headline].mpc

    @property
    def rpc(self) -> float:
        """mPC relative to the clean score, of the headline measure."""
        return self[self.headline].rpc

    def to_frame(self) -> Any:
        """A tidy pandas table: condition, corruption, severity, class, measure, value."""
        from stormproof.results.documents import COLUMNS, tidy

        pandas = framework("pandas", extra="notebook")
        frame = pandas.DataFrame(tidy(self), columns=COLUMNS)
        return frame.astype({"severity": "Float64"})

    def plot(self, measure: str | None = None) -> Any:
        """An Altair chart of a measure by corruption: severities, their mean, the clean score as a line."""
        return DISPLAYS["notebook"].plot(self, self[measure or self.headline].name)

    def _repr_html_(self) -> str:
        return str(DISPLAYS["notebook"].scores_html(self))

    def __repr__(self) -> str:
        return f"<scores of {self.model} on {self.dataset}: {self[self.headline]!r}, {len(self)} measures>"


@dataclass(frozen=True, repr=False, eq=False)
class Measured:
    """One measure of some scores: a number per condition, and the aggregates."""

    name: str
    scores: Scores

    def __getitem__(self, condition: str) -> float:
        values = self.scores.per_condition.get(self.name, {})
        if condition not in values:
            raise UnknownName("condition of the run", condition, values, "")
        return values[condition]

    @property
    def p(self) -> float:
        """The clean score."""
        return self._total("P")

    @property
    def mpc(self) -> float:
        """Mean performance under corruption, over the conditions of the benchmark or suite."""
        return self._total("mPC")

    @property
    def rpc(self) -> float:
        """mPC relative to the clean score."""
        return self._total("rPC")

    @property
    def mce(self) -> float:
        """Mean corruption error, for measures of which less is better."""
        return self._total("mCE")

    @property
    def mean(self) -> float:
        """The mean over the corrupted conditions that means cover, whichever they are."""
        self.scores.covered(self.name).require_complete()
        return float(self.scores.mean(self.name))

    def interval(self, name: str) -> Interval:
        """The 95 % interval of an aggregate or a condition."""
        return self.scores.interval(name, self.name)

    def _total(self, name: str) -> float:
        total = self.scores.total(self.name, name)
        if total is None:
            over = self.scores.over
            if self.scores.complete(self.name) and not over.whole:  # a mean, but not a paper's
                mean = f"take scores[{self.name!r}].mean"
                raise InvalidOption(f"{name} is over a whole benchmark or suite, not {over.words}; {mean}.")
            raise IncompleteGrid((f"{name} of {self.name} over {over.name or 'a benchmark or suite'}",), 1)
        return float(total)

    def __repr__(self) -> str:
        totals = self.scores.aggregates_of(self.name)
        scale = measures()[self.name].scale
        numbers = ", ".join(
            f"{key} {(100 if key == 'rPC' else scale) * totals[key]:.1f}"
            for key in ("P", "mPC", "rPC", "mCE")
            if key in totals
        )
        over = f" over {self.scores.over.name}" if self.scores.over.whole else ""
        return f"<{self.name}{over}: {numbers or len(self.scores.per_condition.get(self.name, {}))}>"


def _totals(measure: str, values: Values, reference: Values | None, over: ConditionSet) -> Mapping[str, Any]:
    totals = aggregates(measure, values, over)
    return totals if reference is None else totals | against(measure, values, reference, over)
