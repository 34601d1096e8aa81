"""Numbers on the device: the current device, tables that stay there, IEEE arithmetic."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stormproof.imaging.plans import border

_NAMES = {
    "bool": torch.bool, "uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16,
    "uint16": torch.int32, "int32": torch.int32, "uint32": torch.int64, "int64": torch.int64,
    "float32": torch.float32, "float64": torch.float64,
}  # fmt: skip
_TORCH = {np.dtype(name): torch_type for name, torch_type in _NAMES.items()}
NUMPY = {torch_type: np.dtype(name) for name, torch_type in _NAMES.items() if not name.startswith("uint")}
NUMPY[torch.uint8] = np.dtype("uint8")

_HOST = torch.device("cpu")
_DEVICE: ContextVar[torch.device] = ContextVar("device", default=_HOST)


@contextmanager
def device(chosen: torch.device) -> Iterator[None]:
    """Inside the block, tables and host arrays go to this device, and Triton's kernels run on it."""
    token = _DEVICE.set(chosen)
    try:
        # Triton launches on CUDA's current device, wherever the tensors are.
        with torch.cuda.device(chosen) if chosen.type == "cuda" else nullcontext():
            yield
    finally:
        _DEVICE.reset(token)


def current_device() -> torch.device:
    return _DEVICE.get()


def torch_type(dtype: Any) -> torch.dtype:
    return _TORCH[np.dtype(dtype)]


def to_device(values: Any, dtype: Any = None) -> Tensor:
    """Numbers of the host as a tensor on the device; unsigned 16 and 32-bit types become wider."""
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values, dtype)
    wide = torch_type(array.dtype)
    array = np.ascontiguousarray(array.astype(NUMPY[wide], copy=False))
    if not array.flags.writeable:  # torch would warn about a shared table
        array = array.copy()
    return torch.from_numpy(array).to(_DEVICE.get(), non_blocking=True)


_RESIDENT: dict[Hashable, tuple[weakref.ref[np.ndarray[Any, Any]], Tensor]] = {}


def _forget(kept: dict[Hashable, Any], key: Hashable, _: object) -> None:
    kept.pop(key, None)


def keep_on_device(
    array: np.ndarray[Any, Any], make: Callable[[Any], Tensor] = to_device, name: Hashable = None
) -> Tensor:
    """The device's copy of a constant array, kept for as long as the array lives.

    `make` derives something else from the array; `name` distinguishes such tensors.
    """
    key = id(array), _DEVICE.get(), name
    if key not in _RESIDENT or _RESIDENT[key][0]() is not array:
        _RESIDENT[key] = weakref.ref(array, partial(_forget, _RESIDENT, key)), make(array)
    return _RESIDENT[key][1]


@lru_cache(maxsize=128)
def edges(length: int, radius: int, rule: str) -> npt.NDArray[np.int32]:
    """`plans.border` in 32 bits; always the same array, so that the device keeps it."""
    return border(length, radius, rule).astype(np.int32)


def planar(image: Tensor) -> bool:
    """Whether N × H × W × C, of several channels, lies in memory as N × C × H × W."""
    if image.ndim != 4 or image.shape[3] == 1 or image.is_contiguous():
        return False
    return image.permute(0, 3, 1, 2).is_contiguous()


def dense(image: Tensor) -> Tensor:
    """N × H × W × C without gaps: as pixels, or as planes if it lies so already."""
    return image if planar(image) else image.contiguous()


def take_entries(table: Tensor, index: Tensor) -> Tensor:
    """table[index] for a one-dimensional table and a 32-bit index."""
    return table.index_select(0, index.reshape(-1)).reshape(index.shape)


def divide(a: Tensor, b: Any) -> Tensor:
    """IEEE a / b; torch on a GPU multiplies by the reciprocal of a plain number."""
    b = b if isinstance(b, Tensor) else torch.full((), b, dtype=a.dtype, device=a.device)
    return torch.true_divide(a, b)


def root(a: Tensor) -> Tensor:
    """IEEE √a of 32-bit floats, by way of 64 bits: torch's own is not exact on every CPU."""
    return torch.sqrt(a.to(torch.float64)).to(a.dtype)
