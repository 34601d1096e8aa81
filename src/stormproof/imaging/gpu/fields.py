"""Scalar fields over the image plane: plasma clouds, falling snow, the relief of water drops on a lens."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from stormproof.core.forms import Size
from stormproof.imaging.gpu import ragged, triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, Lazy
from stormproof.imaging.gpu.convolution import path_of, summed
from stormproof.imaging.gpu.draws import Uniforms, uniforms
from stormproof.imaging.gpu.each import Each, is_mixed
from stormproof.imaging.gpu.ragged import Ragged
from stormproof.imaging.gpu.tensors import divide, edges, keep_on_device, to_device
from stormproof.imaging.gpu.warps import positions, side_plans
from stormproof.imaging.plans import EDGES, EMBOSS, FAR, TINY, Field, enlarged_size


class Level(NamedTuple):
    """A level of a cloud: how it draws its three fields of wobbles, and what they are multiplied by."""

    streams: tuple[int, int, int]
    scale: float
    low: float
    gain: float


def plasma(levels: Iterable[tuple[float, Iterable[Uniforms]]], side: Any, size: tuple[int, int]) -> Batch:
    """The upper left part, of `size`, of a fractal cloud by diamond–square on a torus, from 0 to 1."""
    sides = side.values if isinstance(side, Each) else np.array([side])
    counts = np.frexp(sides)[1] - 1  # as many levels as the cloud doubles its side
    plan: list[Level] = []
    for amplitude, wobbles in islice(levels, int(counts.max())):
        centre, row, column = wobbles
        streams = centre.stream, row.stream, column.stream
        plan.append(Level(streams, centre.scale, centre.low, float(np.float32(amplitude))))
    keys = centre.keys
    if not is_mixed((side, *size)):
        whole = int(size[0]), int(size[1])
        return Batch(triton_kernels.run(triton_layers.plasma, _plasma, keys, tuple(plan), whole))

    def alone(rows: ragged.Rows, own: Size) -> Tensor:
        return _plasma(keys[rows], tuple(plan[: counts[rows[0]]]), own)

    sizes, variant = ragged.sizes_in(size), tuple(np.unique(counts).tolist())
    kernel = triton_layers.plasma_ragged
    cloud = ragged.run(kernel, alone, sizes, keys, tuple(plan), counts, variant=variant)
    return Ragged(cloud, sizes)


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
    return divide(cloud[:, : size[0], : size[1]] - low, (high - low).clamp(min=TINY))


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
    reach = int(np.abs(path[1]).max(initial=0))
    if isinstance(seeds, Ragged):
        return _snowfall_ragged(seeds, flake, float(np.float32(threshold)), path, reach, size)
    data, large = seeds.data, enlarged_size(seeds.shape, flake)
    tables = tuple(
        keep_on_device(table)
        for axis in (0, 1)
        for table in _stretched(large[axis], seeds.shape[axis], reach)
    )
    paths = to_device(path_of(path, len(data), large[1] + 2 * reach, reach))
    rest = tables, float(np.float32(threshold)), paths, size
    return Batch(triton_kernels.run(triton_layers.snowfall, _snowfall, data, *rest))


def _snowfall_ragged(
    seeds: Ragged, flake: float, threshold: float, path: tuple[Any, Any], reach: int, size: tuple[int, int]
) -> Ragged:
    small, large = seeds.sizes.each, np.stack(enlarged_size(seeds.shape, flake), axis=-1)

    def alone(rows: ragged.Rows, own: Size) -> Tensor:
        first = rows[0]
        part = Batch(seeds.padded[rows, : small[first, 0], : small[first, 1]])
        return snowfall(part, flake, threshold, (path[0][rows], path[1][rows]), own).data

    plans = to_device(np.stack([side_plans(0, small[:, i], large[:, i], large[:, i]) for i in (0, 1)]))
    whole = int(large[:, 0].max()), int(large[:, 1].max())
    paths = to_device(path_of(path, len(small), whole[1] + 2 * reach, reach))
    rest = seeds.sizes, plans, whole, reach, threshold, paths
    sizes = ragged.sizes_in(size)
    return Ragged(ragged.run(triton_layers.snowfall_ragged, alone, sizes, seeds.padded, *rest), sizes)


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


class BothWays(Lazy):
    """A layer and the same rotated by 180°, added up."""

    def __init__(self, layer: Tensor, shape: tuple[Any, ...] = ()) -> None:
        super().__init__(shape or tuple(layer.shape[1:]))
        self.layer = layer

    def make(self) -> Tensor:
        return self.layer + self.layer.flip(1, 2)


def both_ways(layer: Batch) -> Batch:
    """A layer and the same rotated by 180°, added up."""
    return BothWays(layer.padded, layer.shape) if isinstance(layer, Ragged) else BothWays(layer.data)


_TAN = 13573  # tan 22.5° in 15 fractional bits
_ROUNDS = 4  # of growth between two checks whether an edge still grows; a check waits for the device


def relief(layer: Batch) -> Batch:
    """Light on drops: the distance from their edges, equalised and embossed, as a map of 0..255.

    The integers are OpenCV's, so that values agree with the CPU set's.
    """
    peaks = triton_kernels.run(triton_layers.peaks, _peaks, layer.data, *EDGES)
    edge = triton_kernels.run(triton_layers.linked, _linked, peaks)
    near = triton_kernels.run(triton_layers.near, _near, edge, _chamfer())
    counts = triton_kernels.run(triton_layers.counts, _counts, near, FAR + 1)
    return Batch(triton_kernels.run(triton_layers.embossed, _embossed, near, _equalising(counts)))


def _around(field: Tensor, rule: str) -> dict[tuple[int, int], Tensor]:
    """N × H × W shifted by −1, 0 and 1 rows and columns: [dy, dx] holds each pixel's neighbour there."""
    height, width = field.shape[1:]
    rows, columns = (keep_on_device(edges(side, 1, rule)) for side in (height, width))
    padded = field.index_select(1, rows).index_select(2, columns)
    return _shifted(padded, height, width)


def _shifted(padded: Tensor, height: int, width: int) -> dict[tuple[int, int], Tensor]:
    return {
        (y, x): padded[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]
        for y in (-1, 0, 1)
        for x in (-1, 0, 1)
    }


def _peaks(layer: Tensor, low: int, high: int) -> Tensor:
    """Canny's candidates: 2 where the gradient peaks above `high`, 1 where it does above `low`, else 0.

    The gradient is Sobel's, |dx| + |dy|, and zero outside the frame; it peaks if it exceeds its neighbours
    along the nearest of four directions.
    """
    p = _around(layer.to(torch.int32), "nearest")
    dx = (p[-1, 1] - p[-1, -1]) + 2 * (p[0, 1] - p[0, -1]) + (p[1, 1] - p[1, -1])
    dy = (p[1, -1] - p[-1, -1]) + 2 * (p[1, 0] - p[-1, 0]) + (p[1, 1] - p[-1, 1])
    across, down = dx.abs(), dy.abs()
    size = across + down
    m = _shifted(pad(size, (1, 1, 1, 1)), *layer.shape[1:])
    flat = (down << 15) < across * _TAN
    steep = (down << 15) > across * _TAN + (across << 16)
    falling = (dx ^ dy) < 0
    sloped_before = torch.where(falling, m[-1, 1], m[-1, -1])
    sloped_after = torch.where(falling, m[1, -1], m[1, 1]) + 1  # along slopes the second must be exceeded too
    before = torch.where(flat, m[0, -1], torch.where(steep, m[-1, 0], sloped_before))
    after = torch.where(flat, m[0, 1], torch.where(steep, m[1, 0], sloped_after))
    peak = (size > low) & (size > before) & (size >= after)
    return peak.to(torch.uint8) + (peak & (size > high))


def _linked(peaks: Tensor) -> Tensor:
    """Edges, 1 or 0: the strong candidates, and weak ones that neighbours connect to a strong one."""
    candidate, edge = peaks > 0, peaks > 1
    while True:
        before = edge
        for _ in range(_ROUNDS):
            wide = pad(edge, (1, 1, 1, 1))
            tall = wide[:, :-2] | wide[:, 1:-1] | wide[:, 2:]
            edge = candidate & (tall[..., :-2] | tall[..., 1:-1] | tall[..., 2:])
        if torch.equal(edge, before):
            return edge.to(torch.uint8)


@lru_cache(maxsize=1)
def _chamfer() -> npt.NDArray[np.int32]:
    """[dy, dx]: OpenCV's 5×5 chamfer distance in 16 fractional bits, at most `FAR`; FAR × (FAR + 1).

    Its steps are 1 along an axis, 1.4 along a diagonal, 2.1969 for a knight's move. A shortest path takes two
    kinds of steps at most: the knight's, and whichever of the others its direction is nearer to.
    """
    straight, diagonal, knight = (round(step * 65536) for step in (1, 1.4, 2.1969))
    y, x = np.mgrid[:FAR, : FAR + 1]
    long, short = np.maximum(y, x), np.minimum(y, x)
    flat = short * knight + (long - 2 * short) * straight
    sloped = (long - short) * knight + (2 * short - long) * diagonal
    steps = np.where(2 * short <= long, flat, sloped)
    return np.asarray(np.minimum(steps, FAR << 16), np.int32)


def _near(edge: Tensor, chamfer: npt.NDArray[np.int32]) -> Tensor:
    """The mean over 3×3 pixels of the distance to the nearest edge, at most `FAR`, truncated; uint8.

    In a row, only the nearest edge matters, and rows `FAR` away are too far: so the nearest edge of every row
    is found first, and then the nearest of 2·FAR − 1 rows. The CPU's two passes over the image find the same
    shortest paths, since steps of a path may be taken in any order.
    """
    height, width = edge.shape[1:]
    x = torch.arange(width, device=edge.device, dtype=torch.int32)
    held = edge > 0
    before = torch.where(held, x, -FAR).cummax(2).values
    after = torch.where(held, x, width + FAR).flip(2).cummin(2).values.flip(2)
    beside = torch.minimum(x - before, after - x).clamp(max=FAR)
    rows = pad(beside, (0, 0, FAR, FAR), value=FAR)
    distance = torch.full_like(beside, FAR << 16)
    for dy in range(1 - FAR, FAR):
        row = rows[:, FAR + dy : FAR + dy + height]
        distance = torch.minimum(distance, keep_on_device(chamfer)[abs(dy)][row])
    # With 16 fractional bits, rounding in OpenCV's floats never reaches the next whole number.
    return torch.div(_sum_of_nine(distance), 9 << 16, rounding_mode="floor").to(torch.uint8)


def _sum_of_nine(field: Tensor) -> Tensor:
    p = _around(field, "mirror")
    first, *others = p.values()
    total = first.clone()
    for other in others:
        total += other
    return total


def _counts(near: Tensor, levels: int) -> Tensor:
    """How many pixels of each image have each of the lowest levels; N × levels, int32."""
    return torch.stack([(near == level).sum((1, 2), dtype=torch.int32) for level in range(levels)], 1)


def _equalising(counts: Tensor) -> Tensor:
    """The grey level that each level becomes, so that all are about equally frequent; N × levels, int32.

    The lowest level present becomes 0. An image of one level stays unchanged.
    """
    total = counts.sum(1, keepdim=True)
    lowest = (counts > 0).to(torch.int32).argmax(1, keepdim=True)
    least = counts.gather(1, lowest)
    share = divide(torch.full_like(total, 255, dtype=torch.float32), (total - least).to(torch.float32))
    above = (counts.cumsum(1) - least).to(torch.float32)
    level = torch.round(above * share).clamp(0, 255).to(torch.int32)
    return torch.where(least == total, lowest.to(torch.int32), level)


def _embossed(near: Tensor, levels: Tensor) -> Tensor:
    """Levels replaced, embossed, and averaged over 3×3 pixels, rounded after each; N × H × W, float32."""
    grey = levels.gather(1, near.flatten(1).to(torch.int64)).reshape(near.shape)
    p = _around(grey, "mirror")
    light = sum(weight * p[y - 1, x - 1] for y, row in enumerate(EMBOSS) for x, weight in enumerate(row))
    total = _sum_of_nine(torch.as_tensor(light).clamp(0, 255))
    return torch.div(total + 4, 9, rounding_mode="floor").to(torch.float32)
