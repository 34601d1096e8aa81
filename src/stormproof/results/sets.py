"""The conditions that a mean covers: those of a complete benchmark or suite, or others without a name.

A mean over conditions other than a paper's is a different number, so it is not called mPC. Composed
conditions are a set of their own: mPC is over single corruptions, and no mean mixes the two unless it is
asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from stormproof.core.condition import Condition, Value, corruption_of
from stormproof.core.errors import InvalidOption, counted, first_few
from stormproof.corruptions import SUITES
from stormproof.corruptions.chain import steps
from stormproof.corruptions.corruption import RESERVED
from stormproof.corruptions.grammar import read_conditions
from stormproof.corruptions.presets import PRESETS, covered_by_mean
from stormproof.metrics.sequences import STYLE


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """Corrupted conditions that are reported together.

    `of` is the number of conditions of the named set. `covered` are those that its means cover: *kamann*
    leaves out strong noise, and conditions along α form curves instead of means.
    """

    name: str  # empty: conditions of no benchmark or suite
    conditions: tuple[str, ...]
    of: int
    covered: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether it is all of a benchmark or suite, so that its mean is mPC."""
        return bool(self.name) and len(self.conditions) == self.of

    @property
    def words(self) -> str:
        """
        >>> sets_of(("fog@3",))[0].words, sets_of(("fog@3",), "coco-c")[0].words
        ('1 condition', 'coco-c, partial: 1 of 75 conditions')
        """
        count = counted(len(self.conditions), self._noun)
        if not self.name:
            return count
        if not self.whole:
            return f"{self.name}, partial: {len(self.conditions)} of {self.of} conditions"
        return f"{self.name} ({count})"

    @property
    def mean_name(self) -> str:
        """The name of its mean: mPC over a complete benchmark or suite.

        >>> sets_of(("clean", "fog@1", "fog@2"))[0].mean_name
        'mean over 2 conditions'
        """
        return "mPC" if self.whole else self.mean_words

    @property
    def mean_words(self) -> str:
        """What its mean is over, whether or not that mean has a name."""
        return f"mean over {counted(len(self.covered), self._noun)}"

    @property
    def _noun(self) -> str:
        """What its conditions are called: composed, if all of them are."""
        composed = all(Condition.parse(text).is_composed for text in self.conditions)
        return "composed condition" if composed else "condition"


NO_CONDITIONS = ConditionSet("", (), 0, ())


def sets_of(conditions: Sequence[str], benchmark: str | None = None) -> tuple[ConditionSet, ...]:
    """The benchmark, the complete suites that are not part of another, the other conditions, and those that
    are composed.

    >>> [s.words for s in sets_of(("clean", *(f"fog@{s}" for s in range(1, 6)), "fog@1+snow@1"))]
    ['5 conditions', '1 composed condition']
    """
    composed = [text for text in conditions if Condition.parse(text).is_composed]
    held = [text for text in conditions if text != "clean" and text not in composed]
    sets: list[ConditionSet] = []
    if benchmark in PRESETS and not PRESETS[benchmark].lacking:
        own = _strings(PRESETS[benchmark].conditions())
        sets.append(_set(benchmark, [text for text in held if text in own], len(own), benchmark=benchmark))
    there = {*held}
    whole = {name: own for name, own in _suites(frozenset(map(corruption_of, there))) if own <= there}
    for name, own in sorted(whole.items(), key=lambda item: -len(item[1])):
        if not any(own <= {*other.conditions} for other in sets):
            sets.append(_set(name, [text for text in held if text in own], len(own), suite=name))
    named = {text for each in sets for text in each.conditions}
    rest = [text for text in held if text not in named]
    unnamed = (_set("", texts, len(texts)) for texts in (rest, composed) if texts)
    return (*(each for each in sets if each.conditions), *unnamed)


def suite_set(name: str) -> ConditionSet:
    """A suite's own conditions as a set."""
    own = [str(condition) for condition in SUITES[name]]
    return _set(name, own, len(own), suite=name)


def chosen_set(conditions: str | Iterable[str], held: Iterable[str]) -> ConditionSet:
    """The conditions that a mean is wanted over, in the grammar of `--conditions`; each must have a score.

    >>> chosen_set("fog@1-2", ["clean", "fog@1", "fog@2", "fog@3"]).mean_name
    'mean over 2 conditions'
    """
    known = list(held)
    texts = tuple(str(condition) for condition in read_conditions(conditions) if not condition.is_clean)
    lacking = [text for text in texts if text not in known]
    if lacking or not texts:
        lacks = f"no score under {first_few(lacking)}" if lacking else "no corrupted condition to average"
        raise InvalidOption(f"There is {lacks}; there are {first_few(known, 5)}.")
    return ConditionSet("", texts, len(texts), texts)


def same_condition(text: str, held: Iterable[str]) -> str | None:
    """The condition among some that equals this one: by its string, or by the same numbers.

    >>> same_condition("haze@2", ["clean", "haze[beta=0.012]"])
    'haze[beta=0.012]'
    """
    known = list(held)
    if text in known:
        return text
    wanted = Condition.parse(text)
    if wanted.is_clean:
        return None
    numbers = _numbers(wanted)
    for other in known:
        condition = Condition.parse(other)
        if condition.corruption == wanted.corruption and _numbers(condition) == numbers:
            return other
    return None


def _numbers(condition: Condition) -> list[dict[str, Value]]:
    """Every parameter of each part of a condition, with what it is applied to and whether it follows the
    image's size."""
    return [
        step.corruption.parameters(step.condition)
        | {key: value for key, value in step.condition.params if key in RESERVED}
        for step in steps(condition)
    ]


def _set(
    name: str, texts: Sequence[str], of: int, *, benchmark: str | None = None, suite: str | None = None
) -> ConditionSet:
    parsed = covered_by_mean(map(Condition.parse, texts), benchmark=benchmark, suite=suite)
    kept = tuple(str(condition) for condition in parsed if condition.corruption != STYLE)
    return ConditionSet(name, tuple(texts), of, kept)


@cache
def _suites(corruptions: frozenset[str]) -> list[tuple[str, set[str]]]:
    """The conditions of the suites of these corruptions whose mean is mPC."""
    suites = SUITES.of_corruptions(corruptions).items()
    return [(name, _strings(suite)) for name, suite in suites if not any(c.is_composed for c in suite)]


def _strings(conditions: Iterable[object]) -> set[str]:
    return {str(condition) for condition in conditions} - {"clean"}
