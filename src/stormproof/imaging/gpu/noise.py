"""Noise by table: 16 random bits choose, for each value, one of its equally likely outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.draws import Bits
from stormproof.imaging.gpu.tensors import resident, taken

_ADD, _LOOK_UP, _REPLACE = 0, 1, 2


def add_noise(image: Batch, steps: npt.NDArray[np.int16], bits: Batch) -> Batch:
    """Add to each value the step that its random bits choose out of 65,536, and saturate."""
    return _noise(image, bits, resident(steps), 0, 0, _ADD)


def noise_by_table(image: Batch, table: npt.NDArray[np.uint8], bits: Batch) -> Batch:
    """Replace each value v by table[v, top bits]; the table's width is a power of two up to 65,536."""
    width = int(table.shape[1])
    return _noise(image, bits, resident(table).reshape(-1), width, 17 - width.bit_length(), _LOOK_UP)


def salt_and_pepper(image: Batch, amount: float, bits: Batch) -> Batch:
    """Set a fraction `amount` of the values to 0 or 255, half each."""
    low, high = (round(share * 65536) for share in (amount / 2, amount))
    return _noise(image, bits, image.data, low, high, _REPLACE)


def _noise(image: Batch, bits: Any, *rest: Any) -> Batch:
    # The kernel draws bits of its own, which is only right where they go value by value.
    if isinstance(bits, Bits) and bits.shape == image.shape:
        return Batch(triton_kernels.run(triton_kernels.noise, _in_torch, image.data, bits, *rest))
    return Batch(_in_torch(image.data, bits, *rest))


def _in_torch(image: Tensor, bits: Batch, table: Tensor, first: int, second: int, kind: int) -> Tensor:
    """The kinds of noise as `triton_source.noise_kernel` has them."""
    if kind == _ADD:
        return (image.to(torch.int32) + taken(table, bits.data)).clamp(0, 255).to(torch.uint8)
    if kind == _LOOK_UP:
        return taken(table, image.to(torch.int32) * first + (bits.data >> second))
    return image.masked_fill(bits.data < second, 255).masked_fill(bits.data < first, 0)
