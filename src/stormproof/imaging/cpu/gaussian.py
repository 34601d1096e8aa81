"""Gaussian blur of images and fields, and the border rules all filters share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import GUARD, Field, border, half_gaussian


@kernel
def pad(row: Any, channels: Any, columns: Any, out: Any) -> None:
    """A row with its borders filled in; `columns` says which pixel stands at each padded position."""
    n = row.shape[0]
    inset = (columns.shape[0] * channels - n) // 2
    inside = out[inset : inset + n]
    for x in range(n):  # twenty times faster than assigning the slice
        inside[x] = row[x]
    for i in range(inset // channels):
        right = columns.shape[0] - 1 - i
        for c in range(channels):
            out[i * channels + c] = row[columns[i] * channels + c]
            out[right * channels + c] = row[columns[right] * channels + c]


@kernel
def symmetric_sum(flat: Any, starts: Any, half: Any, out: Any) -> None:
    """out[x] = Σ_j half[|j|] · flat[starts[j + radius] + x] over j = −radius … radius, pairs first."""
    radius = half.shape[0] - 1
    n = out.shape[0]
    centre = flat[starts[radius] : starts[radius] + n]
    w = half[0]
    for x in range(n):
        out[x] = w * centre[x]
    j = 1
    while j <= radius:
        w = half[j]
        a = flat[starts[radius - j] : starts[radius - j] + n]
        b = flat[starts[radius + j] : starts[radius + j] + n]
        if j == radius:
            for x in range(n):
                out[x] = out[x] + w * (a[x] + b[x])
            return
        v = half[j + 1]  # two pairs a pass: half the traffic on `out`
        c = flat[starts[radius - j - 1] : starts[radius - j - 1] + n]
        d = flat[starts[radius + j + 1] : starts[radius + j + 1] + n]
        for x in range(n):
            out[x] = (out[x] + w * (a[x] + b[x])) + v * (c[x] + d[x])
        j += 2


@kernel
def ring_starts(first: Any, n: Any, out: Any) -> None:
    """Where the rows of n values in a flat ring begin, from the oldest, row `first`, to the newest."""
    for k in range(out.shape[0]):
        out[k] = (first + k) % out.shape[0] * n


@kernel
def _separable(
    source: Any, channels: Any, across: Any, down: Any, columns: Any, rows: Any, guard: Any, out: Any
) -> None:
    """Filter rows, then columns, through a ring of filtered rows; `source` and `out` are H × (W·C)."""
    height, n = source.shape
    radius = down.shape[0] - 1
    size = 2 * radius + 1
    ring = np.empty((size, n), np.float32)
    padded = np.empty(columns.shape[0] * channels, np.float32)
    line = np.empty(n, np.float32)
    along, oldest_first = np.arange(2 * across.shape[0] - 1) * channels, np.empty(size, np.int64)
    for r in range(height + 2 * radius):
        pad(source[rows[r]], channels, columns, padded)
        symmetric_sum(padded, along, across, ring[r % size])
        if r >= 2 * radius:
            ring_starts((r + 1) % size, n, oldest_first)
            symmetric_sum(ring.reshape(-1), oldest_first, down, line)
            target = out[r - 2 * radius]
            for x in range(n):
                target[x] = line[x] + guard


def _blur(
    source: npt.NDArray[Any], sigma: tuple[float, float], truncate: float, rule: str, guard: np.float32
) -> npt.NDArray[Any]:
    height, width = source.shape[:2]
    channels = source.size // (height * width)
    radii = [int(truncate * s + 0.5) for s in sigma]
    out = np.empty_like(source, order="C")
    _separable(
        np.ascontiguousarray(source).reshape(height, width * channels),
        channels,
        half_gaussian(sigma[1], radii[1]),
        half_gaussian(sigma[0], radii[0]),
        border(width, radii[1], rule),
        border(height, radii[0], rule),
        guard,
        out.reshape(height, width * channels),
    )
    return out


def gaussian_blur(image: Image, sigma: float) -> Image:
    """Gaussian of `sigma` pixels cut at 4σ, edges repeated, result truncated to whole grey levels."""
    return _blur(image, (sigma, sigma), 4.0, "nearest", GUARD)


def gaussian_field(field: Field, sigma: tuple[float, float], *, truncate: float, rule: str) -> Field:
    """Gaussian of (σ_y, σ_x) pixels over a float field, cut at `truncate`·σ."""
    return _blur(field, sigma, truncate, rule, np.float32(0))
