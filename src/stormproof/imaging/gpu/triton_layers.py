"""Launches of the kernels for layers, fields, blocks and JPEG; each function has a twin in torch."""

from __future__ import annotations

from functools import cache
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu.tensors import resident, to_device
from stormproof.imaging.gpu.triton_kernels import BLOCK, EXACT, grid, signed


@cache
def _mixing() -> ModuleType:
    from stormproof.imaging.gpu import triton_mixing

    return triton_mixing


@cache
def _squares() -> ModuleType:
    from stormproof.imaging.gpu import triton_squares

    return triton_squares


def uniforms(keys: Tensor, stream: int, count: int, scale: float, low: float) -> Tensor:
    """(bits + ½)·scale + low; N × count."""
    return _field(keys, stream, count, keys, scale, low, torch.float32, kind=0)


def chosen(keys: Tensor, stream: int, count: int, values: Tensor) -> Tensor:
    """values[bits]; N × count."""
    return _field(keys, stream, count, values, 0.0, 0.0, torch.float32, kind=1)


def integers(keys: Tensor, stream: int, count: int, low: int, high: int) -> Tensor:
    """Integers from `low` to `high` − 1; N × count, int8."""
    return _field(keys, stream, count, keys, high - low, low, torch.int8, kind=2)


def _field(
    keys: Tensor,
    stream: int,
    count: int,
    values: Tensor,
    scale: float,
    low: float,
    dtype: torch.dtype,
    kind: int,
) -> Tensor:
    out = torch.empty((len(keys), count), dtype=dtype, device=keys.device)
    _mixing().field_kernel[grid(count, 8 * 256, len(keys))](
        out, keys, values, signed(stream), count, scale, low, KIND=kind, BLOCK=256, **EXACT
    )
    return out


def subdivided(coarse: Tensor, centre: Tensor, row: Tensor, column: Tensor, gain: float) -> Tensor:
    """N × n × n, or 1 × n × n for all, to N × 2n × 2n; n a power of two."""
    images, side, _ = centre.shape
    coarse = coarse.contiguous()
    out = coarse.new_empty((images, 2 * side, 2 * side))
    step = side * side if len(coarse) == images else 0
    _mixing().subdivide_kernel[grid(side * side, BLOCK, images)](
        coarse, out, centre, row, column, side, step, gain, BLOCK=BLOCK, **EXACT
    )
    return out


def layered(image: Tensor, layer: Tensor, numbers: Tensor, colour: Tensor, guard: float) -> Tensor:
    """`numbers` is N × 3: gain, scale and offset of each image."""
    image, layer = image.contiguous(), layer.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _mixing().layer_kernel[grid(width * channels, BLOCK, images, height)](
        image, out, layer, numbers.contiguous(), colour, height, width, layer.shape[2],
        layer[0].numel() if len(layer) == images else 0, guard, channels=channels, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def whitened(
    image: Tensor, layer: Tensor, keep: float, lose: float, luma: tuple[float, ...], guard: float
) -> Tensor:
    """`layer` is N × H × W."""
    image = image.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    _mixing().whiten_kernel[grid(height * width, BLOCK, images)](
        image, out, layer.contiguous(), height * width, keep, lose, *luma, guard,
        channels=channels, BLOCK=BLOCK, **EXACT,
    )  # fmt: skip
    return out


def mixed(image: Tensor, parts: Any, a: float, b: float) -> Tensor:
    """a·image + b·parts; the kernel reads the `parts` where they lie and never copies them."""
    image = image.contiguous()
    out = torch.empty_like(image)
    images, height, width, channels = image.shape
    starts, strides = (to_device(table) for table in parts.places())
    weights = to_device(np.array([a, b]))
    _mixing().mix_kernel[grid(width * channels, BLOCK, images, height)](
        image, out, starts, strides, weights, height, width * channels, BLOCK=BLOCK, **EXACT
    )
    return out


def by_brightest(image: Tensor, table: Tensor) -> Tensor:
    """`table` is 256 × 256."""
    image = image.contiguous()
    out = torch.empty_like(image)
    pixels, channels = image[..., 0].numel(), image.shape[3]
    _mixing().brightest_kernel[(-(-pixels // BLOCK),)](
        image, out, table, pixels, channels=channels, BLOCK=BLOCK
    )
    return out


def looked_up(image: Tensor, tables: Tensor) -> Tensor:
    """`tables` is N × C × 256, or 1 × C × 256 for all."""
    image, tables = image.contiguous(), tables.contiguous()
    out = torch.empty_like(image)
    step = tables[0].numel() if len(tables) == len(image) else 0
    _mixing().look_up_kernel[grid(image[0].numel(), BLOCK, len(image))](
        image, out, tables, image[0].numel(), step, channels=image.shape[3], BLOCK=BLOCK
    )
    return out


def means(source: Tensor, axis: int, first: Tensor, last: Tensor, factors: Tensor, most: int) -> Tensor:
    """Means of the values first … last − 1 along an axis; no block has more than `most`."""
    source = source.contiguous()
    shape = list(source.shape)
    large, shape[axis] = shape[axis], len(first)
    out = source.new_empty(shape)
    count, step = out[0].numel(), prod(source.shape[axis + 1 :])
    _squares().means_kernel[grid(count, BLOCK, len(source))](
        source, out, first, last, factors, most, step, len(first), large, count, BLOCK=BLOCK
    )
    return out


def requantised(plane: Tensor, matrix: npt.NDArray[np.int32], steps: npt.NDArray[np.int32]) -> Tensor:
    """N × H × W samples, uint8, both sides multiples of 8, through the DCT and back."""
    plane = plane.contiguous()
    out = torch.empty_like(plane)
    images, height, width = plane.shape
    blocks, across = images * (height // 8) * (width // 8), width // 8
    _squares().requantise_kernel[(-(-blocks // 4),)](
        plane, out, resident(matrix), resident(steps), blocks, across, width, BLOCK=4
    )
    return out


def jpeg(
    image: Tensor,
    matrix: npt.NDArray[np.int32],
    luma_steps: npt.NDArray[np.int32],
    chroma_steps: npt.NDArray[np.int32],
) -> Tensor:
    """N × H × W × 3 through JPEG: planes, DCT and back, colours."""
    image = image.contiguous()
    images, height, width, _ = image.shape
    luma = image.new_empty((images, -(-height // 8) * 8, -(-width // 8) * 8))
    half = -(-height // 2)
    chroma = image.new_empty((2 * images, -(-half // 8) * 8, -(-width // 16) * 8))  # blue, then red
    _squares().luma_kernel[grid(luma[0].numel(), BLOCK, images)](
        image, luma, height, width, *luma.shape[1:], BLOCK=BLOCK
    )
    _squares().chroma_kernel[grid(chroma[0].numel(), BLOCK, images)](
        image, chroma, height, width, *chroma.shape[1:], images, BLOCK=BLOCK
    )
    luma, chroma = requantised(luma, matrix, luma_steps), requantised(chroma, matrix, chroma_steps)
    out = torch.empty_like(image)
    _squares().colours_kernel[grid(height * width, BLOCK, images)](
        luma, chroma, out, height, width, luma[0].numel(), luma.shape[2], chroma[0].numel(), chroma.shape[2],
        images, NARROW=-(-width // 2) <= 2, BLOCK=BLOCK,
    )  # fmt: skip
    return out
