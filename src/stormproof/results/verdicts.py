"""Verdicts on requirements: pass, fail, or inconclusive; as JUnit XML, as a Markdown table, and for pytest.

A requirement passes if the whole interval is on its good side. It fails if an estimate this bad would have a
probability below 2.5 % were the requirement just met, corrected for the number of requirements judged
together (Holm). Passes need no correction: all of them must pass. A run that is judged more than once while
it grows, or before it has all images of its dataset, is judged at a stricter level (`results.looks`). Fewer
than `FEWEST` images decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree  # only written here, never parsed

from stormproof.core.errors import InvalidOption, OutputError, UnknownName, first_few, nearest
from stormproof.core.sample import Floats
from stormproof.core.table import Entry, Table
from stormproof.metrics.metric import measures, ratio
from stormproof.results.aggregates import MEAN, NAMED, bound_interval
from stormproof.results.calibrated import PAGE, SMALLEST, doubt
from stormproof.results.comparable import require_same_classes, require_same_images
from stormproof.results.enough import Levels, advice, images_to_decide
from stormproof.results.interval import FEWEST, WRONG, Interval, holm, interval_around
from stormproof.results.looks import Look, Spent, digest_of, read_looks, record_look, spent_at
from stormproof.results.requirements import Requirement, check_plan, read_requirements
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.sets import ConditionSet, same_condition, suite_set
from stormproof.results.weights import REPLICATES

UNITS = "shares in %, other measures as they are"


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a requirement. `margin` is positive on the good side of the threshold.

    `p` is the chance of an estimate as bad as this if the requirement were just met, `holm` the same
    corrected for all requirements that were judged `together`. `look` is when the run was judged, if known.
    `doubt` says why the interval decides nothing: it is not known to be calibrated. `more` says how many
    images would likely decide what is inconclusive, as far as that is known.
    """

    requirement: Requirement
    outcome: Outcome
    interval: Interval
    margin: float
    p: float
    holm: float
    together: int
    look: Spent | None = None
    doubt: str = ""
    more: str = ""

    @property
    def level(self) -> float:
        """The chance of a wrong verdict at this look."""
        return WRONG if self.look is None else self.look.level

    @property
    def few(self) -> bool:
        """Whether there are too few images, or clips, for any verdict."""
        return self.interval.images is not None and self.interval.images < FEWEST

    @property
    def printed(self) -> tuple[float, float, float, float]:
        """The estimate, both ends of its interval and the margin, as tables print them."""
        scale, i = 1.0 if self.requirement.is_count else 100.0, self.interval
        return scale * i.estimate, scale * i.low, scale * i.high, scale * self.margin

    @property
    def text(self) -> str:
        i = self.interval
        alone = self.outcome is Outcome.INCONCLUSIVE and self.p < self.level and not (self.few or self.doubt)
        return (
            f"{self.requirement.text}: {self.outcome}, {i.estimate:.4f} [{i.low:.4f}, {i.high:.4f}], "
            f"margin {self.margin:+.4f}"
            + (f"; alone it would fail, but {self.together} are judged together" if alone else "")
            + (f"; {i.images} are too few, {FEWEST} are needed" if self.few else "")
            + (f"; no verdict: {self.doubt} ({PAGE})" if self.doubt else "")
            + (f". {self.more}" if self.more else "")
        )

    def as_dict(self) -> dict[str, Any]:
        r = self.requirement
        return {
            "id": r.id, "requirement": r.text, "metric": r.metric, "of": r.of, "condition": r.condition,
            "suite": r.suite, "bound": r.bound, "threshold": r.threshold, **self.interval.as_dict(),
            "margin": self.margin, "verdict": str(self.outcome), "p": self.p, "holm": self.holm,
            "together": self.together, "look": None if self.look is None else self.look.as_dict(),
            "doubt": self.doubt, "more_images": self.more,
        }  # fmt: skip


def check_run(
    run: Run, requirements: Sequence[Requirement], *,
    against: Run | None = None, replicates: int = REPLICATES, looks: Sequence[Look] | None = None,
    planned: int | None = None,
) -> list[Verdict]:  # fmt: skip
    """The verdicts on a run, with a baseline if a requirement needs one; `planned` is how many images are
    meant to be judged, if not the whole dataset.

    The look is recorded in the run folder, and its level follows from those recorded there; if `looks` are
    given, from those instead, and nothing is recorded.
    """
    scores = run.score(replicates=replicates)
    baseline = None if against is None else against.score(replicates=replicates)
    if baseline is not None:
        require_same_images(scores, baseline)
    look = look_at(run, requirements, against, planned)
    taken = read_looks(run.folder) if looks is None else looks
    spent = spent_at(look, taken, run.record.dataset.images, planned)
    verdicts = [
        replace(verdict, more=_more(verdict, scores, look, taken))
        for verdict in judge(requirements, scores, baseline, spent)
    ]
    if looks is None:
        with suppress(OutputError):  # a folder that cannot be written cannot grow either
            record_look(run.folder, look)
    return verdicts


def _more(verdict: Verdict, scores: Scores, look: Look, taken: Sequence[Look]) -> str:
    """How many images would likely decide an inconclusive requirement, at the level of their look."""
    if verdict.outcome is not Outcome.INCONCLUSIVE or verdict.doubt or verdict.look is None:
        return ""
    r, spent = verdict.requirement, verdict.look
    if spent.full <= look.images < spent.of:  # all planned images are judged: more of them decide nothing
        return ""

    def levels(images: int) -> Levels:
        following = Look(images=images, requirements=look.requirements)
        of = max(spent.of, images)  # a larger dataset like this one, if it has too few
        level = spent_at(following, [*taken, look], of, spent.planned).level
        strict = level / verdict.together  # failures are corrected for the number of requirements
        return Levels(level, strict) if r.bound == "at_least" else Levels(strict, level)

    return advice(images_to_decide(verdict.interval, r.threshold, look.images, levels), scores)


def look_at(
    run: Run, requirements: Sequence[Requirement], against: Run | None, planned: int | None = None
) -> Look:
    """The look that judging a run now is."""
    baseline = None if against is None else against.record.key
    return Look(images=run.record.images, requirements=digest_of(requirements, baseline, planned))


class Verdicts(tuple[Verdict, ...]):
    """The verdicts on a run, in the order of the requirements; a notebook shows them as a table."""

    __slots__ = ()

    @property
    def passed(self) -> bool:
        """Whether every requirement passes; an inconclusive one does not."""
        return all(verdict.outcome is Outcome.PASS for verdict in self)

    def _repr_html_(self) -> str:
        rows: list[tuple[Entry, ...]] = [
            (v.requirement.id, v.requirement.text, str(v.outcome), *v.printed) for v in self
        ]
        columns = ("id", "requirement", "verdict", "estimate", "95 % from", "to", "margin")
        return Table("verdicts", f"Requirements ({UNITS})", columns, rows).as_html()


def check(
    run: Run | str | PathLike[str],
    requirements: Path | str | Sequence[Mapping[str, Any]],
    *,
    against: Run | str | PathLike[str] | None = None,
    planned_images: int | None = None,
) -> Verdicts:
    """Judge a run by requirements: pass, fail, or inconclusive if the interval contains the threshold.

    Requirements are a YAML file, or a list such as [{"id": "R1", "metric": "AP50", "condition": "fog@3",
    "at_least": 0.4}]. `against` is the baseline of those that ask for one. `planned_images` is how many
    images are meant to be judged, if not the whole dataset; a file may say so itself.
    """
    opened, baseline = (
        side if side is None or isinstance(side, Run) else Run(side) for side in (run, against)
    )
    assert opened is not None
    asked = read_requirements(requirements)
    planned = asked.planned_images or check_plan(planned_images, "check")
    return Verdicts(check_run(opened, asked, against=baseline, planned=planned))


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 when all pass, 1 when one fails, 3 when the worst is inconclusive."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return 1 if Outcome.FAIL in outcomes else 3 if Outcome.INCONCLUSIVE in outcomes else 0


def judge(
    requirements: Sequence[Requirement], scores: Scores, baseline: Scores | None = None,
    look: Spent | None = None,
) -> list[Verdict]:  # fmt: skip
    """The verdicts on requirements; one that the run cannot answer is an error that names it.

    Without a look, they are judged as at a single look at the whole dataset.
    """
    named = [replace(r, called=_mean_name(r, scores)) for r in requirements]
    level = WRONG if look is None else look.level
    intervals = [_interval(r, scores, baseline, level) for r in named]
    for r, interval in zip(named, intervals, strict=True):
        if math.isnan(interval.estimate) or math.isnan(interval.se):
            raise InvalidOption(f"{r.id}: {r.text} has no value in this run.")
    # By position, not by id: evidence may hold two requirements of one id, and each has its own interval.
    chances = {
        str(k): i.chance_below(r.threshold) if r.bound == "at_least" else i.chance_above(r.threshold)
        for k, (r, i) in enumerate(zip(named, intervals, strict=True))
    }
    tests = zip(named, intervals, chances.values(), holm(chances).values(), strict=True)
    verdicts = [_verdict(*test, together=len(named), look=look) for test in tests]
    return [_unless_doubtful(verdict, scores) for verdict in verdicts]


def _unless_doubtful(verdict: Verdict, scores: Scores) -> Verdict:
    """The verdict; inconclusive if the interval that it rests on is not calibrated for this run."""
    r = verdict.requirement
    measure = _measure_of(r, scores) if r.condition is None else r.metric
    reason = doubt(scores, measure, enough=SMALLEST)  # fewer images decide nothing by any measure
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, doubt=reason) if reason else verdict


def _measure_of(r: Requirement, scores: Scores) -> str:
    """The measure that an aggregate is of."""
    return r.of or ("E" if r.metric == "mCE" else scores.headline)


def _verdict(
    r: Requirement, interval: Interval, p: float, corrected: float, *, together: int, look: Spent | None
) -> Verdict:
    at_least = r.bound == "at_least"
    margin = interval.estimate - r.threshold if at_least else r.threshold - interval.estimate
    safe = interval.low >= r.threshold if at_least else interval.high <= r.threshold
    open_ = Verdict(r, Outcome.INCONCLUSIVE, interval, margin, p, corrected, together, look)
    if open_.few:
        return open_
    if safe:
        return replace(open_, outcome=Outcome.PASS)
    return replace(open_, outcome=Outcome.FAIL) if corrected < open_.level else open_


def how_sure(verdicts: Sequence[Verdict]) -> str:
    """The error rates that verdicts promise, in words."""
    together, look = len(verdicts), verdicts[0].look
    several = together > 1
    words = [
        f"A wrong pass{' of all requirements' if several else ''} has a chance of {100 * WRONG:g} %, and so "
        "has a wrong failure"
        + (f" of any of the {together} requirements (Holm's correction)" if several else "")
        + "; docs/confidence.md says what was measured."
    ]
    if several:
        words.append(
            "Passes of single rows are not controlled jointly: of many rows just not met, some pass."
        )
    if verdicts[0].few:
        words.insert(0, f"Fewer than {FEWEST} images, or clips, decide nothing.")
    doubtful = [f"{v.requirement.id}: {v.doubt}" for v in verdicts if v.doubt]
    if doubtful:
        words.append(f"No verdict on {'; '.join(doubtful)} ({PAGE}).")
    more = [f"{v.requirement.id}: {v.more}" for v in verdicts if v.more]
    return " ".join([*([look.words] if look is not None and look.words else []), *words, *more])


def _mean_name(r: Requirement, scores: Scores) -> str:
    """The name of a mean over conditions that are not a suite; empty if it is the metric's own."""
    if r.suite is not None or r.metric not in ("mPC", "rPC", "mCE") or scores.over.whole:
        return ""
    name = scores.over.mean_name
    return f"{name}, relative to P," if r.metric == "rPC" else name


def _interval(r: Requirement, scores: Scores, baseline: Scores | None, wrong: float = WRONG) -> Interval:
    """The interval of what a requirement bounds: a value, a loss against clean, or a drop against the
    baseline. The true value is beyond either end with a chance of `wrong`."""
    # The baseline is read by the run's own measure and conditions, whatever its headline and set are.
    measure = _measure_of(r, scores)
    over = scores.over if r.suite is None else suite_set(r.suite)
    estimate, drawn = _value(r, scores, measure, over)
    sign = 1 if r.higher else -1
    if r.bound == "at_most_drop":
        if baseline is None:
            raise InvalidOption(f"{r.id}: at_most_drop needs a baseline; give one with --against RUN.")
        require_same_classes(scores, baseline)
        before, theirs = _value(r, baseline, measure, over)
        estimate, drawn = sign * (before - estimate), sign * (theirs - drawn)
    elif r.bound == "at_most_loss":
        clean, theirs = _cell(r, scores, "clean")
        estimate, drawn = sign * (clean - estimate), sign * (theirs - drawn)
    bounds = measure if r.condition is None else r.metric
    around = interval_around(estimate, drawn, images=scores.units_of(bounds), wrong=wrong)
    if r.bound in ("at_most_drop", "at_most_loss"):
        return around.of_difference(measures()[bounds].most, wrong=wrong)
    return bound_interval(around, bounds, r.metric if r.condition is None else "P", wrong=wrong)


def _value(r: Requirement, scores: Scores, measure: str, over: ConditionSet) -> tuple[float, Floats]:
    """The value that a requirement is about, with its draws: a score, or an aggregate of `measure`
    over a set of conditions."""
    if r.condition is not None:
        return _cell(r, scores, r.condition)
    _require_measure(r, scores, measure)
    if r.higher != measures()[measure].higher:  # the headline, since the requirement names no measure
        raise InvalidOption(
            f"{r.id}: {r.metric} of which measure? {scores.name} is reported in {measure}, which is better "
            "when lower; name one with the key 'of'."
        )
    lacking = [text for text in over.covered if text not in scores.per_condition[measure]]
    if lacking:
        raise InvalidOption(
            f"{r.id} covers conditions that were not run in {scores.folder}: {first_few(lacking)}."
        )
    point, spread = scores.values(measure, over), scores.spread(measure, over)
    name = r.metric
    if name not in point and MEAN in point:  # of no benchmark or suite: named aggregates are plain means
        if name == "rPC" and "P" in point:
            return ratio(point[MEAN], point["P"]), ratio(spread[MEAN], spread["P"])
        name = MEAN if name in NAMED else name
    if name not in point or name not in spread:
        only = "" if over.covered else ": it was run on clean images only"
        raise InvalidOption(f"{r.id}: {scores.name} has no {r.metric} of {measure}{only}.")
    return float(point[name]), spread[name]


def _cell(r: Requirement, scores: Scores, text: str) -> tuple[float, Floats]:
    _require_measure(r, scores, r.metric)
    assert scores.replicates is not None
    spread = scores.replicates.per_condition.get(r.metric, {})
    same = same_condition(text, scores.conditions)
    if same is None:
        close = UnknownName("condition", text, scores.conditions)
        raise InvalidOption(f"{r.id}: {text} was not run, so {r.metric} under it is not known. {close}")
    if same not in spread:
        raise InvalidOption(f"{r.id}: {same} was run, but its {r.metric} is not known.")
    return scores.per_condition[r.metric][same], spread[same]


def _require_measure(r: Requirement, scores: Scores, measure: str) -> None:
    if measure not in scores.per_condition:
        near = nearest(measure, list(scores.per_condition), 3) or list(scores.per_condition)[:3]
        raise InvalidOption(
            f"{r.id}: the run has no {measure}; it has {', '.join(near)} …: 'stormproof score --all'."
        )


_MARKS = {Outcome.PASS: "✅ pass", Outcome.FAIL: "❌ fail", Outcome.INCONCLUSIVE: "❔ inconclusive"}


def junit(name: str, verdicts: Sequence[Verdict]) -> str:
    """JUnit XML. It has no third outcome, so an inconclusive requirement is a skipped test with a message."""
    counts = {outcome: sum(v.outcome is outcome for v in verdicts) for outcome in Outcome}
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root, "testsuite", name=f"stormproof {name}", tests=str(len(verdicts)),
        failures=str(counts[Outcome.FAIL]), errors="0", skipped=str(counts[Outcome.INCONCLUSIVE]),
    )  # fmt: skip
    for verdict in verdicts:
        title = f"{verdict.requirement.id}: {verdict.requirement.text}"
        case = ElementTree.SubElement(
            suite, "testcase", classname="stormproof.requirements", name=title, time="0"
        )
        if verdict.outcome is Outcome.FAIL:
            ElementTree.SubElement(case, "failure", message=verdict.text)
        elif verdict.outcome is Outcome.INCONCLUSIVE:
            ElementTree.SubElement(case, "skipped", message=verdict.text)
        ElementTree.SubElement(case, "system-out").text = verdict.text
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def markdown(name: str, verdicts: Sequence[Verdict]) -> str:
    """A table for a pull request or a job's summary."""
    lines = [
        f"### Stormproof: {name}",
        "",
        "| id | requirement | verdict | estimate | 95 % interval | margin |",
        "|---|---|---|---|---|---|",
    ]
    for v in verdicts:
        estimate, low, high, margin = v.printed
        words = (each.replace("|", "\\|") for each in (v.requirement.id, v.requirement.text))
        numbers = (f"{estimate:.2f}", f"{low:.2f} … {high:.2f}", f"{margin:+.2f}")
        lines.append(f"| {' | '.join((*words, _MARKS[v.outcome], *numbers))} |")
    return "\n".join([*lines, "", f"{UNITS.capitalize()}. {how_sure(verdicts)}", ""])


def assert_requirements(
    run: Path | str, requirements: Path | str, *, against: Path | str | None = None, data: str | None = None
) -> None:
    """For pytest: fails unless every requirement passes, and says which did not.

        def test_robustness():
            assert_requirements("runs/mine", "requirements.yaml")

    An inconclusive requirement also fails: more images would decide it.
    """
    beside = None if against is None else Run(against, data=data)
    verdicts = check(Run(run, data=data), Path(requirements), against=beside)
    open_ones = [verdict.text for verdict in verdicts if verdict.outcome is not Outcome.PASS]
    if open_ones:
        raise AssertionError("\n".join(open_ones))
