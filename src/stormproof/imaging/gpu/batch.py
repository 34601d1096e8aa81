"""A batch of images, or of fields, that looks like one to a recipe.

A `Batch` holds a tensor whose first axis counts images, and shows NumPy only the other axes: its shape is
that of one image, and NumPy operations apply to every image. Types follow NumPy's rules, not torch's.
Operations that need the value of one image, such as an `if` or a loop count, raise `OneByOne` unless the
batch holds a single image; the caller then processes images one by one.

In memory a batch of images is pixels, N × H × W × C, or planes, N × C × H × W. Recipes see pixels either way.
Kernels take both where that costs nothing, so most batches are never rearranged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels
from stormproof.imaging.gpu.each import BySize, is_mixed
from stormproof.imaging.gpu.tensors import NUMPY, divide, planar, root, to_device, torch_type


class OneByOne(Exception):
    """A recipe needs a single image's value, but the batch holds several images."""


class OnePerImage(list[Any]):
    """A list with one value of any kind for each image."""


class Batch(NDArrayOperatorsMixin):
    """Images or fields of one size; `data` is N × shape."""

    data: Tensor

    def __init__(self, data: Tensor) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return NUMPY[self.data.dtype]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Batch({len(self.data)} × {self.shape}, {self.dtype}, {self.data.device})"

    def copy(self) -> Batch:
        return Batch(self.data.clone())

    def astype(self, dtype: Any, copy: bool = True) -> Batch:
        return Batch(self.data.to(torch_type(dtype)))

    def reshape(self, *shape: int) -> Batch:
        return Batch(self.data.reshape(len(self.data), *shape))

    def max(self) -> Batch:
        return Batch(self.data.amax(tuple(range(1, self.data.ndim))))

    def min(self) -> Batch:
        return Batch(self.data.amin(tuple(range(1, self.data.ndim))))

    # --- values of a single image

    def _only(self) -> Tensor:
        if len(self.data) != 1:
            raise OneByOne
        return self.data[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._only().cpu().numpy(), dtype)

    def __int__(self) -> int:
        return int(self._only())

    def __index__(self) -> int:
        if self.ndim:
            raise TypeError(f"{self!r} is not an integer")
        return int(self)

    def __float__(self) -> float:
        return float(self._only())

    def __bool__(self) -> bool:
        return bool(self._only())

    # --- reading and writing parts

    def __getitem__(self, key: Any) -> Batch:
        places, turned = _places(key)
        part = self.data[places]
        return Batch(part.flip(turned) if turned else part)

    def __setitem__(self, key: Any, value: Any) -> None:
        new = value.data if isinstance(value, Batch) else value
        new = to_device(new) if isinstance(new, np.ndarray) else new
        if isinstance(key, Batch):  # a mask
            chosen = key.data.reshape(key.data.shape + (1,) * (self.data.ndim - key.data.ndim))
            # A plain number stays one: to make it a tensor, the host would wait for the device.
            self.data = torch.where(chosen, new, self.data).to(self.data.dtype)
            return
        places, turned = _places(key)
        if turned:
            raise IndexError("a batch cannot be written to in reverse; reverse the value instead")
        self.data[places] = new

    # --- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **rest: Any
    ) -> Any:
        if method != "__call__" or rest or ufunc.__name__ not in _UFUNCS:
            return NotImplemented
        kinds = [_kind(value) for value in inputs]
        types = _types(ufunc, *kinds)
        result = _UFUNCS[ufunc.__name__](*_aligned(inputs, types)).to(torch_type(types[-1]))
        if out is None:
            return Batch(result)
        target: Batch = out[0]
        target.data = result.to(target.data.dtype)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = _FUNCTIONS.get(function.__name__)
        if known is not None:
            return known(*args, **kwargs)
        host = [np.asarray(a) if isinstance(a, Batch) else a for a in args]
        return function(*host, **kwargs)  # np.asarray raises OneByOne for several images


class Lazy(Batch, ABC):
    """A batch of known shape, made when it is first read: a kernel may compute its values itself instead."""

    _data: Tensor | None = None

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    @abstractmethod
    def make(self) -> Tensor:
        """Compute the values."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def data(self) -> Tensor:
        if is_mixed(self._shape):
            raise BySize
        if self._data is None:
            self._data = self.make()
        return self._data

    @data.setter
    def data(self, value: Tensor) -> None:
        self._data = value


def as_batch(values: Any) -> Batch:
    """A batch unchanged; an array of the host as a batch of one, which broadcasts over images.

    Arrays of the host, one per image, become a batch.
    """
    if isinstance(values, OnePerImage):
        return Batch(to_device(np.stack(values)))
    return values if isinstance(values, Batch) else Batch(to_device(values)[None])


def _places(key: Any) -> tuple[tuple[Any, ...], list[int]]:
    """A NumPy index in torch's terms, behind the axis of images; and the axes to reverse afterwards."""
    keys = key if isinstance(key, tuple) else (key,)
    places: list[Any] = [slice(None)]
    turned: list[int] = []
    for part in keys:
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            if part != slice(None, None, -1):
                raise IndexError(f"a batch can be reversed by [::-1], not by {part}")
            turned.append(sum(not isinstance(place, int) for place in places))  # an integer removes its axis
            places.append(slice(None))
        elif isinstance(part, np.ndarray):
            places.append(to_device(part))
        elif isinstance(part, Batch):
            places.append(int(part))
        else:
            places.append(int(part) if isinstance(part, np.integer) else part)
    return tuple(places), turned


def _kind(value: Any) -> Any:
    """The type or dtype from which NumPy derives a result's type."""
    if isinstance(value, Batch):
        return value.dtype
    return type(value) if isinstance(value, bool | int | float) else np.asarray(value).dtype


@lru_cache(maxsize=256)
def _types(ufunc: np.ufunc, *kinds: Any) -> tuple[np.dtype[Any], ...]:
    """The types of NumPy's loop: of the operands, then of the result."""
    return ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))


def _aligned(inputs: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """Operands in the types of NumPy's loop, with the axis of images in front; scalars stay scalars."""
    rank = max(value.ndim if isinstance(value, Batch) else np.ndim(value) for value in inputs)
    aligned: list[Any] = []
    for value, dtype in zip(inputs, types, strict=False):
        wanted = torch_type(dtype)
        if isinstance(value, Batch):
            data = value.data.to(wanted)
            aligned.append(data.reshape(len(data), *(1,) * (rank - value.ndim), *value.shape))
        elif np.ndim(value) == 0:
            aligned.append(np.asarray(value).astype(dtype).item())
        else:
            aligned.append(to_device(np.asarray(value).astype(dtype, copy=False)).to(wanted))
    return aligned


def _least(a: Any, b: Any) -> Tensor:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.minimum(a, b)
    return a.clamp(max=b) if isinstance(a, Tensor) else b.clamp(max=a)


def _most(a: Any, b: Any) -> Tensor:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.maximum(a, b)
    return a.clamp(min=b) if isinstance(a, Tensor) else b.clamp(min=a)


_UFUNCS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": divide,
    "minimum": _least, "maximum": _most, "absolute": torch.abs, "negative": torch.neg,
    "rint": torch.round, "floor": torch.floor, "sqrt": root, "invert": torch.bitwise_not,
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
    "less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge,
    "equal": torch.eq, "not_equal": torch.ne,
    "right_shift": torch.bitwise_right_shift,
    "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
}  # fmt: skip


def _clip(values: Batch, low: float, high: float, out: Batch | None = None) -> Batch:
    result = values.data.clamp(low, high)
    if out is None:
        return Batch(result)
    out.data = result
    return out


def _where(chosen: Any, yes: Any, no: Any) -> Batch:
    common = np.result_type(*(v.dtype if isinstance(v, Batch) else v for v in (yes, no)))
    bools, a, b = _aligned((chosen, yes, no), (np.bool_, common, common))
    return Batch(torch.where(bools, a, b))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clip": _clip,
    "where": _where,
    "concatenate": lambda parts, axis=0: Batch(torch.cat([part.data for part in parts], axis + 1)),
    "repeat": lambda values, times, axis: Batch(values.data.repeat_interleave(times, axis + 1)),
    "zeros_like": lambda values: Batch(torch.zeros_like(values.data)),
}


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


def squared_differences(before: Tensor, after: Tensor) -> Tensor:
    """The sum of squared differences of each pair of images of bytes: one 64-bit integer per image."""
    values = before.flatten(1), after.flatten(1)
    return triton_kernels.run(triton_kernels.squared_differences, _squared_differences, *values)


def _squared_differences(before: Tensor, after: Tensor) -> Tensor:
    return ((after.int() - before.int()) ** 2).sum(1)
