"""Depth maps: their holes, and light that fades with distance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.processes import worker_count
from stormproof.core.sample import Camera
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.colour import grey_of
from stormproof.imaging.gpu.patterns import on_host
from stormproof.imaging.gpu.tensors import divide, keep_on_device, root, take_entries, to_device


def fill_holes(field: Any) -> Any:
    """A copy with each NaN replaced by the nearest known value (Euclidean, to a few per cent)."""
    fill = on_host("depth", "fill_holes")
    if isinstance(field, np.ndarray):
        return fill(field)
    with ThreadPoolExecutor(worker_count(None)) as pool:  # OpenCV releases the GIL
        filled = list(pool.map(fill, field.data.cpu().numpy()))
    return Batch(torch.from_numpy(np.stack(filled)).to(field.data.device))


def airlight(image: Batch, *, window: int, share: float) -> Batch:
    """The colour of the haze in an image, found in its dark channel (He et al. 2009)."""
    bright = 255 - image.data.amin(3).to(torch.float32)
    dark = 255 - torch.nn.functional.max_pool2d(bright[:, None], window, 1, window // 2).flatten(1)
    count = max(int(share * dark.shape[1]), 1)
    bounds = dark.kthvalue(dark.shape[1] - count + 1, dim=1).values
    colours = []
    for pixels, one, grey, bound in zip(
        image.data, dark, grey_of(image).data.flatten(1), bounds, strict=True
    ):
        places = torch.nonzero(one >= bound)[:, 0]
        middle = places[torch.argsort(grey[places], stable=True)[(len(places) - 1) // 2]]
        colours.append(pixels.reshape(-1, image.shape[2])[middle])
    return Batch(torch.stack(colours).to(torch.float64))


def _slope(before: Tensor, here: Tensor, after: Tensor, back: Tensor, ahead: Tensor) -> Tensor:
    """The slope on the side that changes less: across the edge of an object there is no surface."""
    behind = (here - before) / back.clamp(min=1).to(torch.float32)
    onward = (after - here) / ahead.clamp(min=1).to(torch.float32)
    gentle = torch.where(behind.abs() < onward.abs(), behind, onward)
    gentle = torch.where(ahead == 0, behind, torch.where(back == 0, onward, gentle))
    return torch.where(gentle.isfinite(), gentle, torch.zeros_like(gentle))


def facing(depth: Batch, camera: Camera, step: int) -> Batch:
    """The cosine between each surface's normal and the ray of sight; the sky's is 0."""
    z = depth.data
    fx, fy, cx, cy = (float(np.float32(n)) for n in (camera.fx, camera.fy, camera.cx, camera.cy))
    height, width = depth.shape
    rows, columns = (torch.arange(side, device=z.device) for side in (height, width))
    above, below = (rows - step).clamp(min=0), (rows + step).clamp(max=height - 1)
    left, right = (columns - step).clamp(min=0), (columns + step).clamp(max=width - 1)
    a, b, c, d = z[:, :, left], z[:, :, right], z[:, above], z[:, below]
    finite = torch.isfinite(z)
    z = torch.where(finite, z, torch.ones_like(z))
    zx = _slope(a, z, b, columns - left, right - columns)
    zy = _slope(c, z, d, (rows - above)[:, None], (below - rows)[:, None])
    u, v = columns.to(torch.float32) - cx, (rows.to(torch.float32) - cy)[:, None]
    down, across = divide(v, fy), divide(u, fx)
    p, q, r = zx * fx, zy * fy, (z + u * zx) + v * zy
    normal = root((p * p + q * q) + r * r)
    cosine = z / (normal * root((1 + down * down) + across * across))
    return Batch(torch.where(finite, cosine, torch.zeros_like(cosine)))


def fade(image: Batch, field: Batch, table: npt.NDArray[np.float32], scale: float, colour: Any) -> Batch:
    """colour + t·(image − colour), rounded, where t is `table` at field·scale, interpolated linearly."""
    place = (field.data * float(np.float32(scale))).clamp(max=len(table) - 2)
    i = place.to(torch.int32)
    values = keep_on_device(table)
    low = take_entries(values, i)
    share = (low + (place - i) * (take_entries(values, i + 1) - low))[..., None]
    haze = (
        colour.data.to(torch.float32)[:, None, None]
        if isinstance(colour, Batch)
        else to_device(colour, np.float32)
    )
    return Batch((((image.data - haze) * share + haze) + 0.5).to(torch.uint8))
