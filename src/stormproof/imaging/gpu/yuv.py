"""Luma and chroma as cameras transfer them, and choosing between two images pixel by pixel.

The integers are those of OpenCV: ITU-R BT.601 in 14 bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from stormproof.imaging.gpu.batch import Batch, as_batch

_HALF = 1 << 13


def _rounded(value: Tensor) -> Tensor:
    return (value + _HALF) >> 14


def to_yuv(image: Any) -> Batch:
    """RGB as Y, Cr, Cb of ITU-R BT.601 over the full 8 bits, chroma centred on 128; grey stays Y."""
    batch = as_batch(image)
    if batch.shape[2] == 1:
        return batch.copy()
    r, g, b = batch.data.to(torch.int32).unbind(3)
    y = _rounded(r * 4899 + g * 9617 + b * 1868)
    cr = _rounded((r - y) * 11682 + (128 << 14))
    cb = _rounded((b - y) * 9241 + (128 << 14))
    return Batch(torch.stack((y, cr, cb), 3).clamp(0, 255).to(torch.uint8))


def from_yuv(image: Any) -> Batch:
    """The way back: RGB of Y, Cr, Cb; grey of Y."""
    batch = as_batch(image)
    if batch.shape[2] == 1:
        return batch.copy()
    y, cr, cb = batch.data.to(torch.int32).unbind(3)
    cr, cb = cr - 128, cb - 128
    r = y + _rounded(cr * 22987)
    g = y + _rounded(cb * -5636 + cr * -11698)
    b = y + _rounded(cb * 29049)
    return Batch(torch.stack((r, g, b), 3).clamp(0, 255).to(torch.uint8))


def dissolve(image: Batch, other: Batch, share: float, bits: Batch) -> Batch:
    """The image with a share of its pixels, whole, taken from `other`; `bits` has 16 for each pixel."""
    chosen = bits.data < round(share * 65536)
    return Batch(torch.where(chosen[..., None], other.data, image.data))
