"""Boxes: from network outputs to x1 y1 x2 y2 in pixels, and their overlaps. All in float32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from training.networks import STRIDES

LONGEST = 5.0  # log of a box's side in strides; keeps an untrained network finite


@lru_cache(maxsize=32)
def _copied(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)


def constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Values on the device, copied there once: a copy from the host cannot be part of a CUDA graph."""
    return _copied(values, device)


def cells(
    size: tuple[int, int], device: torch.device, strides: Sequence[int] = STRIDES
) -> tuple[Tensor, Tensor]:
    """Column and row of every cell of all levels, finest first (A×2), and each cell's stride (A×1)."""
    places, steps = [], []
    for stride in strides:
        height, width = size[0] // stride, size[1] // stride
        y, x = torch.meshgrid(
            torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij"
        )
        places.append(torch.stack([x.flatten(), y.flatten()], 1).float())
        steps.append(torch.full((height * width, 1), float(stride), device=device))
    return torch.cat(places), torch.cat(steps)


def from_rows(rows: Tensor, places: Tensor, steps: Tensor) -> Tensor:
    """Boxes of a grid: centre relative to the cell's corner and log sides, in strides."""
    middle = (rows[..., :2].float() + places) * steps
    half = rows[..., 2:4].float().clamp(max=LONGEST).exp() * steps / 2
    return torch.cat([middle - half, middle + half], -1)


def from_edges(edges: Tensor, places: Tensor, stride: int = STRIDES[0]) -> Tensor:
    """Boxes of a centre map: logs of the distances to the four edges, n×4 or B×n×4, in cells."""
    distance = edges.float().clamp(max=LONGEST).exp()
    middle = places + 0.5
    return torch.cat([middle - distance[..., :2], middle + distance[..., 2:]], -1) * stride


def area(boxes: Tensor) -> Tensor:
    across, down = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).unbind(-1)
    return across * down  # the gradient of a product over an axis would wait for the device


def shared(a: Tensor, b: Tensor) -> Tensor:
    """The area of the intersection, broadcast over leading axes."""
    return area(torch.cat([torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])], -1))


def iou(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union, broadcast over leading axes."""
    both = shared(a, b)
    return both / (area(a) + area(b) - both).clamp(min=1e-6)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalized IoU (Rezatofighi et al. 2019), which also measures how far apart disjoint boxes are."""
    around = torch.cat([torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])], -1)
    both = shared(a, b)
    joined = area(a) + area(b) - both
    whole = area(around).clamp(min=1e-6)
    return both / joined.clamp(min=1e-6) - (whole - joined) / whole


def inside(boxes: Tensor, height: int, width: int) -> Tensor:
    """…×4 boxes → …×height×width: which pixels have their centre in the box."""
    x = torch.arange(width, device=boxes.device) + 0.5
    y = torch.arange(height, device=boxes.device) + 0.5
    across = (x >= boxes[..., 0:1]) & (x <= boxes[..., 2:3])
    down = (y >= boxes[..., 1:2]) & (y <= boxes[..., 3:4])
    return down[..., :, None] & across[..., None, :]
