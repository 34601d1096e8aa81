"""Blur by one kernel for the whole image: Gaussian, symmetric, along a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.layouts import by_row
from stormproof.imaging.plans import FIXED, GUARD, Field, border, half_gaussian, symmetric_runs


@kernel
def pad(row: Any, channels: Any, columns: Any, out: Any) -> None:
    """Pad a row; `columns` holds the source pixel of each padded position."""
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
        v = half[j + 1]  # two pairs per pass halve the traffic on `out`
        c = flat[starts[radius - j - 1] : starts[radius - j - 1] + n]
        d = flat[starts[radius + j + 1] : starts[radius + j + 1] + n]
        for x in range(n):
            out[x] = (out[x] + w * (a[x] + b[x])) + v * (c[x] + d[x])
        j += 2


@kernel
def ring_starts(first: Any, n: Any, out: Any) -> None:
    """Where the rows of n values begin in a flat ring, from the oldest, row `first`, to the newest."""
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
    down, across = (int(truncate * s + 0.5) for s in sigma)
    halves = half_gaussian(sigma[1], across), half_gaussian(sigma[0], down)
    borders = border(width, across, rule), border(height, down, rule)
    return by_row(_separable, source, channels, *halves, *borders, guard)


def gaussian_blur(image: Image, sigma: float) -> Image:
    """Gaussian of `sigma` pixels cut at 4σ, edges repeated, result truncated to whole grey levels."""
    return _blur(image, (sigma, sigma), 4.0, "nearest", GUARD)


def gaussian_field(
    field: Field, sigma: tuple[float, float], *, truncate: float, rule: str, gain: float = 1.0
) -> Field:
    """Gaussian of (σ_y, σ_x) pixels over a float field, cut at `truncate`·σ, times `gain`."""
    soft: Field = _blur(field, sigma, truncate, rule, np.float32(0))
    if gain != 1:
        soft *= np.float32(gain)
    return soft


@kernel
def _running_sums(padded: Any, channels: Any, out: Any) -> None:
    """Prefix sums along a padded row, channel by channel, modulo 2³²; out[0..channels) is zero."""
    out[:channels] = 0
    if channels == 3:  # three sums in registers: twice as fast as in memory
        r = g = b = np.int32(0)
        for i in range(padded.shape[0] // 3):
            r = np.int32(r + padded[3 * i])
            g = np.int32(g + padded[3 * i + 1])
            b = np.int32(b + padded[3 * i + 2])
            out[3 * i + 3] = r
            out[3 * i + 4] = g
            out[3 * i + 5] = b
    else:
        for i in range(padded.shape[0]):
            out[i + channels] = np.int32(out[i] + padded[i])


@kernel
def _run(sums: Any, tap: Any, radius: Any, channels: Any, n: Any) -> Any:
    """Both ends of a run around each pixel of the row, and the run's weight."""
    end = (radius + tap[0] + 1) * channels
    start = (radius - tap[0]) * channels
    return sums[end : end + n], sums[start : start + n], np.int32(tap[1])


@kernel
def _convolve(source: Any, channels: Any, taps: Any, starts: Any, columns: Any, rows: Any, out: Any) -> None:
    """Correlate with a kernel symmetric in both axes, given as runs along its rows.

    Along a row a disk's kernel is constant almost everywhere, so its sum is a few differences of running
    sums. All arithmetic is modulo 2³², hence exact.
    """
    height, n = source.shape
    radius = starts.shape[0] - 2
    size = 2 * radius + 1
    sums = np.empty((size, (columns.shape[0] + 1) * channels), np.int32)
    padded = np.empty(columns.shape[0] * channels, np.uint8)
    pair = np.empty(sums.shape[1], np.int32)
    total = np.empty(n, np.int32)
    for r in range(height + 2 * radius):
        pad(source[rows[r]], channels, columns, padded)
        _running_sums(padded, channels, sums[r % size])
        if r < 2 * radius:
            continue
        y = r - 2 * radius
        total[:] = 1 << (FIXED - 12)  # GUARD in fixed point
        for dy in range(radius + 1):
            first, last = starts[dy], starts[dy + 1]
            if first == last:
                continue
            above = sums[(y + radius - dy) % size]
            below = sums[(y + radius + dy) % size]
            if dy == 0:
                pair[:] = above
            else:
                for x in range(pair.shape[0]):
                    pair[x] = np.int32(above[x] + below[x])
            k = first
            while k < last:  # two runs per pass halve the traffic on `total`
                a, b, w = _run(pair, taps[k], radius, channels, n)
                c, d, v = _run(pair, taps[min(k + 1, last - 1)], radius, channels, n)
                v = v if k + 1 < last else np.int32(0)
                for x in range(n):
                    inner = np.int32(w * np.int32(a[x] - b[x]))
                    outer = np.int32(v * np.int32(c[x] - d[x]))
                    total[x] = np.int32(total[x] + np.int32(inner + outer))
                k += 2
        target = out[y]
        for x in range(n):
            target[x] = min(np.int32(total[x] >> FIXED), np.int32(255))


def convolve(image: Image, weights: npt.NDArray[np.float64]) -> Image:
    """Correlate with a square kernel symmetric in both axes; borders mirrored, result truncated."""
    height, width, channels = image.shape
    borders = (border(side, weights.shape[0] // 2, "mirror") for side in (width, height))
    return by_row(_convolve, image, channels, *symmetric_runs(weights), *borders)


@kernel
def _tap(padded: Any, inset: Any, channels: Any, y: Any, shift: Any, n: Any) -> Any:
    """The row that a tap reads for output row y, shifted; rows outside the image repeat its edge."""
    row = padded[min(max(y + shift[0], 0), padded.shape[0] - 1)]
    start = inset + shift[1] * channels
    return row[start : start + n]


@kernel
def _line(source: Any, channels: Any, columns: Any, weights: Any, shifts: Any, guard: Any, out: Any) -> None:
    """Four taps per pass, so that the running total is loaded and stored a quarter as often."""
    n = out.shape[1]
    padded = np.empty((source.shape[0], columns.shape[0] * channels), np.float32)
    for y in range(source.shape[0]):
        pad(source[y], channels, columns, padded[y])
    inset = (padded.shape[1] - n) // 2
    total = np.empty(n, np.float32)
    for y in range(out.shape[0]):
        total[:] = guard
        for i in range(0, weights.shape[0], 4):
            a = _tap(padded, inset, channels, y, shifts[i], n)
            b = _tap(padded, inset, channels, y, shifts[i + 1], n)
            c = _tap(padded, inset, channels, y, shifts[i + 2], n)
            d = _tap(padded, inset, channels, y, shifts[i + 3], n)
            p, q, r, s = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            for x in range(n):
                total[x] += (p * a[x] + q * b[x]) + (r * c[x] + s * d[x])
        target = out[y]
        for x in range(n):
            target[x] = min(total[x], np.float32(255))


def line_blur(
    image: npt.NDArray[Any],
    weights: npt.NDArray[np.float64],
    shifts: npt.NDArray[np.int64],
    *,
    guard: np.float32 = GUARD,
) -> npt.NDArray[Any]:
    """Weighted sum of copies read `shifts` = (dy, dx) away, edges repeated, at most 255; truncated for bytes.

    `guard` is added first, since truncation must not lose a level to rounding; for a float field, give 0.
    """
    height, width = image.shape[:2]
    spare = -len(weights) % 4  # zero weights fill the last group of four
    taps = np.pad(weights, (0, spare)).astype(np.float32), np.pad(shifts, ((0, spare), (0, 0)))
    columns = border(width, int(np.abs(shifts[:, 1]).max(initial=0)), "nearest")
    return by_row(_line, image, image.size // (height * width), columns, *taps, guard)
