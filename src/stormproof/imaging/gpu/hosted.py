"""Primitives that a GPU does not do well: through the CPU set, an image to each core, by declaration.

They need Numba and OpenCV, and wait for the device. `HOSTED` is the list that the documentation prints.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import torch

from stormproof.core.errors import MissingExtra
from stormproof.core.processes import worker_count
from stormproof.imaging.gpu.batch import Batch

HOSTED = {
    "relief": "edges, distances and equalisation as OpenCV has them (water drops of `spatter` 1 to 3)",
    "fill_holes": "the nearest known depth as OpenCV finds it (depth maps with unknown pixels)",
}


def hosted(module: str, name: str, field: Any) -> Any:
    """A primitive of one field, on the CPU; arrays of the host stay there."""
    try:
        function = getattr(import_module(f"stormproof.imaging.cpu.{module}"), name)
    except ImportError as error:
        needed = f"{error.name or 'OpenCV'}, which {name} on the CPU needs,"
        raise MissingExtra(needed, "pip install numba opencv-python-headless") from error
    if isinstance(field, np.ndarray):
        return function(field)
    with ThreadPoolExecutor(worker_count(None)) as pool:  # OpenCV lets go of Python while it works
        made = list(pool.map(function, field.data.cpu().numpy()))
    return Batch(torch.from_numpy(np.stack(made)).to(field.data.device))
