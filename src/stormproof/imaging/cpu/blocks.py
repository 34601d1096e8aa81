"""Images in blocks: JPEG compression, and pixelation by block averages."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.layouts import by_row
from stormproof.imaging.plans import block_factors, box_edges, nearest_blocks

_box_edges, _nearest, _mean_factors = kernel(box_edges), kernel(nearest_blocks), kernel(block_factors)


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
            r = g = b = np.uint32(0)
            x = first
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
    return by_row(_pixelate, image, image.shape[2], size)


def jpeg(image: Image, quality: int) -> Image:
    """Encode as baseline JPEG with 4:2:0 chroma and decode again (libjpeg-turbo)."""
    grey = image.shape[2] == 1
    source = image if grey else cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    done, code = cv2.imencode(".jpg", source, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "libjpeg encodes any 8-bit image up to 65,500 pixels a side"
    flag = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    return np.asarray(cv2.imdecode(code, flag), np.uint8).reshape(image.shape)
