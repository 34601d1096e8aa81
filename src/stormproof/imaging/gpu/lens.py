"""Lens effects: drops on the lens, and changes with the distance from a point."""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu.batch import Batch, OneByOne
from stormproof.imaging.gpu.tensors import divide, keep_on_device, root, take_entries
from stormproof.imaging.plans import Field


def refract(image: Batch, drops: npt.NDArray[np.float64], *, factor: int, rim: float, passed: float) -> Batch:
    """Draw elliptic drops (row, column, vertical and horizontal semi-axis in pixels) over the image.

    Same result as `imaging.cpu.lens.refract`: one image at a time, drop by drop, in doubles.
    """
    if len(image.data) != 1:
        raise OneByOne
    out = image.data[0].clone()
    small = _shrunk(out, factor)
    for drop in drops.tolist():
        _draw_drop(out, small, factor, drop, rim, passed)
    return Batch(out[None])


def _shrunk(image: Tensor, factor: int) -> Tensor:
    """Means of factor×factor blocks; the last ones may be smaller."""
    sums, counts = image.to(torch.int64), torch.ones(image.shape[:2], dtype=torch.int64, device=image.device)
    for axis in (0, 1):
        block = torch.arange(image.shape[axis], device=image.device) // factor
        shape = list(sums.shape)
        shape[axis] = -(-shape[axis] // factor)
        sums = torch.zeros(shape, dtype=torch.int64, device=image.device).index_add_(axis, block, sums)
        counts = torch.zeros_like(sums[..., 0]).index_add_(axis, block, counts)
    return sums.to(torch.float64) / counts.to(torch.float64)[..., None]


def _mirrored(place: Tensor, length: int) -> Tensor:
    """A coordinate mirrored into 0 … length − 1."""
    if length == 1:
        return torch.zeros_like(place)
    period = 2.0 * (length - 1)
    folded = torch.remainder(place.abs(), period)
    return torch.minimum(folded, period - folded)


def _draw_drop(out: Tensor, small: Tensor, factor: int, drop: list[float], rim: float, passed: float) -> None:
    height, width = out.shape[:2]
    row, column, tall, wide = drop
    top, bottom = max(ceil(row - tall), 0), min(int(row + tall), height - 1) + 1
    left, right = max(ceil(column - wide), 0), min(int(column + wide), width - 1) + 1
    if top >= bottom or left >= right:
        return
    y = torch.arange(top, bottom, device=out.device, dtype=torch.float64)[:, None]
    x = torch.arange(left, right, device=out.device, dtype=torch.float64)
    distance = torch.sqrt(divide(y - row, tall) ** 2 + divide(x - column, wide) ** 2)
    opacity = divide(1 - distance, rim).clamp(max=1)[..., None]
    # The neighbourhood, `factor` times as wide as the drop, rotated by 180°.
    source_y = divide(_mirrored(row - factor * (y - row), height) + 0.5, factor) - 0.5
    source_x = divide(_mirrored(column - factor * (x - column), width) + 0.5, factor) - 0.5
    seen = _sampled(small, source_y[:, 0], source_x) * passed
    window = out[top:bottom, left:right]
    was = window.to(torch.float64)
    now = ((was + opacity * (seen - was)) + 0.5).to(torch.uint8)
    window.copy_(torch.where((distance < 1)[..., None], now, window))


def _sampled(small: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Bilinear samples between block centres, edges repeated, on a grid of rows y and columns x."""
    y, x = y.clamp(0, small.shape[0] - 1), x.clamp(0, small.shape[1] - 1)
    i, j = y.to(torch.int64), x.to(torch.int64)
    k, m = (i + 1).clamp(max=small.shape[0] - 1), (j + 1).clamp(max=small.shape[1] - 1)
    u, v = (y - i)[:, None, None], (x - j)[:, None]
    i, k = i[:, None], k[:, None]
    upper = small[i, j] * (1 - v) + small[i, m] * v
    lower = small[k, j] * (1 - v) + small[k, m] * v
    return upper * (1 - u) + lower * u


def radial(image: Batch, profile: Field, *, centre: tuple[float, float], reach: float, grey: float) -> Batch:
    """g·image + (1 − g)·grey, rounded, where g depends on the distance from `centre` = (row, column)."""
    data = image.data
    row, column, per_pixel, colour = (
        float(number) for number in np.array([*centre, (len(profile) - 1) / reach, grey], np.float32)
    )
    height, width = image.shape[:2]
    dy = torch.arange(height, dtype=torch.float32, device=data.device) - row
    dx = torch.arange(width, dtype=torch.float32, device=data.device) - column
    place = root(dx * dx + (dy * dy)[:, None]) * per_pixel
    i = place.to(torch.int32).clamp(max=len(profile) - 2)
    table = keep_on_device(profile)
    low = take_entries(table, i)
    gain = low + (place - i) * (take_entries(table, i + 1) - low)
    level = ((data.to(torch.float32) - colour) * gain[..., None] + colour) + 0.5
    return Batch(level.clamp(0, 255).to(torch.uint8))
