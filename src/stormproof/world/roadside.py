"""What lines the street beyond the pavement: buildings, gardens, hedges and fences."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.building import building
from stormproof.world.classes import BUILDING, VEGETATION
from stormproof.world.dice import Dice
from stormproof.world.models import furniture, plants
from stormproof.world.palette import GREENS, METALS, TRIMS, WALLS
from stormproof.world.plan import Plan
from stormproof.world.planting import planted, spun
from stormproof.world.stage import Placement
from stormproof.world.street import KERB, Street


def _boundary(dice: Dice, street: Street, side: int, s: float, long: float, at: float) -> Iterator[Placement]:
    """A hedge, fence or low wall along the back of the pavement."""
    kind = dice.integer(4)
    if kind == 3:
        foot = street.foot(s + long / 2, side * at)
        size = (dice.between(0.5, 0.9), long, dice.between(0.8, 1.7))
        yield Placement(
            plants.hedge(),
            foot,
            street.ahead(s + long / 2),
            size,
            (dice.pick(GREENS),),
            semantic=VEGETATION,
            tilt=street.tilt(s),
            seed=dice.integer(1 << 20),
        )
        return
    tints = (dice.pick(TRIMS if kind == 0 else METALS if kind == 1 else WALLS), dice.pick(METALS))
    for k in range(int(long / 2)):
        mid = s + 2 * k + 1
        x, y, z = street.point(mid, side * at)
        yield Placement(
            furniture.fence(kind),
            (x, y, z + KERB - 0.03),
            street.ahead(mid),
            colours=tints,
            semantic=BUILDING,
            tilt=street.tilt(mid),
        )


def _in_the_way(street: Street, start: float, end: float, margin: float) -> bool:
    """Whether a plot would stand on the cross street or its pavement."""
    middle = street.marks.crossing
    return street.crosses(start, margin) or street.crosses(end, margin) or start < middle < end


def plots(dice: Dice, plan: Plan, side: int) -> Iterator[Placement]:
    """Buildings and gardens along one side, out to where the street fades from sight."""
    d, street = (plan.right if side > 0 else plan.left), plan.street
    profile = street.right if side > 0 else street.left
    kerb = street.marks.half + profile.verge + profile.pavement
    lit = 1.0 if plan.light.glow > 0.5 else 0.0
    green = dice.pick(GREENS)
    fenced = dice.chance(0.6) and d.setback[0] > 1.0
    s = -10.0 - dice.between(0, 6)
    while s < 190:
        wide = dice.between(*d.frontage) * (1.0 if s < 100 else 1.6)
        if _in_the_way(street, s, s + wide, profile.pavement + 0.5):
            beyond = street.marks.crossing + street.marks.crossing_half + profile.pavement + 0.6
            s = beyond if s + wide > street.marks.crossing else s + 1
            continue
        front = kerb + dice.between(*d.setback) + 0.05
        if dice.chance(d.empty):
            for _ in range(1 + int(wide / 5)):
                yield planted(
                    dice, street, s + wide * dice.unit(), side * (kerb + dice.between(2.0, 14.0)), 1.1, green
                )
        else:
            yield from building(dice, d, street, s, wide, side, front, lit)
            if profile.yard and dice.chance(0.5) and front - kerb > 3.5:
                yield planted(dice, street, s + wide * dice.unit(), side * (kerb + 1.7), 0.7, green)
        if fenced and front - kerb > 1.2 and s < 80:
            yield from _boundary(dice, street, side, s, wide * 0.8, kerb + 0.3)
        for _ in range(dice.integer(3)):
            if profile.yard and front - kerb > 2 and s < 70:
                at = street.foot(s + wide * dice.unit(), side * (front - dice.between(0.7, 1.3)))
                yield Placement(
                    plants.bush(dice.integer(plants.BUSHES)),
                    at,
                    spun(dice),
                    colours=(dice.pick(GREENS),),
                    semantic=VEGETATION,
                )
        s += wide + (dice.between(*d.gap) if dice.chance(d.gap_chance) else 0.0)
