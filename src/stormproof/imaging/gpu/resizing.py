"""Images resized and padded into a network's input on a device, with the bytes of OpenCV and Pillow.

Both resize in two passes, across and down, with integer weights. Tables of pixels and weights for a side come
from the host; one kernel takes images of any sizes, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.tensors import device, to_device

RULES = ("nearest", "linear", "antialias")
_BITS = 22  # of Pillow's weights
_Taps = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


class ResizedSide(NamedTuple):
    """A side of an image of `source` pixels, resized to `inner`, `offset` pixels into a side of `whole`."""

    source: int
    inner: int
    offset: int
    whole: int


def fit_images(
    images: Sequence[Tensor], sides: Sequence[tuple[ResizedSide, ResizedSide]], rule: str, pad: int
) -> Tensor:
    """H×W×3 images of any sizes, resized and padded: N×H×W×3, planes in memory.

    `sides` are those of each image, down and across; `rule` is nearest or linear, as in OpenCV, or antialias:
    linear, but averaging where an image shrinks, as in Pillow.
    """
    most, turned, tables = _tables(tuple(sides), rule, images[0].device)
    where = [(image.data_ptr(), *image.stride(), turn) for image, turn in zip(images, turned, strict=True)]
    with device(images[0].device):
        places = to_device(np.array(where, np.int64))
    given = images, tables, turned, rule, pad
    if triton_kernels.usable(images[0]):
        name = "fit_images", rule, most
        if not triton_kernels.is_known(name):
            expected = _fit_in_torch(*given)
            made = partial(triton_kernels.fit_images, places, tables, rule == "linear", pad)
            triton_kernels.judge(name, "fit_images", lambda: (made(), expected))
            return expected
        if name in triton_kernels.trusted:
            return triton_kernels.fit_images(places, tables, rule == "linear", pad)
    return _fit_in_torch(*given)


@lru_cache(maxsize=64)  # a batch of images comes again under every condition
def _tables(
    sides: tuple[tuple[ResizedSide, ResizedSide], ...], rule: str, where: torch.device
) -> tuple[int, list[bool], list[Tensor]]:
    """The most taps of a pixel, whether each image shrinks down first, and the tables on the device."""
    taps = [_taps(side, rule) for pair in sides for side in pair]
    most = max(index.shape[1] for index, _ in taps)
    turned = [rule == "antialias" and shrinks_down_first(*pair) for pair in sides]
    with device(where):
        made = [to_device(_stacked([pair[k] for pair in taps[axis::2]], most)) for axis, k in _TABLES]
    return most, turned, made


_TABLES = ((0, 0), (0, 1), (1, 0), (1, 1))  # of rows and columns: the pixels, and their weights


def _fit_in_torch(
    images: Sequence[Tensor], tables: list[Tensor], turned: list[bool], rule: str, pad: int
) -> Tensor:
    rows, down, columns, across = tables
    made = []
    for n, image in enumerate(images):
        passes = [(columns[n], across[n], 1), (rows[n], down[n], 0)]
        values = image.int()
        if rule == "linear":
            lines = _weighted(values, *passes[0]) >> 4
            products = (lines[rows[n].clamp(min=0)] * down[n][..., None, None]) >> 16
            values = (products.sum(1) + 2) >> 2
        else:
            for one in reversed(passes) if turned[n] else passes:
                values = (_weighted(values, *one) + (1 << _BITS - 1)) >> _BITS
        inside = (rows[n, :, :1] >= 0) & (columns[n, :, 0] >= 0)
        made.append(torch.where(inside[..., None], values, pad).to(torch.uint8).permute(2, 0, 1))
    return torch.stack(made).permute(0, 2, 3, 1)


def _weighted(values: Tensor, index: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Sums of H×W×3 over taps along an axis."""
    shape = (1, -1, 1) if axis else (-1, 1, 1)
    terms = [
        values.index_select(axis, index[:, k].clamp(min=0)) * weights[:, k].reshape(shape)
        for k in range(index.shape[1])
    ]
    return torch.stack(terms).sum(0, dtype=torch.int32)


def _stacked(tables: Sequence[npt.NDArray[np.int32]], most: int) -> npt.NDArray[np.int32]:
    """Tables of several images: N × side × taps; taps that an image does not need weigh nothing."""
    whole = np.zeros((len(tables), len(tables[0]), most), np.int32)
    for place, own in zip(whole, tables, strict=True):
        place[:, : own.shape[1]] = own
    return whole


@lru_cache(maxsize=1024)
def _taps(side: ResizedSide, rule: str) -> _Taps:
    """The pixels that each pixel of a side is made of, −1 in the padding, and their weights: side × taps."""
    index, weights = {"nearest": _nearest, "linear": _linear, "antialias": _antialias}[rule](
        side.source, side.inner
    )
    around = ((side.offset, side.whole - side.inner - side.offset), (0, 0))
    return (
        np.pad(index, around, constant_values=-1).astype(np.int32),
        np.pad(weights, around).astype(np.int32),
    )


def _nearest(source: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    step = 1.0 / (count / source)
    index = np.minimum(np.floor(np.arange(count) * step), source - 1).astype(np.int64)
    return index[:, None], np.full((count, 1), 1 << _BITS)


def _linear(source: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """As OpenCV: positions in single precision, weights of 11 bits."""
    step = 1.0 / (count / source)
    position = ((np.arange(count) + 0.5) * step - 0.5).astype(np.float32)
    first = np.floor(position)
    share = position - first
    weights = np.rint(np.stack([np.float32(1) - share, share], axis=1) * np.float32(2048)).astype(np.int64)
    index = first.astype(np.int64)[:, None] + np.arange(2)
    return np.clip(index, 0, source - 1), weights


def _antialias(source: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """As Pillow's bilinear filter."""
    if source == count:
        return np.arange(count)[:, None], np.full((count, 1), 1 << _BITS)
    scale = source / count
    reach = max(scale, 1.0)
    centre = (np.arange(count) + 0.5) * scale
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + reach + 0.5).astype(np.int64), source)
    taps = np.arange(ceil(reach) * 2 + 1)
    inside = taps < (last - first)[:, None]
    distance = np.abs((taps + first[:, None] - centre[:, None] + 0.5) * (1.0 / reach))
    weights = np.where(inside & (distance < 1), 1.0 - distance, 0.0)
    total = np.zeros(count)
    for column in weights.T:  # in Pillow's order
        total += column
    weights = weights / total[:, None]
    return np.minimum(first[:, None] + taps, source - 1), (0.5 + weights * (1 << _BITS)).astype(np.int64)


def shrinks_down_first(down: ResizedSide, across: ResizedSide) -> bool:
    """Whether Pillow resizes a side's columns before its rows, which rounds differently.

    It does so where height shrinks by more than twice as many pixels as width, from some version on.
    """
    less = down.source - down.inner
    return less > 0 and 2 * (across.source - across.inner) < less and _newer_pillow()


@cache
def _newer_pillow() -> bool:
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    expected = np.asarray(PIL.Image.fromarray(image).resize((40, 10), PIL.Image.Resampling.BILINEAR))
    wider = PIL.Image.fromarray(image).resize((50, 10), PIL.Image.Resampling.BILINEAR)
    columns = PIL.Image.fromarray(expected).resize((50, 10), PIL.Image.Resampling.BILINEAR)
    return bool((np.asarray(wider) == np.asarray(columns)).all())
