"""Houses: walls with windows or shops, a roof, and some of cornice, chimney, balconies, awnings, porch.

Meshes are of unit size, to be scaled to depth (x), width (y) and height (z); the front faces -x. FACADE's
texture coordinates are metres along the wall, in x or in y, and metres above the ground.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from stormproof.world.classes import BUILDING
from stormproof.world.dice import Dice
from stormproof.world.materials import (
    BOARDS,
    FACADE,
    GLASSY,
    MATTE,
    ROOFS,
    SHOPS,
    TILES,
    TRIMS,
    WALLS,
    Colour,
    varied,
)
from stormproof.world.mesh import Mesh, Point, box, join, paint, painted_box, quads, wrapped
from stormproof.world.plan import District
from stormproof.world.stage import Placement
from stormproof.world.street import KERB, Street, turned

WALL, TRIM, SHOP, ROOF, PANE = range(5)


@lru_cache(maxsize=1)
def block() -> Mesh:
    """Walls and a flat roof."""
    faces = box((0, 0, 0), (1, 1, 1))
    walls, roof = faces[:8], faces[8:10]
    return join(paint(walls, FACADE, WALL, texture=wrapped(walls)), paint(roof, MATTE, ROOF))


@lru_cache(maxsize=3)
def roof(kind: int) -> Mesh:
    """A roof for a block: ridge along y, ridge along x, or hipped."""
    a, b = -0.05, 1.05
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
    return join(paint(quads(slopes), TILES, ROOF), paint(quads(gables), MATTE, WALL))


@lru_cache(maxsize=1)
def cuboid() -> Mesh:
    """A plain box of unit size for cornices, balconies, awnings, steps and chimneys."""
    return painted_box((0, 0, 0), (1, 1, 1), MATTE, 0)


GLASS_FRONT, BOARDED = 3, 4  # styles of FACADE
FLAT = 3  # a roof without slopes


@dataclass(frozen=True, slots=True)
class House:
    """The position and size of a building in metres; x points away from the street, y along its front."""

    at: Point
    ahead: tuple[float, float]
    wide: float
    deep: float
    ground: float  # height of the ground floor
    storey: float
    floors: int  # above the ground floor
    columns: int  # of windows
    windows: tuple[float, float]  # their share of a column's width and a storey's height
    shop: bool
    style: int
    lit: float
    wall: Colour
    trim: Colour
    tiles: Colour
    sign: Colour
    seed: int

    @property
    def high(self) -> float:
        return self.ground + self.floors * self.storey + 0.5

    @property
    def pitch(self) -> float:
        """The distance from one window to the next."""
        return self.wide / self.columns

    def part(self, mesh: Mesh, corner: Point, size: Point, *tint: Colour) -> Placement:
        """A mesh of unit size, scaled, with its first corner at `corner` of the house."""
        (x, y, z), (hx, hy), (dx, dy, dz) = self.at, self.ahead, corner
        params = (
            self.pitch, self.storey, *self.windows, self.ground, float(self.shop), float(self.style),
            self.lit,
        )  # fmt: skip
        colours = tint or (self.wall, self.trim, self.sign, self.tiles)
        place = (x + dx * hy + dy * hx, y - dx * hx + dy * hy, z + dz)
        return Placement(mesh, place, self.ahead, size, colours, params, BUILDING, seed=self.seed)


def _design(
    dice: Dice, d: District, street: Street, s: float, wide: float, side: int, front: float, lit: float
) -> House:
    style = dice.pick(d.walls)
    colours = {GLASS_FRONT: GLASSY, BOARDED: BOARDS}.get(style, WALLS)
    wall = varied(dice, dice.pick(colours), 0.85, 1.15)
    storey = dice.between(2.8, 3.5) if d.storeys[1] < 8 else dice.between(3.2, 3.9)
    shop = dice.chance(d.shops)
    ground = dice.between(3.4, 4.4) if shop else storey + dice.between(0, 0.5)
    floors = d.storeys[0] + dice.integer(d.storeys[1] - d.storeys[0] + 1) - 1
    columns = max(2, round(wide / dice.between(1.9, 3.6)))
    deep = wide / columns * max(2, round(dice.between(7, 13) * columns / wide))
    windows = (0.93, 0.9) if style == GLASS_FRONT else (dice.between(0.32, 0.62), dice.between(0.42, 0.68))
    x, y, _ = street.point(s if side > 0 else s + wide, side * front)
    z = max(street.height(s), street.height(s + wide)) + KERB
    ahead = turned(street, s + wide / 2, side)
    trim, tiles, sign = dice.pick(TRIMS), dice.pick(ROOFS), dice.pick(SHOPS)
    return House(
        (x, y, z), ahead, wide, deep, ground, storey, floors, columns, windows, shop, style, lit,
        wall, trim, tiles, sign, dice.integer(1 << 20),
    )  # fmt: skip


def _top(dice: Dice, kind: int, h: House) -> Iterator[Placement]:
    """A roof with a chimney, or a cornice and perhaps a lift housing."""
    if kind == FLAT:
        yield h.part(cuboid(), (-0.18, -0.02, h.high - 0.3), (0.4, h.wide + 0.04, 0.6), h.trim)
        if dice.chance(0.5):
            place = (h.deep * 0.4, h.wide * dice.between(0.1, 0.6), h.high)
            yield h.part(cuboid(), place, (3.0, 3.0, 2.4), h.tiles)
        return
    tall = dice.between(0.22, 0.42) * (h.deep if kind != 1 else h.wide)
    yield h.part(roof(kind), (0, 0, h.high), (h.deep, h.wide, tall))
    place = (h.deep * 0.3, h.wide * dice.between(0.15, 0.75), h.high)
    yield h.part(cuboid(), place, (0.7, 0.9, tall + 0.8), h.wall)


def _balconies(dice: Dice, h: House) -> Iterator[Placement]:
    every = 2 + dice.integer(2)
    for floor in range(h.floors):
        for column in range(dice.integer(2), h.columns, every):
            y, z = (column + 0.1) * h.pitch, h.ground + floor * h.storey
            yield h.part(cuboid(), (-1.0, y, z), (1.0, h.pitch * 0.8, 0.14), h.trim)
            yield h.part(cuboid(), (-1.0, y, z + 0.14), (0.05, h.pitch * 0.8, 0.85), h.trim)


def _awnings(dice: Dice, h: House) -> Iterator[Placement]:
    tint = dice.pick(SHOPS)
    for column in range(0, h.columns - 1, 3):
        if dice.chance(0.7):
            y = column * h.pitch + 0.2
            yield h.part(cuboid(), (-1.3, y, h.ground - 0.95), (1.3, h.pitch * 2.6, 0.12), tint)
            yield h.part(cuboid(), (-1.32, y, h.ground - 1.2), (0.04, h.pitch * 2.6, 0.30), tint)


def building(
    dice: Dice, d: District, street: Street, s: float, wide: float, side: int, front: float, lit: float
) -> Iterator[Placement]:
    """One house on the plot from s to s + wide, its front `front` metres from the street's middle."""
    h = _design(dice, d, street, s, wide, side, front, lit)
    yield h.part(block(), (0, 0, 0), (h.deep, h.wide, h.high))
    yield h.part(cuboid(), (0, 0, -2.5), (h.deep, h.wide, 2.5), h.wall)  # a foundation, for sloping streets
    yield from _top(dice, dice.pick(d.roofs), h)
    if not h.shop and h.floors >= 2 and h.style != GLASS_FRONT and dice.chance(0.35):
        yield from _balconies(dice, h)
    if h.shop and dice.chance(0.6):
        yield from _awnings(dice, h)
    if h.style == BOARDED and dice.chance(0.5):
        yield h.part(cuboid(), (-1.6, wide * 0.3, 0), (1.6, 2.6, 0.25), h.trim)
        yield h.part(cuboid(), (-1.7, wide * 0.3 - 0.2, 2.5), (1.8, 3.0, 0.18), h.tiles)
