"""Pixelation: block averages, painted back at full size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.layout import by_planes
from stormproof.imaging.gpu.tensors import resident
from stormproof.imaging.plans import block_factors, box_edges, nearest_blocks

_Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=64)
def _blocks(small: int, large: int) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """First and past-last pixel of each block, 1/count in fixed point, and the block of each pixel."""
    edges, factors, index = (np.empty(shape, np.int64) for shape in ((small, 2), small, large))
    box_edges(small, large, edges)
    block_factors(edges, factors)
    nearest_blocks(small, large, index)
    return np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]), factors, index


def _means(values: Tensor, axis: int, small: int) -> Tensor:
    """Block means along an axis, rounded to whole numbers as Pillow does after each pass."""
    tables = _blocks(small, values.shape[axis])
    first, last, factors, _ = (resident(table) for table in tables)
    most = int((tables[1] - tables[0]).max())
    return triton_kernels.run(triton_layers.means, _in_torch, values, axis, first, last, factors, most)


def _in_torch(values: Tensor, axis: int, first: Tensor, last: Tensor, factors: Tensor, most: int) -> Tensor:
    sums = values.cumsum(axis, dtype=torch.int64)
    upper = sums.index_select(axis, last - 1)
    before = sums.index_select(axis, (first - 1).clamp(min=0))
    shape = [-1 if i == axis else 1 for i in range(values.ndim)]
    before = before * (first > 0).reshape(shape)
    return (((upper - before) * factors.reshape(shape) + (1 << 21)) >> 22).to(torch.uint8)


def pixelate(image: Batch, size: tuple[int, int]) -> Batch:
    """Average into size = (rows, columns) blocks and paint the blocks back at full size."""
    height, width = image.shape[:2]
    rows, columns = resident(_blocks(size[0], height)[3]), resident(_blocks(size[1], width)[3])

    def painted(planes: Tensor) -> Tensor:
        means = _means(_means(planes, 2, size[1]), 1, size[0])
        return triton_kernels.run(triton_kernels.gathered, _gathered, means, rows, columns)

    return Batch(by_planes(painted, image.data))


def _gathered(source: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return source.index_select(1, rows).index_select(2, columns)
