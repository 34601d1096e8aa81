"""Bicubic enlargement of a part of an image."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, PerImage
from stormproof.imaging.gpu.tensors import resident, to_device
from stormproof.imaging.plans import cubic_taps


def enlarged_part(image: Any, size: Any, corner: Any, part: tuple[int, int]) -> Batch:
    """What an RGB image would show at `corner`, `part` rows and columns of it, if resized to `size`.

    Images of the host: one for all, or one for each, with its own size and corner. There are few of them, so
    each is enlarged once, whole, and stays on the device.
    """
    if not isinstance(image, PerImage):
        image, size, corner = [image], [size], [corner]
    sources = {(id(one), whole): one for one, whole in zip(image, size, strict=True)}
    out = None
    for (name, whole), one in sources.items():
        members = [i for i, other in enumerate(image) if id(other) == name and size[i] == whole]
        large = resident(one, partial(_enlarged, size=whole), ("enlarged", whole))
        places = to_device(np.array(members)), to_device(np.array([corner[i] for i in members]))
        if out is None:
            out = large.new_empty((len(image), *part, large.shape[2]))
        out = triton_kernels.run(triton_layers.cut, _cut, large, *places, out)
    assert out is not None
    return Batch(out)


def _cut(large: Tensor, members: Tensor, corners: Tensor, out: Tensor) -> Tensor:
    """Parts of one large image at each member's corner (row, column), into out[members]."""
    rows, columns = (
        corners[:, axis, None] + torch.arange(out.shape[1 + axis], device=out.device) for axis in (0, 1)
    )
    out[members] = large[rows[:, :, None], columns[:, None]]
    return out


def _enlarged(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> Tensor:
    """The whole image at another size: along rows, then columns, in 32-bit floats."""
    values = to_device(image).to(torch.float32)
    for axis in (1, 0):
        taps, weights = (
            to_device(table) for table in cubic_taps(image.shape[axis], size[axis], 0, size[axis])
        )
        shape = (-1, 1) if axis else (-1, 1, 1)
        parts = [values.index_select(axis, taps[:, k]) * weights[:, k].reshape(shape) for k in range(4)]
        values = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    return (values.clamp(0, 255) + 0.5).to(torch.uint8)
