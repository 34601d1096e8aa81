"""The plan of a scene: district, course of the street, camera and time of day.

A scenario is a kind of district at a time of day: networks are trained for one and tested on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count as counting

from stormproof.core.errors import UnknownName
from stormproof.core.randomness import Draw
from stormproof.world.dice import Dice
from stormproof.world.light import Light, make_light
from stormproof.world.looks import Marks
from stormproof.world.street import FAR, Street, StreetSide


@dataclass(frozen=True, slots=True)
class District:
    """A kind of neighbourhood: ranges for its streets; lengths in metres, chances from 0 to 1."""

    lanes: tuple[int, ...]  # lanes per direction
    pavement: tuple[float, float]
    verge: float  # chance of a grass strip
    yard: float  # chance that grass reaches the buildings
    setback: tuple[float, float]
    storeys: tuple[int, int]
    frontage: tuple[float, float]
    gap: tuple[float, float]
    gap_chance: float
    roofs: tuple[int, ...]  # as in building.roof
    walls: tuple[int, ...]  # styles of FACADE
    shops: float
    trees: float  # per slot along the kerb
    parked: float  # fraction of the kerb
    people: float
    empty: float  # chance that a plot has trees instead of a building


# One entry per district, in the order of the fields.
# fmt: off
DISTRICTS = {
    "centre": District((1, 1, 2), (2.5, 5.0), 0.05, 0.0, (0.0, 0.5), (3, 6), (9, 22), (0.0, 0.3), 0.1,
        (3, 3, 1, 0), (0, 0, 1, 2), 0.8, 0.25, 0.5, 1.5, 0.03),
    "terrace": District((1,), (1.6, 2.6), 0.05, 0.3, (1.5, 3.5), (2, 3), (5, 8), (0.0, 0.2), 0.1, (0, 0, 1),
        (1, 1, 0), 0.08, 0.2, 0.75, 0.7, 0.03),
    "suburb": District((1,), (1.3, 2.0), 0.6, 1.0, (5.0, 9.0), (1, 2), (8, 13), (3.0, 8.0), 1.0, (0, 1, 2),
        (0, 1, 4, 4), 0.0, 0.45, 0.3, 0.45, 0.12),
    "avenue": District((2, 2, 3), (3.0, 6.0), 0.5, 0.1, (0.0, 2.5), (4, 7), (14, 28), (0.0, 4.0), 0.3,
        (3, 3, 2), (0, 2, 1), 0.6, 0.8, 0.45, 1.0, 0.06),
    "towers": District((2, 3), (3.0, 7.0), 0.3, 0.25, (3.0, 11.0), (7, 18), (16, 32), (3.0, 14.0), 0.8,
        (3,), (3, 3, 2), 0.35, 0.35, 0.1, 0.9, 0.10),
    "works": District((1, 2), (1.5, 2.5), 0.6, 0.5, (6.0, 14.0), (1, 2), (18, 40), (6.0, 18.0), 0.9,
        (3, 3, 0), (2, 4, 0), 0.05, 0.2, 0.3, 0.25, 0.25),
    "park": District((1, 2), (2.0, 4.0), 0.6, 1.0, (9.0, 15.0), (2, 4), (10, 18), (6.0, 20.0), 0.9, (2, 0),
        (0, 1), 0.0, 0.7, 0.3, 0.8, 0.72),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class StreetCamera:
    """The camera: position (s, t, metres above ground), direction, and focal length per image width."""

    s: float
    t: float
    height: float
    yaw: float  # slope of the view to the right of the street
    pitch: float  # slope of the view downwards
    roll: float
    focal: float
    speed: float = 0.0  # metres per second along the street, in a clip


@dataclass(frozen=True, slots=True)
class StreetPlan:
    """Everything decided before anything is placed."""

    left: District
    right: District
    street: Street
    lens: StreetCamera
    light: Light
    time: float = 0.0  # seconds since the clip began


# Metres per second along the street.
DRIVING, RIDING, WALKING = 8.0, 4.5, 1.3
CAMERA_DRIVING = 6.0  # slower than the traffic, so that it never reaches the vehicle in front


def _side(dice: Dice, d: District) -> StreetSide:
    verge = dice.between(1.0, 2.6) if dice.chance(d.verge) else 0.0
    return StreetSide(verge, dice.between(*d.pavement), dice.chance(d.yard))


def _marks(dice: Dice, d: District) -> Marks:
    right = dice.pick(d.lanes)
    left = right if not dice.chance(0.15) else 0
    if left == 0:
        right = max(right, 1 + dice.integer(2))
    lane = dice.between(2.9, 3.6)
    parking = dice.between(2.0, 2.3) if dice.chance(min(1.0, d.parked * 1.3)) else 0.0
    bike = dice.between(1.3, 1.8) if dice.chance(0.2) else 0.0
    half = (left + right) * lane / 2 + parking + bike
    middle = (left - right) * lane / 2
    has_cross = dice.chance(0.55)
    crossing = dice.between(10.0, 48.0) if has_cross else FAR
    zebra = dice.between(6.0, 32.0) if not has_cross and dice.chance(0.4) else FAR
    return Marks(
        half, middle, lane, left, right, dice.pick((0, 0, 1, 2, 3)), float(dice.chance(0.3)), parking,
        crossing, dice.between(3.2, 6.5), zebra, float(dice.chance(0.75)), dice.between(0.05, 0.16),
        dice.between(0.1, 0.75), float(dice.chance(0.25)), bike, dice.integer(1 << 20),
    )  # fmt: skip


def _lens(dice: Dice, m: Marks, street: Street) -> StreetCamera:
    focal = dice.between(0.66, 1.4)
    bend_ahead = street.bend * 14.0
    where = dice.unit()
    if where < 0.62:  # in a car
        lane = dice.integer(m.right)
        t, height = m.middle + (lane + 0.5) * m.lane + dice.between(-0.3, 0.3), dice.between(1.25, 1.8)
        yaw = bend_ahead + dice.between(-0.06, 0.06)
        pitch, roll, speed = dice.between(-0.03, 0.07), dice.between(-0.01, 0.01), CAMERA_DRIVING
    elif where < 0.72:  # in a bus or lorry
        t, height = m.middle + 0.5 * m.lane, dice.between(2.2, 2.9)
        yaw = bend_ahead + dice.between(-0.08, 0.08)
        pitch, roll, speed = dice.between(0.03, 0.14), 0.0, CAMERA_DRIVING
    else:
        side = -1.0 if dice.chance(0.4) else 1.0
        edge = m.half + street.side(side).verge
        if where < 0.90:  # on foot, at the kerb, looking across
            t = side * (edge + dice.between(0.2, 0.6 + 0.3 * street.side(side).pavement))
            height = dice.between(1.45, 1.85)
            yaw = -side * dice.between(0.08, 0.75) + bend_ahead
            pitch, roll, speed = dice.between(-0.03, 0.08), dice.between(-0.02, 0.02), WALKING
        else:  # on a pole
            t, height = side * (edge + 0.5), dice.between(3.5, 6.0)
            yaw = -side * dice.between(0.05, 0.6) + bend_ahead
            pitch, roll, speed = dice.between(0.14, 0.30), 0.0, 0.0
    return StreetCamera(0.0, t, height, yaw, pitch, roll, focal, speed)


def plan_street(dice: Dice) -> StreetPlan:
    """Draw the place, the view and the time of day."""
    names = tuple(DISTRICTS)
    left = DISTRICTS[dice.pick(names)]
    right = left if dice.chance(0.6) else DISTRICTS[dice.pick(names)]
    marks = _marks(dice, right)
    curved = dice.chance(0.6)
    bend = dice.between(-0.008, 0.008) if curved else 0.0
    sway = dice.between(-0.00008, 0.00008) if curved else 0.0
    slope = dice.between(-0.06, 0.06) if dice.chance(0.5) else 0.0
    street = Street(bend, sway, slope, _side(dice, left), _side(dice, right), marks)
    return StreetPlan(left, right, street, _lens(dice, marks, street), make_light(dice))


LOW_SUN = 0.5  # metres that the sun rises per metre of ground: the golden hour and dusk lie below
_TOWN = [DISTRICTS[name] for name in ("centre", "terrace", "avenue", "towers")]


def _by_day(plan: StreetPlan) -> bool:
    x, y, up = plan.light.sun
    return up * up >= LOW_SUN * LOW_SUN * (x * x + y * y)


SCENARIOS: dict[str, Callable[[StreetPlan], bool]] = {
    "town-by-day": lambda plan: plan.left in _TOWN and plan.right in _TOWN and _by_day(plan),
    "outskirts-at-dusk": lambda plan: (
        plan.left not in _TOWN and plan.right not in _TOWN and not _by_day(plan)
    ),
}


def find_scenario(name: str) -> Callable[[StreetPlan], bool]:
    """A function that tells whether a plan belongs to a scenario."""
    if name not in SCENARIOS:
        raise UnknownName("scenario of the world", name, SCENARIOS, f"Scenarios: {', '.join(SCENARIOS)}.")
    return SCENARIOS[name]


@lru_cache(maxsize=8)
def scenes_of(scenario: str, seed: int, split: str, count: int) -> tuple[int, ...]:
    """The numbers of the first `count` scenes of a split that belong to a scenario.

    The numbers may exceed those of the split without a scenario; no other split shares these scenes.
    """
    belongs = find_scenario(scenario)
    chosen: list[int] = []
    for index in counting():
        if len(chosen) == count:
            return tuple(chosen)
        if belongs(plan_street(Dice(Draw.keyed(seed, "world", split, index), "plan"))):
            chosen.append(index)
    raise AssertionError  # the street has no end
