"""One number for each image of a batch, where a recipe expects one: the sides of images of mixed sizes.

Arithmetic is done for every image. Whatever needs a single number, such as an `if`, a loop or an array of
that length, gets it if it is the same for all images; otherwise `BySize` is raised, and the caller goes by
size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin


class BySize(Exception):
    """A recipe or a primitive needs images of one size, but the batch holds several sizes."""


class Each(NDArrayOperatorsMixin):
    """Numbers, one per image."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Each({self.values.tolist()})"

    def __hash__(self) -> int:
        raise BySize

    def __round__(self, digits: None = None) -> Each:
        return Each(np.rint(self.values).astype(np.int64))

    def __ceil__(self) -> Each:
        return Each(np.ceil(self.values).astype(np.int64))

    def __floor__(self) -> Each:
        return Each(np.floor(self.values).astype(np.int64))

    # --- the number of all

    def _only(self) -> Any:
        if (self.values != self.values[0]).any():
            raise BySize
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(Each(self.values != 0)._only())

    def __int__(self) -> int:
        return int(self._only())

    def __index__(self) -> int:
        return int(self._only())

    def __float__(self) -> float:
        return float(self._only())

    # --- NumPy's protocols

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self._only(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **rest: Any) -> Any:
        # An array has axes of its own, and a batch its own rules.
        if (
            method != "__call__"
            or rest
            or not all(isinstance(v, Each | int | float | np.generic) for v in inputs)
        ):
            raise BySize
        made = ufunc(*(value.values if isinstance(value, Each) else value for value in inputs))
        return tuple(map(Each, made)) if isinstance(made, tuple) else Each(made)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """`np.stack` gives an array whose first axes count images, as draws of a batch give."""
        if function is not np.stack:
            raise BySize
        parts = np.broadcast_arrays(*(p.values if isinstance(p, Each) else p for p in args[0]))
        return np.stack(parts, *args[1:], **kwargs)


def is_mixed(shape: tuple[Any, ...]) -> bool:
    """Whether a shape differs from image to image."""
    return any(isinstance(side, Each) for side in shape)


def of_each(value: Any, images: int) -> npt.NDArray[Any]:
    """One number per image, from `Each` or a number for all."""
    return value.values if isinstance(value, Each) else np.full(images, value)
