"""Cars, vans, trucks and buses.

Slots: body, glass, trim, tyre, hub, head light, tail light, second colour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stormproof.world.materials import BOARD, GLASS, LAMP, MATTE, PAINT
from stormproof.world.mesh import (
    Corners,
    Mesh,
    Point,
    ball,
    box,
    circle,
    disc,
    join,
    loft,
    paint,
    painted_box,
    quads,
    tube,
    wrapped,
)

BODY, PANE, TRIM, TYRE, HUB, HEAD, TAIL, SECOND = range(8)


@dataclass(frozen=True, slots=True)
class CarShape:
    """A car's side view in metres: overall size, then lengths from the nose to the tail."""

    length: float
    width: float
    height: float
    hood: float
    screen: float  # windscreen, horizontally
    roof: float
    rear: float  # rear window, horizontally
    belt: float = 0.92  # where the windows begin
    nose: float = 0.72
    tail: float = 0.95
    wheel: float = 0.33
    cargo: bool = False  # no glass behind the doors
    bed: bool = False  # an open bed behind the cabin


CARS = (
    CarShape(4.55, 1.80, 1.45, 1.15, 0.75, 1.45, 0.65),  # saloon
    CarShape(4.85, 1.86, 1.42, 1.35, 0.80, 1.35, 0.75, belt=0.90),  # long saloon
    CarShape(4.00, 1.72, 1.50, 0.85, 0.70, 1.80, 0.45, belt=0.93, tail=1.05),  # hatchback
    CarShape(3.60, 1.64, 1.52, 0.65, 0.65, 1.80, 0.40, belt=0.92, tail=1.05, wheel=0.29),  # city car
    CarShape(
        4.60, 1.88, 1.70, 1.00, 0.70, 2.30, 0.45, belt=1.05, nose=0.92, tail=1.15, wheel=0.37
    ),  # off-roader
    CarShape(4.70, 1.82, 1.47, 1.10, 0.75, 2.25, 0.45, tail=1.02),  # estate
    CarShape(4.30, 1.82, 1.30, 1.45, 0.75, 0.85, 0.85, belt=0.84, nose=0.64, tail=0.90, wheel=0.34),  # coupé
    CarShape(4.45, 1.80, 1.85, 0.75, 0.75, 2.45, 0.30, belt=1.02, nose=0.90, tail=1.2),  # people carrier
    CarShape(4.90, 1.92, 2.05, 0.70, 0.70, 3.20, 0.15, belt=1.15, nose=0.95, tail=1.6, cargo=True),  # van
    CarShape(
        5.30, 1.92, 1.80, 1.25, 0.70, 1.45, 0.15, belt=1.10, nose=1.0, tail=1.10, wheel=0.40, bed=True
    ),  # pick-up
)


def _stations(s: CarShape) -> list[tuple[float, float, float, float, float]]:
    """From tail to nose: y, underside, belt height, top height, half width at the top."""
    front, w = s.length / 2, s.width / 2
    cowl = front - s.hood - 0.15
    roof_front = cowl - s.screen
    roof_back = roof_front - s.roof
    boot = roof_back - s.rear
    back = -front
    roof_w = w * (0.70 if s.height < 1.6 else 0.80)
    deck = max(s.tail, s.belt + 0.02)
    low = 0.19 if s.height < 1.6 else 0.27
    rows = [
        (back, 0.42, deck - 0.12, deck - 0.10, w * 0.74),
        (back + 0.07, low + 0.08, deck - 0.03, deck, w * 0.82),
    ]
    if boot > back + 0.2:
        rows.append((boot, low, s.belt + 0.03, deck + 0.03, w * 0.84))
    middle = roof_front - 0.52 * s.roof
    rows += [
        (max(roof_back, back + 0.12), low, s.belt + 0.02, s.height - 0.05, roof_w * 0.97),
        (middle, low, s.belt + 0.01, s.height, roof_w),
        (roof_front, low, s.belt, s.height - 0.06, roof_w * 0.95),
        (cowl, low, s.belt, s.belt + 0.05, w * 0.84),
        (front - 0.45, low, s.nose + 0.05, s.nose + 0.13, w * 0.80),
        (front - 0.10, low + 0.05, s.nose - 0.12, s.nose - 0.02, w * 0.74),
        (front, low + 0.14, s.nose - 0.22, s.nose - 0.14, w * 0.66),
    ]
    return rows


def _ring(y: float, low: float, belt: float, top: float, half_top: float, half: float) -> list[Point]:
    """One cross-section, from the left edge of the top clockwise as seen from behind."""
    sill = half * 0.95
    waist = low + 0.55 * (belt - low)
    right = [(half_top, y, top), (half * 0.985, y, belt), (half, y, waist), (sill, y, low)]
    left = [(-x, yy, z) for x, yy, z in reversed(right)]
    return [(0.0, y, top + 0.035 * (top > belt + 0.1)), *right, *left]


def _arch(x: float, y: float, radius: float) -> Corners:
    """The dark half-round of a wheel arch on the side at x."""
    rim = [(y + radius * c, radius * s) for c, s in circle(16)[:9]]
    rim = [(a, max(0.16, b + radius - 0.06)) for a, b in rim]
    hub = (x, y, 0.2)
    side = 1 if x > 0 else -1
    fan = [[hub, (x, *rim[k]), (x, *rim[k + 1])][::side] for k in range(len(rim) - 1)]
    return np.array(fan, np.float64)


def wheel(x: float, y: float, radius: float, width: float) -> Mesh:
    """A tyre with its hub, facing outwards."""
    out = 1.0 if x > 0 else -1.0
    inner, outer = (x - out * width, y, radius), (x, y, radius)
    tyre = tube(inner, outer, radius, radius, MATTE, TYRE, sides=12)
    face = disc((x + out * 0.012, y, radius), radius * 0.62, (out, 0, 0), PAINT, HUB, sides=8)
    cap = disc((x + out * 0.02, y, radius), radius * 0.2, (out, 0, 0), MATTE, TRIM, sides=6)
    return join(tyre, face, cap)


def _shell(s: CarShape) -> Iterator[Mesh]:
    rows = _stations(s)
    half = s.width / 2
    narrow = {0: 0.90, 1: 0.96, len(rows) - 2: 0.93, len(rows) - 1: 0.84}
    rings = np.array([_ring(*row, half * narrow.get(k, 1.0)) for k, row in enumerate(rows)])
    skin = loft(rings).reshape(len(rows) - 1, 9, 2, 3, 3)
    cabin = range(len(rows) - 7, len(rows) - 4)  # intervals from the rear window to the windscreen
    glass = np.zeros((len(rows) - 1, 9), bool)
    for k in cabin:
        behind_doors = s.cargo and rows[k + 1][0] < rows[-5][0] - 0.3
        if not behind_doors and not (s.bed and k == cabin[0]):
            glass[k, [1, 7]] = True
    windscreen, rear = len(rows) - 5, len(rows) - 8
    glass[windscreen, [0, 8, 1, 7]] = True
    if rear >= 1 and not s.cargo:
        glass[rear, [0, 8]] = True
        if rear == 1 or s.height > 1.6:
            glass[rear, [1, 7]] = False
    yield paint(skin[~glass].reshape(-1, 3, 3), PAINT, BODY)
    yield paint(skin[glass].reshape(-1, 3, 3), GLASS, PANE)
    for ring, order in ((rings[0], -1), (rings[-1], 1)):
        middle = ring.mean(axis=0)
        fan = [[middle, ring[k], ring[(k + 1) % len(ring)]][::order] for k in range(len(ring))]
        yield paint(np.array(fan), PAINT, BODY)
    yield from _pillars(rows, half)


def _pillars(rows: list[tuple[float, float, float, float, float]], half: float) -> Iterator[Mesh]:
    """Thin pillars between the windows."""
    cowl, roof_front, middle, roof_back = rows[-4], rows[-5], rows[-6], rows[-7]
    for side in (-1, 1):
        for low, high, r, slot in (
            (cowl, roof_front, 0.035, BODY),
            (middle, middle, 0.035, TRIM),
            (roof_back, roof_back, 0.045, BODY),
        ):
            foot = (side * half * 0.97, low[0], low[2])
            head = (side * (high[4] + 0.01), high[0], high[3])
            yield tube(foot, head, r, r, MATTE if slot == TRIM else PAINT, slot, sides=4)


def _lights(s: CarShape) -> Iterator[Mesh]:
    front, half, deck = s.length / 2, s.width / 2, s.tail
    for side in (-1.0, 1.0):
        a, b = sorted((side * half * 0.48, side * half * 0.84))
        yield painted_box((a, front - 0.30, s.nose - 0.20), (b, front - 0.035, s.nose - 0.06), LAMP, HEAD)
        a, b = sorted((side * half * 0.58, side * half * 0.90))
        tall = 0.35 if s.height > 1.6 else 0.16
        yield painted_box((a, -front - 0.02, deck - 0.14 - tall), (b, -front + 0.3, deck - 0.14), LAMP, TAIL)
        a, b = sorted((side * half * 0.99, side * (half + 0.17)))
        y = front - s.hood - 0.30 - s.screen * 0.3
        yield painted_box((a, y, s.belt + 0.02), (b, y + 0.10, s.belt + 0.16), PAINT, BODY)
    yield painted_box(
        (-half * 0.42, front - 0.1, s.nose - 0.30), (half * 0.42, front + 0.008, s.nose - 0.18), MATTE, TRIM
    )
    yield painted_box((-half * 0.80, front - 0.16, 0.24), (half * 0.80, front + 0.015, 0.42), MATTE, TRIM)
    yield painted_box((-half * 0.85, -front - 0.015, 0.26), (half * 0.85, -front + 0.2, 0.44), MATTE, TRIM)
    yield painted_box((-0.25, -front - 0.03, 0.60), (0.25, -front + 0.05, 0.71), MATTE, SECOND)
    yield painted_box((-0.25, front - 0.05, 0.37), (0.25, front + 0.03, 0.47), MATTE, SECOND)


@lru_cache(maxsize=len(CARS))
def car(kind: int) -> Mesh:
    """One of CARS; it drives towards +y."""
    s = CARS[kind]
    half, r = s.width / 2, s.wheel
    axles = (s.length / 2 - 0.82 - 0.1 * (s.hood > 1.2), -s.length / 2 + 0.82)
    parts = [*_shell(s), *_lights(s)]
    for y in axles:
        for side in (-1, 1):
            parts.append(paint(_arch(side * (half + 0.006), y, r + 0.07), MATTE, TRIM))
            parts.append(wheel(side * (half + 0.012), y, r, 0.22))
    if s.bed:
        back = -s.length / 2
        parts.append(
            painted_box(
                (-half * 0.82, back + 0.12, s.tail - 0.3), (half * 0.82, -0.25, s.tail + 0.025), MATTE, TRIM
            )
        )
    return join(*parts)


TRUCKS = 6
BUSES = 4


def _wheels(half: float, radius: float, axles: tuple[float, ...]) -> Iterator[Mesh]:
    for y in axles:
        for side in (-1, 1):
            a, b = sorted((side * half, side * (half - 0.5)))
            low, high = (a, y - radius - 0.08, 0.3), (b + 0.004, y + radius + 0.08, 2 * radius + 0.1)
            yield painted_box(low, high, MATTE, TRIM)
            yield wheel(side * (half + 0.02), y, radius, 0.3)


def _lamps(half: float, front: float, back: float, z: float) -> Iterator[Mesh]:
    for side in (-1.0, 1.0):
        a, b = sorted((side * half * 0.62, side * half * 0.94))
        yield painted_box((a, front - 0.1, z), (b, front + 0.03, z + 0.20), LAMP, HEAD)
        yield painted_box((a, back - 0.03, z + 0.1), (b, back + 0.1, z + 0.36), LAMP, TAIL)


def _cab(half: float, front: float, length: float, height: float, rake: float) -> Iterator[Mesh]:
    """The cab of a truck: body below the belt, windows above, doors with mirrors."""
    belt, low, back = height * 0.52 + 0.25, 0.45, front - length
    h = half * 0.96
    yield painted_box((-half, back, low), (half, front, belt), PAINT, BODY)
    top = front - rake
    windscreen = [(h, front, belt), (-h, front, belt), (-h, top, height - 0.25), (h, top, height - 0.25)]
    yield paint(quads([windscreen]), GLASS, PANE)
    z, roof = height - 0.25, top - 0.15
    faces = [
        [(h, top, z), (-h, top, z), (-h, roof, height), (h, roof, height)],
        [(h, roof, height), (-h, roof, height), (-h, back, height), (h, back, height)],
        [(-h, back, belt), (h, back, belt), (h, back, height), (-h, back, height)],
    ]
    yield paint(quads(faces), PAINT, BODY)
    for side in (-1.0, 1.0):
        x = side * h
        upper: list[Point] = [
            (x, back, belt), (x, front, belt), (x, top, height - 0.25), (x, top - 0.15, height),
            (x, back, height),
        ]  # fmt: skip
        for a, b, c, d in ((0, 1, 2, 3), (0, 3, 4, 0)):
            face = [upper[a], upper[b], upper[c], upper[d]]
            yield paint(quads([face if side > 0 else face[::-1]]), PAINT, BODY)
        pane: list[Point] = [
            (x * 1.01, back + 0.45, belt + 0.08),
            (x * 1.01, front - 0.15, belt + 0.08),
            (x * 1.01, top - 0.15, height - 0.32),
            (x * 1.01, back + 0.45, height - 0.32),
        ]
        yield paint(quads([pane if side > 0 else pane[::-1]]), GLASS, PANE)
        inner, outer = sorted((side * half, side * (half + 0.22)))
        yield painted_box((inner, front - 0.28, belt + 0.15), (outer, front - 0.16, belt + 0.75), MATTE, TRIM)
    yield painted_box((-half * 0.75, front - 0.1, 0.75), (half * 0.75, front + 0.02, 1.05), MATTE, TRIM)
    yield painted_box((-half, front - 0.3, 0.35), (half, front + 0.04, 0.55), MATTE, TRIM)
    yield painted_box((-0.26, front, 0.58), (0.26, front + 0.05, 0.70), MATTE, SECOND)


def _load(kind: int, half: float, back: float, front: float, top: float) -> Iterator[Mesh]:
    """The load of a truck behind its cab, by kind."""
    floor = 1.05
    if kind in (0, 3, 5):  # box body with lettering
        body = box((-half, back, floor), (half, front, top))
        yield paint(body, BOARD, SECOND, texture=wrapped(body))
        yield painted_box(
            (-half - 0.01, back - 0.015, floor - 0.02), (half + 0.01, back + 0.1, floor + 0.12), MATTE, TRIM
        )
        yield painted_box((-0.02, back - 0.02, floor), (0.02, back, top - 0.05), MATTE, TRIM)
    elif kind == 1:  # tipper
        yield painted_box((-half, back, floor), (half, back + 0.1, top - 0.7), PAINT, SECOND)
        yield painted_box((-half, front - 0.1, floor), (half, front, top - 0.3), PAINT, SECOND)
        for side in (-1, 1):
            a, b = sorted((side * half, side * (half - 0.1)))
            yield painted_box((a, back, floor), (b, front, top - 0.7), PAINT, SECOND)
            for k in range(5):
                y = back + (front - back) * (k + 0.5) / 5
                a, b = sorted((side * half, side * (half + 0.06)))
                yield painted_box((a, y - 0.05, floor), (b, y + 0.05, top - 0.7), PAINT, SECOND)
        yield ball(
            (0.0, (front + back) / 2, top - 1.1), (half * 0.85, (front - back) * 0.45, 0.8), MATTE, TRIM
        )
    elif kind == 2:  # tanker
        radius = min(half * 0.95, (top - floor) / 2)
        z = floor + radius
        yield tube((0, back, z), (0, front, z), radius, radius, PAINT, SECOND, sides=14)
        yield painted_box(
            (-0.3, back + 0.5, z + radius - 0.05), (0.3, front - 0.5, z + radius + 0.12), MATTE, TRIM
        )
    else:  # flat bed with crates
        for k, (size, high) in enumerate(((0.28, 1.2), (0.25, 0.8), (0.3, 1.5))):
            y = back + (front - back) * (0.04 + 0.33 * k)
            crate = box((-half * 0.85, y, floor), (half * 0.85, y + (front - back) * size, floor + high))
            yield paint(crate, BOARD, SECOND, texture=wrapped(crate))
    yield painted_box((-half, back, floor - 0.22), (half, front, floor), MATTE, TRIM)


@lru_cache(maxsize=TRUCKS)
def truck(kind: int) -> Mesh:
    """Box vans, a tipper, a tanker, a flat bed, and an articulated lorry; it drives towards +y."""
    length = (7.2, 7.6, 8.4, 9.6, 7.8, 13.5)[kind]
    top = (3.2, 3.3, 3.1, 3.7, 3.2, 3.9)[kind]
    half = (1.10, 1.22, 1.22, 1.25, 1.15, 1.27)[kind]
    cab, rake = (1.75, 2.0, 2.0, 2.1, 1.8, 2.2)[kind], (0.55, 0.2, 0.15, 0.12, 0.4, 0.1)[kind]
    front, back = length / 2, -length / 2
    parts = [
        *_cab(half, front, cab, min(top - 0.25, 2.95), rake),
        *_load(kind, half, back, front - cab - 0.15, top),
    ]
    parts += _lamps(half, front, back, 0.68)
    axles = (front - 1.1, back + 1.5) if length < 8 else (front - 1.2, back + 1.4, back + 2.5)
    parts += _wheels(half, 0.48, axles)
    parts.append(painted_box((-half * 0.6, back + 0.2, 0.55), (half * 0.6, front - 0.5, 0.95), MATTE, TRIM))
    return join(*parts)


def _band(x: float, low: float, high: float, back: float, front: float, panes: int) -> Iterator[Mesh]:
    """A row of window panes along the side at x."""
    step = (front - back) / panes
    for k in range(panes):
        a, b = back + k * step + 0.05, back + (k + 1) * step - 0.05
        face: list[Point] = [(x, a, low), (x, b, low), (x, b, high), (x, a, high)]
        yield paint(quads([face if x > 0 else face[::-1]]), GLASS, PANE)


def _pane(a: Point, b: Point, top: float) -> Mesh:
    """An upright pane from bottom corner a to bottom corner b, left to right as seen from outside."""
    return paint(quads([[a, b, (b[0], b[1], top), (a[0], a[1], top)]]), GLASS, PANE)


def _windows(half: float, front: float, back: float, decks: list[tuple[float, float]]) -> Iterator[Mesh]:
    """Rows of panes along each deck, rear windows and windscreens."""
    for low, high in decks:
        for side in (-1.0, 1.0):
            panes = max(4, round((front - back) / 1.5))
            yield from _band(side * (half + 0.012), low, high, back + 0.5, front - 0.4, panes)
        y = back - 0.012
        yield _pane((-half * 0.85, y, low + 0.1), (half * 0.85, y, low + 0.1), high)
    for low, high in [(0.95, 2.4), *decks[1:]]:
        y = front + 0.012
        yield _pane((half * 0.94, y, low), (-half * 0.94, y, low), high)


def _fittings(half: float, front: float, back: float, sign: float) -> Iterator[Mesh]:
    """Destination sign, doors, a stripe all round, mirrors, bumper."""
    yield painted_box((-half * 0.7, front - 0.05, sign), (half * 0.7, front + 0.02, sign + 0.30), LAMP, HEAD)
    for y in (front - 1.4, front - (front - back) * 0.52):
        yield _pane((half + 0.02, y, 0.42), (half + 0.02, y + 1.1, 0.42), 2.35)
        yield painted_box((half, y + 0.52, 0.42), (half + 0.03, y + 0.58, 2.35), MATTE, TRIM)
    yield painted_box((-half - 0.008, back - 0.008, 0.62), (half + 0.008, front + 0.006, 0.90), PAINT, SECOND)
    for side in (-1.0, 1.0):
        a, b = sorted((side * half, side * (half + 0.25)))
        yield painted_box((a, front - 0.1, 1.9), (b, front + 0.05, 2.35), MATTE, TRIM)
    yield painted_box((-half, front - 0.2, 0.3), (half, front + 0.03, 0.5), MATTE, TRIM)


@lru_cache(maxsize=BUSES)
def bus(kind: int) -> Mesh:
    """City bus, midibus, coach, double-decker; it drives towards +y."""
    length, height = (11.8, 7.6, 12.2, 10.6)[kind], (3.0, 2.9, 3.4, 4.3)[kind]
    half, front, back = 1.25, length / 2, -length / 2
    floor = 1.05 if kind != 2 else 1.55
    decks = [(floor, floor + 1.25)] if kind != 3 else [(1.0, 2.0), (2.75, 3.8)]
    cooler = height + (0.22 if kind < 2 else 0.06)
    return join(
        painted_box((-half, back, 0.35), (half, front, height), PAINT, BODY),
        painted_box((-half * 0.9, back + 0.3, height), (half * 0.9, front - 1.5, cooler), PAINT, BODY),
        *_windows(half, front, back, decks),
        *_fittings(half, front, back, min(height - 0.42, 2.48)),
        *_lamps(half, front, back, 0.56),
        *_wheels(half, 0.48, (front - 2.6, back + 2.8)),
    )
