"""What lines the street: buildings, trees, lamps, fences, and the skyline behind."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.classes import BUILDING, POLE, SIDEWALK, VEGETATION, VOID
from stormproof.world.dice import Dice
from stormproof.world.models import furniture, houses, plants
from stormproof.world.plan import District, Plan
from stormproof.world.stage import Colour, Placement, tone, tones
from stormproof.world.street import KERB, Street

WALLS = tones("b8a78c c9b99a d8cdb6 e4ddcf a35f4a 8e4f3f b5725a 9a8f86 7f8a93 c8c4bc b08d62 d4b483 a9b0a4 8b6b58 c2a6a0 6f6a66")
GLASSY = tones("5b7388 6d8294 4c5c6b 7d8d97 66747c")
BOARDS = tones("dfd8c8 b9c4c9 c9b58e 8f9c8a e8e4da a9bcc8 d9c0a0")
TRIMS = tones("e8e4da d6d0c4 5a544c 3c3a38 8a8278 f0eee8")
ROOFS = tones("8a4a36 6b3f32 5a5450 4a4a4e 76706a 9a5a40 3e4044")
SHOPS = tones("7a2424 1f4a6b 2a5a3a c08a2a 3a3a3a 8a3a6a d8d0c0 b0522a")
GREENS = tones("56743a 4a6a34 66803e 3e5c30 728a48 5c7040 7f8a4a 4f6b45")
METALS = tones("6a6e70 4a4e50 8a8e8e 3a4a40 7a7468 2c2e30")
PAINTS = tones("6a4a30 3a5a44 2e4a6a 8a2e28 55585a 9a9488 c8a23a 3a3a3c")
BARKS = tones("5a4a3c 6e6256 4a3c30 7a7064")


def _turned(street: Street, s: float, side: int) -> tuple[float, float]:
    """Heading of something whose x axis points away from the street."""
    hx, hy = street.ahead(s)
    return (hx, hy) if side > 0 else (-hx, -hy)


def _building(dice: Dice, d: District, street: Street, s: float, wide: float, side: int, front: float, lit: float) -> Iterator[Placement]:
    """One house: walls, roof, and a few of cornice, balconies, awning, chimney."""
    style = dice.pick(d.walls)
    wall = dice.pick(GLASSY if style == 3 else BOARDS if style == 4 else WALLS)
    wall = tuple(c * dice.between(0.85, 1.15) for c in wall)  # type: ignore[assignment]
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
    ahead = _turned(street, s + wide / 2, side)

    def put(mesh: object, dx: float, dy: float, dz: float, size: tuple[float, float, float], tint: tuple[Colour, ...] = colours) -> Placement:
        at = (x + dx * ahead[1] + dy * ahead[0], y - dx * ahead[0] + dy * ahead[1], z + dz)
        return Placement(mesh, at, ahead, size, tint, params, BUILDING, seed=seed)  # type: ignore[arg-type]

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
                yield put(cube, -1.0, (c + 0.1) * pitch, ground + f * storey, (1.0, pitch * 0.8, 0.14), (trim,))
                yield put(cube, -1.0, (c + 0.1) * pitch, ground + f * storey + 0.14, (0.05, pitch * 0.8, 0.85), (trim,))
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
        yield Placement(plants.hedge(), (x, y, z + KERB), street.ahead(s + long / 2), size, (dice.pick(GREENS),), semantic=VEGETATION,
                        tilt=street.tilt(s), seed=dice.integer(1 << 20))
        return
    tints = (dice.pick(TRIMS if kind == 0 else METALS if kind == 1 else WALLS), dice.pick(METALS))
    for k in range(int(long / 2)):
        mid = s + 2 * k + 1
        x, y, z = street.point(mid, side * at)
        yield Placement(furniture.fence(kind), (x, y, z + KERB - 0.03), street.ahead(mid), colours=tints, semantic=BUILDING, tilt=street.tilt(mid))


def _grain(s: float) -> tuple[float, float]:
    """How finely a tree's leaves need to be drawn s metres down the street."""
    return plants.NEAR if s < 22 else plants.MIDDLE if s < 55 else plants.FAR


def _plant(dice: Dice, street: Street, s: float, t: float, size: float, green: Colour) -> Placement:
    x, y, z = street.point(s, t)
    k = size * dice.between(0.75, 1.2)
    tint = tuple(c * dice.between(0.8, 1.25) for c in green)
    return Placement(plants.tree(dice.integer(plants.TREES), _grain(s)), (x, y, z + street.ground(t) - 0.05), _spin(dice), (k, k, k),
                     (tint, dice.pick(BARKS)), semantic=VEGETATION, seed=dice.integer(1 << 20))  # type: ignore[arg-type]


def _spin(dice: Dice) -> tuple[float, float]:
    """Any direction, by the rational points of the circle."""
    q = dice.between(-1, 1)
    c, s = (1 - q * q) / (1 + q * q), 2 * q / (1 + q * q)
    return (s, c) if dice.chance(0.5) else (-s, -c)


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
        if street.crosses(s, profile.pavement + 0.5) or street.crosses(s + wide, profile.pavement + 0.5) or s < street.marks.crossing < s + wide:
            s = street.marks.crossing + street.marks.crossing_half + profile.pavement + 0.6 if s + wide > street.marks.crossing else s + 1
            continue
        front = kerb + dice.between(*d.setback) + 0.05
        if dice.chance(d.empty):
            for _ in range(1 + int(wide / 5)):
                yield _plant(dice, street, s + wide * dice.unit(), side * (kerb + dice.between(2.0, 14.0)), 1.1, green)
        else:
            yield from _building(dice, d, street, s, wide, side, front, lit)
            if profile.yard and dice.chance(0.5) and front - kerb > 3.5:
                yield _plant(dice, street, s + wide * dice.unit(), side * (kerb + 1.7), 0.7, green)
        if fenced and front - kerb > 1.2 and s < 80:
            yield from _boundary(dice, street, side, s, wide * 0.8, kerb + 0.3)
        for _ in range(dice.integer(3)):
            if profile.yard and front - kerb > 2 and s < 70:
                x, y, z = street.point(s + wide * dice.unit(), side * (front - dice.between(0.7, 1.3)))
                yield Placement(plants.bush(dice.integer(plants.BUSHES)), (x, y, z + KERB), _spin(dice), colours=(dice.pick(GREENS),), semantic=VEGETATION)
        s += wide + (dice.between(*d.gap) if dice.chance(d.gap_chance) else 0.0)


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
        for s in range(int(dice.between(4, 20)), 150, 28):
            if not street.crosses(s, 2):
                x, y, z = street.point(s, side * (row + 0.2))
                yield Placement(furniture.utility_pole(), (x, y, z + KERB), street.ahead(s), colours=(dice.pick(BARKS),), semantic=POLE)
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
            tree = _plant(dice, street, s, t, size, green)
            if tree_kind:
                tree = Placement(plants.tree(species, _grain(s)), tree.at, tree.ahead, tree.scale, tree.colours, semantic=VEGETATION, seed=tree.seed)
            yield tree
        elif what < d.trees * 0.8 + 0.12:
            yield Placement(furniture.street_lamp(lamp), (x, y, z), _turned(street, s, -side), colours=(metal, glow), semantic=POLE)
        elif what < d.trees * 0.8 + 0.22 and s < 70:
            kind = dice.integer(7)
            away = _turned(street, s, side)
            face = (-away[1], away[0]) if kind in (0, 5) else _turned(street, s, side)
            reach = profile.pavement - 0.7 if kind in (0, 5) and profile.pavement > 2.2 else 0.25
            x, y, z = street.point(s, side * (edge + profile.verge + reach))
            if kind == 5 and profile.pavement < 3.0:
                kind = 3
            yield Placement(furniture.clutter(kind), (x, y, z + KERB), face, colours=(dice.pick(PAINTS), metal, dice.pick(SHOPS), paint, paint, paint, dice.pick(WALLS)),
                            semantic=VOID, seed=dice.integer(1 << 20))
    if dice.chance(0.15) and profile.yard:
        s = dice.between(20, 60)
        x, y, z = street.point(s, side * (edge + profile.verge + profile.pavement + 2.4))
        yield Placement(furniture.billboard(), (x, y, z + KERB), street.ahead(s), colours=(metal, metal, dice.pick(SHOPS), metal, metal, metal, dice.pick(WALLS)),
                        semantic=VOID, seed=dice.integer(1 << 20))


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
        yield Placement(houses.block(), (x, y, z - 2), (0.0, 1.0), (wide, 15.0, high), (dice.pick(WALLS), dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)),
                        params, BUILDING, seed=dice.integer(1 << 20))
    for k in range(6):
        s = 240 + 45 * k + dice.between(0, 30)
        x, y, z = street.point(s, 0.0)
        yield Placement(plants.ridge(k % 2), (x + dice.between(-0.6, 0.6) * s, y, z - 2), (0.0, 1.0), (dice.between(120, 260), 10.0, dice.between(7, 17)),
                        (tuple(c * 0.8 for c in dice.pick(GREENS)),), semantic=VEGETATION, seed=dice.integer(1 << 20))  # type: ignore[arg-type]
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
            params = (wide / 4, 3.1, 0.45, 0.55, 3.4, float(dice.chance(d.shops)), float(dice.pick(d.walls)), 0.0)
            style_wall = dice.pick(WALLS)
            yield Placement(houses.block(), (x - (wide if side < 0 else 0), y, z + KERB - 0.3), (0.0, 1.0), (wide, 10.0, 3.1 * floors + 1),
                            (style_wall, dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)), params, BUILDING, seed=dice.integer(1 << 20))
            t += wide + dice.between(0, 3)
