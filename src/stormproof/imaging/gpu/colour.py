"""Point operations: look-up tables, layers over the image, changes of HSV and YCrCb."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, as_batch
from stormproof.imaging.gpu.fields import BothWays
from stormproof.imaging.gpu.ragged import Ragged, by_value
from stormproof.imaging.gpu.tensors import current_device, divide, keep_on_device, take_entries
from stormproof.imaging.gpu.warps import EnlargedParts, Parts
from stormproof.imaging.plans import GUARD, LUMA

_GUARD = float(GUARD)


def channel_means(image: Batch) -> Batch:
    """Mean of each channel, in grey levels."""
    data = image.without_padding() if isinstance(image, Ragged) else image.data
    sums = triton_kernels.run(triton_layers.sums, _sums, data).to(torch.float64)
    if isinstance(image, Ragged):
        return Batch(divide(sums, image.sizes.table.prod(1, keepdim=True).to(torch.float64)))
    return Batch(divide(sums, image.shape[0] * image.shape[1]))


def _sums(image: Tensor) -> Tensor:
    return image.sum((1, 2), dtype=torch.int64)


@by_value
def look_up(image: Batch, tables: Any) -> Batch:
    """Replace v in channel c by tables[c, v]; one set of tables for all images, or one for each."""
    all_tables = tables.data if isinstance(tables, Batch) else keep_on_device(tables)[None]
    return Batch(triton_kernels.run(triton_layers.looked_up, _looked_up, image.data, all_tables))


def _looked_up(image: Tensor, tables: Tensor) -> Tensor:
    start = torch.arange(tables.shape[0] * tables.shape[1], device=image.device, dtype=torch.int32) * 256
    return take_entries(tables.reshape(-1), image + start.reshape(len(tables), 1, 1, -1))


def _level(value: Tensor) -> Tensor:
    """A float as a grey level: clipped, then truncated."""
    return (value + _GUARD).clamp(0, 255).to(torch.uint8)


def _number(value: Any, images: int) -> Tensor:
    """One 32-bit float per image, from a number for all or a batch of numbers."""
    if isinstance(value, Batch):
        return value.data.to(torch.float32).reshape(-1).expand(images)
    return torch.full((images,), float(np.float32(value)), device=current_device())


@by_value
def add_layer(
    image: Batch, layer: Any, *, gain: Any, scale: Any, offset: Any, colour: tuple[float, ...]
) -> Batch:
    """gain·image + (scale·layer + offset)·colour, saturated and truncated; `layer` is H×W, colour 0..255."""
    numbers = torch.stack([_number(value, len(image.data)) for value in (gain, scale, offset)], 1)
    rest = as_batch(layer).data, numbers, keep_on_device(_floats(colour)), _GUARD
    return Batch(triton_kernels.run(triton_layers.layered, _layered, image.data, *rest))


@lru_cache(maxsize=64)
def _floats(numbers: tuple[float, ...]) -> npt.NDArray[np.float32]:
    """Always the same array, so that the device keeps it."""
    return np.array(numbers, np.float32)


def _layered(image: Tensor, layer: Tensor, numbers: Tensor, colour: Tensor, guard: float) -> Tensor:
    gain, scale, offset = numbers[:, :, None, None, None].unbind(1)
    light = layer[..., None] * scale + offset
    return ((image * gain + light * colour) + guard).clamp(0, 255).to(torch.uint8)


@by_value
def add_pattern(image: Batch, pattern: Any, *, gain: float, scale: float) -> Batch:
    """gain·image + scale·pattern, saturated and truncated; `pattern` has the image's shape."""
    light = as_batch(pattern).data * float(np.float32(scale))
    return Batch(_level(image.data * float(np.float32(gain)) + light))


@by_value
def cover(image: Batch, layer: Any, colour: tuple[float, ...]) -> Batch:
    """Paint `colour` (0..255) over the image with opacity `layer` (H×W, 0..1)."""
    m = as_batch(layer).data[..., None]
    return Batch(_level(image.data * (1 - m) + m * keep_on_device(_floats(colour))))


def mix(image: Batch, a: float, other: Batch, b: float) -> Batch:
    """a·image + b·other, saturated and truncated."""
    if isinstance(image, Ragged) and isinstance(other, EnlargedParts):
        return _mixed_ragged(image, other, a, b)
    # The kernel reads the parts where they lie, which pays only if nobody has read them before.
    if isinstance(other, Parts) and other.shape == image.shape and other.images == len(image.data):
        return Batch(triton_kernels.run(triton_layers.mixed, _mixed, image.data, other, a, b))
    return Batch(_mixed(image.data, other, a, b))


def _mixed_ragged(image: Ragged, parts: EnlargedParts, a: float, b: float) -> Ragged:
    def alone(rows: ragged.Rows, size: Size) -> Tensor:
        return _mixed(image.part(rows, size).data, parts.part(rows, size), a, b)

    return image.like(ragged.run(triton_layers.mixed_ragged, alone, image.sizes, image.padded, parts, a, b))


def _mixed(image: Tensor, other: Batch, a: float, b: float) -> Tensor:
    # Doubles and no guard: weights like 0.7 make many exact ties, which must truncate as in the reference.
    total = image.to(torch.float64) * a + other.data.to(torch.float64) * b
    return total.clamp(max=255).to(torch.uint8)


def whiten(image: Batch, layer: Batch, keep: float) -> Batch:
    """Pull each pixel a share 1 − keep towards 1.5·grey + ½ (never darker), then add `layer` (0..255)."""
    kept = np.float32(keep)
    luma = tuple(float(np.float32(share)) for share in LUMA)
    rest = layer, float(kept), float(np.float32(1) - kept), luma, _GUARD
    if isinstance(layer, BothWays) and isinstance(image, Ragged):
        return _whitened_ragged(image, layer, *rest[1:])
    if isinstance(layer, BothWays):
        return Batch(triton_kernels.run(triton_layers.whitened, _whitened, image.data, *rest))
    return Batch(_whitened(image.data, *rest))


def _whitened_ragged(image: Ragged, layer: BothWays, *rest: Any) -> Ragged:
    def alone(rows: ragged.Rows, size: Size) -> Tensor:
        own = BothWays(layer.layer[rows, : size[0], : size[1]])
        return _whitened(image.part(rows, size).data, own, *rest)

    return image.like(ragged.run(triton_layers.whitened, alone, image.sizes, image.padded, layer, *rest))


def _whitened(
    image: Tensor, layer: Batch, keep: float, lose: float, luma: tuple[float, ...], guard: float
) -> Tensor:
    grey = value = image.to(torch.float32)
    if image.shape[3] == 3:
        red, green, blue = luma
        grey = (value[..., :1] * red + value[..., 1:2] * green) + value[..., 2:] * blue
    bright = grey * 1.5 + 127.5
    whiter = value * keep + torch.maximum(value, bright) * lose
    return ((whiter + layer.data[..., None]) + guard).clamp(0, 255).to(torch.uint8)


@by_value
def by_brightest(image: Batch, table: Any) -> Batch:
    """Replace v by table[V, v], where V is the pixel's brightest channel, as any change of HSV value does."""
    run = triton_kernels.run(triton_layers.by_brightest, _by_brightest, image.data, keep_on_device(table))
    return Batch(run)


def _by_brightest(image: Tensor, table: Tensor) -> Tensor:
    top = image.amax(3, keepdim=True).to(torch.int32)
    return take_entries(table.reshape(-1), top * 256 + image)


@by_value
def resaturate(image: Batch, spread: Any, tint: float) -> Batch:
    """Scale each channel's distance from the brightest by spread[max, min]; greys get G = B = V·tint."""
    values = image.data.to(torch.int32)
    top, low = values.amax(3, keepdim=True), values.amin(3, keepdim=True)
    share = take_entries(keep_on_device(spread).reshape(-1), top * 256 + low)
    v = top.to(torch.float32)
    coloured = ((v + _GUARD) - share * (top - values)).to(torch.uint8)
    shade = (v * float(np.float32(tint)) + _GUARD).to(torch.uint8)
    tinted = torch.cat((top.to(torch.uint8), shade, shade), 3)
    return Batch(torch.where(top == low, tinted, coloured))


@by_value
def grey_of(image: Batch) -> Batch:
    """Luma of an RGB image as H×W×1, in OpenCV's 15-bit integers; a grey image is returned unchanged."""
    if image.shape[2] == 1:
        return image
    values = image.data.to(torch.int32)
    luma = values[..., :1] * 9798 + values[..., 1:2] * 19235 + values[..., 2:] * 3735
    return Batch(((luma + (1 << 14)) >> 15).to(torch.uint8))


@by_value
def transform_colours(image: Batch, matrix: npt.NDArray[np.float64]) -> Batch:
    """matrix · (R, G, B, 1) for every pixel, rounded and saturated; `matrix` is 3×4, grey levels."""
    r, g, b = image.data.to(torch.int32).unbind(3)
    # OpenCV multiplies 8-bit colours in integers of 10 fractional bits.
    shares = np.rint(matrix.astype(np.float32)[:, :3] * 1024).astype(int).tolist()
    offsets = np.rint((matrix.astype(np.float32)[:, 3] + np.float32(0.5)) * 1024).astype(int).tolist()
    rows = [(r * p + g * q + b * s + t) >> 10 for (p, q, s), t in zip(shares, offsets, strict=True)]
    return Batch(torch.stack(rows, 3).clamp(0, 255).to(torch.uint8))


_YUV_HALF = 1 << 13  # OpenCV computes ITU-R BT.601 in 14 fractional bits


def _yuv_rounded(value: Tensor) -> Tensor:
    return (value + _YUV_HALF) >> 14


@by_value
def to_yuv(image: Any) -> Batch:
    """RGB as Y, Cr, Cb of ITU-R BT.601 over the full 8 bits, chroma centred on 128; grey stays Y."""
    batch = as_batch(image)
    if batch.shape[2] == 1:
        return batch.copy()
    r, g, b = batch.data.to(torch.int32).unbind(3)
    y = _yuv_rounded(r * 4899 + g * 9617 + b * 1868)
    cr = _yuv_rounded((r - y) * 11682 + (128 << 14))
    cb = _yuv_rounded((b - y) * 9241 + (128 << 14))
    return Batch(torch.stack((y, cr, cb), 3).clamp(0, 255).to(torch.uint8))


@by_value
def from_yuv(image: Any) -> Batch:
    """The inverse of `to_yuv`."""
    batch = as_batch(image)
    if batch.shape[2] == 1:
        return batch.copy()
    y, cr, cb = batch.data.to(torch.int32).unbind(3)
    cr, cb = cr - 128, cb - 128
    r = y + _yuv_rounded(cr * 22987)
    g = y + _yuv_rounded(cb * -5636 + cr * -11698)
    b = y + _yuv_rounded(cb * 29049)
    return Batch(torch.stack((r, g, b), 3).clamp(0, 255).to(torch.uint8))
