"""Pictures moved by a displacement field whose sources may lie outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.imaging.cpu.gaussian import Field
from stormproof.imaging.cpu.kernel import kernel
from stormproof.sample import Image


@kernel
def _between(a: Any, b: Any, c: Any, d: Any, f: Any, g: Any) -> Any:
    """Bilinear and rounded: a, b on the upper row, c, d on the lower; f down, g across."""
    upper = np.float32(a) + g * (np.float32(b) - np.float32(a))
    lower = np.float32(c) + g * (np.float32(d) - np.float32(c))
    return np.uint8(upper + f * (lower - upper) + np.float32(0.5))


@kernel
def _move(image: Any, width: Any, channels: Any, dy: Any, dx: Any, out: Any) -> None:
    height = dy.shape[0]
    half = np.float32(0.5)
    bottom, right = np.float32(height) - half, np.float32(width) - half
    for y in range(height):
        rows, columns = dy[y], dx[y]
        for x in range(width):
            v = np.float32(y) + rows[x]
            u = np.float32(x) + columns[x]
            o = np.uint64((y * width + x) * channels)
            if not (v >= -half and v < bottom and u >= -half and u < right):
                for c in range(channels):
                    out[o + np.uint64(c)] = 0
                continue
            # Between the outermost pixel centres and the frame, the edge is repeated.
            v = min(max(v, np.float32(0)), np.float32(height - 1))
            u = min(max(u, np.float32(0)), np.float32(width - 1))
            i = np.int32(v)
            j = np.int32(u)
            f = v - np.float32(i)
            g = u - np.float32(j)
            a = np.uint64((i * width + j) * channels)
            b = a + np.uint64(channels if j + 1 < width else 0)
            down = np.uint64(width * channels if i + 1 < height else 0)
            c, d = a + down, b + down
            out[o] = _between(image[a], image[b], image[c], image[d], f, g)
            if channels == 3:
                one, two = np.uint64(1), np.uint64(2)
                out[o + one] = _between(image[a + one], image[b + one], image[c + one], image[d + one], f, g)
                out[o + two] = _between(image[a + two], image[b + two], image[c + two], image[d + two], f, g)


def move(image: Image, dy: Field, dx: Field) -> Image:
    """Read each pixel from (y + dy, x + dx), bilinear, rounded; black where that lies outside the frame."""
    out = np.empty_like(image, order="C")
    _move(np.ascontiguousarray(image).reshape(-1), image.shape[1], image.shape[2], dy, dx, out.reshape(-1))
    return out
