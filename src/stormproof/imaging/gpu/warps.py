"""Resampling: zooms, displacement fields, scattering of pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import resident
from stormproof.imaging.plans import GUARD, corner_positions, zoom_crops

_GUARD = float(GUARD)


@lru_cache(maxsize=256)
def _positions(count: int, source: int, span: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Where corner-aligned samples lie that are inside: the sample before, and how far beyond it."""
    index, fraction = np.zeros(count, np.int32), np.zeros(count, np.float32)
    inside = corner_positions(count, source, span, index, fraction)
    return index[:inside], fraction[:inside]


def zoom_mean(image: Batch, factors: npt.NDArray[np.float64]) -> Batch:
    """Mean of the image and its central enlargements by each factor, truncated.

    An enlargement by z is the centre crop of ⌈side/z⌉ stretched to round(crop·z), cut top left.
    """
    return Batch(triton_kernels.run(_zoomed, _zoomed_in_torch, image.data, factors))


def _zoomed(data: Tensor, factors: npt.NDArray[np.float64]) -> Tensor:
    plan = _zoom_plan((data.shape[1], data.shape[2]), factors.tobytes())
    return triton_kernels.zoom(data, *(resident(table) for table in plan), _GUARD)


def _zoomed_in_torch(data: Tensor, factors: npt.NDArray[np.float64]) -> Tensor:
    height, width = data.shape[1:3]
    crops, spans = zoom_crops((height, width), factors)
    total = data.to(torch.float32)
    for crop, span in zip(crops.tolist(), spans.tolist(), strict=True):
        down, across = _positions(height, crop[0], span[0]), _positions(width, crop[1], span[1])
        top, left = (height - crop[0]) // 2, (width - crop[1]) // 2
        strip = data[:, top:, left : left + crop[1]]  # the row below a crop's last is the image's
        total[:, : len(down[0]), : len(across[0])] += _stretched(strip, down, across)
    share = float(np.float32(1) / np.float32(len(crops) + 1))
    return (total * share + _GUARD).clamp(max=255).to(torch.uint8)


def _stretched(source: Tensor, down: tuple[Any, Any], across: tuple[Any, Any]) -> Tensor:
    """Bilinear: rows are blended first, then sampled along the blend."""
    i, j = resident(down[0]), resident(across[0])
    f, g = resident(down[1])[:, None, None], resident(across[1])[:, None]
    upper = source.index_select(1, i).to(torch.float32)
    lower = source.index_select(1, (i + 1).clamp(max=source.shape[1] - 1)).to(torch.float32)
    line = upper + (lower - upper) * f
    left = line.index_select(2, j)
    right = line.index_select(2, (j + 1).clamp(max=source.shape[2] - 1))
    return left + (right - left) * g


@lru_cache(maxsize=64)
def _zoom_plan(size: tuple[int, int], factors: bytes) -> tuple[Any, ...]:
    """By layer, for rows and columns: the sample before (−1 outside), how far beyond, and the last one."""
    crops, spans = zoom_crops(size, np.frombuffer(factors))
    tables = []
    for axis in (0, 1):
        index = np.full((len(crops), size[axis]), -1, np.int32)
        fraction = np.zeros((len(crops), size[axis]), np.float32)
        starts = (size[axis] - crops[:, axis]) // 2
        for k, (crop, span) in enumerate(zip(crops[:, axis].tolist(), spans[:, axis].tolist(), strict=True)):
            place, part = _positions(size[axis], crop, span)
            index[k, : len(place)], fraction[k, : len(part)] = place + starts[k], part
        last = np.full(len(crops), size[0] - 1) if axis == 0 else starts + crops[:, 1] - 1
        tables += [index, fraction, last.astype(np.int32)]
    return tuple(tables)


def enlarge(field: Batch, factor: float) -> Batch:
    """Stretch a field by `factor`, corners on corners, linearly between samples."""
    size = [round(side * factor) for side in field.shape]
    down, across = (_positions(new, old, new) for new, old in zip(size, field.shape, strict=True))
    out = field.data.new_zeros((len(field.data), *size))
    out[:, : len(down[0]), : len(across[0])] = _stretched(field.data[..., None], down, across)[..., 0]
    return Batch(out)


def _folded(place: Tensor, length: int) -> Tensor:
    """Mirror an integer position into 0..length−1, the edge counted twice."""
    place = place % (2 * length)
    return torch.minimum(place, 2 * length - 1 - place)


def displace(image: Batch, dy: Batch, dx: Batch) -> Batch:
    """Read each pixel from (y + dy, x + dx), bilinear, mirrored at the borders, truncated."""
    return Batch(
        triton_kernels.run(triton_kernels.displace, _displaced, image.data, dy.data, dx.data, _GUARD)
    )


def _displaced(data: Tensor, dy: Tensor, dx: Tensor, guard: float) -> Tensor:
    height, width, channels = data.shape[1:]
    rows, columns = (torch.arange(side, device=data.device, dtype=torch.float32) for side in (height, width))
    v, u = dy + rows[:, None], dx + columns
    i, j = torch.floor(v), torch.floor(u)
    f, g = (v - i)[..., None], (u - j)[..., None]
    i, j = i.to(torch.int64), j.to(torch.int64)
    i, j, below, right = _folded(i, height), _folded(j, width), _folded(i + 1, height), _folded(j + 1, width)
    flat = data.reshape(len(data), height * width, channels)

    def read(y: Tensor, x: Tensor) -> Tensor:
        place = (y * width + x).reshape(len(y), -1, 1).expand(-1, -1, channels)
        return flat.gather(1, place).reshape(data.shape).to(torch.float32)

    a, c = read(i, j), read(below, j)
    upper = a + (read(i, right) - a) * g
    lower = c + (read(below, right) - c) * g
    return ((upper + (lower - upper) * f) + guard).to(torch.uint8)


def scatter(image: Batch, shifts: Batch, reach: int) -> Batch:
    """Overwrite pixels in turn, from the bottom right, by the one (dx, dy) = shifts[n, i, j] away.

    Row i of `shifts` belongs to image row H − reach − i, column j likewise; n counts passes. A pixel that
    takes its value from one already overwritten takes what that one took: so each pixel's origin is found by
    following such links, doubling the step each time, and all pixels move at once.
    """
    data = image.data
    height, width, channels = image.shape
    passes, rows, columns = shifts.shape[:3]
    flat = data.reshape(len(data), height * width, channels)
    top, left = height - reach - rows + 1, width - reach - columns + 1
    for n in range(passes if rows and columns else 0):
        step = shifts.data[:, n].contiguous()
        origin = triton_kernels.run(triton_kernels.walk, _origins, step, top, left, height, width)
        flat = flat.gather(1, origin[..., None].expand(-1, -1, channels))
    return Batch(flat.reshape(data.shape).clone())


def _origins(shifts: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Each pixel's origin in one pass, as a flat index; N × H·W."""
    images, rows, columns, _ = shifts.shape
    pixels = height * width
    own = torch.arange(pixels, device=shifts.device).reshape(1, height, width)
    inner = own[:, top : top + rows, left : left + columns]
    step = shifts.flip(1, 2).to(torch.int64)  # now in the image's order
    source = inner + step[..., 1] * width + step[..., 0]
    y, x = source // width, source % width
    written = (y >= top) & (y < top + rows) & (x >= left) & (x < left + columns)
    link = (own + pixels).repeat(images, 1, 1)  # from `pixels` on: an origin, as it was before this pass
    later = written & (source > inner)
    link[:, top : top + rows, left : left + columns] = torch.where(later, source, source + pixels)
    link = link.reshape(images, pixels)
    while bool((link < pixels).any()):
        link = torch.where(link < pixels, link.gather(1, link.clamp(max=pixels - 1)), link)
    return link - pixels
