"""Scenarios of the street, to train for one and test on another: a kind of district at a time of day."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count as counting

from stormproof.core.errors import UnknownName
from stormproof.core.randomness import Draw
from stormproof.world.dice import Dice
from stormproof.world.plan import DISTRICTS, Plan, make_plan

LOW_SUN = 0.5  # metres that the sun rises per metre of ground: the golden hour and dusk lie below
_TOWN = [DISTRICTS[name] for name in ("centre", "terrace", "avenue", "towers")]


def _by_day(plan: Plan) -> bool:
    x, y, up = plan.light.sun
    return up * up >= LOW_SUN * LOW_SUN * (x * x + y * y)


SCENARIOS: dict[str, Callable[[Plan], bool]] = {
    "town-by-day": lambda plan: plan.left in _TOWN and plan.right in _TOWN and _by_day(plan),
    "outskirts-at-dusk": lambda plan: (
        plan.left not in _TOWN and plan.right not in _TOWN and not _by_day(plan)
    ),
}


def find_scenario(name: str) -> Callable[[Plan], bool]:
    """What says whether a scene belongs to a scenario."""
    if name not in SCENARIOS:
        raise UnknownName("scenario of the world", name, SCENARIOS, f"Scenarios: {', '.join(SCENARIOS)}.")
    return SCENARIOS[name]


@lru_cache(maxsize=8)
def scenes_of(scenario: str, seed: int, split: str, count: int) -> tuple[int, ...]:
    """The numbers of the first `count` scenes of a split that belong to a scenario.

    They go beyond the scenes that the split has without a scenario, and no other split has them.
    """
    belongs = find_scenario(scenario)
    found: list[int] = []
    for index in counting():
        if len(found) == count:
            return tuple(found)
        if belongs(make_plan(Dice(Draw.keyed(seed, "world", split, index), "plan"))):
            found.append(index)
    raise AssertionError  # the street has no end
