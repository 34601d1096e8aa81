"""Scalar fields over the image plane: plasma clouds, falling snow."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.convolution import path_of, summed
from stormproof.imaging.gpu.draws import Uniforms, uniforms
from stormproof.imaging.gpu.tensors import divided, edges, resident, to_device
from stormproof.imaging.gpu.warps import positions
from stormproof.imaging.plans import TINY, Field, enlarged_size


class Level(NamedTuple):
    """A level of a cloud: how it draws its three fields of wobbles, and what they are multiplied by."""

    streams: tuple[int, int, int]
    scale: float
    low: float
    gain: float


def plasma(levels: Iterable[tuple[float, Iterable[Uniforms]]], size: tuple[int, int]) -> Batch:
    """The upper left part, of `size`, of a fractal cloud by diamond–square on a torus, from 0 to 1.

    It begins as one point, and doubles its sides with every level. New points are the mean of their four
    neighbours plus amplitude·wobble. A level is its amplitude and three n×n fields of wobbles: for square
    centres, for midpoints of rows, of columns.
    """
    plan: list[Level] = []
    for amplitude, wobbles in levels:
        centre, row, column = wobbles
        streams = centre.stream, row.stream, column.stream
        plan.append(Level(streams, centre.scale, centre.low, float(np.float32(amplitude))))
    return Batch(triton_kernels.run(triton_layers.plasma, _plasma, centre.keys, tuple(plan), size))


def _plasma(keys: Tensor, levels: tuple[Level, ...], size: tuple[int, int]) -> Tensor:
    cloud = torch.zeros((len(keys), 1, 1), device=keys.device)
    for level in levels:
        n = cloud.shape[1]
        centre, row, column = (
            uniforms(keys, stream, n * n, level.scale, level.low).reshape(-1, n, n)
            for stream in level.streams
        )
        cloud = _subdivided(cloud, centre, row, column, level.gain)
    low, high = cloud.amin((1, 2), keepdim=True), cloud.amax((1, 2), keepdim=True)
    return divided(cloud[:, : size[0], : size[1]] - low, (high - low).clamp(min=TINY))


def _subdivided(here: Tensor, centre: Tensor, row: Tensor, column: Tensor, gain: float) -> Tensor:
    below, right = here.roll(-1, 1), here.roll(-1, 2)
    middle = ((here + below) + (right + below.roll(-1, 2))) * 0.25 + centre * gain
    across = ((middle + middle.roll(1, 1)) + (here + right)) * 0.25 + row * gain
    down = ((middle + middle.roll(1, 2)) + (here + below)) * 0.25 + column * gain
    images, n, _ = middle.shape
    top = torch.stack((here, across), 3)
    bottom = torch.stack((down, middle), 3)
    return torch.stack((top, bottom), 2).reshape(images, 2 * n, 2 * n)


def drift(field: Batch, down: Any, across: Any) -> Batch:
    """The field moved by whole pixels; what leaves it on one side enters on the other."""
    moved = zip(field.data, down, across, strict=True)
    return Batch(torch.stack([one.roll((y, x), (0, 1)) for one, y, x in moved]))


def snowfall(
    seeds: Batch,
    flake: float,
    threshold: float,
    path: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    size: tuple[int, int],
) -> Batch:
    """Streaks of falling flakes, in whole grey levels; `size` is that of the result.

    Seeds, from 0 to 1, are enlarged `flake` times, corners on corners, set to 0 below `threshold`, and
    blurred along a `path` of weights and (dy, dx), one for each image.
    """
    data = seeds.data
    large = enlarged_size(seeds.shape, flake)
    reach = int(np.abs(path[1]).max(initial=0))
    tables = tuple(
        resident(table) for axis in (0, 1) for table in _stretched(large[axis], seeds.shape[axis], reach)
    )
    paths = to_device(path_of(path, len(data), large[1] + 2 * reach, reach))
    rest = tables, float(np.float32(threshold)), paths, size
    return Batch(triton_kernels.run(triton_layers.snowfall, _snowfall, data, *rest))


@lru_cache(maxsize=64)
def _stretched(large: int, small: int, reach: int) -> tuple[npt.NDArray[np.int32], Field]:
    """For each position of a stretched side with borders: the sample before, −1 if none, and the fraction."""
    index, fraction = positions(large, small, large)
    every = np.full(large, -1, np.int32), np.zeros(large, np.float32)
    every[0][: len(index)], every[1][: len(index)] = index, fraction
    inside = edges(large, reach, "nearest")
    return np.ascontiguousarray(every[0][inside]), np.ascontiguousarray(every[1][inside])


def _snowfall(
    seeds: Tensor, tables: tuple[Tensor, ...], threshold: float, paths: Tensor, size: tuple[int, int]
) -> Tensor:
    rows, down, columns, across = tables
    i, j = rows.clamp(min=0), columns.clamp(min=0)
    f, g = down[:, None], across
    upper, lower = seeds[:, i], seeds[:, (i + 1).clamp(max=seeds.shape[1] - 1)]
    line = upper + (lower - upper) * f
    left, right = line[..., j], line[..., (j + 1).clamp(max=seeds.shape[2] - 1)]
    layer = left + (right - left) * g
    held = (rows >= 0)[:, None] & (columns >= 0) & (layer >= threshold)
    layer = torch.where(held, layer, 0.0).clamp(0, 1) * 255
    return torch.round(summed(layer, paths, size, 0.0))


class BothWays(Batch):
    """A layer and the same rotated by 180°, added up when they are first read."""

    def __init__(self, layer: Tensor) -> None:
        self.layer = layer
        self._data = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.layer.shape[1:])

    @property
    def data(self) -> Tensor:
        if self._data is None:
            self._data = self.layer + self.layer.flip(1, 2)
        return self._data

    @data.setter
    def data(self, value: Tensor) -> None:
        self._data = value


def both_ways(layer: Batch) -> Batch:
    """A layer and the same rotated by 180°, added up."""
    return BothWays(layer.data)
