"""Images moved by a displacement field whose sources may lie outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stormproof.imaging.gpu.batch import Batch, as_batch
from stormproof.imaging.gpu.tensors import current_device, root

_WHOLE = 1 << 11  # the four weights of a bilinear sample add up to this: within a quarter of a grey level


def move(image: Batch, dy: Any, dx: Any) -> Batch:
    """Read each pixel from (y + dy, x + dx), bilinear, rounded; black where that lies outside the frame."""
    data = image.data
    height, width, channels = image.shape
    rows, columns = (torch.arange(side, device=data.device, dtype=torch.float32) for side in (height, width))
    v, u = as_batch(dy).data + rows[:, None], as_batch(dx).data + columns
    inside = (v >= -0.5) & (v < height - 0.5) & (u >= -0.5) & (u < width - 0.5)
    # Between the outermost pixel centres and the frame, the edge is repeated.
    v, u = v.clamp(0, height - 1), u.clamp(0, width - 1)
    i, j = v.to(torch.int64), u.to(torch.int64)
    f, g = v - i, u - j
    both = ((f * g) * _WHOLE).to(torch.int32)  # rounded down, so that no weight can be negative
    down, across = (f * _WHOLE).to(torch.int32), (g * _WHOLE).to(torch.int32)
    below, right = (i + 1).clamp(max=height - 1), (j + 1).clamp(max=width - 1)
    flat = data.reshape(len(data), height * width, channels)

    def read(y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        place = (y * width + x).reshape(len(y), -1, 1).expand(len(flat), -1, channels)
        values = flat.gather(1, place).reshape(data.shape).to(torch.int32)
        return values * weight[..., None]

    total = read(i, j, _WHOLE - down - across + both) + read(i, right, across - both)
    total = total + (read(below, j, down - both) + read(below, right, both))
    level = (total + _WHOLE // 2) >> 11
    return Batch((level * inside[..., None]).to(torch.uint8))


def radial_field(
    size: tuple[int, int], delta: float, shares: tuple[float, float, float]
) -> tuple[Batch, Batch]:
    """(dy, dx) that reads from r + δ·(a·r⁴ + b·r³ + c·r²), where r is 1 in the frame's corners."""
    height, width = size
    quartic, cubic, quadratic = (float(np.float32(delta * share)) for share in shares)
    y, x = (
        torch.arange(side, device=current_device(), dtype=torch.float32) - float(np.float32((side - 1) / 2))
        for side in size
    )
    y = y[:, None]
    r2 = (y * y + x * x) * float(np.float32(4 / (height * height + width * width)))
    r = root(r2)
    gain = r * ((r * cubic + quadratic) + r2 * quartic)
    return Batch((gain * y)[None]), Batch((gain * x)[None])


def sources(dy: Any, dx: Any) -> Any:
    """For each output pixel the flat index of the nearest input pixel; H·W where there is none."""
    down, across = as_batch(dy).data, as_batch(dx).data
    height, width = down.shape[1:]
    rows, columns = (torch.arange(side, device=down.device, dtype=torch.float32) for side in (height, width))
    i = torch.floor((down + rows[:, None]) + 0.5).to(torch.int64)
    j = torch.floor((across + columns) + 0.5).to(torch.int64)
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    return Batch(torch.where(inside, i * width + j, height * width))
