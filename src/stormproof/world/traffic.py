"""Vehicles: driving in their lanes, parked at the kerb, crossing ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

from stormproof.world.classes import BUS, CAR, SEMANTIC_OF, TRUCK
from stormproof.world.dice import Dice
from stormproof.world.materials import Colour, tone, tones, varied
from stormproof.world.models import vehicles
from stormproof.world.plan import DRIVING, Plan
from stormproof.world.stage import Placement
from stormproof.world.street import Street

BODIES = tones(
    "e8e8e6 d4d4d2 b4b6b8 8c8f92 5c6064 2c2e30 1a1b1d 28405e 3c5c84 6e1e1c 9a2c24 4a3c30 b8aa90 35503e "
    "7a8a96 c8bfae 8a7a5c 50586a e0dccc 6a4a3a a4583c d8b23a 4c7088"
)
LIVERIES = tones("e6e4de c2c8cc 2e4c74 8a2a26 c4a03a 3e6650 d87a2a 6a7278 f0eeea 7a94a8 a8542e 54406a")
GLASS, TRIM, TYRE, HUB = tone("141a1e"), tone("202224"), tone("1a1a1a"), tone("9a9c9e")
HEAD, TAIL, PLATE = tone("e8ecf0"), tone("a01814"), tone("d8d8d0")
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


def moving(dice: Dice, plan: Plan, taken: list[Spot]) -> Iterator[Placement]:
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


def parked(dice: Dice, plan: Plan, taken: list[Spot]) -> Iterator[Placement]:
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


def crossing(dice: Dice, plan: Plan, taken: list[Spot]) -> Iterator[Placement]:
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
