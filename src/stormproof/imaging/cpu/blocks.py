"""Block averages: fewer pixels, painted back at full size."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.kernel import kernel
from stormproof.sample import Image


@kernel
def _box_edges(small: Any, large: Any, edges: Any) -> None:
    """First and past-last source pixel whose centre falls into each block.

    A centre on the very boundary belongs to the block before; how that test rounds decides a column
    here and there, so it is made in the terms Pillow makes it in.
    """
    scale = large / small
    inverse = 1 / scale
    for i in range(small):
        centre = (i + 0.5) * scale
        first = max(int(centre - scale * 0.5 + 0.5), 0)
        last = min(int(centre + scale * 0.5 + 0.5), large)
        if last - first > 1 and not (first - centre + 0.5) * inverse > -0.5:
            first += 1
        if last - first > 1 and (last - 1 - centre + 0.5) * inverse > 0.5:
            last -= 1
        edges[i, 0], edges[i, 1] = first, last


@kernel
def _nearest(small: Any, large: Any, index: Any) -> None:
    """Which block each full-size pixel shows; the position is stepped, as Pillow's is, to round alike."""
    step = small / large
    position = 0.5 * step
    for i in range(large):
        index[i] = min(int(position), small - 1)
        position += step


@kernel
def _mean_factors(edges: Any, factors: Any) -> None:
    """1/count in 22-bit fixed point, for rounding to 8 bits after each pass as Pillow does."""
    for i in range(edges.shape[0]):
        factors[i] = np.uint32(0.5 + (1 << 22) / (edges[i, 1] - edges[i, 0]))


@kernel
def _rounded(total: Any, factor: Any) -> Any:
    return np.uint32(total * factor + np.uint32(1 << 21)) >> np.uint32(22)


@kernel
def _block_row(row: Any, channels: Any, columns: Any, factors: Any, sums: Any) -> None:
    """Add to `sums` the rounded block means along one row."""
    for i in range(columns.shape[0]):
        factor = factors[i]
        first, last = np.uint64(columns[i, 0] * channels), np.uint64(columns[i, 1] * channels)
        if channels == 3:
            r, g, b = (
                np.uint32(row[first]),
                np.uint32(row[first + np.uint64(1)]),
                np.uint32(row[first + np.uint64(2)]),
            )
            x = first + np.uint64(3)
            while x < last:
                r = np.uint32(r + row[x])
                g = np.uint32(g + row[x + np.uint64(1)])
                b = np.uint32(b + row[x + np.uint64(2)])
                x += np.uint64(3)
            sums[3 * i] += _rounded(r, factor)
            sums[3 * i + 1] += _rounded(g, factor)
            sums[3 * i + 2] += _rounded(b, factor)
        else:
            total = np.uint32(0)
            for i_pixel in range(first, last):
                total = np.uint32(total + row[i_pixel])
            sums[i] += _rounded(total, factor)


@kernel
def _paint_row(means: Any, channels: Any, block_of_column: Any, out: Any) -> None:
    if channels == 3:
        for x in range(block_of_column.shape[0]):
            i = np.uint64(block_of_column[x] * 3)
            out[3 * x] = means[i]
            out[3 * x + 1] = means[i + np.uint64(1)]
            out[3 * x + 2] = means[i + np.uint64(2)]
    else:
        for x in range(block_of_column.shape[0]):
            out[x] = means[block_of_column[x]]


@kernel
def _pixelate(image: Any, channels: Any, size: Any, out: Any) -> None:
    """`image` and `out` are H × (W·C)."""
    height, width = image.shape[0], image.shape[1] // channels
    rows, columns = np.empty((size[0], 2), np.int64), np.empty((size[1], 2), np.int64)
    _box_edges(size[0], height, rows)
    _box_edges(size[1], width, columns)
    down, across = np.empty(size[0], np.uint32), np.empty(size[1], np.uint32)
    _mean_factors(rows, down)
    _mean_factors(columns, across)
    block_of_row, block_of_column = np.empty(height, np.int64), np.empty(width, np.int64)
    _nearest(size[0], height, block_of_row)
    _nearest(size[1], width, block_of_column)
    sums = np.empty(size[1] * channels, np.uint32)
    means = np.empty(size[1] * channels, np.uint8)
    for y in range(height):
        block = block_of_row[y]
        if y > 0 and block == block_of_row[y - 1]:
            out[y] = out[y - 1]
            continue
        sums[:] = 0
        for r in range(rows[block, 0], rows[block, 1]):
            _block_row(image[r], channels, columns, across, sums)
        for i in range(sums.shape[0]):
            means[i] = np.uint8(_rounded(sums[i], down[block]))
        _paint_row(means, channels, block_of_column, out[y])


def pixelate(image: Image, size: tuple[int, int]) -> Image:
    """Average into size = (rows, columns) blocks and paint the blocks back at full size."""
    out = np.empty_like(image, order="C")
    height, _, channels = image.shape
    _pixelate(np.ascontiguousarray(image).reshape(height, -1), channels, size, out.reshape(height, -1))
    return out
