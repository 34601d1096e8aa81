"""Conditions as a page's controls: which corruptions there are, the steps of a slider, parameters as fields.

What a page asks for is read here. A condition may name a file (a texture, a lens), and a page must not make
the server open one: such a condition is refused unless a run was made under it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidCondition, StormproofError
from stormproof.corruptions import CORRUPTIONS, find
from stormproof.corruptions.corruption import RESERVED, Ladder
from stormproof.corruptions.grammar import read_condition
from stormproof.corruptions.units import physical
from stormproof.datasets.dataset import Dataset
from stormproof.report.sections import all_levels
from stormproof.report.sentences import spoken, under

_STEP = 10  # positions of the slider between two severities
_LONGEST = 500  # characters of a condition


def asked_condition(text: str, known: Iterable[str]) -> Condition:
    """The condition that a page asks for; one that could name a file must be one of `known`."""
    if len(text) > _LONGEST:
        raise InvalidCondition(f"A condition of {len(text)} characters is too long to be one.")
    condition = read_condition(text)
    if str(condition) not in known:
        for part in condition.parts:
            _require_no_file(part)
    return condition


def _require_no_file(part: Condition) -> None:
    ladders = find(str(part.corruption)).ladders
    for key, value in part.params:
        choices = ladders[key].choices if key in ladders else ()
        if isinstance(value, str) and value not in choices and (key in ladders or key not in RESERVED):
            raise InvalidCondition(
                f"{key}={value!r:.80} may name a file, and a page opens none. Run it first: 'stormproof run "
                f"--conditions …', then explore that run."
            )


def describe(condition: Condition) -> dict[str, Any]:
    """A condition in words and in its own units, with the value of each parameter."""
    if condition.is_clean:
        return {"condition": "clean", "words": "clean", "physical": [], "parameters": {}}
    first = condition.parts[0]
    values = find(str(first.corruption)).parameters(first)
    return {
        "condition": str(condition),
        "words": under(str(condition)),
        "physical": [str(quantity) for quantity in physical(condition)],
        "parameters": dict(values),
    }


def usable_corruptions(dataset: Dataset, known: Sequence[str]) -> list[dict[str, Any]]:
    """The corruptions that the dataset's first image can be given, and what a page needs to offer them.

    Those of the runs come first, with the variants that they were run in.
    """
    needs = _what_there_is(dataset)
    firsts = [(text, c.parts[0].corruption) for text, c in _conditions(known)]
    names = dict.fromkeys([*(str(name) for _, name in firsts), *sorted(CORRUPTIONS)])
    offered = []
    for name in names:
        corruption = CORRUPTIONS.get(name)
        if corruption is None or corruption.absent or not {*corruption.needs} <= needs:
            continue
        stored = [text for text, first in firsts if first == name]
        fields = [_field(key, rungs) for key, rungs in corruption.ladders.items() if _is_field(rungs)]
        if not corruption.severities and not fields and not stored:
            continue
        offered.append(
            {
                "name": name, "words": spoken(name), "doc": corruption.doc,
                "severities": list(corruption.severities), "stored": stored, "fields": fields,
                "free": all(rungs.values for rungs in corruption.ladders.values()),
            }
        )  # fmt: skip
    return offered


def _conditions(known: Sequence[str]) -> list[tuple[str, Condition]]:
    """The conditions of runs that change an image; those of a corruption follow each other."""
    conditions = [c for c in map(Condition.parse, known) if not c.is_clean]
    levels = all_levels(c for c in conditions if not c.is_composed)
    ordered = [*(c for each in levels.values() for c in each), *(c for c in conditions if c.is_composed)]
    return [(str(c), c) for c in ordered]


def _what_there_is(dataset: Dataset) -> set[str]:
    """The context that the dataset's images bring; a camera can always be assumed."""
    try:
        context = dataset[0].context
    except StormproofError:
        return {"camera"}
    return {"camera"} | ({"depth"} if context.depth is not None else set())


def _is_field(rungs: Ladder) -> bool:
    """Whether a page may set a parameter: a number, or one of a few words. Other strings name files."""
    return rungs.kind is not str or bool(rungs.choices)


def _field(key: str, rungs: Ladder) -> dict[str, Any]:
    return {
        "name": key, "unit": rungs.unit, "choices": list(rungs.choices), "whole": rungs.kind is int,
        "low": rungs.low if math.isfinite(rungs.low) else None,
        "high": rungs.high if math.isfinite(rungs.high) else None,
    }  # fmt: skip


def steps(
    name: str, params: Mapping[str, Any], known: Sequence[str], *, live: bool, top: Condition = CLEAN
) -> list[dict[str, Any]]:
    """The positions of a corruption's slider, weakest first, each described; `top` is applied after it.

    If the model can be asked now, there are ten between two severities; else there are the conditions that
    the runs hold, with the same `top`.
    """
    if not live:
        held = [(c.parts[0], c) for _, c in _conditions(known) if c.parts[1:] == top.parts]
        same = [(first, c) for first, c in held if first.corruption == name]
        stored = [each for each in same if not params or dict(each[0].params) == dict(params)]
        order = sorted(stored, key=lambda each: (each[0].params, each[0].severity or 0))
        return [{"severity": first.severity, **describe(c)} for first, c in order]
    corruption = find(name)
    made = [Condition.of(name, level, params) for level in corruption.severities]
    if len(made) > 1 and not _switches(name, params):
        tenths = range(_STEP * corruption.severities[0], _STEP * corruption.severities[-1] + 1)
        levels = [k // _STEP if k % _STEP == 0 else k / _STEP for k in tenths]
        made = [Condition.of(name, level, params) for level in levels]
    whole = [c if top.is_clean else Condition.composed([c, top]) for c in made]
    both = zip(made, whole, strict=True)
    return [{"severity": c.severity, **describe(asked_condition(str(all_), known))} for c, all_ in both]


def _switches(name: str, params: Mapping[str, Any]) -> bool:
    """Whether a corruption has nothing between its severities: a parameter of it switches."""
    try:
        find(name).parameters(Condition.of(name, 1.5, params))
    except InvalidCondition:
        return True
    return False
