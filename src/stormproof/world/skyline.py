"""What closes the view: far blocks and belts of trees, and the houses of the cross street."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.classes import BUILDING, VEGETATION
from stormproof.world.dice import Dice
from stormproof.world.models import houses, plants
from stormproof.world.palette import GREENS, ROOFS, SHOPS, TRIMS, WALLS, varied
from stormproof.world.plan import Plan
from stormproof.world.stage import Placement
from stormproof.world.street import KERB


def skyline(dice: Dice, plan: Plan) -> Iterator[Placement]:
    """What closes the view: far blocks and belts of trees, and the houses of the cross street."""
    street = plan.street
    urban = max(plan.left.storeys[1], plan.right.storeys[1])
    for _ in range(14):
        s, t = dice.between(190, 420), dice.between(-1, 1)
        wide, high = dice.between(14, 40), dice.between(5, 4.5 * urban + 8)
        x, y, z = street.point(s, 0.0)
        x += t * (s * 0.9)
        params = (3.2, 3.3, 0.5, 0.5, 3.5, 0.0, float(dice.pick((0, 2))), 0.0)
        yield Placement(
            houses.block(),
            (x, y, z - 2),
            (0.0, 1.0),
            (wide, 15.0, high),
            (dice.pick(WALLS), dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)),
            params,
            BUILDING,
            seed=dice.integer(1 << 20),
        )
    for k in range(6):
        s = 240 + 45 * k + dice.between(0, 30)
        x, y, z = street.point(s, 0.0)
        yield Placement(
            plants.ridge(k % 2),
            (x + dice.between(-0.6, 0.6) * s, y, z - 2),
            (0.0, 1.0),
            (dice.between(120, 260), 10.0, dice.between(7, 17)),
            (varied(dice, dice.pick(GREENS), 0.75, 0.85),),
            semantic=VEGETATION,
            seed=dice.integer(1 << 20),
        )
    if street.marks.crossing < 500:
        yield from _cross_street(dice, plan)


def _cross_street(dice: Dice, plan: Plan) -> Iterator[Placement]:
    """Houses on the far side of the cross street, beyond the corner plots."""
    street, m = plan.street, plan.street.marks
    for side in (-1, 1):
        d = plan.right if side > 0 else plan.left
        profile = street.side(side)
        t = m.half + profile.verge + profile.pavement + 26
        while t < 66:
            wide = dice.between(9, 16)
            floors = d.storeys[0] + dice.integer(d.storeys[1] - d.storeys[0] + 1)
            x, y, z = street.point(m.crossing + m.crossing_half + profile.pavement + 1.0, side * t)
            params = (
                wide / 4,
                3.1,
                0.45,
                0.55,
                3.4,
                float(dice.chance(d.shops)),
                float(dice.pick(d.walls)),
                0.0,
            )
            style_wall = dice.pick(WALLS)
            yield Placement(
                houses.block(),
                (x - (wide if side < 0 else 0), y, z + KERB - 0.3),
                (0.0, 1.0),
                (wide, 10.0, 3.1 * floors + 1),
                (style_wall, dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)),
                params,
                BUILDING,
                seed=dice.integer(1 << 20),
            )
            t += wide + dice.between(0, 3)
