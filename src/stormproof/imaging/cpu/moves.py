"""Images moved by a displacement field whose sources may lie outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import Field

_LANE = np.uint64(21)  # bits a channel has in a packed pixel: 8 of value, 11 of weight, and to spare
_WHOLE = 1 << 11  # the four weights of a bilinear sample add up to this: within a quarter of a grey level


@kernel
def _pack(pixels: Any, words: Any) -> None:
    """A pixel's channels side by side in one word, so that one multiplication weighs them all."""
    for i in range(words.shape[0]):
        word = np.uint64(pixels[i, 0])
        if pixels.shape[1] == 3:
            word |= np.uint64(pixels[i, 1]) << _LANE
            word |= np.uint64(pixels[i, 2]) << (_LANE + _LANE)
        words[i] = word


@kernel
def _sample(words: Any, height: Any, width: Any, v: Any, u: Any) -> Any:
    """The packed pixel at (v, u), bilinear and rounded; 0 outside the frame."""
    half = np.float32(0.5)
    if not (v >= -half and v < np.float32(height) - half and u >= -half and u < np.float32(width) - half):
        return np.uint64(0)
    # Between the outermost pixel centres and the frame, the edge is repeated.
    v = min(max(v, np.float32(0)), np.float32(height - 1))
    u = min(max(u, np.float32(0)), np.float32(width - 1))
    i, j = np.int64(v), np.int64(u)
    f, g = v - np.float32(i), u - np.float32(j)
    # Rounded down, so that no weight can be negative.
    both = np.int64(f * g * np.float32(_WHOLE))
    down, across = np.int64(f * np.float32(_WHOLE)), np.int64(g * np.float32(_WHOLE))
    a = i * width + j
    b = a + (1 if j + 1 < width else 0)
    below = width if i + 1 < height else 0
    upper = words[np.uint64(a)] * np.uint64(_WHOLE - down - across + both) + words[np.uint64(b)] * np.uint64(
        across - both
    )
    lower = words[np.uint64(a + below)] * np.uint64(down - both) + words[np.uint64(b + below)] * np.uint64(
        both
    )
    rounding = np.uint64((_WHOLE // 2) * ((1 << 42) + (1 << 21) + 1))
    return (upper + lower + rounding) >> np.uint64(11)


@kernel
def _move(words: Any, dy: Any, dx: Any, out: Any) -> None:
    height, width = dy.shape
    channels = out.shape[1]
    level = np.uint64(255)
    for y in range(height):
        rows, columns = dy[y], dx[y]
        for x in range(width):
            word = _sample(words, height, width, np.float32(y) + rows[x], np.float32(x) + columns[x])
            o = np.uint64(y * width + x)
            out[o, 0] = word & level
            if channels == 3:
                out[o, 1] = (word >> _LANE) & level
                out[o, 2] = (word >> (_LANE + _LANE)) & level


def move(image: Image, dy: Field, dx: Field) -> Image:
    """Read each pixel from (y + dy, x + dx), bilinear, rounded; black where that lies outside the frame."""
    height, width, channels = image.shape
    words = np.empty(height * width, np.uint64)
    _pack(np.ascontiguousarray(image).reshape(-1, channels), words)
    out = np.empty_like(image, order="C")
    _move(words, dy, dx, out.reshape(-1, channels))
    return out


@kernel
def _radial(gains: Any, dy: Any, dx: Any) -> None:
    height, width = dy.shape
    half_y, half_x = np.float32((height - 1) / 2), np.float32((width - 1) / 2)
    unit = np.float32(4 / (height * height + width * width))
    for i in range(height):
        rows, columns = dy[i], dx[i]
        y = np.float32(i) - half_y
        for j in range(width):
            x = np.float32(j) - half_x
            r2 = (y * y + x * x) * unit
            r = np.sqrt(r2)
            gain = r * (gains[2] + gains[1] * r + gains[0] * r2)
            rows[j] = gain * y
            columns[j] = gain * x


def radial_field(
    size: tuple[int, int], delta: float, shares: tuple[float, float, float]
) -> tuple[Field, Field]:
    """(dy, dx) that reads from r + δ·(a·r⁴ + b·r³ + c·r²), where r is 1 in the frame's corners."""
    dy, dx = np.empty(size, np.float32), np.empty(size, np.float32)
    _radial(np.array([delta * share for share in shares], np.float32), dy, dx)
    return dy, dx


@kernel
def _sources(dy: Any, dx: Any, out: Any) -> None:
    height, width = dy.shape
    half = np.float32(0.5)
    for y in range(height):
        for x in range(width):
            i = np.int64(np.floor(np.float32(y) + dy[y, x] + half))
            j = np.int64(np.floor(np.float32(x) + dx[y, x] + half))
            inside = i >= 0 and i < height and j >= 0 and j < width
            out[y, x] = i * width + j if inside else height * width


def sources(dy: Field, dx: Field) -> npt.NDArray[np.int64]:
    """For each output pixel the flat index of the nearest input pixel; H·W where there is none."""
    out = np.empty(dy.shape, np.int64)
    _sources(dy, dx, out)
    return out
