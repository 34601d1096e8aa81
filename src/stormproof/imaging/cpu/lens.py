"""Lens effects: drops on the lens, and changes with the distance from a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.colour import spread_out
from stormproof.imaging.cpu.layouts import by_row
from stormproof.imaging.plans import Field


def _shrunk(image: Image, factor: int) -> npt.NDArray[np.float64]:
    """Means of factor×factor blocks; the last ones may be smaller."""
    rows, columns = (np.arange(0, side, factor) for side in image.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(image, rows, 0, dtype=np.int64), columns, 1)
    tall, wide = (np.diff(b, append=side) for b, side in zip((rows, columns), image.shape, strict=False))
    return np.asarray(sums / (tall[:, None] * wide)[..., None])


@kernel
def _mirrored(place: Any, length: Any) -> Any:
    """A coordinate mirrored into 0 … length − 1."""
    if length == 1:
        return 0.0
    period = 2.0 * (length - 1)
    folded = abs(place) % period
    return min(folded, period - folded)


@kernel
def _sample(small: Any, y: Any, x: Any, c: Any) -> Any:
    """Bilinear sample between block centres, edges repeated."""
    y = min(max(y, 0.0), small.shape[0] - 1.0)
    x = min(max(x, 0.0), small.shape[1] - 1.0)
    i, j = int(y), int(x)
    k, m = min(i + 1, small.shape[0] - 1), min(j + 1, small.shape[1] - 1)
    u, v = y - i, x - j
    upper = small[i, j, c] * (1 - v) + small[i, m, c] * v
    lower = small[k, j, c] * (1 - v) + small[k, m, c] * v
    return upper * (1 - u) + lower * u


@kernel
def _drop(small: Any, factor: Any, drop: Any, rim: Any, passed: Any, out: Any) -> None:
    height, width, channels = out.shape
    row, column, tall, wide = drop[0], drop[1], drop[2], drop[3]
    for y in range(max(int(np.ceil(row - tall)), 0), min(int(row + tall), height - 1) + 1):
        for x in range(max(int(np.ceil(column - wide)), 0), min(int(column + wide), width - 1) + 1):
            distance = np.sqrt(((y - row) / tall) ** 2 + ((x - column) / wide) ** 2)
            if distance >= 1:
                continue
            opacity = min((1 - distance) / rim, 1.0)
            # The neighbourhood, `factor` times as wide as the drop, rotated by 180°.
            source_y = (_mirrored(row - factor * (y - row), height) + 0.5) / factor - 0.5
            source_x = (_mirrored(column - factor * (x - column), width) + 0.5) / factor - 0.5
            for c in range(channels):
                seen = passed * _sample(small, source_y, source_x, c)
                out[y, x, c] = np.uint8(out[y, x, c] + opacity * (seen - out[y, x, c]) + 0.5)


@kernel
def _drops(small: Any, factor: Any, drops: Any, rim: Any, passed: Any, out: Any) -> None:
    for i in range(drops.shape[0]):
        _drop(small, factor, drops[i], rim, passed, out)


def refract(image: Image, drops: npt.NDArray[np.float64], *, factor: int, rim: float, passed: float) -> Image:
    """Draw elliptic drops (row, column, vertical and horizontal semi-axis in pixels) over the image.

    A drop shows its surroundings, `factor` times smaller, rotated by 180° and dimmed to `passed`; its opacity
    falls to zero over the outer share `rim` of its radius. Outside the image the scene is mirrored.
    """
    out = np.array(image, order="C")
    _drops(_shrunk(image, factor), factor, drops, rim, passed, out)
    return out


@kernel
def _radial(
    image: Any, profile: Any, row: Any, column: Any, per_pixel: Any, colour: Any, channels: Any, out: Any
) -> None:
    """`image` and `out` are H × (W·C)."""
    height, n = image.shape
    width = n // channels
    half = np.float32(0.5)
    last = profile.shape[0] - 2
    value, gain = np.empty(width, np.float32), np.empty(n, np.float32)
    for y in range(height):
        dy = np.float32(y) - row
        square = dy * dy
        for x in range(width):
            dx = np.float32(x) - column
            place = np.sqrt(dx * dx + square) * per_pixel
            i = min(np.int32(place), last)
            value[x] = profile[i] + (place - np.float32(i)) * (profile[i + 1] - profile[i])
        spread_out(value, channels, gain)
        source, target = image[y], out[y]
        for x in range(n):
            level = colour + gain[x] * (np.float32(source[x]) - colour) + half
            target[x] = np.uint8(min(max(level, np.float32(0)), np.float32(255)))


def radial(image: Image, profile: Field, *, centre: tuple[float, float], reach: float, grey: float) -> Image:
    """g·image + (1 − g)·grey, rounded, where g depends on the distance from `centre` = (row, column).

    `profile` holds g at equal steps from distance 0 to `reach` pixels, interpolated linearly.
    """
    numbers = np.array([*centre, (len(profile) - 1) / reach, grey], np.float32)
    return by_row(_radial, image, profile, *numbers, image.shape[2])
