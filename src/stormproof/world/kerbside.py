"""What stands between the road and the walkers: trees, lamps, wires and clutter."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.classes import POLE, VEGETATION, VOID
from stormproof.world.dice import Dice
from stormproof.world.models import furniture, plants
from stormproof.world.palette import BARKS, GREENS, METALS, PAINTS, SHOPS, WALLS
from stormproof.world.plan import Plan
from stormproof.world.planting import grain, planted, turned
from stormproof.world.stage import Placement, tone
from stormproof.world.street import KERB


def kerbside(dice: Dice, plan: Plan, side: int) -> Iterator[Placement]:
    """Trees, lamps and clutter between the road and the walkers."""
    d, street = (plan.right if side > 0 else plan.left), plan.street
    profile = street.right if side > 0 else street.left
    edge = street.marks.half
    row = edge + (profile.verge * 0.5 if profile.verge else 0.55)
    green, metal, paint, lamp = dice.pick(GREENS), dice.pick(METALS), dice.pick(PAINTS), dice.integer(3)
    size, tree_kind = dice.between(0.65, 1.0), dice.chance(0.5)
    species = dice.integer(plants.TREES)
    glow = tone("fff0c8")
    if dice.chance(0.35) and side > 0:
        for s in [float(k) for k in range(int(dice.between(4, 20)), 150, 28)]:
            if not street.crosses(s, 2):
                x, y, z = street.point(s, side * (row + 0.2))
                yield Placement(
                    furniture.utility_pole(),
                    (x, y, z + KERB),
                    street.ahead(s),
                    colours=(dice.pick(BARKS),),
                    semantic=POLE,
                )
    s = dice.between(2, 9)
    while s < 130:
        s += dice.between(3.5, 7.5)
        if street.crosses(s, 3.0) or abs(s - street.marks.zebra) < 3:
            continue
        what = dice.unit()
        t = side * row
        x, y, z = street.point(s, t)
        z += KERB
        if what < d.trees * 0.8:
            tree = planted(dice, street, s, t, size, green)
            if tree_kind:
                tree = Placement(
                    plants.tree(species, grain(s)),
                    tree.at,
                    tree.ahead,
                    tree.scale,
                    tree.colours,
                    semantic=VEGETATION,
                    seed=tree.seed,
                )
            yield tree
        elif what < d.trees * 0.8 + 0.12:
            yield Placement(
                furniture.street_lamp(lamp),
                (x, y, z),
                turned(street, s, -side),
                colours=(metal, glow),
                semantic=POLE,
            )
        elif what < d.trees * 0.8 + 0.22 and s < 70:
            kind = dice.integer(7)
            away = turned(street, s, side)
            face = (-away[1], away[0]) if kind in (0, 5) else turned(street, s, side)
            reach = profile.pavement - 0.7 if kind in (0, 5) and profile.pavement > 2.2 else 0.25
            x, y, z = street.point(s, side * (edge + profile.verge + reach))
            if kind == 5 and profile.pavement < 3.0:
                kind = 3
            yield Placement(
                furniture.clutter(kind),
                (x, y, z + KERB),
                face,
                colours=(dice.pick(PAINTS), metal, dice.pick(SHOPS), paint, paint, paint, dice.pick(WALLS)),
                semantic=VOID,
                seed=dice.integer(1 << 20),
            )
    if dice.chance(0.15) and profile.yard:
        s = dice.between(20, 60)
        x, y, z = street.point(s, side * (edge + profile.verge + profile.pavement + 2.4))
        yield Placement(
            furniture.billboard(),
            (x, y, z + KERB),
            street.ahead(s),
            colours=(metal, metal, dice.pick(SHOPS), metal, metal, metal, dice.pick(WALLS)),
            semantic=VOID,
            seed=dice.integer(1 << 20),
        )
