"""The order of values in memory: planes, as models have them, and pixels, as recipes do."""

from __future__ import annotations

from torch import Tensor

from stormproof.imaging.gpu import triton_kernels, triton_layers


def pixels_of(images: Tensor) -> Tensor:
    """N × C × H × W as N × H × W × C, contiguous; not copied where it lies so already."""
    if not images.is_contiguous():  # channels last, a part of a larger batch, or turned round
        return images.permute(0, 2, 3, 1).contiguous()
    return triton_kernels.run(triton_layers.interleaved, _interleaved, images)


def planes_of(pixels: Tensor, like: Tensor) -> Tensor:
    """N × H × W × C as N × C × H × W, in memory as `like` is."""
    if not like.is_contiguous():
        return pixels.permute(0, 3, 1, 2)
    return triton_kernels.run(triton_layers.planar, _planar, pixels)


def _interleaved(planes: Tensor) -> Tensor:
    return planes.permute(0, 2, 3, 1).contiguous()


def _planar(pixels: Tensor) -> Tensor:
    return pixels.permute(0, 3, 1, 2).contiguous()
