"""Verdicts on a domain: pass, fail or inconclusive for every cell and requirement.

A cell is judged where it is worst: at the worse end of every quantity, in the condition that combines them
(its corner), on the images and objects of its tags and attributes. Other conditions of the run that lie in
the cell must meet the requirement too. That the rest of the cell is no worse than its corner is assumed.

All cells and requirements are judged together, those not covered yet included. A pass is the claim that a
requirement is met, so the chance that any pass is wrong is held, and so is the chance that any failure is
wrong: Holm's correction over all of them, each way, at the level of this look (`results.looks`). Adding the
conditions of further cells later takes no further chance: they were counted from the beginning.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, first_few
from stormproof.core.sample import Bools
from stormproof.corruptions import find
from stormproof.corruptions.units import physical
from stormproof.datasets.tags import read_tags
from stormproof.results.aggregates import bound_interval
from stormproof.results.calibrated import SMALLEST, doubt_about
from stormproof.results.detection_rate import FoundObjects, iter_found_objects
from stormproof.results.domain import (
    SEVERITY,
    Domain,
    DomainCell,
    DomainRequirement,
    VariedQuantity,
    describe,
)
from stormproof.results.enough import MOST, Levels, images_to_decide
from stormproof.results.interval import FEWEST, WRONG, Interval, holm, interval_around
from stormproof.results.looks import Look, Spent, spent_at
from stormproof.results.run import Run
from stormproof.results.scoring import drawn_under, weights_of
from stormproof.results.slices import collect, units_in
from stormproof.results.store.parts import SETTINGS, resume_command
from stormproof.results.store.seal import json_digest
from stormproof.results.truths import Truths
from stormproof.results.verdicts import Outcome
from stormproof.results.weights import REPLICATES


class Coverage(StrEnum):
    COVERED = "covered"
    PARTLY = "worst corner not run"
    NONE = "not covered"
    NO_DATA = "no images of it"


@dataclass(frozen=True, slots=True)
class CornerScore:
    """A requirement under one condition in a cell: its interval at the level of the look, the one at the
    level of the strictest test, and on how many images and objects they rest."""

    condition: str
    interval: Interval
    strict: Interval
    images: int
    objects: int | None
    doubt: str = ""

    @property
    def decides(self) -> bool:
        return self.images >= FEWEST and not math.isnan(self.strict.se) and not self.doubt


@dataclass(frozen=True, slots=True)
class DomainVerdict:
    """The verdict on a requirement in a cell. `passes` and `fails` are the corrected chances of results as
    good, or as bad, if the requirement were just met; `worst` is what decides."""

    requirement: DomainRequirement
    cell: DomainCell
    coverage: Coverage
    outcome: Outcome
    tested: tuple[CornerScore, ...]
    missing: tuple[str, ...]
    passes: float = 1.0
    fails: float = 1.0
    images_needed: float | None = None

    @property
    def worst(self) -> CornerScore | None:
        known = [t for t in self.tested if not math.isnan(t.interval.estimate)]
        sign = 1 if self.requirement.bound == "at_least" else -1
        return min(known, key=lambda t: sign * t.interval.estimate, default=None)

    @property
    def images(self) -> int:
        return min((t.images for t in self.tested), default=0)

    @property
    def objects(self) -> int | None:
        counts = [t.objects for t in self.tested if t.objects is not None]
        return min(counts) if counts else None

    @property
    def reason(self) -> str:
        """Why a cell is inconclusive, in words; empty if it is decided."""
        if self.outcome is not Outcome.INCONCLUSIVE:
            return ""
        if self.coverage is not Coverage.COVERED:
            return str(self.coverage)
        doubts = [t.doubt for t in self.tested if t.doubt]
        if doubts:
            return f"no verdict: {doubts[0]}"
        if self.images < FEWEST:
            return f"too few: {FEWEST} images that show it are needed"
        return "the images do not decide"


@dataclass(frozen=True, slots=True)
class DomainVerdicts:
    """All verdicts on a domain, in the order of requirements and cells."""

    domain: Domain
    run: str  # the run's name
    folder: str
    images: int
    dataset_images: int
    look: Spent
    rows: tuple[DomainVerdict, ...]
    apart: tuple[str, ...]  # conditions of the run that lie outside the domain

    @property
    def counts(self) -> dict[Outcome, int]:
        return {outcome: sum(row.outcome is outcome for row in self.rows) for outcome in Outcome}

    @property
    def how_sure(self) -> str:
        """The chance of wrong verdicts, in words."""
        level = f"{100 * WRONG:g} %"
        said = (
            f"{len(self.rows)} verdicts are judged together. The chance that any pass is wrong is at most "
            f"{level}, and so is the chance that any failure is wrong (Holm's correction over all "
            f"{len(self.rows)}, each way), for new images like these. Cells are judged at their worst "
            "corner; that the rest of a cell is no worse is assumed."
        )
        return f"{self.look.words} {said}" if self.look.words else said

    @property
    def sentence(self) -> str:
        """The whole in a sentence."""
        counts, total = self.counts, len(self.rows)
        open_ = [row for row in self.rows if row.coverage is not Coverage.COVERED]
        said = (
            f"{self.run}: of {total} verdicts on {self.domain.name}, {counts[Outcome.PASS]} pass, "
            f"{counts[Outcome.FAIL]} fail and {counts[Outcome.INCONCLUSIVE]} are inconclusive"
        )
        return said + (f", {len(open_)} of them because the run does not cover the cell." if open_ else ".")

    @property
    def commands(self) -> list[str]:
        """What to run for the cells that are not covered, then for those that the images leave open."""
        return self._commands(self.rows)

    def command(self, row: DomainVerdict) -> str:
        """What would cover or likely decide one cell; empty if nothing is known to."""
        return next(iter(self._commands([row])), "")

    def _commands(self, rows: Sequence[DomainVerdict]) -> list[str]:
        missing = list(dict.fromkeys(text for row in rows for text in row.missing))
        needed = [row.images_needed for row in rows if row.images_needed is not None]
        within = [int(number) for number in needed if number <= self.dataset_images]
        options = [("-c", ",".join(missing))] if missing else []
        options += [("--limit", str(max(within)))] if within else []
        repeat = ("stormproof", "run", "--config", f"{self.folder}/{SETTINGS}")
        return [shlex.join([*repeat, *option]) for option in options]

    def advice(self, row: DomainVerdict) -> str:
        """What to do about an inconclusive cell, in words."""
        if row.outcome is not Outcome.INCONCLUSIVE:
            return ""
        if command := self.command(row):
            return command
        if row.coverage is Coverage.NO_DATA:
            return "add images with these tags"
        if row.images_needed is None:
            return (
                "too close to the threshold to say how many images would decide"
                if row.images >= FEWEST
                else ""
            )
        if math.isinf(row.images_needed):
            return f"more than {MOST:,} images like these"
        return f"about {row.images_needed:,.0f} images like these; the dataset has {self.dataset_images:,}"


# The arithmetic: no run, no dataset.


def judge_rows(rows: Sequence[DomainVerdict], level: float) -> list[DomainVerdict]:
    """The verdicts, with Holm's correction over all rows, each way.

    A cell passes if every condition in it, its corner among them, is better than the threshold: the largest
    of their chances counts. It fails if one is worse: the smallest counts, times their number.
    """
    chances = [_chances(row) for row in rows]
    passes = holm({str(k): passing for k, (passing, _) in enumerate(chances)})
    fails = holm({str(k): failing for k, (_, failing) in enumerate(chances)})
    made = []
    for k, row in enumerate(rows):
        good, bad = passes[str(k)], fails[str(k)]
        outcome = Outcome.PASS if good < level else Outcome.FAIL if bad < level else Outcome.INCONCLUSIVE
        made.append(replace(row, outcome=outcome, passes=good, fails=bad))
    return made


def _chances(row: DomainVerdict) -> tuple[float, float]:
    """The chances of results as good and as bad as a cell's if the requirement were just met."""
    threshold, high = row.requirement.threshold, row.requirement.bound == "at_least"
    deciding = [t for t in row.tested if t.decides]
    if not deciding:
        return 1.0, 1.0
    above = [t.strict.chance_above(threshold) for t in deciding]
    below = [t.strict.chance_below(threshold) for t in deciding]
    good, bad = (above, below) if high else (below, above)
    whole = row.coverage is Coverage.COVERED and len(deciding) == len(row.tested)
    return max(good) if whole else 1.0, min(1.0, len(bad) * min(bad))


# Which conditions of a run lie in which cells


Place = dict[str, tuple[str, float]]  # of a condition: by dimension, the corruption and the quantity's value


def place_of(domain: Domain, condition: Condition) -> Place | None:
    """Where a condition lies in a domain; None if it does something that no dimension knows."""
    place = {d.name: ("", d.absent) for d in domain.dimensions if d.kind == "quantity"}
    for part in condition.parts:
        varied = [(d, q) for d in domain.dimensions for q in d.quantities if q.corruption == part.corruption]
        known = {name for _, q in varied for name in (q.parameter, *dict(q.fixed), *_synonyms(q))}
        if not varied or any(name not in known for name, _ in part.params):
            return None
        for dimension, quantity in varied:
            value = _value(quantity.parameter, part)
            if value is None or place[dimension.name][0]:
                return None
            place[dimension.name] = (quantity.corruption, value)
    return place


def _synonyms(quantity: VariedQuantity) -> set[str]:
    """Other names under which a corruption takes a quantity, as haze takes β for visibility."""
    rules = find(quantity.corruption).alternatives()
    same = {key for key, _, inputs in rules if quantity.parameter in (key, *inputs)}
    return {name for key, _, inputs in rules if key in same for name in (key, *inputs)}


def _value(parameter: str, part: Condition) -> float | None:
    """The value of a quantity under a part of a condition."""
    if parameter == SEVERITY:
        return None if part.severity is None else float(part.severity)
    values = {**find(str(part.corruption)).parameters(part), **dict(part.params)}
    if parameter not in values:  # one that another follows from, as visibility from β
        values |= {quantity.name: quantity.value for quantity in physical(part)}
    value = values.get(parameter)
    return None if value is None or isinstance(value, str) else float(value)


def inside(domain: Domain, cell: DomainCell, place: Place) -> bool:
    """Whether a condition's place is in a cell."""
    return all(
        domain.by_name[name].contains(domain.part(name, part), place[name][1])
        for name, part in cell if domain.by_name[name].kind == "quantity"
    )  # fmt: skip


def same_place(one: Place, two: Place) -> bool:
    return all(
        one[name][0] == two[name][0] and math.isclose(one[name][1], two[name][1], rel_tol=1e-6)
        for name in one
    )


# Judging a run


def judge_domain(
    domain: Domain, run: Run, looks: Sequence[Look], *, replicates: int = REPLICATES
) -> DomainVerdicts:
    """The verdicts on a run at this look; `looks` are those taken before."""
    run.check()
    if run.missing:
        raise InvalidOption(
            f"{run.folder}: {first_few([*run.missing])} lack images. Finish them first: "
            f"{resume_command(run.folder)}"
        )
    places = ((text, place_of(domain, Condition.parse(text))) for text in run.conditions)
    known = {text: place for text, place in places if place is not None}
    this = domain_look(domain, run)
    look = spent_at(this, looks, run.record.dataset.images, domain.planned_images)
    asked = [(r, cell) for r in domain.requirements for cell in domain.cells(r)]
    here = [[text for text, place in known.items() if inside(domain, cell, place)] for _, cell in asked]
    prober = _Prober(domain, run, replicates, look.level, len(asked))
    tested = prober.scores(asked, here)
    rows = [
        _row(r, cell, {text: known[text] for text in texts}, prober, scores)
        for (r, cell), texts, scores in zip(asked, here, tested, strict=True)
    ]
    judged = judge_rows(rows, look.level)
    taken = [each for each in looks if each.requirements == this.requirements and each != this]
    judged = [
        replace(row, images_needed=_images_to_decide(row, run, look, [*taken, this], len(asked)))
        for row in judged
    ]
    within = {text for texts in here for text in texts}
    apart = tuple(text for text in run.conditions if text not in within)
    return DomainVerdicts(
        domain, run.name, str(run.folder), run.record.images, run.record.dataset.images, look,
        tuple(judged), apart,
    )  # fmt: skip


def domain_look(domain: Domain, run: Run) -> Look:
    """The look at a domain that judging a run now is."""
    return Look(images=run.record.images, requirements=json_digest(describe(domain)))


def _row(
    r: DomainRequirement, cell: DomainCell, here: Mapping[str, Place], prober: _Prober,
    tested: tuple[CornerScore, ...],
) -> DomainVerdict:  # fmt: skip
    """A cell, not judged yet: what the run has for it, and the corners that it lacks."""
    missing = []
    for corner in prober.domain.corners(cell):
        place = place_of(prober.domain, corner)
        assert place is not None, "a corner is made of the domain's own quantities"
        if not any(same_place(place, other) for other in here.values()):
            missing.append(str(corner))
    coverage = Coverage.COVERED if not missing else Coverage.PARTLY if here else Coverage.NONE
    if not prober.images_of(cell).any():
        coverage, missing = Coverage.NO_DATA, []
    return DomainVerdict(r, cell, coverage, Outcome.INCONCLUSIVE, tested, tuple(missing))


Cells = Mapping[int, tuple[DomainCell, Sequence[str]]]  # by place among all: a cell, and the conditions in it


class _Prober:
    """Scores of cells: each requirement's conditions are matched once, for all its cells."""

    def __init__(self, domain: Domain, run: Run, replicates: int, level: float, together: int) -> None:
        self.domain, self.run, self.replicates = domain, run, replicates
        self.level, self.strictest = level, level / together  # of intervals, and of Holm's first test
        self.tags: dict[str, list[frozenset[str]]] = {
            d.name: read_tags(run.dataset, d.source, run.readable)
            for d in domain.dimensions
            if d.kind == "tag"
        }

    def images_of(self, cell: DomainCell) -> Bools:
        """The images that have the tags of a cell."""
        chosen = np.ones(len(self.run.readable), np.bool_)
        for name, part in cell:
            if self.domain.by_name[name].kind == "tag":
                wanted = {*self.domain.part(name, part).values}
                chosen &= np.array([bool(tags & wanted) for tags in self.tags[name]])
        return chosen

    def scores(
        self, asked: Sequence[tuple[DomainRequirement, DomainCell]], here: Sequence[Sequence[str]]
    ) -> list[tuple[CornerScore, ...]]:
        """The scores of each requirement in each cell, under the conditions that lie there."""
        made: list[dict[str, CornerScore]] = [{} for _ in asked]
        for r in self.domain.requirements:
            cells = {k: (cell, here[k]) for k, (each, cell) in enumerate(asked) if each == r and here[k]}
            probe = self._shares if r.found else self._measures
            for k, score in probe(r, cells) if cells else ():
                made[k][score.condition] = score
        return [
            tuple(scores[text] for text in texts if text in scores)
            for scores, texts in zip(made, here, strict=True)
        ]

    def _shares(self, r: DomainRequirement, cells: Cells) -> Iterator[tuple[int, CornerScore]]:
        """The share of objects found, by cell and condition."""
        assert r.found is not None
        objects = iter_found_objects(
            self.run, list(dict.fromkeys(text for _, texts in cells.values() for text in texts)),
            classes=[r.found], attributes=self.domain.attributes, replicates=self.replicates,
            min_score=r.min_score,
        )  # fmt: skip
        for text, objects_found in objects:
            for k, (cell, texts) in cells.items():
                if text in texts:
                    inside_cell = self._objects_of(cell, objects_found)
                    share = objects_found.share(inside_cell, self.images_of(cell))
                    shown, strict = map(share.interval, (self.level, self.strictest))
                    yield k, CornerScore(text, shown, strict, share.units, share.objects)

    def _objects_of(self, cell: DomainCell, objects: FoundObjects) -> Bools:
        chosen = np.ones(len(objects.hit), np.bool_)
        for name, part in cell:
            dimension = self.domain.by_name[name]
            if dimension.kind == "attribute":
                span = self.domain.part(name, part)
                chosen &= objects.within(dimension.source, span.low, span.high)
        return chosen

    def _measures(self, r: DomainRequirement, cells: Cells) -> Iterator[tuple[int, CornerScore]]:
        """A measure of scores, by cell and condition: cells with the same tags share their images."""
        ones = weights_of(self.run, self.replicates)
        chosen = {k: self.images_of(cell) for k, (cell, _) in cells.items()}
        names = {k: images.tobytes().hex() for k, images in chosen.items()}
        weights = {names[k]: ones * images for k, images in chosen.items()}
        collected = collect(self.run, weights, measure=r.metric)
        objects = self._object_counts()
        for k, (_, texts) in cells.items():
            every = units_in(self.run, chosen[k])
            unit = "clips" if every < int(chosen[k].sum()) else "images"
            count = None if objects is None else int(objects[chosen[k]].sum())
            for text in texts:
                scored = collected.by_slice[names[k]].get(text)
                if scored is None:
                    continue
                units = scored.units.get(r.metric, every)  # those that decide it, such as those with people
                reason = doubt_about(r.metric, len(collected.classes), units, unit, enough=SMALLEST)
                value, drawn = float(scored.numbers[r.metric][0]), drawn_under(text, scored, r.metric)
                shown, strict = (
                    bound_interval(
                        interval_around(value, drawn, images=units, wrong=wrong), r.metric, "P", wrong=wrong
                    )
                    for wrong in (self.level, self.strictest)
                )
                yield k, CornerScore(text, shown, strict, units, count, reason)

    def _object_counts(self) -> Any:
        """Objects that count in each image; None where there are none."""
        truths = Truths.of_run(self.run)
        if not truths.has_objects:
            return None
        still = truths.still
        return np.bincount(still.image[~still.excused], minlength=len(self.run.readable))


def _images_to_decide(
    row: DomainVerdict, run: Run, look: Spent, looks: Sequence[Look], together: int
) -> float | None:
    """About how many images would likely decide a covered cell that is open; None if unknown or decided."""
    worst, images = row.worst, run.record.images
    if row.outcome is not Outcome.INCONCLUSIVE or row.coverage is not Coverage.COVERED or worst is None:
        return None
    if worst.doubt or look.full <= images < look.of:  # all planned images are judged
        return None
    if row.images < FEWEST:
        return float(math.ceil(1.2 * FEWEST * images / max(1, row.images)))
    digest = next(each.requirements for each in looks if each.images == images)

    def levels(number: int) -> Levels:
        following = Look(images=number, requirements=digest)
        strict = spent_at(following, looks, max(look.of, number), look.planned).level / together
        return Levels(strict, strict)

    return images_to_decide(worst.interval, row.requirement.threshold, images, levels)
