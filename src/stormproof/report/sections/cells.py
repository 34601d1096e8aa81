"""How conditions are laid out in figures: by corruption and severity, with clean as severity 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from stormproof.core.condition import Condition, corruption_of
from stormproof.corruptions.groups import KAMANN, MICHAELIS
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis
from stormproof.results.scores import Scores

SEVERITY = Axis("severity (0 is clean)", whole=True)
RELATIVE = Axis("left of the clean score (%)", zero=True)


def unit(measure: str) -> str:
    """A measure's name with its unit, as axes and columns print it."""
    return f"{measure} (%)" if measures()[measure].fraction else measure


def of_a_class(measure: str) -> str:
    """The measure by which single classes are shown where runs are compared by another."""
    return {"mask AP": "mask AP", "mIoU": "IoU"}.get(measure, "AP")


def scaled(measure: str, value: float) -> float:
    """A score as it is printed: fractions in per cent."""
    return 100 * value if measures()[measure].fraction else value


def graded(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Conditions that have a severity, by what they are levels of, in order of severity."""
    found: dict[str, list[Condition]] = {}
    for condition in conditions:
        if condition.severity is not None:
            found.setdefault(condition.series, []).append(condition)
    return {name: sorted(levels, key=lambda c: c.severity or 0) for name, levels in found.items()}


def all_levels(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Every condition by what it is a level of; one without a severity stands alone."""
    held = list(conditions)
    return graded(held) | {str(c): [c] for c in held if c.severity is None}


def ungraded(conditions: Iterable[Condition]) -> list[str]:
    """Conditions that have parameters instead of a severity."""
    return [str(condition) for condition in conditions if condition.severity is None]


def group_of(corruption: str) -> str:
    """The papers' group of a corruption, or that of its recipe."""
    name = corruption_of(corruption)
    for groups in (MICHAELIS, KAMANN):
        for group, members in groups.items():
            if name in members:
                return group
    from stormproof.corruptions import registered

    known = registered().get(name)
    return known.family if known else "other"


def share(value: float, clean: float) -> float:
    """A score in per cent of the clean one."""
    return 100 * value / clean if clean else math.nan


def all_conditions(subjects: Iterable[Scores]) -> list[Condition]:
    """Every condition that any of the runs has a score for."""
    return list(dict.fromkeys(condition for subject in subjects for condition in subject.corrupted))


def present(row: Mapping[str, object]) -> bool:
    """Whether a row's mark has a place."""
    return all(not isinstance(v, float) or math.isfinite(v) for k, v in row.items() if k in ("x", "y", "v"))
