"""Drops on the lens: each shows the scene around it, small and upside down."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image


@kernel
def _shrink(image: Any, factor: Any, out: Any) -> None:
    """Means of factor×factor blocks; the last ones may be smaller."""
    height, width, channels = image.shape
    for i in range(out.shape[0]):
        top, bottom = i * factor, min((i + 1) * factor, height)
        sums = np.zeros((out.shape[1], channels), np.int64)
        for y in range(top, bottom):
            for j in range(out.shape[1]):
                for x in range(j * factor, min((j + 1) * factor, width)):
                    for c in range(channels):
                        sums[j, c] += image[y, x, c]
        for j in range(out.shape[1]):
            count = (bottom - top) * (min((j + 1) * factor, width) - j * factor)
            for c in range(channels):
                out[i, j, c] = sums[j, c] / count


@kernel
def _mirrored(place: Any, length: Any) -> Any:
    """A coordinate folded back into 0 … length − 1."""
    if length == 1:
        return 0.0
    period = 2.0 * (length - 1)
    folded = abs(place) % period
    return min(folded, period - folded)


@kernel
def _sample(small: Any, y: Any, x: Any, c: Any) -> Any:
    """Bilinear reading between block centres, edges repeated."""
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
            # The whole neighbourhood, `factor` times as wide as the drop, turned by 180°.
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
    """Lay elliptic drops (row, column, vertical and horizontal semi-axis in pixels) over the image.

    A drop shows what surrounds it, `factor` times smaller, turned by 180° and dimmed to `passed`; its
    opacity falls to zero over the outer share `rim` of its radius. Beyond the border the scene is mirrored.
    """
    source = np.ascontiguousarray(image)
    rows, columns = (-(-side // factor) for side in image.shape[:2])
    small = np.empty((rows, columns, image.shape[2]), np.float64)
    _shrink(source, factor, small)
    out = source.copy()
    _drops(small, factor, drops, rim, passed, out)
    return out
