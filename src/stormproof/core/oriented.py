"""Oriented boxes: four corners, or centre, sides and angle; and the exact area that two of them share.

Corners are 4×2 points x, y in order around the box. The angle is in radians, from the x axis towards the y
axis, which points down: clockwise on the screen. The overlap is that of the polygons themselves, so
quadrilaterals that are no rectangles, as DOTA's annotators drew them, are judged as they are (docs/adr/0036).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats

_AROUND = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def rotated_corners(rows: Floats) -> Floats:
    """The corners (n×4×2) of boxes given as n×5 of centre x, y, width, height and angle.

    >>> rotated_corners(np.array([[5.0, 5.0, 4.0, 2.0, 0.0]])).tolist()
    [[[3.0, 4.0], [7.0, 4.0], [7.0, 6.0], [3.0, 6.0]]]
    """
    rows = np.asarray(rows, np.float64).reshape(-1, 5)
    cosine, sine = np.cos(rows[:, 4:]), np.sin(rows[:, 4:])
    x, y = (rows[:, 2 + axis, None] * _AROUND[:, axis] for axis in (0, 1))
    corners: Floats = rows[:, None, :2] + np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=-1)
    return corners


def upright(corners: Floats) -> Floats:
    """The upright boxes x1 y1 x2 y2 around oriented ones."""
    corners = np.asarray(corners, np.float64).reshape(-1, 4, 2)
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])


@kernel
def polygon_areas(corners: Any) -> Any:
    """The area of each quadrilateral of n×4×2."""
    areas = np.empty(len(corners))
    for k in range(len(corners)):
        areas[k] = abs(_doubled(corners[k], 1) + _doubled(corners[k], 2)) / 2
    return areas


@kernel
def shared_area(a: Any, b: Any) -> Any:
    """The area that two quadrilaterals share, in square pixels.

    Each is two triangles with a common first corner, signed by the sense in which they turn, so that the sum
    is right for concave ones too. Two triangles are intersected by cutting one along the sides of the other.
    """
    for axis in range(2):  # nearly all pairs lie apart
        if a[:, axis].max() <= b[:, axis].min() or b[:, axis].max() <= a[:, axis].min():
            return 0.0
    total = 0.0
    ring, cut = np.empty((8, 2)), np.empty((8, 2))
    for i in range(1, 3):
        for k in range(1, 3):
            turn = _doubled(a, i) * _doubled(b, k)
            if turn != 0:
                common = _triangles_share(a, i, b, k, ring, cut)
                total += common if turn > 0 else -common
    return abs(total)


@kernel
def oriented_overlap(a: Any, b: Any) -> Any:
    """Intersection over union of two quadrilaterals; 0 where they only touch, or one has no area."""
    common = shared_area(a, b)
    if not common > 0:  # NaN where there are no corners
        return 0.0
    whole = (abs(_doubled(a, 1) + _doubled(a, 2)) + abs(_doubled(b, 1) + _doubled(b, 2))) / 2
    return min(1.0, common / (whole - common))


@kernel
def _doubled(corners: Any, first: Any) -> Any:
    """Twice the signed area of the triangle of corners 0, `first` and `first` + 1."""
    x, y = corners[0]
    ux, uy = corners[first, 0] - x, corners[first, 1] - y
    vx, vy = corners[first + 1, 0] - x, corners[first + 1, 1] - y
    return ux * vy - uy * vx


@kernel
def _triangles_share(a: Any, i: Any, b: Any, k: Any, ring: Any, cut: Any) -> Any:
    """The area shared by a triangle of `a` and one of `b`: the first, cut along each side of the second."""
    x0, y0 = a[0]  # coordinates are relative to this corner: large ones lose digits
    for point, corner in enumerate((0, i, i + 1)):
        ring[point, 0], ring[point, 1] = a[corner, 0] - x0, a[corner, 1] - y0
    count, sense = 3, 1.0 if _doubled(b, k) > 0 else -1.0
    sides = ((0, k), (k, k + 1), (k + 1, 0))
    for first, second in sides:
        ax, ay = b[first, 0] - x0, b[first, 1] - y0
        ux, uy = b[second, 0] - b[first, 0], b[second, 1] - b[first, 1]
        kept = 0
        for p in range(count):
            q = p + 1 if p + 1 < count else 0
            at = sense * (ux * (ring[p, 1] - ay) - uy * (ring[p, 0] - ax))
            after = sense * (ux * (ring[q, 1] - ay) - uy * (ring[q, 0] - ax))
            if at >= 0:
                cut[kept, 0], cut[kept, 1] = ring[p, 0], ring[p, 1]
                kept += 1
            if (at > 0 and after < 0) or (at < 0 and after > 0):
                share = at / (at - after)
                cut[kept, 0] = ring[p, 0] + share * (ring[q, 0] - ring[p, 0])
                cut[kept, 1] = ring[p, 1] + share * (ring[q, 1] - ring[p, 1])
                kept += 1
        count = kept
        if count < 3:
            return 0.0
        for p in range(count):
            ring[p, 0], ring[p, 1] = cut[p, 0], cut[p, 1]
    doubled = 0.0
    for p in range(1, count - 1):
        ux, uy = ring[p, 0] - ring[0, 0], ring[p, 1] - ring[0, 1]
        vx, vy = ring[p + 1, 0] - ring[0, 0], ring[p + 1, 1] - ring[0, 1]
        doubled += ux * vy - uy * vx
    return abs(doubled) / 2
