"""Images of different sizes in one batch: each lies in the upper left corner of its place in a padded tensor.

A recipe sees one image, and its sides are `Each`. Kernels take the sizes as a table; without kernels, images
of each size go through the same primitive by themselves, which also is what kernels are compared with. What
lies outside the images is never read, and may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, lru_cache, wraps
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.core.forms import Size
from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.batch import Batch, in_planes
from stormproof.imaging.gpu.each import BySize, Each
from stormproof.imaging.gpu.tensors import current_device, to_device

Rows = list[int]
Alone = Callable[[Rows, Size], Tensor]  # the result for the images in some rows, all of one size


# Sides of padded tensors are multiples of it: Triton compiles a kernel for these, and another for all others.
STEP = 16


class Sizes:
    """The sizes of a batch's images, and that of the padded tensor."""

    def __init__(self, each: npt.NDArray[np.int64]) -> None:
        """`each` is N × (height, width)."""
        self.each = each
        height, width = (-(-each.max(axis=0) // STEP) * STEP).tolist()
        self.whole: Size = height, width

    @property
    def shape(self) -> tuple[Each, Each]:
        return Each(self.each[:, 0]), Each(self.each[:, 1])

    @cached_property
    def table(self) -> Tensor:
        """What kernels take."""
        return to_device(self.each.astype(np.int32))

    @cached_property
    def groups(self) -> dict[Size, Rows]:
        """The rows of each size, from the smallest size to the largest."""
        places: dict[Size, Rows] = {}
        for row, (height, width) in enumerate(self.each.tolist()):
            places.setdefault((height, width), []).append(row)
        return dict(sorted(places.items(), key=lambda item: prod(item[0])))

    @cached_property
    def inside(self) -> Tensor:
        """Where images are; N × 1 × H × W, bool."""
        rows, columns = (torch.arange(side, device=self.table.device) for side in self.whole)
        height, width = self.table[:, :1, None], self.table[:, 1:, None]
        return ((rows[:, None] < height) & (columns < width))[:, None]


@lru_cache(maxsize=16)  # of few batches: where images are takes a byte per pixel of the device's memory
def _known(sizes: bytes, device: torch.device) -> Sizes:
    return Sizes(np.frombuffer(sizes, np.int64).reshape(-1, 2))


def sizes_of(sizes: npt.NDArray[np.int64]) -> Sizes:
    """The sizes of a batch; its tables stay on the device, since a batch goes through many conditions."""
    return _known(sizes.astype(np.int64, copy=False).tobytes(), current_device())


def sizes_in(shape: Sequence[Any]) -> Sizes:
    """The sizes of a field with a shape of two sides."""
    return sizes_of(np.stack(shape, axis=-1))


class Ragged(Batch):
    """Images or fields of several sizes; `padded` is N × H × W × C, planes in memory, or N × H × W."""

    def __init__(self, padded: Tensor, sizes: Sizes) -> None:
        self.padded, self.sizes = padded, sizes

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        raise BySize

    @property
    def shape(self) -> tuple[Any, ...]:
        return *self.sizes.shape, *self.padded.shape[3:]

    def __repr__(self) -> str:
        return f"Ragged({len(self.padded)} in {tuple(self.padded.shape[1:])}, {self.padded.device})"

    def copy(self) -> Ragged:
        return Ragged(self.padded.clone(), self.sizes)

    def part(self, rows: Rows, size: Size) -> Batch:
        """Some of the images, of one size."""
        return Batch(self.padded[rows, : size[0], : size[1]])

    def without_padding(self) -> Tensor:
        """Images in a padding of zeros; N × H × W × C."""
        return torch.where(self.sizes.inside.permute(0, 2, 3, 1), self.padded, 0)

    def max(self) -> Batch:
        """The largest value of each image of bytes."""
        if self.padded.dtype != torch.uint8:
            raise BySize
        return Batch(self.without_padding().amax((1, 2, 3)))

    def like(self, padded: Tensor) -> Ragged:
        """Other values of the same images."""
        return Ragged(padded, self.sizes)


def ragged_images(images: Tensor, sizes: Sequence[Size]) -> Ragged:
    """N × C × H × W with the sizes of what lies in it."""
    known = sizes_of(np.array(sizes, np.int64))
    height, width = (min(side, own) for side, own in zip(images.shape[2:], known.whole, strict=True))
    if images.shape[2:] == known.whole:
        return Ragged(in_planes(images.permute(0, 2, 3, 1)), known)
    padded = images.new_empty((*images.shape[:2], *known.whole))
    padded[..., :height, :width] = images[..., :height, :width]
    return Ragged(padded.permute(0, 2, 3, 1), known)


def put_back(made: Ragged, images: Tensor, out: Tensor) -> None:
    """Images made of N × C × H × W, and around them what lies there, into `out`."""
    height, width = (min(side, own) for side, own in zip(images.shape[2:], made.sizes.whole, strict=True))
    if (height, width) != images.shape[2:]:
        out[..., height:, :], out[..., width:] = images[..., height:, :], images[..., width:]
    inside, pixels = made.sizes.inside[..., :height, :width], made.padded.permute(0, 3, 1, 2)
    given, target = images[..., :height, :width], out[..., :height, :width]
    torch.where(inside, pixels[..., :height, :width], given, out=target)


def by_value(primitive: Callable[..., Batch]) -> Callable[..., Batch]:
    """A primitive that treats each pixel by itself: of several sizes, it treats the padding as well."""

    @wraps(primitive)
    def applied(image: Batch, *rest: Any, **options: Any) -> Batch:
        if not isinstance(image, Ragged):
            return primitive(image, *rest, **options)
        plain = [Batch(other.padded) if isinstance(other, Ragged) else other for other in (image, *rest)]
        return image.like(primitive(*plain, **options).data)

    return applied


def run(
    kernel: Callable[..., Tensor],
    alone: Alone,
    sizes: Sizes,
    source: Tensor,
    *rest: Any,
    variant: Hashable = (),
) -> Tensor:
    """`kernel(source, *rest, sizes=sizes)` where possible, else what `alone` gives size by size.

    `sizes` are those of the result. A kernel is trusted as in `triton_kernels.run`, after a comparison on
    images of three sizes.
    """
    if not triton_kernels.usable(source):
        return together(alone, sizes)
    name = "ragged", kernel.__name__, source.dtype, *source.shape[3:], variant
    if not triton_kernels.is_known(name):
        few = list(sizes.groups.items())
        few = [few[i] for i in sorted({0, len(few) // 2, len(few) - 1})]

        def compare() -> tuple[Tensor, Tensor]:
            made = kernel(source, *rest, sizes=sizes)
            parts = [(made[rows[:2], : s[0], : s[1]], _alone(alone, rows[:2], s)) for s, rows in few]
            return tuple(torch.cat([part.flatten() for part in own]) for own in zip(*parts, strict=True))  # type: ignore[return-value]

        triton_kernels.judge(name, kernel.__name__, compare)
    return kernel(source, *rest, sizes=sizes) if name in triton_kernels.trusted else together(alone, sizes)


def apply(kernel: Callable[..., Tensor], twin: Callable[..., Tensor], image: Batch, *rest: Any) -> Batch:
    """The kernel's or the twin's result for images of one size or of several; further batches in `rest` have
    the same sizes."""
    if not isinstance(image, Ragged):
        plain = (own.data if isinstance(own, Batch) else own for own in rest)
        return Batch(triton_kernels.run(kernel, twin, image.data, *plain))
    if any(isinstance(own, Batch) and not isinstance(own, Ragged) for own in rest):
        raise BySize

    def alone(rows: Rows, size: Size) -> Tensor:
        parts = (own.part(rows, size).data if isinstance(own, Ragged) else own for own in (image, *rest))
        return twin(*parts)

    padded = (own.padded if isinstance(own, Ragged) else own for own in rest)
    return image.like(run(kernel, alone, image.sizes, image.padded, *padded))


def _alone(alone: Alone, rows: Rows, size: Size) -> Tensor:
    with triton_kernels.without():
        return alone(rows, size)


def together(alone: Alone, sizes: Sizes) -> Tensor:
    """The results for all sizes in one padded tensor."""
    out: Tensor | None = None
    for size, rows in sizes.groups.items():
        part = alone(rows, size)
        if out is None:
            shape = len(sizes.each), *part.shape[3:], *sizes.whole
            out = torch.zeros(shape, dtype=part.dtype, device=part.device)
            out = out.permute(0, 2, 3, 1) if part.ndim == 4 else out
        out[rows, : size[0], : size[1]] = part
    assert out is not None
    return out
