"""Traffic: vehicles in their lanes, at the kerb and on the cross street; people on foot and on bicycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

from stormproof.world.classes import BICYCLE, BUS, CAR, PERSON, SEMANTIC_OF, TRUCK
from stormproof.world.dice import Dice
from stormproof.world.materials import METALS, PAINTS, Colour, tone, tones, varied
from stormproof.world.models import people, vehicles
from stormproof.world.plan import DRIVING, RIDING, WALKING, StreetPlan
from stormproof.world.stage import Placement
from stormproof.world.street import Street

BODIES = tones(
    "e8e8e6 d4d4d2 b4b6b8 8c8f92 5c6064 2c2e30 1a1b1d 28405e 3c5c84 6e1e1c 9a2c24 4a3c30 b8aa90 35503e "
    "7a8a96 c8bfae 8a7a5c 50586a e0dccc 6a4a3a a4583c d8b23a 4c7088"
)
LIVERIES = tones("e6e4de c2c8cc 2e4c74 8a2a26 c4a03a 3e6650 d87a2a 6a7278 f0eeea 7a94a8 a8542e 54406a")
GLASS, TRIM, TYRE, HUB = tone("141a1e"), tone("202224"), tone("1a1a1a"), tone("9a9c9e")
HEAD, TAIL, PLATE = tone("e8ecf0"), tone("a01814"), tone("d8d8d0")
SKINS = tones("e8b898 d49a78 b87a58 8a5638 5e3a26 f0c8aa")
HAIRS = tones("1c1814 3a281c 5c3e26 8a6a3c 9a9490 2a2a2c 6a3018")
TOPS = tones(
    "2a2e38 5a6270 8c8c8a c4bcae d8d4cc 6a3430 8a4238 3c5444 5c7a6a 3e5a80 7a94b0 a88a5c c8a048 4a3c48 "
    "b4a0a8 1e2022 9a5a3a 70685c e0dcd0 b83a30"
)
BOTTOMS = tones("22262e 2e3a52 4a5468 3a342e 6a6054 8c8272 1a1a1c 5c5c5a a89c88 48402e")
SHOES = tones("1a1a1a 3a2c22 c8c4bc 5a5a5c 7a3028")
LENGTHS = {CAR: 4.8, TRUCK: 9.0, BUS: 12.0}

Spot = tuple[float, float, float, float]  # an occupied range of s, and of t


def is_taken(spot: Spot, taken: list[Spot]) -> bool:
    """Whether the spot overlaps an occupied one."""
    s0, s1, t0, t1 = spot
    return any(a < s1 and s0 < b and c < t1 and t0 < d for a, b, c, d in taken)


def _coloured(dice: Dice, label: int) -> tuple[Colour, ...]:
    body = dice.pick(BODIES if label == CAR else LIVERIES)
    body = varied(dice, body, 0.85, 1.1)
    second = PLATE if label == CAR else dice.pick(LIVERIES)
    return body, GLASS, TRIM, TYRE, HUB, HEAD, TAIL, second


def vehicle(
    dice: Dice, street: Street, s: float, t: float, label: int, backwards: bool, skew: float = 0.0
) -> Placement:
    """One vehicle at (s, t), nearly along the street."""
    hx, hy = street.ahead(s)
    hx, hy = hx + skew * hy, hy - skew * hx
    size = sqrt(hx * hx + hy * hy)
    hx, hy = hx / size, hy / size
    tilt = street.tilt(s)
    if backwards:
        hx, hy, tilt = -hx, -hy, -tilt
    if label == CAR:
        mesh = vehicles.car(dice.integer(len(vehicles.CARS)))
    elif label == TRUCK:
        mesh = vehicles.truck(dice.integer(vehicles.TRUCKS))
    else:
        mesh = vehicles.bus(dice.integer(vehicles.BUSES))
    k = dice.between(0.95, 1.05)
    return Placement(
        mesh, street.point(s, t), (hx, hy), (k, dice.between(0.94, 1.06), dice.between(0.96, 1.05)),
        _coloured(dice, label), semantic=SEMANTIC_OF[label], label=label, tilt=tilt,
        seed=dice.integer(1 << 20),
    )  # fmt: skip


def _kind(dice: Dice) -> int:
    u = dice.unit()
    return CAR if u < 0.72 else TRUCK if u < 0.87 else BUS


def moving(dice: Dice, plan: StreetPlan, taken: list[Spot]) -> Iterator[Placement]:
    """Traffic in every lane, with larger gaps in calm streets."""
    street, m, lens = plan.street, plan.street.marks, plan.lens
    calm = dice.between(12, 110)
    lanes = [(m.middle + (k + 0.5) * m.lane, False) for k in range(m.right)]
    lanes += [(m.middle - (k + 0.5) * m.lane, True) for k in range(m.left)]
    for t, backwards in lanes:
        s = dice.between(4.5, 16) if abs(t - lens.t) < 2.2 else dice.between(-1, 7)
        s += dice.between(0, 0.2) * calm
        while s < 62:
            label = _kind(dice)
            long = LENGTHS[label]
            at = s + long / 2
            if not street.crosses(at, 0.5 * long + 1.0) or dice.chance(0.35):
                driven = DRIVING * plan.time * (-1 if backwards else 1)
                yield vehicle(
                    dice, street, at + driven, t + dice.between(-0.35, 0.35), label, backwards,
                    dice.between(-0.02, 0.02),
                )  # fmt: skip
                taken.append((s - 0.3, at + long / 2 + 0.3, t - 1.4, t + 1.4))
            s += long + 2.0 + dice.between(0, 1) * calm


def parked(dice: Dice, plan: StreetPlan, taken: list[Spot]) -> Iterator[Placement]:
    """A row of parked vehicles, with gaps, along each kerb."""
    street, m = plan.street, plan.street.marks
    for side, d in ((-1, plan.left), (1, plan.right)):
        if m.parking == 0.0 and not dice.chance(d.parked * 0.4):
            continue
        if m.parking == 0.0 and m.half < 5.0:
            continue
        inset = m.parking / 2 if m.parking else 1.05
        t = side * (m.half - inset)
        s, full = dice.between(-2, 8), dice.between(0.3, 1.1)
        if abs(plan.lens.t - t) < 1.8:
            s = max(s, 6.0)
        while s < 42:
            s += 5.4 + dice.between(0, 0.8)
            free = not is_taken((s - 2.7, s + 2.7, t - 0.95, t + 0.95), taken)
            if free and not street.crosses(s, 9.0) and abs(s - m.zebra) > 6 and dice.chance(d.parked * full):
                truck = dice.chance(0.05)
                yield vehicle(
                    dice, street, s, t + dice.between(-0.12, 0.12), TRUCK if truck else CAR,
                    (side < 0) != dice.chance(0.08), dice.between(-0.03, 0.03),
                )  # fmt: skip
                taken.append((s - 2.7, s + 2.7, t - 1.0, t + 1.0))
                s += 4.0 if truck else 0.0


def crossing(dice: Dice, plan: StreetPlan, taken: list[Spot]) -> Iterator[Placement]:
    """Vehicles on the cross street, seen from the side."""
    street, m = plan.street, plan.street.marks
    if m.crossing > 500:
        return
    for t0, s_off, direction in ((-32.0, -1.7, 1), (-32.0, 1.7, -1)):
        t = t0 + dice.between(0, 24)
        while t < 32:
            label = _kind(dice)
            long = LENGTHS[label]
            s = m.crossing + s_off
            inside = abs(t) < m.half + long / 2 + 1
            spot = (s - 1.3, s + 1.3, t - long / 2, t + long / 2)
            if dice.chance(0.25 if inside else 0.45) and not is_taken(spot, taken):
                base = vehicle(dice, street, s, t, label, False)
                hx, hy = base.ahead
                yield replace(base, ahead=(hy * direction, -hx * direction), tilt=0.0)
                taken.append(spot)
            t += long + 2 + dice.between(0, 22)


def _dressed(dice: Dice) -> tuple[Colour, ...]:
    """Skin, hair, top, legs, shoes, bag, and the second colour of a pattern."""
    return (
        dice.pick(SKINS), dice.pick(HAIRS), dice.pick(TOPS), dice.pick(BOTTOMS), dice.pick(SHOES),
        dice.pick(TOPS), dice.pick(TOPS),
    )  # fmt: skip


def _person(dice: Dice, street: Street, s: float, t: float, ahead: tuple[float, float]) -> Placement:
    pattern = dice.integer(4) if dice.chance(0.35) else 0
    k = dice.between(0.95, 1.06)
    return Placement(
        people.walker(dice.integer(people.WALKERS)), street.foot(s, t), ahead,
        (k, k, dice.between(0.96, 1.05)), _dressed(dice), (float(pattern),), SEMANTIC_OF[PERSON], PERSON,
        seed=dice.integer(1 << 20),
    )  # fmt: skip


def _facing(dice: Dice, street: Street, s: float) -> tuple[float, float]:
    """A heading mostly up or down the street."""
    hx, hy = street.ahead(s)
    q = dice.between(-0.35, 0.35) if dice.chance(0.8) else dice.between(-1, 1)
    c, n = (1 - q * q) / (1 + q * q), 2 * q / (1 + q * q)
    hx, hy = hx * c + hy * n, hy * c - hx * n
    return (hx, hy) if dice.chance(0.5) else (-hx, -hy)


def walkers(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """Singles, couples and groups on the pavements, thinning out with distance."""
    street, m = plan.street, plan.street.marks
    for side, d in ((-1, plan.left), (1, plan.right)):
        profile = street.side(side)
        near = m.half + profile.verge
        busy = d.people * dice.between(0.3, 1.7)
        for _ in range(int(busy * 2.6 + dice.unit())):
            u = dice.unit()
            s = 2.6 + 34.0 * u * u * u + 6.0 * u
            width = max(0.4, profile.pavement - 0.7)
            t = near + 0.45 + width * dice.unit()
            ahead = _facing(dice, street, s)
            walked = _strolled(street, s, ahead, plan.time)
            for k in range(1 + (dice.integer(3) if dice.chance(0.35) else 0)):
                off = 0.62 * k
                beside = t + off * 0.8
                if abs(side * beside - plan.lens.t) > 0.9 or s > 5:
                    across = beside if beside < near + profile.pavement else t - off * 0.8
                    yield _person(dice, street, s + off * 0.4 + walked, side * across, ahead)


def _strolled(street: Street, s: float, ahead: tuple[float, float], time: float) -> float:
    """How far along the street people have walked; those who look across it stand."""
    hx, hy = street.ahead(s)
    along = ahead[0] * hx + ahead[1] * hy
    return 0.0 if abs(along) < 0.75 else WALKING * time * (1 if along > 0 else -1)


def crossers(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """People on the crossings, and occasionally elsewhere on the road."""
    street, m = plan.street, plan.street.marks
    spots = [m.zebra] if m.zebra < 500 else []
    if m.crossing < 500:
        spots += [m.crossing - m.crossing_half - 2.6, m.crossing + m.crossing_half + 2.6]
    if dice.chance(0.25):
        spots.append(dice.between(7, 30))
    for s in spots:
        for _ in range(dice.integer(4)):
            t = dice.between(-m.half, m.half)
            hx, hy = street.ahead(s)
            sign = 1 if dice.chance(0.5) else -1
            walked = sign * WALKING * plan.time
            at = s + dice.between(-1.4, 1.4)
            yield _person(dice, street, at, t + walked, (sign * hy, -sign * hx))


def _bike(
    dice: Dice, at: tuple[float, float, float], ahead: tuple[float, float], tilt: float, group: int
) -> Placement:
    colours = (dice.pick(PAINTS), tone("1c1c1c"), dice.pick(METALS), tone("2a2420"), dice.pick(PAINTS))
    return Placement(
        people.bicycle(dice.integer(people.BIKES)), at, ahead, colours=colours,
        semantic=SEMANTIC_OF[BICYCLE], label=BICYCLE, tilt=tilt, seed=dice.integer(1 << 20), group=group,
    )  # fmt: skip


def cyclists(dice: Dice, plan: StreetPlan, taken: list[Spot]) -> Iterator[Placement]:
    """Riders near the kerb or in the bicycle lane, with their bicycles."""
    street, m = plan.street, plan.street.marks
    for group in range(dice.integer(4 if m.bike > 0 else 3)):
        side = 1 if dice.chance(0.6) else -1
        u = dice.unit()
        s = 4.0 + 24.0 * u * u + 5.0 * u
        t = side * (m.half - m.parking - (m.bike / 2 if m.bike else dice.between(0.5, 0.9)))
        spot = (s - 1, s + 1, t - 0.4, t + 0.4)
        if is_taken(spot, taken) or (abs(t - plan.lens.t) < 1 and s < 6):
            continue
        taken.append(spot)
        backwards = (side < 0) != dice.chance(0.1)
        s += RIDING * plan.time * (-1 if backwards else 1)
        ahead, tilt = street.ahead(s), street.tilt(s)
        if backwards:
            ahead, tilt = (-ahead[0], -ahead[1]), -tilt
        at = street.point(s, t)
        yield _bike(dice, at, ahead, tilt, group)
        yield Placement(
            people.rider(dice.integer(people.RIDERS)), at, ahead, colours=_dressed(dice),
            semantic=SEMANTIC_OF[PERSON], label=PERSON, tilt=tilt, seed=dice.integer(1 << 20), group=group,
        )  # fmt: skip


def racks(dice: Dice, plan: StreetPlan) -> Iterator[Placement]:
    """Bicycles parked at the kerb in small groups, mostly across the pavement."""
    street, m = plan.street, plan.street.marks
    for side in (-1, 1):
        if not dice.chance(0.22):
            continue
        profile = street.side(side)
        s = dice.between(4, 18)
        hx, hy = street.ahead(s)
        for k in range(1 + dice.integer(4)):
            q = dice.between(-0.2, 0.2)
            ahead = (hy, -hx) if dice.chance(0.8) else (hx, hy)
            ahead = (ahead[0] + q * ahead[1], ahead[1] - q * ahead[0])
            size = sqrt(ahead[0] * ahead[0] + ahead[1] * ahead[1])
            x, y, z = street.point(s + 0.7 * k, side * (m.half + profile.verge + 0.9))
            if not street.crosses(s, 3):
                yield _bike(dice, (x, y, z + 0.13), (ahead[0] / size, ahead[1] / size), 0.0, -1)
