"""Trees, bushes and hedges: trunks, and clouds of leaf clumps. Slots: leaves, bark.

A leaf clump's texture coordinates are (distance from the crown's middle, chance, height), each 0 to 1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from stormproof.core.randomness import Draw
from stormproof.world.materials import BARK, HEDGE, LEAF
from stormproof.world.mesh import Corners, Mesh, Point, join, paint, painted_box, quads, tube, unit

LEAVES, WOOD = range(2)
TREES = 18
BUSHES = 5


def _directions(draw: Draw, stream: str, count: int) -> Corners:
    """Random points in the unit ball, outside its core, by rejection (without trigonometry)."""
    points = draw.uniforms(stream, 9 * count).reshape(-1, 3) * 2 - 1
    square = points[:, 0] ** 2 + points[:, 1] ** 2 + points[:, 2] ** 2
    return points[(square < 1) & (square > 0.12)][:count]


def _clumps(
    draw: Draw, name: str, centre: Point, radii: Point, count: int, size: float, *, taper: float = 0.0
) -> Mesh:
    """Leaf clumps filling an ellipsoid; `taper` narrows it towards the top, as a fir does."""
    inside = _directions(draw, name, count)
    count = len(inside)
    shape = inside * np.array(radii)
    shape[:, :2] *= 1 - taper * (inside[:, 2:3] + 1) / 2
    middles = shape + np.array(centre)
    jitter = draw.uniforms(name + "-shape", 9 * count).reshape(count, 3, 3) * 2 - 1
    corners = middles[:, None] + jitter * size
    outward = unit(inside)
    outward[:, 2] += 0.25
    normals = unit(np.repeat(outward[:, None], 3, axis=1) + jitter * 0.25)
    reach = np.sqrt(inside[:, 0] ** 2 + inside[:, 1] ** 2 + inside[:, 2] ** 2)
    facts = np.stack([reach, draw.uniforms(name + "-chance", count), (inside[:, 2] + 1) / 2], axis=1)
    return paint(corners, LEAF, LEAVES, normals=normals, texture=np.repeat(facts[:, None], 3, axis=1))


# Level of detail of leaf clumps by distance: factors of their number and of their size.
NEAR, MIDDLE, FAR = (1.8, 0.68), (0.65, 1.1), (0.2, 1.9)


@lru_cache(maxsize=3 * TREES)
def tree(kind: int, grain: tuple[float, float] = MIDDLE) -> Mesh:
    """Broad, tall, coniferous or young, by kind; about 5 to 13 m high."""
    many, large = grain
    draw = Draw.keyed(0, "world-tree", kind)
    u = draw.uniforms("form", 8).tolist()
    habit = kind % 6
    if habit >= 4:  # a fir; a poplar or cypress
        height, spread, middle, half, count, size, taper, thick = (
            (7 + 5 * u[0], 1.6 + 0.9 * u[1], 0.55, 0.47, 400, 0.40, 0.85, 0.16)
            if habit == 4
            else (9 + 4 * u[0], 1.1 + 0.6 * u[1], 0.56, 0.44, 420, 0.38, 0.0, 0.17)
        )
        at, radii = (0, 0, height * middle), (spread, spread, height * half)
        crown = _clumps(draw, "crown", at, radii, int(count * many), size * large, taper=taper)
        return join(tube((0, 0, 0), (0, 0, height * 0.5), thick, 0.1, BARK, WOOD, sides=6), crown)
    young = habit == 3
    clear = 1.9 + 0.8 * u[0] if young else 2.4 + 1.6 * u[0]
    spread = 1.1 + 0.5 * u[1] if young else 2.0 + 1.3 * u[1]
    thick = 0.07 if young else 0.15 + 0.1 * u[2]
    lean = (0.5 * (u[3] - 0.5), 0.5 * (u[4] - 0.5))
    fork: Point = (lean[0], lean[1], clear)
    parts = [tube((0, 0, 0), fork, thick, thick * 0.75, BARK, WOOD, sides=7)]
    lobes = 3 if young else 5
    w = draw.uniforms("lobes", 4 * lobes).reshape(lobes, 4).tolist()
    for k, (a, b, c, d) in enumerate(w):
        centre: Point = (
            lean[0] + (a - 0.5) * 2.0 * spread * 0.75,
            lean[1] + (b - 0.5) * 2.0 * spread * 0.75,
            clear + spread * (0.35 + 1.1 * c),
        )
        size = spread * (0.55 + 0.25 * d)
        parts.append(tube(fork, centre, thick * 0.5, thick * 0.15, BARK, WOOD, sides=4))
        parts.append(
            _clumps(
                draw, f"lobe{k}", centre, (size, size, size * 0.8), int((70 if young else 120) * many),
                (0.26 if young else 0.38) * large,
            )
        )  # fmt: skip
    return join(*parts)


@lru_cache(maxsize=BUSHES)
def bush(kind: int) -> Mesh:
    """A round shrub, about 1 m high."""
    draw = Draw.keyed(0, "world-bush", kind)
    u = draw.uniforms("form", 2).tolist()
    return _clumps(draw, "bush", (0, 0, 0.45), (0.7 + 0.3 * u[0], 0.7 + 0.3 * u[1], 0.55), 110, 0.2)


@lru_cache(maxsize=1)
def hedge() -> Mesh:
    """A clipped hedge of unit size, to be scaled: 1 m wide, deep and high."""
    return painted_box((-0.5, -0.5, 0.0), (0.5, 0.5, 1.0), HEDGE, LEAVES)


@lru_cache(maxsize=2)
def ridge(kind: int) -> Mesh:
    """A distant belt of trees of unit size, to be scaled: an uneven outline."""
    draw = Draw.keyed(0, "world-ridge", kind)
    tops = (0.45 + 0.55 * draw.uniforms("tops", 41)).tolist()
    wall = []
    for k in range(40):
        a, b = -0.5 + k / 40, -0.5 + (k + 1) / 40
        wall.append([(a, 0, -0.2), (b, 0, -0.2), (b, 0.1, tops[k + 1]), (a, 0.1, tops[k])])
    return paint(quads(wall), HEDGE, LEAVES)
