"""Requirements on a run, read from YAML and checked before anything is judged.

    requirements:
      - {id: R1, metric: AP50, condition: "haze[visibility=100]", at_least: 0.40}
      - {id: R2, metric: rPC, suite: imagenet-c, at_least: 0.55}
      - {id: R3, metric: mIoU, condition: "gaussian_noise@2", at_most_loss: 0.10}
      - {id: R4, metric: mPC, of: AP50, at_most_drop: 0.01}
      - {id: R5, metric: Miss share, condition: "fog@3", at_most: 0.3}
      - {id: R6, metric: D-ECE, condition: clean, at_most: 0.1}
    planned_images: 500

A metric is a measure under a condition, or an aggregate (P, mPC, rPC, mCE) of a measure over a suite or the
whole run; names as tables show them (mean, clean, kept) will do. `at_most_loss` is a difference from the
clean score (0.50 to 0.40 is 0.10), `at_most_drop` from the baseline's value. Thresholds are fractions, except
those of counts such as 'FP per image'. A requirement that cannot be judged is an error that names it, never a
pass. `planned_images` says how many images are meant to be judged, if not the whole dataset
(`results.looks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StormproofError, UnknownName, nearest
from stormproof.core.files import read_yaml
from stormproof.corruptions import SUITES, find_suite
from stormproof.metrics.metric import measures
from stormproof.results.interval import FEWEST

AGGREGATES = ("P", "mPC", "rPC", "mCE")
_CALLED = {"clean": "P", "kept": "rPC", "% of P left": "rPC"}  # aggregates, as tables call them
_MEAN = re.compile(r"mean(| over its conditions| over \d+ conditions?| under corruption)")
_SUGGESTED = ("AP50", "mPC", "rPC")  # to whoever names nothing like a metric
BOUNDS = ("at_least", "at_most", "at_most_loss", "at_most_drop")
_TOP = ("requirements", "planned_images")
_MOST_IMAGES = 1 << 24
_KEYS = ("id", "metric", "of", "condition", "suite", *BOUNDS)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement; `bound` is one of `BOUNDS`, `threshold` a fraction."""

    id: str
    metric: str
    bound: str
    threshold: float
    condition: str | None = None
    suite: str | None = None
    of: str | None = None
    called: str = ""  # the name of the metric over the conditions that were run, if not its own

    @property
    def is_count(self) -> bool:
        """Whether values are counts such as 'FP per image' instead of fractions."""
        return _is_count(self.metric, self.of)

    @property
    def higher(self) -> bool:
        """Whether more of it is better; an aggregate of no named measure is of one that is better so."""
        measure = measures().get(self.of or self.metric)
        return self.metric != "mCE" and (measure is None or measure.higher)

    @property
    def text(self) -> str:
        """In words: AP50 under fog@3 at least 0.4."""
        where = f" under {self.condition}" if self.condition else f" over {self.suite}" if self.suite else ""
        measure = f" of {self.of}" if self.of else ""
        verb = {"at_most_loss": "loses at most", "at_most_drop": "drops at most"}
        bound = verb.get(self.bound, self.bound.replace("_", " "))
        return f"{self.called or self.metric}{measure}{where} {bound} {self.threshold:g}"


class Requirements(tuple[Requirement, ...]):
    """Requirements that are judged together, and how many images are meant to be judged, if planned."""

    planned_images: int | None

    def __new__(cls, rows: Iterable[Requirement], planned_images: int | None = None) -> Requirements:
        made = super().__new__(cls, rows)
        made.planned_images = planned_images
        return made


def read_requirements(source: Path | str | Sequence[Mapping[str, Any]]) -> Requirements:
    """The requirements of a file, or of a list in Python; the first mistake is named with the requirement it
    is in."""
    planned = None
    if isinstance(source, Path | str):
        content = read_yaml(Path(source), error=InvalidOption)
        if not isinstance(content, dict) or "requirements" not in content:
            raise InvalidOption(f"{source} must hold the key 'requirements', with a list below it.")
        check_keys(content, _TOP, str(source))
        rows, called = content["requirements"], str(source)
        planned = check_plan(content.get("planned_images"), called)
    else:
        rows, called = list(source), "the list"
    if not isinstance(rows, list) or not rows:
        raise InvalidOption(f"{called}: 'requirements' is empty, so nothing would be checked.")
    parsed = [parse(row, f"{called}, requirement {k}") for k, row in enumerate(rows, 1)]
    check_ids([r.id for r in parsed], called)
    return Requirements(parsed, planned)


def check_keys(row: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    """Refuse keys that nobody reads."""
    for key in row:
        if key not in known:
            raise InvalidOption(f"{where}: {UnknownName('key', str(key), known, f'Keys: {words(known)}.')}")


def check_ids(ids: Sequence[str], called: str) -> None:
    """Refuse two requirements of one id."""
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise InvalidOption(f"{called}: two requirements have the id {twice!r}; ids name verdicts.")


def read_id(row: Mapping[str, Any], where: str) -> str:
    identity = row.get("id")
    if not isinstance(identity, str) or not identity:
        raise InvalidOption(f"{where} has no id; add one, such as id: R1.")
    return identity


def check_plan(images: Any, where: str) -> int | None:
    """A planned number of images, or None if there is no plan; one that could never decide is refused."""
    if images is None:
        return None
    if isinstance(images, bool) or not isinstance(images, int) or not FEWEST <= images <= _MOST_IMAGES:
        raise InvalidOption(
            f"{where}: planned_images is {images!r:.60}; give a whole number of at least {FEWEST}, since "
            "fewer images decide nothing, or leave it out to plan for the whole dataset."
        )
    return images


def parse(row: Any, where: str) -> Requirement:
    """One requirement; every error message starts with `where`."""
    if not isinstance(row, Mapping):
        raise InvalidOption(f"{where} is {row!r}; write {{id: …, metric: …, at_least: …}}.")
    check_keys(row, _KEYS, where)
    identity = read_id(row, where)
    where = f"{where} ({identity})"
    metric, of = row.get("metric"), row.get("of")
    condition, suite = row.get("condition"), row.get("suite")
    if condition is not None and suite is not None:
        raise InvalidOption(f"{where} names a condition and a suite; give one of them.")
    for key, value in (("metric", metric), ("of", of), ("condition", condition), ("suite", suite)):
        if value is not None and not isinstance(value, str):
            raise InvalidOption(f"{where}: {key} is {value!r}, not a string.")
    of = _measure(of, where)
    metric = _metric(metric, of, where)
    if isinstance(condition, str) and _MEAN.fullmatch(condition):
        of = metric if metric in measures() else of
        fix = f"metric: {_metric('mean', of, where)}{f', of: {of}' if of else ''}, without a condition"
        raise InvalidOption(f"{where}: {condition!r} is not a condition; for the mean write {fix}.")
    condition = _valid(condition, Condition.parse, where)
    suite = _valid(suite, _whole_suite, where)
    bound, threshold = _bound(row, where, counts=_is_count(metric, of))
    made = Requirement(identity, metric, bound, threshold, condition, suite, of)
    _check_meaning(made, where)
    return made


def _is_count(metric: str, of: str | None) -> bool:
    measure = measures().get(of or metric if metric != "rPC" else "")
    return measure is not None and not measure.fraction


def _bound(row: Mapping[str, Any], where: str, *, counts: bool) -> tuple[str, float]:
    given = [name for name in BOUNDS if name in row]
    if len(given) != 1:
        raise InvalidOption(f"{where} has {words(given) or 'no bound'}; give exactly one of {words(BOUNDS)}.")
    value = row[given[0]]
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 1e300:
        raise InvalidOption(f"{where}: {given[0]} is {value!r:.60}, not a number.")
    if counts and value >= 0:
        return given[0], float(value)
    if given[0] == "at_least" and not 0 < value <= 1:
        fix = f"; write {value / 100:g}" if 1 < value <= 100 else ""
        raise InvalidOption(
            f"{where}: at_least {value:g} is impossible or trivial; scores are fractions{fix}."
        )
    if given[0] != "at_least" and not 0 <= value < 1:
        fix = f"; write {value / 100:g}" if 1 <= value < 100 else ""
        raise InvalidOption(f"{where}: {given[0]} {value:g} is impossible or trivial; use a fraction{fix}.")
    return given[0], float(value)


def _metric(name: str | None, of: str | None, where: str) -> str:
    if name is None:
        raise InvalidOption(f"{where} has no metric; add one, such as metric: AP50.")
    if name in AGGREGATES:
        return name
    if _MEAN.fullmatch(name):  # of an error, that is mCE
        return "mPC" if of is None or measures()[of].higher else "mCE"
    return _CALLED.get(name) or _measure(name, where) or name


def _measure(name: str | None, where: str) -> str | None:
    if name is not None and name not in measures():
        known = (*measures(), *AGGREGATES)
        near = nearest(name, known, 3) or _SUGGESTED
        hint = f"Near it: {words(near)}; 'stormproof explain' lists all."
        raise InvalidOption(f"{where}: {UnknownName('metric', name, known, hint)}")
    return name


def _valid(text: str | None, read: Callable[[str], object], where: str) -> str | None:
    """The name that `read` understands a text as."""
    if text is None:
        return None
    try:
        return str(read(text))
    except StormproofError as error:
        raise InvalidOption(f"{where}: {error}") from None


def _whole_suite(name: str) -> str:
    """The name of a suite; part of one is refused, since the mean of a suite is over all of it."""
    if name.partition("@")[0] in SUITES and "@" in name:
        raise InvalidOption(
            f"{name} is part of a suite, and a suite's mean is over all of it; leave the key 'suite' out for "
            "the mean over all conditions of a run."
        )
    suite = find_suite(name)
    if any(condition.is_composed for condition in suite):
        raise InvalidOption(
            f"{name} has composed conditions, and means of suites are over single corruptions; require a "
            "measure under one of its conditions instead."
        )
    return suite.name


def _check_meaning(r: Requirement, where: str) -> None:
    """Refuse a requirement that no run could answer."""
    if r.metric not in AGGREGATES and r.condition is None:
        fix = "add condition: clean or another, or make the metric mPC with of: " + r.metric
        raise InvalidOption(f"{where}: {r.metric} under which condition? {fix}.")
    if r.metric in AGGREGATES and r.condition is not None:
        raise InvalidOption(f"{where}: {r.metric} is over many conditions; give a suite, or no condition.")
    if r.metric not in AGGREGATES and r.of is not None:
        raise InvalidOption(f"{where}: 'of' goes with an aggregate ({words(AGGREGATES)}), not {r.metric}.")
    if r.bound == "at_most_loss" and (r.metric in AGGREGATES or r.condition == "clean"):
        fix = "it is the loss of a measure under a condition; use at_least"
        raise InvalidOption(f"{where}: at_most_loss of {r.metric} says nothing: {fix}.")
    if r.of is not None and r.metric != "P" and (r.metric == "mCE") == measures()[r.of].higher:
        mean, better = ("mPC", "higher") if r.metric == "mCE" else ("mCE", "lower")
        fix = f"its mean is metric: {mean}, of: {r.of}"
        raise InvalidOption(f"{where}: {r.of} is better when {better}; {fix}.")
    what = r.metric if r.of is None else f"{r.metric} of {r.of}"
    if not r.higher and r.bound == "at_least":
        raise InvalidOption(f"{where}: {what} is better when lower; use at_most.")
    if r.higher and r.bound == "at_most":
        raise InvalidOption(f"{where}: {what} is better when higher; use at_least.")


def words(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
