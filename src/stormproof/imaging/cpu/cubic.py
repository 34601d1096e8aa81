"""Bicubic enlargement of a part of an image.

OpenCV's own goes through a library that chooses its arithmetic by the processor, so its grey levels
differ between machines, by one and rarely; these do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import cubic_taps


def enlarged_part(
    image: Image, size: tuple[int, int], corner: tuple[int, int], part: tuple[int, int]
) -> Image:
    """What an RGB image would show at `corner`, `part` rows and columns of it, if resized to `size`."""
    rows, down = cubic_taps(image.shape[0], size[0], corner[0], part[0])
    columns, across = cubic_taps(image.shape[1], size[1], corner[1], part[1])
    first = int(rows.min())
    used = image[first : int(rows.max()) + 1]
    lines = np.empty((len(used), 3 * part[1]), np.float32)
    _across(used.reshape(len(used), -1), 3 * columns, across, lines)
    out = np.empty((*part, 3), np.uint8)
    _down(lines, rows - first, down, out.reshape(part[0], -1))
    return out


@kernel
def _across(image: Any, taps: Any, weights: Any, out: Any) -> None:
    values = np.empty(image.shape[1], np.float32)
    for y in range(image.shape[0]):
        values[:] = image[y]
        line = out[y]
        for x in range(taps.shape[0]):
            a, b, c, d = taps[x, 0], taps[x, 1], taps[x, 2], taps[x, 3]
            p, q, r, s = weights[x, 0], weights[x, 1], weights[x, 2], weights[x, 3]
            for k in range(3):
                line[3 * x + k] = (
                    values[a + k] * p + values[b + k] * q + values[c + k] * r + values[d + k] * s
                )


@kernel
def _down(lines: Any, taps: Any, weights: Any, out: Any) -> None:
    for y in range(taps.shape[0]):
        a, b, c, d = lines[taps[y, 0]], lines[taps[y, 1]], lines[taps[y, 2]], lines[taps[y, 3]]
        p, q, r, s = weights[y, 0], weights[y, 1], weights[y, 2], weights[y, 3]
        line = out[y]
        for x in range(line.shape[0]):
            value = a[x] * p + b[x] * q + c[x] * r + d[x] * s
            line[x] = np.uint8(min(max(value, np.float32(0)), np.float32(255)) + np.float32(0.5))
