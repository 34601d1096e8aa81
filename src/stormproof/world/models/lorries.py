"""Trucks and buses: boxes on wheels, told apart by cabs, loads, windows and doors. Slots as in `vehicles`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from stormproof.world.materials import BOARD, GLASS, LAMP, MATTE, PAINT
from stormproof.world.mesh import Mesh, Point, ball, box, join, paint, quads, tube, wrapped
from stormproof.world.models.vehicles import BODY, HEAD, PANE, SECOND, TAIL, TRIM, wheel

TRUCKS = 6
BUSES = 4


def _wheels(half: float, radius: float, axles: tuple[float, ...]) -> Iterator[Mesh]:
    for y in axles:
        for side in (-1, 1):
            yield paint(
                box(
                    (min(side * half, side * (half - 0.5)), y - radius - 0.08, 0.3),
                    (max(side * half, side * (half - 0.5)) + 0.004, y + radius + 0.08, 2 * radius + 0.1),
                ),
                MATTE,
                TRIM,
            )
            yield wheel(side * (half + 0.02), y, radius, 0.3)


def _lamps(half: float, front: float, back: float, z: float) -> Iterator[Mesh]:
    for side in (-1.0, 1.0):
        a, b = sorted((side * half * 0.62, side * half * 0.94))
        yield paint(box((a, front - 0.1, z), (b, front + 0.03, z + 0.20)), LAMP, HEAD)
        yield paint(box((a, back - 0.03, z + 0.1), (b, back + 0.1, z + 0.36)), LAMP, TAIL)


def _cab(half: float, front: float, length: float, height: float, rake: float) -> Iterator[Mesh]:
    """A lorry's cab: bulky below, glass all round above the belt, doors with mirrors."""
    belt, low, back = height * 0.52 + 0.25, 0.45, front - length
    h = half * 0.96
    yield paint(box((-half, back, low), (half, front, belt)), PAINT, BODY)
    top = front - rake
    yield paint(
        quads([[(h, front, belt), (-h, front, belt), (-h, top, height - 0.25), (h, top, height - 0.25)]]),
        GLASS,
        PANE,
    )
    yield paint(
        quads(
            [
                [
                    (h, top, height - 0.25),
                    (-h, top, height - 0.25),
                    (-h, top - 0.15, height),
                    (h, top - 0.15, height),
                ],
                [(h, top - 0.15, height), (-h, top - 0.15, height), (-h, back, height), (h, back, height)],
                [(-h, back, belt), (h, back, belt), (h, back, height), (-h, back, height)],
            ]
        ),
        PAINT,
        BODY,
    )
    for side in (-1.0, 1.0):
        x = side * h
        upper: list[Point] = [
            (x, back, belt),
            (x, front, belt),
            (x, top, height - 0.25),
            (x, top - 0.15, height),
            (x, back, height),
        ]
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
        yield paint(box((inner, front - 0.28, belt + 0.15), (outer, front - 0.16, belt + 0.75)), MATTE, TRIM)
    yield paint(box((-half * 0.75, front - 0.1, 0.75), (half * 0.75, front + 0.02, 1.05)), MATTE, TRIM)
    yield paint(box((-half, front - 0.3, 0.35), (half, front + 0.04, 0.55)), MATTE, TRIM)
    yield paint(box((-0.26, front, 0.58), (0.26, front + 0.05, 0.70)), MATTE, SECOND)


def _load(kind: int, half: float, back: float, front: float, top: float) -> Iterator[Mesh]:
    """What a truck carries behind its cab, by kind."""
    floor = 1.05
    if kind in (0, 3, 5):  # box body with lettering
        body = box((-half, back, floor), (half, front, top))
        yield paint(body, BOARD, SECOND, texture=wrapped(body))
        yield paint(
            box((-half - 0.01, back - 0.015, floor - 0.02), (half + 0.01, back + 0.1, floor + 0.12)),
            MATTE,
            TRIM,
        )
        yield paint(box((-0.02, back - 0.02, floor), (0.02, back, top - 0.05)), MATTE, TRIM)
    elif kind == 1:  # tipper
        yield paint(box((-half, back, floor), (half, back + 0.1, top - 0.7)), PAINT, SECOND)
        yield paint(box((-half, front - 0.1, floor), (half, front, top - 0.3)), PAINT, SECOND)
        for side in (-1, 1):
            a, b = sorted((side * half, side * (half - 0.1)))
            yield paint(box((a, back, floor), (b, front, top - 0.7)), PAINT, SECOND)
            for k in range(5):
                y = back + (front - back) * (k + 0.5) / 5
                a, b = sorted((side * half, side * (half + 0.06)))
                yield paint(box((a, y - 0.05, floor), (b, y + 0.05, top - 0.7)), PAINT, SECOND)
        yield ball(
            (0.0, (front + back) / 2, top - 1.1), (half * 0.85, (front - back) * 0.45, 0.8), MATTE, TRIM
        )
    elif kind == 2:  # tanker
        radius = min(half * 0.95, (top - floor) / 2)
        z = floor + radius
        yield tube((0, back, z), (0, front, z), radius, radius, PAINT, SECOND, sides=14)
        yield paint(
            box((-0.3, back + 0.5, z + radius - 0.05), (0.3, front - 0.5, z + radius + 0.12)), MATTE, TRIM
        )
    else:  # flat bed with crates
        for k, (size, high) in enumerate(((0.28, 1.2), (0.25, 0.8), (0.3, 1.5))):
            y = back + (front - back) * (0.04 + 0.33 * k)
            crate = box((-half * 0.85, y, floor), (half * 0.85, y + (front - back) * size, floor + high))
            yield paint(crate, BOARD, SECOND, texture=wrapped(crate))
    yield paint(box((-half, back, floor - 0.22), (half, front, floor)), MATTE, TRIM)


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
    parts.append(paint(box((-half * 0.6, back + 0.2, 0.55), (half * 0.6, front - 0.5, 0.95)), MATTE, TRIM))
    return join(parts)


def _band(
    x0: float, x1: float, z0: float, z1: float, back: float, front: float, panes: int, side: float
) -> Iterator[Mesh]:
    """A row of window panes along one side."""
    step = (front - back) / panes
    for k in range(panes):
        a, b = back + k * step + 0.05, back + (k + 1) * step - 0.05
        face: list[Point] = [(x0, a, z0), (x0, b, z0), (x1, b, z1), (x1, a, z1)]
        yield paint(quads([face if side > 0 else face[::-1]]), GLASS, PANE)


def _pane(a: Point, b: Point, top: float) -> Mesh:
    """An upright pane from bottom corner a to bottom corner b, left to right as seen from outside."""
    return paint(quads([[a, b, (b[0], b[1], top), (a[0], a[1], top)]]), GLASS, PANE)


def _windows(half: float, front: float, back: float, decks: list[tuple[float, float]]) -> Iterator[Mesh]:
    """Rows of panes along each deck, rear windows and windscreens."""
    for low, high in decks:
        for side in (-1.0, 1.0):
            x = side * (half + 0.012)
            yield from _band(
                x, x, low, high, back + 0.5, front - 0.4, max(4, round((front - back) / 1.5)), side
            )
        y = back - 0.012
        yield _pane((-half * 0.85, y, low + 0.1), (half * 0.85, y, low + 0.1), high)
    for low, high in [(0.95, 2.4), *decks[1:]]:
        y = front + 0.012
        yield _pane((half * 0.94, y, low), (-half * 0.94, y, low), high)


def _fittings(half: float, front: float, back: float, sign: float) -> Iterator[Mesh]:
    """Destination sign, doors, a stripe all round, mirrors, bumper."""
    yield paint(box((-half * 0.7, front - 0.05, sign), (half * 0.7, front + 0.02, sign + 0.30)), LAMP, HEAD)
    for y in (front - 1.4, front - (front - back) * 0.52):
        yield _pane((half + 0.02, y, 0.42), (half + 0.02, y + 1.1, 0.42), 2.35)
        yield paint(box((half, y + 0.52, 0.42), (half + 0.03, y + 0.58, 2.35)), MATTE, TRIM)
    yield paint(box((-half - 0.008, back - 0.008, 0.62), (half + 0.008, front + 0.006, 0.90)), PAINT, SECOND)
    for side in (-1.0, 1.0):
        a, b = sorted((side * half, side * (half + 0.25)))
        yield paint(box((a, front - 0.1, 1.9), (b, front + 0.05, 2.35)), MATTE, TRIM)
    yield paint(box((-half, front - 0.2, 0.3), (half, front + 0.03, 0.5)), MATTE, TRIM)


@lru_cache(maxsize=BUSES)
def bus(kind: int) -> Mesh:
    """City bus, midibus, coach, double-decker; it drives towards +y."""
    length, height = (11.8, 7.6, 12.2, 10.6)[kind], (3.0, 2.9, 3.4, 4.3)[kind]
    half, front, back = 1.25, length / 2, -length / 2
    floor = 1.05 if kind != 2 else 1.55
    decks = [(floor, floor + 1.25)] if kind != 3 else [(1.0, 2.0), (2.75, 3.8)]
    cooler = height + (0.22 if kind < 2 else 0.06)
    return join(
        [
            paint(box((-half, back, 0.35), (half, front, height)), PAINT, BODY),
            paint(box((-half * 0.9, back + 0.3, height), (half * 0.9, front - 1.5, cooler)), PAINT, BODY),
            *_windows(half, front, back, decks),
            *_fittings(half, front, back, min(height - 0.42, 2.48)),
            *_lamps(half, front, back, 0.56),
            *_wheels(half, 0.48, (front - 2.6, back + 2.8)),
        ]
    )
