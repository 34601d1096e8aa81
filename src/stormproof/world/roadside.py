"""What lines the street beyond the pavement: buildings, gardens, hedges and fences."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.classes import BUILDING, VEGETATION
from stormproof.world.dice import Dice
from stormproof.world.districts import District
from stormproof.world.mesh import Mesh
from stormproof.world.models import furniture, houses, plants
from stormproof.world.palette import BOARDS, GLASSY, GREENS, METALS, ROOFS, SHOPS, TRIMS, WALLS, varied
from stormproof.world.plan import Plan
from stormproof.world.planting import planted, spun, turned
from stormproof.world.stage import Colour, Placement
from stormproof.world.street import KERB, Street


def _building(
    dice: Dice, d: District, street: Street, s: float, wide: float, side: int, front: float, lit: float
) -> Iterator[Placement]:
    """One house: walls, roof, and a few of cornice, balconies, awning, chimney."""
    style = dice.pick(d.walls)
    wall = dice.pick(GLASSY if style == 3 else BOARDS if style == 4 else WALLS)
    wall = varied(dice, wall, 0.85, 1.15)
    storey = dice.between(2.8, 3.5) if d.storeys[1] < 8 else dice.between(3.2, 3.9)
    shop = dice.chance(d.shops)
    ground = dice.between(3.4, 4.4) if shop else storey + dice.between(0, 0.5)
    floors = d.storeys[0] + dice.integer(d.storeys[1] - d.storeys[0] + 1) - 1
    high = ground + floors * storey + 0.5
    columns = max(2, round(wide / dice.between(1.9, 3.6)))
    pitch = wide / columns
    deep = pitch * max(2, round(dice.between(7, 13) / pitch))
    fill = (0.93, 0.9) if style == 3 else (dice.between(0.32, 0.62), dice.between(0.42, 0.68))
    params = (pitch, storey, *fill, ground, float(shop), float(style), lit)
    seed = dice.integer(1 << 20)
    trim, roof_tone, sign = dice.pick(TRIMS), dice.pick(ROOFS), dice.pick(SHOPS)
    colours: tuple[Colour, ...] = (wall, trim, sign, roof_tone)
    z = max(street.height(s), street.height(s + wide)) + KERB
    begin = s if side > 0 else s + wide
    x, y, _ = street.point(begin, side * front)
    ahead = turned(street, s + wide / 2, side)

    def put(
        mesh: Mesh,
        dx: float,
        dy: float,
        dz: float,
        size: tuple[float, float, float],
        tint: tuple[Colour, ...] = colours,
    ) -> Placement:
        at = (x + dx * ahead[1] + dy * ahead[0], y - dx * ahead[0] + dy * ahead[1], z + dz)
        return Placement(mesh, at, ahead, size, tint, params, BUILDING, seed=seed)

    cube = houses.cuboid()
    yield put(houses.block(), 0, 0, 0, (deep, wide, high))
    yield put(cube, 0, 0, -2.5, (deep, wide, 2.5), (wall,))
    kind = dice.pick(d.roofs)
    if kind == 3:
        yield put(cube, -0.18, -0.02, high - 0.3, (0.4, wide + 0.04, 0.6), (trim,))
        if dice.chance(0.5):
            yield put(cube, deep * 0.4, wide * dice.between(0.1, 0.6), high, (3.0, 3.0, 2.4), (roof_tone,))
    else:
        tall = dice.between(0.22, 0.42) * (deep if kind != 1 else wide)
        yield put(houses.roof(kind), 0, 0, high, (deep, wide, tall))
        yield put(cube, deep * 0.3, wide * dice.between(0.15, 0.75), high, (0.7, 0.9, tall + 0.8), (wall,))
    if not shop and floors >= 2 and dice.chance(0.35) and style != 3:
        every = 2 + dice.integer(2)
        for f in range(floors):
            for c in range(dice.integer(2), columns, every):
                yield put(
                    cube, -1.0, (c + 0.1) * pitch, ground + f * storey, (1.0, pitch * 0.8, 0.14), (trim,)
                )
                yield put(
                    cube,
                    -1.0,
                    (c + 0.1) * pitch,
                    ground + f * storey + 0.14,
                    (0.05, pitch * 0.8, 0.85),
                    (trim,),
                )
    if shop and dice.chance(0.6):
        awning = dice.pick(SHOPS)
        for c in range(0, columns - 1, 3):
            if dice.chance(0.7):
                yield put(cube, -1.3, c * pitch + 0.2, ground - 0.95, (1.3, pitch * 2.6, 0.12), (awning,))
                yield put(cube, -1.32, c * pitch + 0.2, ground - 1.2, (0.04, pitch * 2.6, 0.30), (awning,))
    if style == 4 and dice.chance(0.5):
        yield put(cube, -1.6, wide * 0.3, 0, (1.6, 2.6, 0.25), (trim,))
        yield put(cube, -1.7, wide * 0.3 - 0.2, 2.5, (1.8, 3.0, 0.18), (roof_tone,))


def _boundary(dice: Dice, street: Street, side: int, s: float, long: float, at: float) -> Iterator[Placement]:
    """A hedge, fence or low wall along the back of the pavement."""
    kind = dice.integer(4)
    if kind == 3:
        x, y, z = street.point(s + long / 2, side * at)
        size = (dice.between(0.5, 0.9), long, dice.between(0.8, 1.7))
        yield Placement(
            plants.hedge(),
            (x, y, z + KERB),
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
        if (
            street.crosses(s, profile.pavement + 0.5)
            or street.crosses(s + wide, profile.pavement + 0.5)
            or s < street.marks.crossing < s + wide
        ):
            s = (
                street.marks.crossing + street.marks.crossing_half + profile.pavement + 0.6
                if s + wide > street.marks.crossing
                else s + 1
            )
            continue
        front = kerb + dice.between(*d.setback) + 0.05
        if dice.chance(d.empty):
            for _ in range(1 + int(wide / 5)):
                yield planted(
                    dice, street, s + wide * dice.unit(), side * (kerb + dice.between(2.0, 14.0)), 1.1, green
                )
        else:
            yield from _building(dice, d, street, s, wide, side, front, lit)
            if profile.yard and dice.chance(0.5) and front - kerb > 3.5:
                yield planted(dice, street, s + wide * dice.unit(), side * (kerb + 1.7), 0.7, green)
        if fenced and front - kerb > 1.2 and s < 80:
            yield from _boundary(dice, street, side, s, wide * 0.8, kerb + 0.3)
        for _ in range(dice.integer(3)):
            if profile.yard and front - kerb > 2 and s < 70:
                x, y, z = street.point(s + wide * dice.unit(), side * (front - dice.between(0.7, 1.3)))
                yield Placement(
                    plants.bush(dice.integer(plants.BUSHES)),
                    (x, y, z + KERB),
                    spun(dice),
                    colours=(dice.pick(GREENS),),
                    semantic=VEGETATION,
                )
        s += wide + (dice.between(*d.gap) if dice.chance(d.gap_chance) else 0.0)
