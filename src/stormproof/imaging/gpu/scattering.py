"""Scattered light: every pixel spreads its own light by its own Gaussian."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.gaussian import symmetric_sum
from stormproof.imaging.gpu.tensors import resident, taken, to_device
from stormproof.imaging.plans import (
    FINE,
    NARROW,
    SCATTER_CUT,
    SHARP,
    Field,
    half_gaussian,
    sampled_variances,
    scatter_layers,
)


def scatter_gaussian(image: Batch, sigma: Batch) -> Batch:
    """Σ_y I(y)·g(x; y, σ(y)) / Σ_y g(x; y, σ(y)): each pixel y spreads its light by its own σ, in pixels.

    As `imaging.cpu.scattering`, image by image: each has layers of its own.
    """
    parts = [_scattered(one, spread) for one, spread in zip(image.data, sigma.data, strict=True)]
    return Batch(torch.stack(parts))


def _scattered(image: Tensor, sigma: Tensor) -> Tensor:
    """`image` is H × W × C, `sigma` H × W."""
    sigmas = scatter_layers(float(sigma.min()), float(sigma.max()))
    layer, upper = _shared_out(sigma, sigmas.astype(np.float32))
    light = torch.cat((image.to(torch.float32), torch.ones_like(sigma)[..., None]), 2)
    total = torch.zeros_like(light)[None]
    for k, s in enumerate(sigmas):
        weights = torch.where(layer == k, 1 - upper, 0.0)
        weights = torch.where(layer == k - 1, upper, weights)
        half = half_gaussian(float(s), int(SCATTER_CUT * s + 0.5) if s >= SHARP else 0)
        lines = symmetric_sum((light * weights[..., None])[None], half, "nearest", axis=2)
        total += symmetric_sum(lines, half, "nearest", axis=1)
    share = 1 / total[0, ..., -1:]
    return (total[0, ..., :-1] * share + 0.5).clamp(0, 255).to(torch.uint8)


def _shared_out(sigma: Tensor, sigmas: Field) -> tuple[Tensor, Tensor]:
    """For each pixel its layer k and the share of its light that goes to layer k + 1."""
    last = len(sigmas) - 1
    layer = torch.zeros(sigma.shape, dtype=torch.int64, device=sigma.device)
    if last == 0:
        return layer, torch.zeros_like(sigma)
    for k in range(1, last):
        layer += sigma >= float(sigmas[k])
    table = sampled_variances()
    squares = sigmas * sigmas
    if squares[0] == 0 and sigmas[1] <= np.float32(NARROW):
        squares[1] = table[int(sigmas[1] * np.float32(FINE))]
    place = (sigma * FINE).to(torch.int32).clamp(max=len(table) - 1)
    variance = torch.where(sigma <= NARROW, taken(resident(table), place), sigma * sigma)
    low, high = to_device(squares)[layer], to_device(squares)[layer + 1]
    return layer, ((variance - low) / (high - low)).clamp(0, 1)
