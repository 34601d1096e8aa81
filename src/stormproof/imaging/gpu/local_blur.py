"""Blur that changes over the image: a kernel for each patch, a Gaussian for each pixel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch, in_pixels
from stormproof.imaging.gpu.convolution import symmetric_sum
from stormproof.imaging.gpu.tensors import edges, keep_on_device, take_entries, to_device
from stormproof.imaging.plans import (
    FINE,
    NARROW,
    PATCH,
    SCATTER_CUT,
    SHARP,
    Field,
    half_gaussian,
    sampled_variances,
    scatter_layers,
)

Kernels = npt.NDArray[np.float32]


def spread_kernels(
    angle: npt.NDArray[np.float64], radial: npt.NDArray[np.float64], tangential: npt.NDArray[np.float64]
) -> tuple[Kernels, npt.NDArray[np.int64]]:
    """Kernels of Gaussians with standard deviations along and across a direction, and their radii.

    Same result as `imaging.cpu.local_blur.spread_kernels`: all patches at once, nodes in the same order.
    """
    nodes = np.linspace(-3, 3, 25)
    weights = np.exp(-0.5 * nodes**2)
    radii = np.ceil(nodes[-1] * np.maximum(radial, tangential)).astype(np.int64) + 1
    reach = int(radii.max())
    kernels = np.zeros((angle.size, 2 * reach + 1, 2 * reach + 1), np.float32)
    cos, sin = np.cos(angle).ravel(), np.sin(angle).ravel()
    patch = np.arange(angle.size)
    for a, p in enumerate(nodes):
        for b, q in enumerate(nodes):
            if p**2 + q**2 > nodes[0] ** 2:
                continue
            along, across = radial.ravel() * p, tangential.ravel() * q
            y, x = reach + sin * along + cos * across, reach + cos * along - sin * across
            i, j = y.astype(np.int64), x.astype(np.int64)
            f, g = y - i, x - j
            w = weights[a] * weights[b]
            for down, right, share in (
                (0, 0, w * (1 - f) * (1 - g)),
                (0, 1, w * (1 - f) * g),
                (1, 0, w * f * (1 - g)),
                (1, 1, w * f * g),
            ):
                kernels[patch, i + down, j + right] += share
    kernels = kernels.reshape(*angle.shape, 2 * reach + 1, 2 * reach + 1)
    kernels /= kernels.sum(axis=(2, 3), keepdims=True)
    return kernels, radii


def blur_patches(image: Batch, kernels: Kernels, radii: npt.NDArray[np.int64]) -> Batch:
    """Correlate each 16×16 patch with its own odd square kernel; edges repeated, rounded."""
    pixels = in_pixels(image.data)
    return Batch(triton_kernels.run(triton_kernels.patches, _blur_patches, pixels, kernels, PATCH))


def _blur_patches(data: Tensor, kernels: Kernels, patch: int) -> Tensor:
    height, width = data.shape[1:3]
    reach = kernels.shape[2] // 2
    weights = keep_on_device(kernels)
    rows, columns = (keep_on_device(edges(side, reach, "nearest")) for side in (height, width))
    padded = data.index_select(1, rows).index_select(2, columns).to(torch.float32)
    total = torch.zeros(data.shape, dtype=torch.float32, device=data.device)
    for i in range(kernels.shape[2]):
        for j in range(kernels.shape[3]):
            own = weights[:, :, i, j].repeat_interleave(patch, 0).repeat_interleave(patch, 1)
            total += padded[:, i : i + height, j : j + width] * own[:height, :width, None]
    return (total + 0.5).clamp(max=255).to(torch.uint8)


def scatter_gaussian(image: Batch, sigma: Batch) -> Batch:
    """Σ_y I(y)·g(x; y, σ(y)) / Σ_y g(x; y, σ(y)): each pixel y spreads its light by its own σ, in pixels.

    Same result as `imaging.cpu.local_blur.scatter_gaussian`: image by image, since each has its own layers.
    """
    parts = [_scattered(one, spread) for one, spread in zip(image.data, sigma.data, strict=True)]
    return Batch(torch.stack(parts))


def _scattered(image: Tensor, sigma: Tensor) -> Tensor:
    """`image` is H × W × C, `sigma` H × W."""
    sigmas = scatter_layers(float(sigma.min()), float(sigma.max()))
    layer, upper = _shared_out(sigma, sigmas.astype(np.float32))
    planes = image.permute(2, 0, 1).to(torch.float32)
    light = torch.cat((planes, torch.ones_like(sigma)[None]))[..., None]
    total = torch.zeros_like(light)
    for k, s in enumerate(sigmas):
        weights = torch.where(layer == k, 1 - upper, 0.0)
        weights = torch.where(layer == k - 1, upper, weights)
        half = half_gaussian(float(s), int(SCATTER_CUT * s + 0.5) if s >= SHARP else 0)
        lines = symmetric_sum(light * weights[..., None], half, "nearest", axis=2)
        total += symmetric_sum(lines, half, "nearest", axis=1)
    share = 1 / total[-1:, ..., 0]
    return (total[:-1, ..., 0] * share + 0.5).clamp(0, 255).to(torch.uint8).permute(1, 2, 0)


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
    variance = torch.where(sigma <= NARROW, take_entries(keep_on_device(table), place), sigma * sigma)
    low, high = to_device(squares)[layer], to_device(squares)[layer + 1]
    return layer, ((variance - low) / (high - low)).clamp(0, 1)
