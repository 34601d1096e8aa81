"""Which conditions a mean runs over: those of a benchmark or a suite, held whole; else they have no name.

mPC over other conditions than a paper's is another number under the same label, so it is not called mPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stormproof.core.errors import counted
from stormproof.corruptions import SUITES
from stormproof.corruptions.presets import PRESETS


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """Corrupted conditions of a run that are reported together; `of` is how many the named set has."""

    name: str  # empty: conditions of no benchmark or suite
    conditions: tuple[str, ...]
    of: int

    @property
    def whole(self) -> bool:
        """Whether it is all of a benchmark or suite, so that its mean is mPC."""
        return bool(self.name) and len(self.conditions) == self.of

    @property
    def words(self) -> str:
        """
        >>> ConditionSet("", ("fog@3",), 1).words, ConditionSet("coco-c", ("fog@3",), 75).words
        ('1 condition', 'coco-c, partial: 1 of 75 conditions')
        """
        count = counted(len(self.conditions), "condition")
        if not self.name:
            return count
        if not self.whole:
            return f"{self.name}, partial: {len(self.conditions)} of {self.of} conditions"
        return f"{self.name} ({count})"


def mean_words(count: int) -> str:
    """What the mean over conditions of no benchmark or suite is called."""
    return f"mean over {counted(count, 'condition')}"


def mean_name(conditions: Sequence[str], benchmark: str | None = None) -> str:
    """What the mean over all conditions of a run is: mPC where they are one benchmark or suite, whole.

    >>> mean_name(("clean", "fog@1", "fog@2"))
    'mean over 2 conditions'
    """
    sets = sets_of(conditions, benchmark)
    whole = len(sets) == 1 and sets[0].whole
    return "mPC" if whole else mean_words(sum(len(each.conditions) for each in sets))


def sets_of(conditions: Sequence[str], benchmark: str | None = None) -> tuple[ConditionSet, ...]:
    """The benchmark, the suites that are held whole and are not part of another, and what is left.

    >>> [s.words for s in sets_of(("clean", *(f"fog@{s}" for s in range(1, 6))))]
    ['5 conditions']
    """
    held = [text for text in conditions if text != "clean"]
    found: list[ConditionSet] = []
    if benchmark in PRESETS and not PRESETS[benchmark].lacking:
        own = _strings(PRESETS[benchmark].conditions())
        found.append(ConditionSet(benchmark, tuple(text for text in held if text in own), len(own)))
    suites = {name: _strings(suite.conditions) for name, suite in SUITES.items()}
    whole = {name: own for name, own in suites.items() if own <= {*held}}
    for name, own in sorted(whole.items(), key=lambda item: -len(item[1])):
        if not any(own <= {*other.conditions} for other in found):
            found.append(ConditionSet(name, tuple(text for text in held if text in own), len(own)))
    named = {text for each in found for text in each.conditions}
    rest = tuple(text for text in held if text not in named)
    return (
        *(each for each in found if each.conditions),
        *([ConditionSet("", rest, len(rest))] if rest else ()),
    )


def _strings(conditions: Iterable[object]) -> set[str]:
    return {str(condition) for condition in conditions} - {"clean"}
