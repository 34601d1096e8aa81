"""Noise by table: 16 random bits choose, for each value, one of its equally likely outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels
from stormproof.imaging.gpu.batch import Batch, as_batch, in_pixels
from stormproof.imaging.gpu.draws import Bits
from stormproof.imaging.gpu.each import BySize
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import divide, keep_on_device, planar, root, take_entries

_ADD, _LOOK_UP, _REPLACE = 0, 1, 2


def add_noise(image: Batch, steps: npt.NDArray[np.int16], bits: Batch) -> Batch:
    """Add to each value the step that its random bits choose out of 65,536, and clip."""
    return _noise(image, bits, keep_on_device(steps), 0, 0, _ADD)


def noise_by_table(image: Batch, table: npt.NDArray[np.uint8], bits: Batch) -> Batch:
    """Replace each value v by table[v, top bits]; the table's width is a power of two up to 65,536."""
    width = int(table.shape[1])
    return _noise(image, bits, keep_on_device(table).reshape(-1), width, 17 - width.bit_length(), _LOOK_UP)


def salt_and_pepper(image: Batch, amount: float, bits: Batch) -> Batch:
    """Set a fraction `amount` of the values to 0 or 255, half each."""
    low, high = (round(share * 65536) for share in (amount / 2, amount))
    return _noise(image, bits, None, low, high, _REPLACE)


def _noise(image: Batch, bits: Any, table: Tensor | None, *rest: Any) -> Batch:
    if isinstance(image, Ragged):
        return _noise_ragged(image, bits, image.padded if table is None else table, *rest)
    data = image.data
    rest = data if table is None else table, *rest  # some table: it is not read
    # The kernel draws its own bits, which is right only if there are as many bits as values.
    if isinstance(bits, Bits) and bits.shape == image.shape:
        if planar(data) and data[0].numel() % 24:  # planes go by eights
            data = in_pixels(data)
        return Batch(triton_kernels.run(triton_kernels.noise, _in_torch, data, bits, *rest))
    return Batch(_in_torch(data, bits, *rest))


def _noise_ragged(image: Ragged, bits: Any, table: Tensor, *rest: Any) -> Ragged:
    if not isinstance(bits, Bits) or bits.shape != image.shape:
        raise BySize

    def alone(rows: ragged.Rows, size: Size) -> Tensor:
        own = Bits(bits.keys[rows], bits.stream, (*size, image.padded.shape[3]))
        return _in_torch(image.part(rows, size).data, own, table, *rest)

    kernel = triton_kernels.noise_ragged
    made = ragged.run(kernel, alone, image.sizes, image.padded, bits, table, *rest, variant=rest[-1])
    return image.like(made)


def _in_torch(image: Tensor, bits: Batch, table: Tensor, first: int, second: int, kind: int) -> Tensor:
    """The kinds of noise of `triton_source.noise_kernel`."""
    if kind == _ADD:
        return (image.to(torch.int32) + take_entries(table, bits.data)).clamp(0, 255).to(torch.uint8)
    if kind == _LOOK_UP:
        return take_entries(table, image.to(torch.int32) * first + (bits.data >> second))
    return image.masked_fill(bits.data < second, 255).masked_fill(bits.data < first, 0)


def dissolve(image: Batch, other: Batch, share: float, bits: Batch) -> Batch:
    """The image with a share of its pixels replaced by those of `other`; 16 random bits per pixel."""
    chosen = bits.data < round(share * 65536)
    return Batch(torch.where(chosen[..., None], other.data, image.data))


def black_and_white_pixels(image: Batch, amount: float, bits: Batch) -> Batch:
    """Set a fraction `amount` of the pixels to black or white, half each."""
    low, high = (round(share * 65536) for share in (amount / 2, amount))
    drawn = bits.data[..., None]
    return Batch(image.data.masked_fill(drawn < high, 255).masked_fill(drawn < low, 0))


def noise_within(
    image: Batch,
    forward: npt.NDArray[np.int32],
    steps: npt.NDArray[np.int32],
    common: Batch,
    own: Batch,
    back: npt.NDArray[np.uint8],
) -> Batch:
    """Noise added in another domain: back[forward[v] + steps[common] + steps[own]], all integers."""
    noise = take_entries(keep_on_device(steps), common.data)[..., None] + take_entries(
        keep_on_device(steps), own.data
    )
    place = take_entries(keep_on_device(forward), image.data.to(torch.int32)) + noise
    return Batch(take_entries(keep_on_device(back), place.clamp(0, len(back) - 1)))


def expose(
    image: Batch,
    gain: Any,
    veil: Any,
    *,
    light: npt.NDArray[np.float32],
    electrons: float,
    read: float,
    normal: npt.NDArray[np.float32],
    bits: Batch,
    back: npt.NDArray[np.uint8],
) -> Batch:
    """Take the picture again under other light, with the noise of a sensor."""
    full, spread = float(np.float32(electrons)), float(np.float32(read * read))
    lit = take_entries(keep_on_device(light), image.data.to(torch.int32)) * as_batch(gain).data
    caught = (lit + as_batch(veil).data) * full
    seen = caught + root(caught + spread) * take_entries(keep_on_device(normal), bits.data)
    place = divide(seen, full).clamp(0, 1) * float(len(back) - 1)
    return Batch(take_entries(keep_on_device(back), (place + 0.5).to(torch.int32)))
