"""Buildings of unit size, to be scaled to width (x), depth (y) and height (z); the front faces -x.

FACADE's texture coordinates are metres along the wall, in x or in y, and metres above the ground.
Slots: wall, trim, shop, roof, glass.
"""

from __future__ import annotations

from functools import lru_cache

from stormproof.world.materials import FACADE, MATTE, TILES
from stormproof.world.mesh import Corners, Mesh, Point, box, join, paint, quads, wrapped

WALL, TRIM, SHOP, ROOF, PANE = range(5)


def _walls() -> Corners:
    return box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))[:8]


@lru_cache(maxsize=1)
def block() -> Mesh:
    """Walls and a flat roof."""
    walls = _walls()
    roof = box((0, 0, 0), (1, 1, 1))[8:10]
    return join([paint(walls, FACADE, WALL, texture=wrapped(walls)), paint(roof, MATTE, ROOF)])


@lru_cache(maxsize=4)
def roof(kind: int) -> Mesh:
    """A roof to set on a block: ridge along y, ridge along x, hipped, or a parapet with a rim."""
    e = 0.05
    a, b = -e, 1 + e
    if kind == 3:
        return join([paint(box((a, a, 0), (b, b, 1)), MATTE, TRIM)])
    if kind == 2:
        points = [
            [(a, a, 0), (a, b, 0), (0.5, 0.65, 1), (0.5, 0.35, 1)][::-1],
            [(b, a, 0), (b, b, 0), (0.5, 0.65, 1), (0.5, 0.35, 1)],
            [(a, a, 0), (b, a, 0), (0.5, 0.35, 1), (0.5, 0.35, 1)],
            [(b, b, 0), (a, b, 0), (0.5, 0.65, 1), (0.5, 0.65, 1)],
        ]
        return paint(quads(points), TILES, ROOF)
    slopes: list[list[Point]] = [
        [(a, b, 0), (a, a, 0), (0.5, a, 1), (0.5, b, 1)],
        [(b, a, 0), (b, b, 0), (0.5, b, 1), (0.5, a, 1)],
    ]
    gables: list[list[Point]] = [
        [(0, 0, 0), (1, 0, 0), (0.5, 0, 1), (0.5, 0, 1)],
        [(1, 1, 0), (0, 1, 0), (0.5, 1, 1), (0.5, 1, 1)],
    ]
    if kind == 1:
        slopes = [[(y, x, z) for x, y, z in reversed(face)] for face in slopes]
        gables = [[(y, x, z) for x, y, z in reversed(face)] for face in gables]
    return join([paint(quads(slopes), TILES, ROOF), paint(quads(gables), MATTE, WALL)])


@lru_cache(maxsize=1)
def cuboid() -> Mesh:
    """A plain box of unit size for cornices, balconies, awnings, steps and chimneys."""
    return paint(box((0, 0, 0), (1, 1, 1)), MATTE, 0)
