"""Images in blocks: JPEG compression, and pixelation by block averages.

`jpeg` does to pixels what JPEG does, without producing a file. Huffman coding is lossless, so it is left out.
The rest is integer arithmetic as in libjpeg-turbo by default: BT.601 in 16 bits, chroma halved both ways, the
"slow" integer DCT (Loeffler, Ligtenberg and Moschytz 1989; 13-bit constants, 2 more bits between its passes),
quantisation with rounding, triangle-filtered upsampling.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, by_planes
from stormproof.imaging.gpu.each import BySize, of_each
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import keep_on_device, to_device
from stormproof.imaging.plans import block_factors, box_edges, nearest_blocks

_Ints = npt.NDArray[np.int64]
_Steps = npt.NDArray[np.int32]


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
    first, last, factors, _ = (keep_on_device(table) for table in tables)
    most = int((tables[1] - tables[0]).max())
    return triton_kernels.run(triton_layers.means, _summed, values, axis, first, last, factors, most)


def _summed(values: Tensor, axis: int, first: Tensor, last: Tensor, factors: Tensor, most: int) -> Tensor:
    sums = values.cumsum(axis, dtype=torch.int64)
    upper = sums.index_select(axis, last - 1)
    before = sums.index_select(axis, (first - 1).clamp(min=0))
    shape = [-1 if i == axis else 1 for i in range(values.ndim)]
    before = before * (first > 0).reshape(shape)
    return (((upper - before) * factors.reshape(shape) + (1 << 21)) >> 22).to(torch.uint8)


def pixelate(image: Batch, size: tuple[int, int]) -> Batch:
    """Average into size = (rows, columns) blocks and paint the blocks back at full size."""
    if isinstance(image, Ragged):
        return _pixelated_ragged(image, size)
    height, width = image.shape[:2]
    rows, columns = keep_on_device(_blocks(size[0], height)[3]), keep_on_device(_blocks(size[1], width)[3])

    def painted(planes: Tensor) -> Tensor:
        means = _means(_means(planes, 2, size[1]), 1, size[0])
        return triton_kernels.run(triton_kernels.gathered, _gathered, means, rows, columns)

    return Batch(by_planes(painted, image.data))


def _pixelated_ragged(image: Ragged, size: tuple[Any, Any]) -> Ragged:
    small = np.stack([of_each(side, len(image.padded)) for side in size], 1)

    def alone(rows: ragged.Rows, own: Size) -> Tensor:
        return pixelate(image.part(rows, own), tuple(small[rows[0]].tolist())).data

    sides = np.stack((small, image.sizes.each), 2).astype(np.int32)  # images × height and width × 2
    most = int(np.ceil(sides[..., 1] / sides[..., 0]).max()) + 1
    rest = to_device(sides.reshape(-1, 2)), most
    return image.like(ragged.run(_painted, alone, image.sizes, image.padded, *rest))


def _painted(padded: Tensor, sides: Tensor, most: int, *, sizes: Any) -> Tensor:
    paint = partial(triton_layers.pixelated, sides=sides, most=most, planes=padded.shape[3], sizes=sizes)
    return by_planes(paint, padded)


def _gathered(source: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return source.index_select(1, rows).index_select(2, columns)


# ITU-T T.81, Annex K: the tables for quality 50, row by row.
_LUMA = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)  # fmt: skip
_CHROMA = (
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
    *(99,) * 32,
)  # fmt: skip


@lru_cache(maxsize=128)
def _steps(quality: int, base: tuple[int, ...]) -> _Steps:
    """The quantisation steps of a quality from 1 to 100; 8 × 8."""
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps: _Steps = np.clip((np.array(base) * scale + 50) // 100, 1, 255).astype(np.int32)
    return steps.reshape(8, 8)


# The rotations of the DCT in 13 bits: √2·cos and √2·sin of multiples of π/16, and sums of them.
_EVEN, _EVEN2, _EVEN6, _ODD = (round(c * 8192) for c in (0.541196100, 0.765366865, 1.847759065, 1.175875602))
_OWN = [round(c * 8192) for c in (0.298631336, 2.053119869, 3.072711026, 1.501321110)]
_PAIRS = [round(c * 8192) for c in (0.899976223, 2.562915447, 1.961570560, 0.390180644)]


def _dct() -> _Ints:
    """The matrix of the integer DCT: between roundings it is linear, so eight samples take one product.

    Rows are frequencies; the transpose is the inverse.
    """
    a, b, c, d = np.eye(4, dtype=np.int64)
    five = (a + b + c + d) * _ODD
    ad, bc = (a + d) * -_PAIRS[0], (b + c) * -_PAIRS[1]
    ac, bd = (a + c) * -_PAIRS[2] + five, (b + d) * -_PAIRS[3] + five
    odd = [a * _OWN[0] + ad + ac, b * _OWN[1] + bc + bd, c * _OWN[2] + bc + ac, d * _OWN[3] + ad + bd]
    matrix = np.empty((8, 8), np.int64)
    matrix[0], matrix[4, :4] = 8192, np.array([1, -1, -1, 1]) * 8192
    outer, inner = _EVEN + _EVEN2, _EVEN
    matrix[2, :4] = outer, inner, -inner, -outer
    matrix[6, :4] = inner, _EVEN - _EVEN6, _EVEN6 - _EVEN, -inner
    for row, parts in zip((7, 5, 3, 1), odd, strict=True):
        matrix[row, :4] = parts[::-1]
    matrix[2::2, 4:] = matrix[2::2, 3::-1]
    matrix[1::2, 4:] = -matrix[1::2, 3::-1]
    return matrix


_DCT = _dct()


def _along(blocks: Tensor, matrix: Tensor, axis: int, bits: int) -> Tensor:
    """One pass along rows (axis 4) or columns (axis 2) of N × down × 8 × across × 8, rounded."""
    # Doubles hold every sum exactly, and matrix products of doubles are fast.
    product: Tensor = torch.tensordot(blocks.to(torch.float64), matrix, dims=([axis], [1])).movedim(-1, axis)
    return (product.to(torch.int32) + (1 << (bits - 1))) >> bits


def _requantised(plane: Tensor, matrix: _Steps, steps: _Steps) -> Tensor:
    """N × H × W samples, uint8, both sides multiples of 8, through the DCT and back."""
    images, height, width = plane.shape
    blocks = plane.to(torch.int32).reshape(images, height // 8, 8, width // 8, 8) - 128
    there, back = keep_on_device(_DCT_64), keep_on_device(_DCT_64_BACK)
    coefficients = _along(_along(blocks, there, 4, 11), there, 2, 15)
    step = keep_on_device(steps)[:, None, :]
    eighth = step * 8  # coefficients are scaled by eight
    level = torch.div(coefficients.abs() + (eighth >> 1), eighth, rounding_mode="floor") * coefficients.sign()
    samples = _along(_along(level * step, back, 2, 11), back, 4, 18) + 128
    return samples.clamp(0, 255).to(torch.uint8).reshape(plane.shape)


_DCT_64 = _DCT.astype(np.float64)
_DCT_64_BACK = np.ascontiguousarray(_DCT_64.T)


def _padded(plane: Tensor, height: int, width: int) -> Tensor:
    """Edges repeated to a given size."""
    for axis, side in ((1, height), (2, width)):
        index = torch.arange(side, device=plane.device).clamp(max=plane.shape[axis] - 1)
        plane = plane.index_select(axis, index)
    return plane


def _up(side: int, step: int) -> int:
    return -(-side // step) * step


def _halved(plane: Tensor) -> Tensor:
    """Means of 2×2 samples, rounded down and up in turn along a row; edges repeated to whole blocks."""
    height, width = plane.shape[1:]
    whole = _padded(plane, _up(height, 2), _up(width, 16))
    four = (whole[:, ::2, ::2] + whole[:, ::2, 1::2]) + (whole[:, 1::2, ::2] + whole[:, 1::2, 1::2])
    bias = 1 + torch.arange(four.shape[2], device=plane.device, dtype=torch.int32) % 2
    return _padded((four + bias) >> 2, _up(four.shape[1], 8), four.shape[2])


def _doubled(plane: Tensor, height: int, width: int) -> Tensor:
    """Upsample by two in both directions: each sample is three quarters its nearest neighbour, per axis."""
    if plane.shape[2] <= 2:  # libjpeg repeats samples in rows this short
        return plane.repeat_interleave(2, 1).repeat_interleave(2, 2)[:, :height, :width]
    last = plane.shape[1] - 1
    rows = torch.arange(plane.shape[1], device=plane.device)
    above = plane.index_select(1, (rows - 1).clamp(min=0))
    below = plane.index_select(1, (rows + 1).clamp(max=last))
    tall = torch.stack((plane * 3 + above, plane * 3 + below), 2).flatten(1, 2)
    left, right = torch.cat((tall[..., :1], tall[..., :-1]), 2), torch.cat((tall[..., 1:], tall[..., -1:]), 2)
    wide = torch.stack(((tall * 3 + left + 8) >> 4, (tall * 3 + right + 7) >> 4), 3).flatten(2, 3)
    return wide[:, :height, :width]


def jpeg(image: Batch, quality: int) -> Batch:
    """Encode as baseline JPEG with 4:2:0 chroma and decode again (libjpeg-turbo)."""
    height, width, channels = image.shape
    luma_steps, chroma_steps = _steps(quality, _LUMA), _steps(quality, _CHROMA)
    if channels == 3:
        rest = _DCT, luma_steps, chroma_steps
        if isinstance(image, Ragged) and image.sizes.each[:, 1].min() <= 4:
            raise BySize  # libjpeg upsamples rows this short in another way
        return ragged.apply(triton_layers.jpeg, _in_torch, image, *rest)
    plane = _padded(image.data[..., 0], _up(height, 8), _up(width, 8))
    plane = triton_kernels.run(triton_layers.requantised, _requantised, plane, _DCT, luma_steps)
    return Batch(plane[:, :height, :width, None].contiguous())


def _in_torch(image: Tensor, matrix: _Steps, luma_steps: _Steps, chroma_steps: _Steps) -> Tensor:
    height, width = image.shape[1:3]
    r, g, b = image.to(torch.int32).unbind(3)
    y = (r * 19595 + g * 38470 + b * 7471 + 32768) >> 16
    cb = (r * -11059 - g * 21709 + b * 32768 + (128 << 16) + 32767) >> 16
    cr = (r * 32768 - g * 27439 - b * 5329 + (128 << 16) + 32767) >> 16
    y = _requantised(_padded(y, _up(height, 8), _up(width, 8)).to(torch.uint8), matrix, luma_steps)
    y = y[:, :height, :width].to(torch.int32)
    half = -(-height // 2), -(-width // 2)
    halves = (_requantised(_halved(chroma).to(torch.uint8), matrix, chroma_steps) for chroma in (cb, cr))
    cb, cr = (
        _doubled(plane[:, : half[0], : half[1]].to(torch.int32), height, width) - 128 for plane in halves
    )
    red = y + ((cr * 91881 + 32768) >> 16)
    green = y + ((cb * -22554 - cr * 46802 + 32768) >> 16)
    blue = y + ((cb * 116130 + 32768) >> 16)
    return torch.stack((red, green, blue), 3).clamp(0, 255).to(torch.uint8)
