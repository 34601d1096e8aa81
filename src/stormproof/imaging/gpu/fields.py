"""Scalar fields over the image plane: plasma clouds, and the relief of water drops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stormproof.imaging.gpu import triton_kernels, triton_layers
from stormproof.imaging.gpu.batch import Batch, as_batch
from stormproof.imaging.gpu.hosted import hosted


def subdivide(coarse: Any, wobbles: Iterable[Batch], amplitude: float) -> Batch:
    """One step of diamond–square on a torus: n×n to 2n×2n.

    New points are the mean of their four neighbours plus amplitude·wobble. `wobbles` yields three n×n
    fields: for square centres, for midpoints of rows, of columns.
    """
    centre, row, column = (wobble.data for wobble in wobbles)
    gain = float(np.float32(amplitude))
    here = as_batch(coarse).data
    fine = triton_kernels.run(triton_layers.subdivided, _subdivided, here, centre, row, column, gain)
    return Batch(fine)


def _subdivided(here: Tensor, centre: Tensor, row: Tensor, column: Tensor, gain: float) -> Tensor:
    below, right = here.roll(-1, 1), here.roll(-1, 2)
    middle = ((here + below) + (right + below.roll(-1, 2))) * 0.25 + centre * gain
    across = ((middle + middle.roll(1, 1)) + (here + right)) * 0.25 + row * gain
    down = ((middle + middle.roll(1, 2)) + (here + below)) * 0.25 + column * gain
    images, n, _ = middle.shape
    top = torch.stack((here.expand_as(middle), across), 3)
    bottom = torch.stack((down, middle), 3)
    return torch.stack((top, bottom), 2).reshape(images, 2 * n, 2 * n)


def drift(field: Batch, down: Any, across: Any) -> Batch:
    """The field moved by whole pixels; what leaves it on one side enters on the other."""
    moved = zip(field.data, down, across, strict=True)
    return Batch(torch.stack([one.roll((y, x), (0, 1)) for one, y, x in moved]))


def relief(layer: Batch) -> Any:
    """Light on drops: the distance from their edges, equalised and embossed, as a map of 0..255."""
    return hosted("fields", "relief", layer)
