"""Depth maps: their holes, and light that fades with distance."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Camera, Image
from stormproof.imaging.cpu.colour import grey_of, spread_out
from stormproof.imaging.cpu.layouts import by_row
from stormproof.imaging.plans import Field


def fill_holes(field: Field) -> Field:
    """A copy with each NaN replaced by the nearest known value (Euclidean, to a few per cent)."""
    holes = np.isnan(field)
    if holes.all() or not holes.any():
        return field.copy()
    _, nearest = cv2.distanceTransformWithLabels(
        holes.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    known = np.empty(int(nearest.max()) + 1, np.float32)
    known[nearest[~holes]] = field[~holes]
    filled: Field = known[nearest]
    return filled


def airlight(image: Image, *, window: int, share: float) -> npt.NDArray[np.float64]:
    """The colour of the haze in an image, found in its dark channel (He et al. 2009); one value per channel.

    The dark channel is the least value of all channels within a square of `window` pixels. Among the pixels
    where it is brightest, a `share` of all and those equal to them, the one of median grey is taken.
    """
    least = np.ascontiguousarray(image.min(axis=2))
    dark = cv2.erode(least, np.ones((window, window), np.uint8))
    count = max(int(share * dark.size), 1)
    bound = np.partition(dark.ravel(), dark.size - count)[dark.size - count]
    places = np.flatnonzero(dark.ravel() >= bound)
    grey = grey_of(image).ravel()[places]
    middle = places[np.argsort(grey, kind="stable")[(len(places) - 1) // 2]]
    return np.asarray(image.reshape(-1, image.shape[2])[middle], np.float64)


@kernel
def _slope(before: Any, here: Any, after: Any, back: Any, ahead: Any) -> Any:
    """The slope on the side that changes less: across the edge of an object there is no surface."""
    behind, onward = (here - before) / np.float32(max(back, 1)), (after - here) / np.float32(max(ahead, 1))
    gentle = behind if abs(behind) < abs(onward) else onward
    gentle = onward if back == 0 else gentle
    gentle = behind if ahead == 0 else gentle
    return gentle if abs(gentle) < np.float32(np.inf) else np.float32(0)


@kernel
def _facing(depth: Any, step: Any, fx: Any, fy: Any, cx: Any, cy: Any, out: Any) -> None:
    height, width = depth.shape
    one, far = np.float32(1), np.float32(np.inf)
    for y in range(height):
        above, below = max(y - step, 0), min(y + step, height - 1)
        v = np.float32(y) - cy
        down = v / fy
        for x in range(width):
            left, right = max(x - step, 0), min(x + step, width - 1)
            z = depth[y, x]
            if not z < far:
                out[y, x] = 0
                continue
            zx = _slope(depth[y, left], z, depth[y, right], x - left, right - x)
            zy = _slope(depth[above, x], z, depth[below, x], y - above, below - y)
            u = np.float32(x) - cx
            across = u / fx
            p, q, r = fx * zx, fy * zy, z + u * zx + v * zy
            normal = np.sqrt(p * p + q * q + r * r)
            out[y, x] = z / (normal * np.sqrt(one + down * down + across * across))


def facing(depth: Field, camera: Camera, step: int) -> Field:
    """The cosine between each surface's normal and the ray of sight; the sky's is 0.

    Normals follow from depths `step` pixels apart, on the side where depth changes less.
    """
    out = np.empty(depth.shape, np.float32)
    numbers = np.array([camera.fx, camera.fy, camera.cx, camera.cy], np.float32)
    fx, fy, cx, cy = numbers
    _facing(np.ascontiguousarray(depth), step, fx, fy, cx, cy, out)
    return out


@kernel
def _fade(image: Any, field: Any, table: Any, scale: Any, tint: Any, out: Any) -> None:
    n = image.shape[1]
    width = field.shape[1]
    last = np.float32(table.shape[0] - 2)
    share, light = np.empty(width, np.float32), np.empty(n, np.float32)
    for y in range(image.shape[0]):
        row, source, target = field[y], image[y], out[y]
        for x in range(width):
            place = min(row[x] * scale, last)
            i = np.int32(place)
            share[x] = table[i] + (place - np.float32(i)) * (table[i + 1] - table[i])
        spread_out(share, n // width, light)
        for x in range(n):
            target[x] = np.uint8(tint[x] + light[x] * (np.float32(source[x]) - tint[x]) + np.float32(0.5))


def fade(image: Image, field: Field, table: npt.NDArray[np.float32], scale: float, colour: Any) -> Image:
    """colour + t·(image − colour), rounded, where t is `table` at field·scale, interpolated linearly."""
    tint = np.tile(np.array(colour, np.float32), image.shape[1])
    return by_row(_fade, image, np.ascontiguousarray(field), table, np.float32(scale), tint)
