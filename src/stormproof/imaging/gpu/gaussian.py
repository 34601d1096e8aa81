"""Gaussian blur of images and fields: rows, then columns, weights in the CPU's order."""

from __future__ import annotations

import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import edges, resident
from stormproof.imaging.plans import GUARD, Field, half_gaussian


def symmetric_sum(
    source: Tensor, half: Field, rule: str, axis: int, guard: float = 0.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Σ_j half[|j|]·source over j = −radius … radius along an axis of N × H × W × C, pairs first."""
    index = resident(edges(source.shape[axis], len(half) - 1, rule))
    return triton_kernels.run(triton_kernels.symmetric, _in_torch, source, half, index, axis, guard, dtype)


def _in_torch(
    source: Tensor, half: Field, index: Tensor, axis: int, guard: float, dtype: torch.dtype
) -> Tensor:
    radius, length = len(half) - 1, source.shape[axis]
    padded = source.index_select(axis, index).to(torch.float32)
    total = padded.narrow(axis, radius, length) * float(half[0])
    for j in range(1, radius + 1):
        pair = padded.narrow(axis, radius - j, length) + padded.narrow(axis, radius + j, length)
        total += pair * float(half[j])
    if guard:
        total += guard
    return total.to(dtype)


def _blur(source: Tensor, sigma: tuple[float, float], truncate: float, rule: str, guard: float) -> Tensor:
    """`source` is N × H × W × C; the result has its type."""
    down, across = (half_gaussian(s, int(truncate * s + 0.5)) for s in sigma)
    lines = symmetric_sum(source, across, rule, axis=2)
    return symmetric_sum(lines, down, rule, axis=1, guard=guard, dtype=source.dtype)


def gaussian_blur(image: Batch, sigma: float) -> Batch:
    """Gaussian of `sigma` pixels cut at 4σ, edges repeated, result truncated to whole grey levels."""
    return Batch(_blur(image.data, (sigma, sigma), 4.0, "nearest", float(GUARD)))


def gaussian_field(field: Batch, sigma: tuple[float, float], *, truncate: float, rule: str) -> Batch:
    """Gaussian of (σ_y, σ_x) pixels over a float field, cut at `truncate`·σ."""
    return Batch(_blur(field.data[..., None], sigma, truncate, rule, 0.0)[..., 0])
