"""The roadside: trees, lamps, signs and clutter at the kerb, plots behind the pavement, and the skyline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stormproof.world.building import block, building
from stormproof.world.classes import BUILDING, LIGHT, POLE, SEMANTIC_OF, SIGN, STOP, VEGETATION, VOID
from stormproof.world.dice import Dice
from stormproof.world.materials import (
    BARKS,
    GREENS,
    METALS,
    PAINTS,
    ROOFS,
    SHOPS,
    TRIMS,
    WALLS,
    Colour,
    tone,
    tones,
    varied,
)
from stormproof.world.models import furniture, plants
from stormproof.world.plan import StreetPlan
from stormproof.world.stage import Placement
from stormproof.world.street import KERB, Street, turned

HEADS = tones("1c1e1e 2a2c28 22301f 4a4a48 c09a28")
LAMPS = (tone("ff3a28"), tone("ffb428"), tone("50f0a0"), tone("1a1616"))


def grain(s: float) -> tuple[float, float]:
    """The level of detail of a tree s metres down the street."""
    return plants.NEAR if s < 22 else plants.MIDDLE if s < 55 else plants.FAR


def planted(dice: Dice, street: Street, s: float, t: float, size: float, green: Colour) -> Placement:
    x, y, z = street.foot(s, t)
    k = size * dice.between(0.75, 1.2)
    tint = varied(dice, green, 0.8, 1.25)
    return Placement(
        plants.tree(dice.integer(plants.TREES), grain(s)), (x, y, z - 0.05), _heading(dice), (k, k, k),
        (tint, dice.pick(BARKS)), semantic=VEGETATION, seed=dice.integer(1 << 20),
    )  # fmt: skip


def _heading(dice: Dice) -> tuple[float, float]:
    """A random direction, from rational points of the circle."""
    q = dice.between(-1, 1)
    c, s = (1 - q * q) / (1 + q * q), 2 * q / (1 + q * q)
    return (s, c) if dice.chance(0.5) else (-s, -c)


def _wires(dice: Dice, street: Street, side: int, row: float) -> Iterator[Placement]:
    """Wooden poles every 28 m."""
    for k in range(int(dice.between(4, 20)), 150, 28):
        if not street.crosses(k, 2):
            at, bark = street.foot(k, side * (row + 0.2)), dice.pick(BARKS)
            yield Placement(furniture.utility_pole(), at, street.ahead(k), colours=(bark,), semantic=POLE)


def _clutter(dice: Dice, street: Street, s: float, side: int, metal: Colour, paint: Colour) -> Placement:
    """A bench, bin, bollard, planter, shelter or kiosk; benches and shelters face the road."""
    profile, kind = street.side(side), dice.integer(7)
    away = turned(street, s, side)
    backed = kind in (furniture.BENCH, furniture.SHELTER)
    reach = profile.pavement - 0.7 if backed and profile.pavement > 2.2 else 0.25
    at = street.foot(s, side * (street.marks.half + profile.verge + reach))
    if kind == furniture.SHELTER and profile.pavement < 3.0:
        kind = furniture.BOLLARD
    return Placement(
        furniture.clutter(kind), at, (-away[1], away[0]) if backed else away,
        colours=(dice.pick(PAINTS), metal, dice.pick(SHOPS), paint), semantic=VOID,
        seed=dice.integer(1 << 20),
    )  # fmt: skip


def _billboard(dice: Dice, street: Street, side: int, metal: Colour) -> Placement:
    profile, s = street.side(side), dice.between(20, 60)
    at = street.foot(s, side * (street.marks.half + profile.verge + profile.pavement + 2.4))
    colours, seed = (metal, metal, dice.pick(SHOPS)), dice.integer(1 << 20)
    return Placement(furniture.billboard(), at, street.ahead(s), colours=colours, semantic=VOID, seed=seed)


def kerbside(dice: Dice, plan: StreetPlan, side: int) -> Iterator[Placement]:
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


def _boundary(dice: Dice, street: Street, side: int, s: float, long: float, at: float) -> Iterator[Placement]:
    """A hedge, fence or low wall along the back of the pavement."""
    kind = dice.integer(4)
    if kind == 3:
        foot = street.foot(s + long / 2, side * at)
        size = (dice.between(0.5, 0.9), long, dice.between(0.8, 1.7))
        yield Placement(
            plants.hedge(), foot, street.ahead(s + long / 2), size, (dice.pick(GREENS),),
            semantic=VEGETATION, tilt=street.tilt(s), seed=dice.integer(1 << 20),
        )  # fmt: skip
        return
    tints = (dice.pick(TRIMS if kind == 0 else METALS if kind == 1 else WALLS), dice.pick(METALS))
    for k in range(int(long / 2)):
        mid = s + 2 * k + 1
        x, y, z = street.point(mid, side * at)
        yield Placement(
            furniture.fence(kind), (x, y, z + KERB - 0.03), street.ahead(mid), colours=tints,
            semantic=BUILDING, tilt=street.tilt(mid),
        )  # fmt: skip


def _in_the_way(street: Street, start: float, end: float, margin: float) -> bool:
    """Whether a plot would overlap the cross street or its pavement."""
    middle = street.marks.crossing
    return street.crosses(start, margin) or street.crosses(end, margin) or start < middle < end


def plots(dice: Dice, plan: StreetPlan, side: int) -> Iterator[Placement]:
    """Buildings and gardens along one side, as far as they can be seen."""
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
                    plants.bush(dice.integer(plants.BUSHES)), at, _heading(dice),
                    colours=(dice.pick(GREENS),), semantic=VEGETATION,
                )  # fmt: skip
        s += wide + (dice.between(*d.gap) if dice.chance(d.gap_chance) else 0.0)


def skyline(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """The background: distant blocks and belts of trees, and the houses of the cross street."""
    street = plan.street
    urban = max(plan.left.storeys[1], plan.right.storeys[1])
    for _ in range(14):
        s, t = dice.between(190, 420), dice.between(-1, 1)
        wide, high = dice.between(14, 40), dice.between(5, 4.5 * urban + 8)
        x, y, z = street.point(s, 0.0)
        x += t * (s * 0.9)
        params = (3.2, 3.3, 0.5, 0.5, 3.5, 0.0, float(dice.pick((0, 2))), 0.0)
        yield Placement(
            block(), (x, y, z - 2), (0.0, 1.0), (wide, 15.0, high),
            (dice.pick(WALLS), dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)), params, BUILDING,
            seed=dice.integer(1 << 20),
        )  # fmt: skip
    for k in range(6):
        s = 240 + 45 * k + dice.between(0, 30)
        x, y, z = street.point(s, 0.0)
        yield Placement(
            plants.ridge(k % 2), (x + dice.between(-0.6, 0.6) * s, y, z - 2), (0.0, 1.0),
            (dice.between(120, 260), 10.0, dice.between(7, 17)),
            (varied(dice, dice.pick(GREENS), 0.75, 0.85),), semantic=VEGETATION, seed=dice.integer(1 << 20),
        )  # fmt: skip
    if street.marks.crossing < 500:
        yield from _cross_street(dice, plan)


def _cross_street(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
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
                wide / 4, 3.1, 0.45, 0.55, 3.4, float(dice.chance(d.shops)), float(dice.pick(d.walls)), 0.0,
            )  # fmt: skip
            style_wall = dice.pick(WALLS)
            yield Placement(
                block(), (x - (wide if side < 0 else 0), y, z + KERB - 0.3), (0.0, 1.0),
                (wide, 10.0, 3.1 * floors + 1),
                (style_wall, dice.pick(TRIMS), dice.pick(SHOPS), dice.pick(ROOFS)), params, BUILDING,
                seed=dice.integer(1 << 20),
            )  # fmt: skip
            t += wide + dice.between(0, 3)


def _post(street: Street, s: float, t: float, high: float, kind: int, tint: Colour) -> Placement:
    return Placement(
        furniture.pole(kind), street.foot(s, t), street.ahead(s), (1.0, 1.0, high), (tint,), semantic=POLE
    )


def _signpost(
    dice: Dice, street: Street, s: float, t: float, kind: int, *, backwards: bool
) -> Iterator[Placement]:
    """A sign on its post, facing traffic going ahead, or oncoming traffic."""
    metal = dice.pick(METALS)
    high = dice.between(2.2, 2.8) if kind != furniture.DIRECTION else dice.between(2.9, 3.6)
    yield _post(street, s, t, high + 0.3, 1 if kind != furniture.DIRECTION else 2, metal)
    x, y, z = street.foot(s, t)
    hx, hy = street.ahead(s)
    hx, hy = (-hx, -hy) if backwards else (hx, hy)
    at = (x - 0.07 * hx, y - 0.07 * hy, z + high)
    k = dice.between(0.9, 1.25)
    stop = kind == furniture.STOP
    yield Placement(
        furniture.sign(kind), at, (hx, hy), (k, 1.0, k), (metal, tone("8a8c8c")), (float(kind),),
        SEMANTIC_OF[STOP] if stop else SIGN, STOP if stop else -1, seed=dice.integer(1 << 20),
    )  # fmt: skip


def _signal(
    dice: Dice, street: Street, s: float, t: float, lit: int, *, backwards: bool, arm: float
) -> Iterator[Placement]:
    """A traffic light on its post, and one on an arm over the road if `arm` is not 0."""
    metal, head = dice.pick(METALS), dice.pick(HEADS)
    hx, hy = street.ahead(s)
    ax, ay = (-hx, -hy) if backwards else (hx, hy)
    x, y, z = street.foot(s, t)
    colours = (head, *LAMPS)
    high = dice.between(2.6, 3.2)
    yield _post(street, s, t, 6.0 if arm else high + 0.6, 2 if not arm else 3, metal)
    yield Placement(
        furniture.traffic_light(lit), (x - 0.35 * ax, y - 0.35 * ay, z + high), (ax, ay), colours=colours,
        semantic=SEMANTIC_OF[LIGHT], label=LIGHT, seed=1,
    )  # fmt: skip
    if arm:
        inward = -1.0 if t > 0 else 1.0
        yield Placement(
            furniture.signal_mast(), (x, y, z + 5.8), (inward * hx, inward * hy), (arm, 1.0, 1.0), (metal,),
            semantic=POLE,
        )  # fmt: skip
        xx, yy, _ = street.point(s, t + inward * arm * 0.92)
        yield Placement(
            furniture.traffic_light(lit), (xx - 0.3 * ax, yy - 0.3 * ay, z + 5.45), (ax, ay),
            colours=colours, semantic=SEMANTIC_OF[LIGHT], label=LIGHT, seed=2,
        )  # fmt: skip


def junction(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """Traffic lights or stop signs where streets meet, or lights at a pedestrian crossing."""
    street, m = plan.street, plan.street.marks
    lit = dice.pick((0, 2, 2, 0, 1))
    arm = dice.between(3.0, 5.5) if dice.chance(0.45) else 0.0
    if m.crossing < 500:
        near, far = m.crossing - m.crossing_half - 1.0, m.crossing + m.crossing_half + 1.0
        if dice.chance(0.6):
            for s, side, backwards in (
                (near, 1, False),
                (far, 1, False),
                (far, -1, False),
                (far, -1, True),
                (near, 1, True),
            ):
                if dice.chance(0.75):
                    edge = m.half + 0.45
                    yield from _signal(
                        dice, street, s + (0.5 if backwards else 0.0), side * edge, lit,
                        backwards=backwards, arm=arm if side > 0 and not backwards else 0.0,
                    )  # fmt: skip
        else:
            yield from _signpost(dice, street, near - 1.0, m.half + 0.5, furniture.STOP, backwards=False)
            if dice.chance(0.7):
                yield from _signpost(dice, street, far + 1.0, -m.half - 0.5, furniture.STOP, backwards=True)
            if dice.chance(0.5):
                yield from _signpost(dice, street, far + 1.0, m.half + 0.5, furniture.STOP, backwards=False)
    elif m.zebra < 500:
        if dice.chance(0.5):
            for side in (-1, 1):
                yield from _signal(
                    dice, street, m.zebra - 2.2, side * (m.half + 0.45), lit, backwards=False, arm=0.0
                )
        else:
            for side in (-1, 1):
                yield from _signpost(
                    dice, street, m.zebra - 2.0, side * (m.half + 0.5), furniture.CROSSING, backwards=False
                )


def signs(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """Signs at random places beside the road."""
    street, m = plan.street, plan.street.marks
    kinds = (
        furniture.SPEED, furniture.SPEED, furniture.WARNING, furniture.PARKING, furniture.PARKING,
        furniture.YIELD, furniture.NO_ENTRY, furniture.DIRECTION, furniture.NAME,
    )  # fmt: skip
    for _ in range(2 + dice.integer(5)):
        u = dice.unit()
        s, side = 4.0 + 40.0 * u * u, 1 if dice.chance(0.6) else -1
        kind = dice.pick(kinds)
        if not street.crosses(s, 1.0):
            yield from _signpost(
                dice, street, s, side * (m.half + dice.between(0.35, 0.8)), kind, backwards=dice.chance(0.25)
            )
    if dice.chance(0.25):
        side = 1 if dice.chance(0.7) else -1
        yield from _signpost(
            dice, street, dice.between(4, 16), side * (m.half + 0.5), furniture.STOP, backwards=False
        )
