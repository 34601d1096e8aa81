"""Images as kernels see them: a list of values, of pixels, or of rows. A kernel is given the image first, and
an empty image of the same layout last, which it fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Kernel = Callable[..., None]


def by_value(kernel: Kernel, image: npt.NDArray[Any], *rest: Any) -> npt.NDArray[Any]:
    """Run a kernel on a flat image."""
    return _run(kernel, image, (-1,), rest)


def by_pixel(kernel: Kernel, image: npt.NDArray[Any], *rest: Any) -> npt.NDArray[Any]:
    """Run a kernel on H·W × C values."""
    return _run(kernel, image, (-1, image.shape[2]), rest)


def by_row(kernel: Kernel, image: npt.NDArray[Any], *rest: Any) -> npt.NDArray[Any]:
    """Run a kernel on H × W·C values."""
    return _run(kernel, image, (image.shape[0], -1), rest)


def _run(
    kernel: Kernel, image: npt.NDArray[Any], shape: tuple[int, ...], rest: tuple[Any, ...]
) -> npt.NDArray[Any]:
    out = np.empty_like(image, order="C")
    kernel(np.ascontiguousarray(image).reshape(shape), *rest, out.reshape(shape))
    return out
