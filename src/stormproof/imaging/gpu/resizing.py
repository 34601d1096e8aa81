"""Images resized and padded into a network's input on a device, with the bytes of OpenCV and Pillow.

Both resize in two passes, across and down, with integer weights. Tables of pixels and weights for a side come
from the host; one kernel takes images of any sizes, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial, reduce
from math import ceil, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.tensors import device, to_device

_BITS = 22  # of Pillow's weights
_LINEAR = ("linear", "enlarge")  # with OpenCV's weights of 11 bits
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

    `sides` are those of each image, down and across; `rule` is nearest, linear or area, as in OpenCV, or
    antialias: linear, but averaging where an image shrinks, as in Pillow.
    """
    if rule == "area":
        return torch.stack([_fit_by_area(*one, pad) for one in zip(images, sides, strict=True)])
    most, turned, tables = _tables(tuple(sides), rule, images[0].device)
    where = [(image.data_ptr(), *image.stride(), turn) for image, turn in zip(images, turned, strict=True)]
    with device(images[0].device):
        places = to_device(np.array(where, np.int64))
    twin = partial(_fit_in_torch, images, tables, turned, rule, pad)
    if not triton_kernels.usable(images[0]):
        return twin()
    kernel = partial(triton_kernels.fit_images, places, tables, rule in _LINEAR, pad)
    return triton_kernels.choose(("fit_images", rule, most), "fit_images", kernel, twin)


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
        if rule in _LINEAR:
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
    index, weights = _TAPS[rule](side.source, side.inner)
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
    return _two_taps(first.astype(np.int64), position - first, source)


def _enlarge(source: int, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """As OpenCV's area, where a side grows: a pixel is mixed of two only if it covers both."""
    ratio = count / source
    place = np.arange(count)
    first = np.floor(place * (1.0 / ratio)).astype(np.int64)
    share = (place + 1 - (first + 1) * ratio).astype(np.float32)
    share = np.where(share <= 0, np.float32(0), share - np.floor(share))
    return _two_taps(first, np.where(first < source - 1, share, np.float32(0)), source)


def _two_taps(
    first: npt.NDArray[np.int64], share: npt.NDArray[np.float32], source: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    weights = np.rint(np.stack([np.float32(1) - share, share], axis=1) * np.float32(2048)).astype(np.int64)
    return np.clip(first[:, None] + np.arange(2), 0, source - 1), weights


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


_TAPS = {"nearest": _nearest, "linear": _linear, "enlarge": _enlarge, "antialias": _antialias}


def _fit_by_area(image: Tensor, sides: tuple[ResizedSide, ResizedSide], pad: int) -> Tensor:
    """As OpenCV's area: where neither side grows, a pixel is the mean of those that it covers."""
    if any(side.inner > side.source for side in sides):
        return fit_images([image], [sides], "enlarge", pad)[0]
    down, across = sides
    factors = [side.source // side.inner for side in sides]
    whole = all(side.source % side.inner == 0 for side in sides)
    total = image.float()
    for axis, side, shape in ((1, across, (1, -1, 1)), (0, down, (-1, 1, 1))):
        index, shares = _covered(side.source, side.inner, image.device)
        terms = (
            total.index_select(axis, own) * (share > 0 if whole else share).reshape(shape)
            for own, share in zip(index, shares, strict=True)
        )
        total = reduce(torch.add, terms)  # one operation after the other: the order decides about rounding
    if whole:  # sums of whole pixels, which are divided once
        halves, part = factors == [2, 2], float(np.float32(1 / prod(factors)))
        total = ((total + 2) / 4).floor() if halves else total * part
    out = image.new_full((down.whole, across.whole, 3), pad)
    inner = out[down.offset : down.offset + down.inner, across.offset : across.offset + across.inner]
    inner[:] = total.round().to(torch.uint8)
    return out


@lru_cache(maxsize=1024)
def _covered(source: int, count: int, where: torch.device) -> tuple[Tensor, Tensor]:
    """The pixels that each pixel of a shrunk side covers and their shares of it, on a device: taps × side."""
    step = 1.0 / (count / source)
    start = np.arange(count) * step
    end = start + step
    cell = np.minimum(step, source - start)
    last = np.minimum(np.floor(end), source - 1)
    first = np.minimum(np.ceil(start), last)
    place = first - 1 + np.arange(int((last - first).max()) + 2)[:, None]
    share = np.where(place < last, 1.0, np.minimum(np.minimum(end - last, 1.0), cell))
    share = np.where(place < first, first - start, share)
    share = np.where((share > 1e-3) & (place <= last), share / cell, 0)  # as OpenCV leaves out slivers
    with device(where):
        return to_device(np.clip(place, 0, source - 1), np.int64), to_device(share, np.float32)


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
