"""What stands between the road and the walkers: trees, lamps, wires and clutter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stormproof.world.classes import POLE, VOID
from stormproof.world.dice import Dice
from stormproof.world.light import Colour
from stormproof.world.models import furniture, plants
from stormproof.world.palette import BARKS, GREENS, METALS, PAINTS, SHOPS
from stormproof.world.plan import Plan
from stormproof.world.planting import grain, planted, turned
from stormproof.world.stage import Placement, tone
from stormproof.world.street import Street


def _wires(dice: Dice, street: Street, side: int, row: float) -> Iterator[Placement]:
    """Wooden poles every 28 m."""
    for k in range(int(dice.between(4, 20)), 150, 28):
        if not street.crosses(k, 2):
            at, bark = street.foot(k, side * (row + 0.2)), dice.pick(BARKS)
            yield Placement(furniture.utility_pole(), at, street.ahead(k), colours=(bark,), semantic=POLE)


def _clutter(dice: Dice, street: Street, s: float, side: int, metal: Colour, paint: Colour) -> Placement:
    """A bench, bin, bollard, planter, shelter or kiosk; what has a back turns it to the houses."""
    profile, kind = street.side(side), dice.integer(7)
    away = turned(street, s, side)
    backed = kind in (furniture.BENCH, furniture.SHELTER)
    reach = profile.pavement - 0.7 if backed and profile.pavement > 2.2 else 0.25
    at = street.foot(s, side * (street.marks.half + profile.verge + reach))
    if kind == furniture.SHELTER and profile.pavement < 3.0:
        kind = furniture.BOLLARD
    return Placement(
        furniture.clutter(kind),
        at,
        (-away[1], away[0]) if backed else away,
        colours=(dice.pick(PAINTS), metal, dice.pick(SHOPS), paint),
        semantic=VOID,
        seed=dice.integer(1 << 20),
    )


def _billboard(dice: Dice, street: Street, side: int, metal: Colour) -> Placement:
    profile, s = street.side(side), dice.between(20, 60)
    at = street.foot(s, side * (street.marks.half + profile.verge + profile.pavement + 2.4))
    colours, seed = (metal, metal, dice.pick(SHOPS)), dice.integer(1 << 20)
    return Placement(furniture.billboard(), at, street.ahead(s), colours=colours, semantic=VOID, seed=seed)


def kerbside(dice: Dice, plan: Plan, side: int) -> Iterator[Placement]:
    """Trees, lamps and clutter between the road and the walkers."""
    d, street = (plan.right if side > 0 else plan.left), plan.street
    profile = street.side(side)
    row = street.marks.half + (profile.verge * 0.5 if profile.verge else 0.55)
    green, metal, paint, lamp = dice.pick(GREENS), dice.pick(METALS), dice.pick(PAINTS), dice.integer(3)
    size, alike, species = dice.between(0.65, 1.0), dice.chance(0.5), dice.integer(plants.TREES)
    if dice.chance(0.35) and side > 0:
        yield from _wires(dice, street, side, row)
    s = dice.between(2, 9)
    while s < 130:
        s += dice.between(3.5, 7.5)
        if street.crosses(s, 3.0) or abs(s - street.marks.zebra) < 3:
            continue
        what = dice.unit() - d.trees * 0.8
        if what < 0.0:
            tree = planted(dice, street, s, side * row, size, green)
            yield replace(tree, mesh=plants.tree(species, grain(s))) if alike else tree
        elif what < 0.12:
            at, colours = street.foot(s, side * row), (metal, tone("fff0c8"))
            mesh, ahead = furniture.street_lamp(lamp), turned(street, s, -side)
            yield Placement(mesh, at, ahead, colours=colours, semantic=POLE)
        elif what < 0.22 and s < 70:
            yield _clutter(dice, street, s, side, metal, paint)
    if dice.chance(0.15) and profile.yard:
        yield _billboard(dice, street, side, metal)
