"""The grammar of conditions, used wherever conditions are named.

    fog@3                        one condition, as it prints
    fog@1-3, fog@1-3[on=person]  a range of severities
    fog                          a corruption at every severity it has
    imagenet-c, imagenet-c@3     a suite, or its conditions at some severities
    object-centric[styles=looks] a suite, its conditions with some parameters replaced
    night[lux=5]+rain@1-3        composed: every choice from its first part, followed by every one of the next
    fog@3,snow,imagenet-c@1-2    a list
    storms.txt                   a list in a file, one or several in a line; # starts a comment

A bare name is that of a suite or of a corruption; no name is both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

from stormproof.core.condition import SEVERITIES, Condition, Value, split_parts
from stormproof.core.errors import InvalidCondition, InvalidOption, UnknownName
from stormproof.core.files import locate, read_text
from stormproof.corruptions.chain import check
from stormproof.corruptions.corruption import CORRUPTIONS, every_severity
from stormproof.corruptions.suites import SUITES

MOST = 10_000  # conditions that one composed name may stand for
LIST = ".txt"  # the end of the name of a file that lists conditions
_COMMA = re.compile(r",(?![^\[]*\])")  # not between the brackets of a condition
_NAMED = re.compile(r"(?P<name>[\w-]+)(?:@(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?)?(?P<params>\[.*\])?", re.S)


def read_conditions(texts: str | Condition | Iterable[str | Condition]) -> tuple[Condition, ...]:
    """The conditions that one or several strings name, each once, in order; parameters are checked.

    >>> [str(c) for c in read_conditions("fog@1-2, gaussian_noise[sigma=0.1]")]
    ['fog@1', 'fog@2', 'gaussian_noise[sigma=0.1]']
    """
    given = (texts,) if isinstance(texts, str | Condition) else texts
    named = [
        condition
        for text in given
        for part in ((text,) if isinstance(text, Condition) else _COMMA.split(text))
        for condition in ((part,) if isinstance(part, Condition) else _parse_name(part.strip()))
    ]
    for condition in named:
        check(condition)  # report mistakes here, not in a worker
    return tuple(dict.fromkeys(named))


def read_condition(text: str | Condition) -> Condition:
    """The one condition that a string names."""
    conditions = read_conditions(text)
    if len(conditions) != 1:
        some = ", ".join(map(str, conditions[:3]))
        raise InvalidCondition(
            f"{text!r} names {len(conditions)} conditions ({some} …); give one, such as fog@3."
        )
    return conditions[0]


def _parse_name(text: str) -> Iterable[Condition]:
    if text.endswith(LIST):
        return _in_file(locate(text, error=InvalidOption))
    parts = split_parts(text)
    if len(parts) > 1 and all(parts):
        choices = [tuple(_one_part(part.strip())) for part in parts]
        total = math.prod(map(len, choices))
        if total > MOST:
            raise InvalidCondition(
                f"{text!r:.80} names {total:,} conditions; {MOST:,} is the most. Name fewer in each part."
            )
        return [Condition.composed(chosen) for chosen in product(*choices)]
    return _one_part(text)


def _in_file(path: Path) -> Iterable[Condition]:
    """The conditions that the lines of a file name."""
    for number, line in enumerate(read_text(path, error=InvalidOption).splitlines(), 1):
        text = line.partition("#")[0].strip().rstrip(",")
        if text.endswith(LIST):
            raise InvalidCondition(f"{path}, line {number}: a list cannot name another list, {text}.")
        try:
            yield from read_conditions(text) if text else ()
        except (InvalidCondition, UnknownName) as error:
            raise InvalidCondition(f"{path}, line {number}: {error}") from None


def _one_part(text: str) -> Iterable[Condition]:
    match = _NAMED.fullmatch(text)
    if match is None or text == "clean":
        return (Condition.parse(text),)
    name, params = match["name"], match["params"]
    if name in SUITES:
        return _of_suite(match)
    if name not in CORRUPTIONS:
        hint = "List them with 'stormproof list suites' and 'stormproof list corruptions'."
        raise UnknownName("suite or corruption", name, (*SUITES, *CORRUPTIONS), hint)
    if match["first"] is None:
        return every_severity(name) if params is None else (Condition.parse(text),)
    if match["last"] is None:
        return (Condition.parse(text),)
    variant = Condition.parse(f"{name}@1{params or ''}")
    return [replace(variant, severity=level) for level in _levels(match)]


def _of_suite(match: re.Match[str]) -> Iterable[Condition]:
    chosen: Iterable[Condition] = SUITES[match["name"]].conditions
    if match["first"] is not None:
        levels = _levels(match)
        chosen = [condition for condition in chosen if condition.severity in levels]
        if not chosen:
            raise InvalidCondition(
                f"{match[0]!r} names nothing: no condition of the suite has that severity."
            )
    if match["params"] is None:
        return chosen
    given = dict(Condition.parse(f"suite{match['params']}").params)
    return [_with_params(condition, given) for condition in chosen]


def _with_params(condition: Condition, given: Mapping[str, Value]) -> Condition:
    """The condition with some parameters replaced, those of every part if it is composed."""
    if condition.is_composed:
        return Condition.composed(_with_params(part, given) for part in condition.parts)
    return replace(condition, params=tuple({**dict(condition.params), **given}.items()))


def _levels(match: re.Match[str]) -> range:
    """The severities of a text such as 3 or 1-3."""
    first, last = int(match["first"]), int(match["last"] or match["first"])
    if not 1 <= first <= last <= len(SEVERITIES):
        raise InvalidCondition(f"{match[0]!r}: severities are from 1 to 5, and ranges ascend, as in 1-3.")
    return range(first, last + 1)
