"""Street furniture: lamps, signs, traffic lights, poles, benches, bins, shelters, fences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from stormproof.world.materials import BOARD, GLASS, LAMP, MATTE, PAINT, SIGN
from stormproof.world.mesh import Mesh, circle, disc, join, paint, painted_box, plate, quads, tube

# Kinds of signs, as `lettering.sign` numbers them.
STOP, SPEED, WARNING, PARKING, YIELD, DIRECTION, NO_ENTRY, CROSSING, NAME = range(9)
OUTLINES = {
    STOP: 8,
    SPEED: 20,
    WARNING: 3,
    PARKING: 4,
    YIELD: 3,
    DIRECTION: 0,
    NO_ENTRY: 20,
    CROSSING: 4,
    NAME: 0,
}


@lru_cache(maxsize=4)
def pole(kind: int) -> Mesh:
    """A bare post 1 m high, to be scaled: 4, 6, 9 or 16 cm across."""
    radius = (0.02, 0.03, 0.045, 0.08)[kind]
    return tube((0, 0, 0), (0, 0, 1), radius * 1.1, radius, MATTE, 0, sides=6)


@lru_cache(maxsize=3)
def street_lamp(kind: int) -> Mesh:
    """A lamp on a mast with one arm (towards +x) or two, or an old lantern. Slots: mast, lamp."""
    if kind == 2:
        return join(
            tube((0, 0, 0), (0, 0, 0.6), 0.12, 0.07, MATTE, 0, sides=8),
            tube((0, 0, 0.6), (0, 0, 3.5), 0.06, 0.045, MATTE, 0),
            tube((0, 0, 3.5), (0, 0, 4.0), 0.10, 0.19, LAMP, 1, sides=6),
            tube((0, 0, 4.0), (0, 0, 4.2), 0.22, 0.03, MATTE, 0, sides=6),
        )
    high = 7.5
    parts = [
        tube((0, 0, 0), (0, 0, 1.1), 0.12, 0.11, MATTE, 0, sides=8),
        tube((0, 0, 1.1), (0, 0, high), 0.085, 0.05, MATTE, 0),
    ]
    for side in (1,) if kind == 0 else (1, -1):
        parts.append(tube((0, 0, high), (side * 1.7, 0, high + 0.45), 0.045, 0.035, MATTE, 0))
        a, b = sorted((side * 1.5, side * 2.2))
        parts.append(painted_box((a, -0.14, high + 0.40), (b, 0.14, high + 0.52), MATTE, 0))
        parts.append(painted_box((a + 0.08, -0.10, high + 0.37), (b - 0.08, 0.10, high + 0.41), LAMP, 1))
    return join(*parts)


@lru_cache(maxsize=1)
def signal_mast() -> Mesh:
    """The arm of a traffic light, 1 m towards +x, to be scaled."""
    return tube((0, 0, 0), (1, 0, 0.05), 0.05, 0.035, MATTE, 0)


@lru_cache(maxsize=3)
def traffic_light(lit: int) -> Mesh:
    """A signal head facing -y around the origin, red, amber or green lit. Slots: box, the three, off."""
    parts = [
        painted_box((-0.17, 0.0, -0.5), (0.17, 0.26, 0.5), MATTE, 0),
        painted_box((-0.27, 0.12, -0.6), (0.27, 0.16, 0.6), MATTE, 0),
    ]
    for k, z in enumerate((0.32, 0.0, -0.32)):
        on = k == lit
        parts.append(disc((0, -0.006, z), 0.125, (0, -1, 0), LAMP if on else MATTE, k + 1 if on else 4))
        hood = [(0.14 * c, 0.14 * s + z) for c, s in circle(12)[:7]]
        ring = [[(a, -0.02, b) for a, b in hood], [(a, -0.18, b) for a, b in hood]]
        for i in range(6):
            face = [ring[0][i], ring[1][i], ring[1][i + 1], ring[0][i + 1]]
            parts.append(paint(quads([face, face[::-1]]), MATTE, 0))
    return join(*parts)


@lru_cache(maxsize=len(OUTLINES))
def sign(kind: int) -> Mesh:
    """A sign's plate facing -y around the origin, about 0.8 m across. Slot 1 is its back."""
    if OUTLINES[kind] == 0:
        wide, high = (1.3, 0.55) if kind == DIRECTION else (0.5, 0.11)
        front = plate((-wide, 0, -high), (wide, 0, -high), 2 * high, SIGN)
        back = plate((wide, 0.02, -high), (-wide, 0.02, -high), 2 * high, MATTE, 1)
        return join(front, back)
    sides = OUTLINES[kind]
    start = {STOP: 1 / 16, WARNING: 0.25, YIELD: 0.75, PARKING: 0.125, CROSSING: 0.125}.get(kind, 0.0)
    radius = 0.48 if sides <= 4 else 0.38
    return join(
        disc((0, 0, 0), radius, (0, -1, 0), SIGN, 0, sides=sides, start=start),
        disc((0, 0.02, 0), radius, (0, 1, 0), MATTE, 1, sides=sides, start=-start if sides == 3 else start),
    )


@lru_cache(maxsize=1)
def utility_pole() -> Mesh:
    """A wooden pole with cross-arms, 8.5 m."""
    arms = [painted_box((-1.0, -0.06, z), (1.0, 0.06, z + 0.12), MATTE, 0) for z in (7.4, 8.1)]
    return join(tube((0, 0, 0), (0, 0, 8.5), 0.14, 0.10, MATTE, 0), *arms)


BENCH, BIN, WHEELIE, BOLLARD, PLANTER, SHELTER, KIOSK, CONE = range(8)


@lru_cache(maxsize=8)
def clutter(kind: int) -> Mesh:
    """Bench, bin, wheelie bin, bollard, planter, shelter, kiosk, cone. Slots: main, second, third."""
    return join(*(_bench, _bin, _wheelie, _bollard, _planter, _shelter, _kiosk, _cone)[kind]())


def _bench() -> Iterator[Mesh]:
    for k in range(3):
        yield painted_box((-0.8, -0.25 + 0.17 * k, 0.42), (0.8, -0.12 + 0.17 * k, 0.46), MATTE, 0)
        yield painted_box((-0.8, 0.26, 0.5 + 0.14 * k), (0.8, 0.30, 0.6 + 0.14 * k), MATTE, 0)
    for x in (-0.65, 0.6):
        yield painted_box((x, -0.25, 0), (x + 0.06, 0.30, 0.42), MATTE, 1)


def _bin() -> Iterator[Mesh]:
    yield tube((0, 0, 0.05), (0, 0, 0.85), 0.24, 0.28, MATTE, 0, sides=10)
    yield tube((0, 0, 0.85), (0, 0, 0.95), 0.30, 0.18, MATTE, 1, sides=10)


def _wheelie() -> Iterator[Mesh]:
    yield painted_box((-0.28, -0.3, 0.1), (0.28, 0.3, 0.95), MATTE, 0)
    yield painted_box((-0.31, -0.34, 0.95), (0.31, 0.34, 1.05), MATTE, 1)
    yield tube((-0.3, 0.3, 0.12), (0.3, 0.3, 0.12), 0.12, 0.12, MATTE, 2, sides=8)


def _bollard() -> Iterator[Mesh]:
    yield tube((0, 0, 0), (0, 0, 0.85), 0.08, 0.07, MATTE, 0, sides=8)
    yield tube((0, 0, 0.85), (0, 0, 0.95), 0.09, 0.03, MATTE, 1, sides=8)


def _planter() -> Iterator[Mesh]:
    yield tube((0, 0, 0), (0, 0, 0.6), 0.4, 0.55, MATTE, 0, sides=10)


def _shelter() -> Iterator[Mesh]:
    yield painted_box((-2.0, -0.1, 2.35), (2.0, 1.4, 2.48), MATTE, 0)
    yield painted_box((-1.9, 1.30, 0.3), (1.9, 1.34, 2.2), GLASS, 1)
    yield painted_box((1.85, 0.1, 0.2), (2.0, 1.3, 2.35), BOARD, 2)
    for x in (-1.95, 1.88):
        yield painted_box((x, 1.26, 0), (x + 0.07, 1.36, 2.35), MATTE, 0)
        yield painted_box((x, 0, 0), (x + 0.07, 0.08, 2.35), MATTE, 0)
    yield painted_box((-1.4, 0.9, 0.42), (1.0, 1.2, 0.48), MATTE, 0)


def _kiosk() -> Iterator[Mesh]:
    yield tube((0, 0, 0), (0, 0, 2.6), 0.6, 0.6, BOARD, 2, sides=14)
    yield tube((0, 0, 2.6), (0, 0, 3.0), 0.72, 0.1, MATTE, 0, sides=14)


def _cone() -> Iterator[Mesh]:
    yield painted_box((-0.2, -0.2, 0), (0.2, 0.2, 0.04), MATTE, 1)
    for k, slot in enumerate((0, 2, 0, 2, 0)):
        yield tube(
            (0, 0, 0.04 + 0.13 * k), (0, 0, 0.17 + 0.13 * k), 0.15 - 0.024 * k, 0.126 - 0.024 * k, MATTE,
            slot, sides=8,
        )  # fmt: skip


@lru_cache(maxsize=3)
def fence(kind: int) -> Mesh:
    """Two metres along y: pickets, rails or a low wall. Slots: main, second."""
    if kind == 2:
        return join(
            painted_box((-0.12, -1, 0), (0.12, 1, 0.8), MATTE, 0),
            painted_box((-0.17, -1, 0.8), (0.17, 1, 0.9), MATTE, 1),
        )
    if kind == 1:
        posts = (painted_box((0.03, y, 0), (0.12, y + 0.1, 0.75), MATTE, 1) for y in (-1.0, 0.0))
        return join(painted_box((-0.03, -1, 0.45), (0.03, 1, 0.73), PAINT, 0), *posts)
    stakes = [
        painted_box((-0.02, -1 + k / 5, 0.05), (0.02, -0.88 + k / 5, 1.0 + 0.05 * (k % 2)), MATTE, 0)
        for k in range(10)
    ]
    return join(
        *stakes,
        painted_box((0.02, -1, 0.3), (0.05, 1, 0.38), MATTE, 0),
        painted_box((0.02, -1, 0.8), (0.05, 1, 0.88), MATTE, 0),
    )


@lru_cache(maxsize=1)
def billboard() -> Mesh:
    """A hoarding 4 m wide on two legs, facing -y. Slots: legs, back, poster."""
    return join(
        painted_box((-2, 0, 1.8), (2, 0.12, 4.6), MATTE, 0),
        plate((-1.9, -0.015, 1.9), (1.9, -0.015, 1.9), 2.6, BOARD, 2),
        *(tube((x, 0.1, 0), (x, 0.1, 1.9), 0.07, 0.07, MATTE, 0) for x in (-1.2, 1.2)),
    )
