"""Blur that changes over the image: each small patch has a kernel of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import edges, resident
from stormproof.imaging.plans import PATCH

Kernels = npt.NDArray[np.float32]


def spread_kernels(
    angle: npt.NDArray[np.float64], radial: npt.NDArray[np.float64], tangential: npt.NDArray[np.float64]
) -> tuple[Kernels, npt.NDArray[np.int64]]:
    """Kernels of Gaussians with standard deviations along and across a direction, and their radii.

    As `imaging.cpu.patches.spread_kernels`, for all patches at once, node by node in its order.
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
            for down, across_, share in (
                (0, 0, (1 - f) * (1 - g)),
                (0, 1, (1 - f) * g),
                (1, 0, f * (1 - g)),
                (1, 1, f * g),
            ):
                kernels[patch, i + down, j + across_] += w * share
    kernels = kernels.reshape(*angle.shape, 2 * reach + 1, 2 * reach + 1)
    kernels /= kernels.sum(axis=(2, 3), keepdims=True)
    return kernels, radii


def blur_patches(image: Batch, kernels: Kernels, radii: npt.NDArray[np.int64]) -> Batch:
    """Correlate each 16×16 patch with its own odd square kernel; edges repeated, rounded.

    `kernels` is rows × columns of patches × k × k; they are zero outside their `radii`.
    """
    return Batch(triton_kernels.run(triton_kernels.patches, _in_torch, image.data, kernels, PATCH))


def _in_torch(data: Tensor, kernels: Kernels, patch: int) -> Tensor:
    height, width = data.shape[1:3]
    reach = kernels.shape[2] // 2
    weights = resident(kernels)
    rows, columns = (resident(edges(side, reach, "nearest")) for side in (height, width))
    padded = data.index_select(1, rows).index_select(2, columns).to(torch.float32)
    total = torch.zeros(data.shape, dtype=torch.float32, device=data.device)
    for i in range(kernels.shape[2]):
        for j in range(kernels.shape[3]):
            own = weights[:, :, i, j].repeat_interleave(patch, 0).repeat_interleave(patch, 1)
            total += padded[:, i : i + height, j : j + width] * own[:height, :width, None]
    return (total + 0.5).clamp(max=255).to(torch.uint8)
