"""Primitives that are not suited to a GPU: they run on the CPU set, one image per core.

They need Numba and OpenCV, and wait for the device. docs/gpu.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import torch

from stormproof.core.errors import MissingExtra
from stormproof.core.processes import worker_count
from stormproof.imaging.gpu.batch import Batch


def _of_cpu(module: str, name: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = getattr(import_module(f"stormproof.imaging.cpu.{module}"), name)
    except ImportError as error:
        needed = f"{error.name or 'OpenCV'}, which {name} on the CPU needs,"
        raise MissingExtra(needed, "pip install numba opencv-python-headless") from error
    return function


def on_host(module: str, name: str) -> Callable[..., Any]:
    """A function of the CPU set, imported when it is first called; it takes and gives arrays of the host."""

    def call(*args: Any, **options: Any) -> Any:
        return _of_cpu(module, name)(*args, **options)

    return call


def hosted(module: str, name: str, field: Any) -> Any:
    """Apply a primitive of the CPU set to each field of a batch, or to one array of the host."""
    function = _of_cpu(module, name)
    if isinstance(field, np.ndarray):
        return function(field)
    with ThreadPoolExecutor(worker_count(None)) as pool:  # OpenCV releases the GIL
        made = list(pool.map(function, field.data.cpu().numpy()))
    return Batch(torch.from_numpy(np.stack(made)).to(field.data.device))
