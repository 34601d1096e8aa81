"""How a batch lies in memory: as pixels, N × H × W × C, or as planes, N × C × H × W.

Recipes see pixels either way. Kernels take both where that costs nothing, so most batches are never turned.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.tensors import planar


def pixels_of(images: Tensor) -> Tensor:
    """N × C × H × W seen as N × H × W × C; nothing is moved."""
    return images.permute(0, 2, 3, 1)


def planes_of(pixels: Tensor, like: Tensor) -> Tensor:
    """N × H × W × C as N × C × H × W, which models take, in the memory layout of `like`."""
    lying = in_planes(pixels) if like.is_contiguous() else in_pixels(pixels)
    return lying.permute(0, 3, 1, 2)


def in_pixels(image: Tensor) -> Tensor:
    """N × H × W × C, contiguous."""
    if image.shape[3] == 3 and planar(image) and _in_fours(image):
        return triton_kernels.run(triton_kernels.pixels, _pixels, image.permute(0, 3, 1, 2))
    return image.contiguous()


def _pixels(planes: Tensor) -> Tensor:
    return planes.permute(0, 2, 3, 1).contiguous()


def in_planes(image: Tensor) -> Tensor:
    """N × H × W × C that lies in memory as N × C × H × W."""
    if image.shape[3] == 1:
        return image.contiguous()
    if planar(image):
        return image
    if image.shape[3] == 3 and image.is_contiguous() and _in_fours(image):
        return triton_kernels.run(triton_kernels.planes, _planes, image).permute(0, 2, 3, 1)
    return _planes(image).permute(0, 2, 3, 1)


def _planes(pixels: Tensor) -> Tensor:
    return pixels.permute(0, 3, 1, 2).contiguous()


def _in_fours(image: Tensor) -> bool:
    """Whether values can be moved by words of four."""
    return image.shape[1] * image.shape[2] % 4 == 0 and image.data_ptr() % 4 == 0


def by_planes(filtered: Callable[[Tensor], Tensor], image: Tensor) -> Tensor:
    """Apply a filter that treats channels alike to each plane as to a grey image; the result is planes."""
    images, height, width, channels = image.shape
    planes = in_planes(image).permute(0, 3, 1, 2)
    made = filtered(planes.reshape(-1, height, width, 1))
    return made.reshape(images, channels, height, width).permute(0, 2, 3, 1)
