"""Shapes: triangles with normals, texture coordinates, a material and a colour slot.

A model's x points right, y ahead, z up, in metres, with the ground at z = 0. Corners run anticlockwise
seen from outside. Sines and cosines are rounded when a shape is made, so that differences in the last digit
between math libraries do not change an image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Corners = npt.NDArray[np.float64]
Point = tuple[float, float, float]

GRID = 4096.0  # a model's coordinates are whole multiples of 1/4096 m


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles: corner positions, normals and texture coordinates (n×3×3), material and slot (n).

    `places` are points on it that labels need, such as a person's joints.
    """

    corners: Floats
    normals: Floats
    texture: Floats
    material: npt.NDArray[np.uint8]
    slot: npt.NDArray[np.uint8]
    places: tuple[Point, ...] = ()

    def __len__(self) -> int:
        return len(self.corners)


def circle(count: int, start: float = 0.0) -> list[tuple[float, float]]:
    """`count` points of the unit circle, anticlockwise; `start` in turns."""
    angles = (2 * math.pi * (k / count + start) for k in range(count))
    return [(round(math.cos(a), 6), round(math.sin(a), 6)) for a in angles]


def turn(turns: float) -> tuple[float, float]:
    """Cosine and sine of an angle in turns, rounded."""
    return round(math.cos(2 * math.pi * turns), 6), round(math.sin(2 * math.pi * turns), 6)


def unit(vectors: Corners) -> Corners:
    """The vectors (along the last axis) at length 1."""
    length = np.sqrt(vectors[..., 0] ** 2 + vectors[..., 1] ** 2 + vectors[..., 2] ** 2)
    return vectors / np.maximum(length, 1e-9)[..., None]


def flat_normals(corners: Corners) -> Corners:
    """Each triangle's own normal at its three corners."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.repeat(unit(normal)[:, None], 3, axis=1)


def paint(
    corners: Corners,
    material: int,
    slot: int = 0,
    *,
    normals: Corners | None = None,
    texture: Corners | None = None,
) -> Mesh:
    """A mesh of one material; by default with flat normals, and positions as texture coordinates."""
    placed = np.round(corners * GRID) / GRID
    normals = flat_normals(placed) if normals is None else normals
    texture = placed if texture is None else texture
    count = len(placed)
    return Mesh(
        placed.astype(np.float32), np.round(normals, 5).astype(np.float32), texture.astype(np.float32),
        np.full(count, material, np.uint8), np.full(count, slot, np.uint8),
    )  # fmt: skip


def wrapped(corners: Corners) -> Corners:
    """Texture for upright faces: u + v runs from left to right as seen from outside, w is height."""
    normal = flat_normals(corners)
    return np.stack(
        [-normal[..., 1] * corners[..., 0], normal[..., 0] * corners[..., 1], corners[..., 2]], axis=-1
    )


def join(*parts: Mesh) -> Mesh:
    """Several meshes as one."""
    names = ("corners", "normals", "texture", "material", "slot")
    return Mesh(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})  # type: ignore[arg-type]


def moved(mesh: Mesh, by: Point) -> Mesh:
    """The mesh shifted; its texture moves along."""
    corners = np.round((mesh.corners + np.array(by, np.float64)) * GRID) / GRID
    return replace(mesh, corners=corners.astype(np.float32))


def quads(points: Sequence[Sequence[Point]] | Corners) -> Corners:
    """Each four-cornered face as two triangles."""
    p = np.asarray(points, np.float64).reshape(-1, 4, 3)
    return np.stack([p[:, [0, 1, 2]], p[:, [0, 2, 3]]], axis=1).reshape(-1, 3, 3)


def box(low: Point, high: Point) -> Corners:
    """An upright box between two opposite corners."""
    (a, b, c), (d, e, f) = low, high
    return quads(
        [
            [(a, b, c), (d, b, c), (d, b, f), (a, b, f)],  # behind
            [(d, e, c), (a, e, c), (a, e, f), (d, e, f)],  # ahead
            [(a, e, c), (a, b, c), (a, b, f), (a, e, f)],  # left
            [(d, b, c), (d, e, c), (d, e, f), (d, b, f)],  # right
            [(a, b, f), (d, b, f), (d, e, f), (a, e, f)],  # top
            [(a, e, c), (d, e, c), (d, b, c), (a, b, c)],  # bottom
        ]
    )


def painted_box(low: Point, high: Point, material: int, slot: int = 0) -> Mesh:
    """An upright box of one material."""
    return paint(box(low, high), material, slot)


def loft(rings: Corners) -> Corners:
    """The skin between consecutive closed rings of points (k×m×3), two triangles per side and step."""
    here, there = rings[:-1], rings[1:]
    a, b = here, np.roll(here, -1, axis=1)
    c, d = np.roll(there, -1, axis=1), there
    pairs = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
    return pairs.reshape(-1, 3, 3)


def _frame(axis: Corners) -> tuple[Corners, Corners]:
    """Two unit vectors that form a right-handed frame with `axis`."""
    helper = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.8 else np.array([0.0, 1.0, 0.0])
    u = unit(np.cross(helper, axis))
    return u, np.cross(axis, u)


def tube(
    start: Point,
    end: Point,
    radius: float,
    end_radius: float,
    material: int,
    slot: int = 0,
    *,
    sides: int = 6,
    flatness: float = 1.0,
    capped: bool = True,
) -> Mesh:
    """A round limb from `start` to `end`, smoothly shaded, closed by flat caps unless joints hide its ends.

    `flatness` scales the cross-section across the model's forward direction, for bodies wider than deep.
    """
    a, b = np.array(start), np.array(end)
    axis = unit(b - a)
    u, v = _frame(axis)
    spokes = np.array([c * u + s * v for c, s in circle(sides)])
    spokes[:, 1] *= flatness
    rings = np.stack([a + radius * spokes, b + end_radius * spokes])
    skin = loft(rings)
    outward = unit(np.stack([spokes, spokes]))
    normals = loft(outward)
    if not capped:
        return paint(skin, material, slot, normals=normals)
    caps = [[a, rings[0, (k + 1) % sides], rings[0, k]] for k in range(sides)]
    caps += [[b, rings[1, k], rings[1, (k + 1) % sides]] for k in range(sides)]
    caps_at = np.array(caps)
    return join(paint(skin, material, slot, normals=normals), paint(caps_at, material, slot))


def ball(
    centre: Point,
    radii: Point,
    material: int,
    slot: int = 0,
    *,
    sides: int = 8,
    rings: int = 5,
    top: float = 1.0,
    bottom: float = -1.0,
) -> Mesh:
    """An ellipsoid, smoothly shaded; `top` and `bottom` in [-1, 1] cut it horizontally."""
    levels = [bottom + (top - bottom) * k / rings for k in range(rings + 1)]
    # Place more levels near the poles, where the outline turns fastest.
    levels = [1.5 * z - 0.5 * z * z * z for z in levels]
    around = circle(sides)
    sphere = np.array(
        [
            [(math.sqrt(max(0.0, 1 - z * z)) * c, math.sqrt(max(0.0, 1 - z * z)) * s, z) for c, s in around]
            for z in levels
        ]
    )
    skin = loft(sphere)
    size = np.array(radii)
    return paint(skin * size + np.array(centre), material, slot, normals=unit(skin / size))


def disc(
    centre: Point,
    radius: float,
    facing: Point,
    material: int,
    slot: int = 0,
    *,
    sides: int = 12,
    start: float = 0.0,
) -> Mesh:
    """A flat round (or, with few sides, polygonal) plate; its texture runs from -1 to 1 across it."""
    axis = unit(np.array(facing, np.float64))
    up = np.array([0.0, 0.0, 1.0]) if abs(axis[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    right = unit(np.cross(up, axis))
    rim = circle(sides, start)
    middle = np.array(centre, np.float64)
    points = [middle + radius * (c * right + s * up) for c, s in rim]
    fan = [(k, (k + 1) % sides) for k in range(sides)]
    corners = np.array([[middle, points[i], points[j]] for i, j in fan])
    texture = np.array([[(0, 0, 0), (*rim[i], 0), (*rim[j], 0)] for i, j in fan], np.float64)
    return paint(corners, material, slot, texture=texture)


def plate(left_bottom: Point, right_bottom: Point, height: float, material: int, slot: int = 0) -> Mesh:
    """An upright rectangle seen from its front; its texture runs from -1 to 1 across it."""
    (a, b, c), (d, e, f) = left_bottom, right_bottom
    corners = quads([[(a, b, c), (d, e, f), (d, e, f + height), (a, b, c + height)]])
    texture = quads([[(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]])
    return paint(corners, material, slot, texture=texture)
