"""Rasterisation: the triangle that each pixel shows.

One rasteriser serves three views: the camera (nearest wins), the sun (highest along its rays wins) and
straight down (highest wins). All three pass screen triangles whose third coordinate is affine on the screen
and larger where the surface should win: 1/depth for the camera, height for the other two. Pixel centres lie
at whole numbers. An edge shared by two triangles is computed from the same two points in the same order, so
that it has neither gaps nor pixels that are hit twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.world.materials import LEAF

NEAR = 0.25  # metres; surfaces nearer to the camera are cut away

# The extra colour samples of a pixel, relative to its centre.
OFFSETS = ((0.36, 0.20), (-0.20, -0.36))


@kernel(allocates=False)
def _faces_away(view: Any) -> bool:
    """Whether a triangle in camera coordinates shows its back to the camera at the origin."""
    ax, ay, az = view[1, 0] - view[0, 0], view[1, 1] - view[0, 1], view[1, 2] - view[0, 2]
    bx, by, bz = view[2, 0] - view[0, 0], view[2, 1] - view[0, 1], view[2, 2] - view[0, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    return bool((nx * view[0, 0] + ny * view[0, 1]) + nz * view[0, 2] >= 0.0)


@kernel(allocates=False)
def _clip(view: Any, cut: Any) -> int:
    """Cut a triangle at NEAR; the part beyond has three or four corners, in `cut`."""
    count = 0
    for k in range(3):
        n = (k + 1) % 3
        here, there = view[k, 2] - NEAR, view[n, 2] - NEAR
        if here > 0.0:
            cut[count, 0], cut[count, 1], cut[count, 2] = view[k, 0], view[k, 1], view[k, 2]
            count += 1
        if (here > 0.0) != (there > 0.0):
            f = here / (here - there)
            cut[count, 0] = view[k, 0] + f * (view[n, 0] - view[k, 0])
            cut[count, 1] = view[k, 1] + f * (view[n, 1] - view[k, 1])
            cut[count, 2] = NEAR
            count += 1
    return count


@kernel(allocates=False)
def _emit(cut: Any, b: int, c: int, window: Any, out: Any, count: int) -> int:
    """Append triangle (0, b, c) of a clipped polygon unless it misses the window (x0, y0, x1, y1)."""
    if max(cut[0, 0], cut[b, 0], cut[c, 0]) < window[0] or min(cut[0, 0], cut[b, 0], cut[c, 0]) > window[2]:
        return count
    if max(cut[0, 1], cut[b, 1], cut[c, 1]) < window[1] or min(cut[0, 1], cut[b, 1], cut[c, 1]) > window[3]:
        return count
    for axis in range(3):
        out[count, 0, axis] = cut[0, axis]
        out[count, 1, axis] = cut[b, axis]
        out[count, 2, axis] = cut[c, axis]
    return count + 1


@kernel(allocates=False)
def project(
    corners: Any, two_sided: Any, camera: Any, window: Any, out: Any, source: Any, view: Any, cut: Any
) -> int:
    """Perspective: project triangles in the world to (x, y, 1/depth) in pixels; returns their number.

    `camera` has its position [0:3], the directions right, down and forward [3:12], the focal length
    in pixels [12], the principal point [13:15] and the focal length's reciprocal [15]. Triangles that
    face away are left out, those that reach behind the camera are cut at NEAR.
    """
    count = 0
    for t in range(corners.shape[0]):
        inside = 0
        for k in range(3):
            x = corners[t, k, 0] - camera[0]
            y = corners[t, k, 1] - camera[1]
            z = corners[t, k, 2] - camera[2]
            for axis in range(3):
                a = 3 + 3 * axis
                view[k, axis] = (x * camera[a] + y * camera[a + 1]) + z * camera[a + 2]
            if view[k, 2] > NEAR:
                inside += 1
        if inside == 0 or (not two_sided[t] and _faces_away(view)):
            continue
        sides = _clip(view, cut)
        for k in range(sides):
            w = 1.0 / cut[k, 2]
            cut[k, 0] = camera[13] + camera[12] * cut[k, 0] * w
            cut[k, 1] = camera[14] + camera[12] * cut[k, 1] * w
            cut[k, 2] = w
        for k in range(1, sides - 1):
            grown = _emit(cut, k, k + 1, window, out, count)
            if grown > count:
                source[count] = t
                count = grown
    return count


@kernel(allocates=False)
def project_parallel(
    corners: Any, lean_x: float, lean_y: float, x0: float, y0: float, scale: float,
    out: Any, material: Any, left_out: int,
) -> int:  # fmt: skip
    """Project triangles along parallel rays to (column, row, height), with `scale` cells per metre.

    A ray moves by (lean_x, lean_y) metres per metre of height; without lean it is vertical. (x0, y0) is the
    ground position of the map's first cell. Only triangles that face the source of the rays are kept, and
    leaves, which face both ways; one material can be left out.
    """
    count = 0
    for t in range(corners.shape[0]):
        for k in range(3):
            z = float(corners[t, k, 2])
            out[count, k, 0] = (corners[t, k, 0] - lean_x * z - x0) * scale
            out[count, k, 1] = (corners[t, k, 1] - lean_y * z - y0) * scale
            out[count, k, 2] = z
        ax, ay = out[count, 1, 0] - out[count, 0, 0], out[count, 1, 1] - out[count, 0, 1]
        bx, by = out[count, 2, 0] - out[count, 0, 0], out[count, 2, 1] - out[count, 0, 1]
        if material[t] != left_out and (ax * by - ay * bx > 0.0 or material[t] == LEAF):
            count += 1
    return count


@kernel(inline=True)
def _above(one: Any, two: Any) -> bool:
    """Whether a corner comes first from top to bottom; ties go left to right."""
    return bool(one[1] < two[1] or (one[1] == two[1] and one[0] < two[0]))


@kernel(allocates=False)
def _by_height(screen: Any, t: int) -> tuple[int, int, int]:
    """A triangle's corners from top to bottom."""
    a, b, c = 0, 1, 2
    if _above(screen[t, b], screen[t, a]):
        a, b = b, a
    if _above(screen[t, c], screen[t, b]):
        b, c = c, b
    if _above(screen[t, b], screen[t, a]):
        a, b = b, a
    return a, b, c


@kernel(allocates=False)
def fill(screen: Any, count: int, offsets: Any, nearness: Any, winner: Any) -> None:
    """For every cell of every plane, the largest third coordinate and the position in `screen` it came from.

    A row of `offsets` is the position of a plane's samples relative to the pixel centre. In a tie the earlier
    triangle wins.
    """
    planes, height, width = nearness.shape
    for t in range(count):
        a, b, c = _by_height(screen, t)
        xa, ya, wa = screen[t, a, 0], screen[t, a, 1], screen[t, a, 2]
        xb, yb, wb = screen[t, b, 0], screen[t, b, 1], screen[t, b, 2]
        xc, yc, wc = screen[t, c, 0], screen[t, c, 1], screen[t, c, 2]
        det = (xb - xa) * (yc - ya) - (xc - xa) * (yb - ya)
        if yc < -1.0 or ya > height or max(xa, xb, xc) < -1.0 or min(xa, xb, xc) > width or det == 0.0:
            continue
        # A horizontal edge gives an infinite slope below, but there is no row between its ends.
        scale = 1.0 / det
        wx = ((wb - wa) * (yc - ya) - (wc - wa) * (yb - ya)) * scale
        wy = ((xb - xa) * (wc - wa) - (xc - xa) * (wb - wa)) * scale
        long, upper, lower = (xc - xa) / (yc - ya), (xb - xa) / (yb - ya), (xc - xb) / (yc - yb)
        for k in range(planes):
            dx, dy = offsets[k, 0], offsets[k, 1]
            for y in range(math.ceil(max(ya - dy, 0.0)), math.ceil(min(yc - dy, float(height)))):
                row = y + dy
                one = xa + (row - ya) * long
                two = xa + (row - ya) * upper if row < yb else xb + (row - yb) * lower
                left = math.ceil(max(min(one, two) - dx, 0.0))
                right = math.ceil(min(max(one, two) - dx, float(width)))
                base = (wa + wy * (row - ya)) + wx * (dx - xa)
                for x in range(left, right):
                    w = np.float32(base + wx * x)
                    if w > nearness[k, y, x]:
                        nearness[k, y, x] = w
                        winner[k, y, x] = t


@kernel(allocates=False)
def cover(
    screen: Any, count: int, owner: Any, stamp: Any, margin_x: int, margin_y: int, whole: Any, framed: Any
) -> None:
    """Count the pixels each instance would cover with nothing in front of it.

    `owner` is the instance of each screen triangle (0: none), contiguous per instance. `stamp` is a
    canvas of zeros that extends the frame by the margins on every side; `whole` counts pixels on all of it,
    `framed` inside the frame.
    """
    height, width = stamp.shape
    for t in range(count):
        instance = owner[t]
        if instance == 0:
            continue
        a, b, c = _by_height(screen, t)
        xa, ya = screen[t, a, 0] + margin_x, screen[t, a, 1] + margin_y
        xb, yb = screen[t, b, 0] + margin_x, screen[t, b, 1] + margin_y
        xc, yc = screen[t, c, 0] + margin_x, screen[t, c, 1] + margin_y
        if yc < 0.0 or ya > height - 1:
            continue
        long, upper, lower = (xc - xa) / (yc - ya), (xb - xa) / (yb - ya), (xc - xb) / (yc - yb)
        for y in range(math.ceil(max(ya, 0.0)), math.ceil(min(yc, float(height)))):
            one = xa + (y - ya) * long
            two = xa + (y - ya) * upper if y < yb else xb + (y - yb) * lower
            inside = margin_y <= y < height - margin_y
            for x in range(math.ceil(max(min(one, two), 0.0)), math.ceil(min(max(one, two), float(width)))):
                if stamp[y, x] != instance:
                    stamp[y, x] = instance
                    whole[instance] += 1
                    if inside and margin_x <= x < width - margin_x:
                        framed[instance] += 1
