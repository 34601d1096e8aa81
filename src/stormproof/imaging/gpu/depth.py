"""Depth maps: their range, their holes, and light that fades with distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.hosted import hosted
from stormproof.imaging.gpu.tensors import resident, taken, to_device
from stormproof.imaging.plans import Field


def survey(field: Field, limit: float) -> tuple[float, int, int, int]:
    """The lowest value, and how many are known (not NaN), finite, and finite but beyond `limit`."""
    known, finite = ~np.isnan(field), np.isfinite(field)
    lowest = field[known].min(initial=np.inf)
    return float(lowest), int(known.sum()), int(finite.sum()), int((finite & (field > limit)).sum())


def fill_holes(field: Any) -> Any:
    """A copy with each NaN replaced by the nearest known value (Euclidean, to a few per cent)."""
    return hosted("depth", "fill_holes", field)


def fade(
    image: Batch, field: Batch, table: npt.NDArray[np.float32], scale: float, colour: tuple[float, ...]
) -> Batch:
    """colour + t·(image − colour), rounded, where t is `table` at field·scale, interpolated linearly."""
    place = (field.data * float(np.float32(scale))).clamp(max=len(table) - 2)
    i = place.to(torch.int32)
    values = resident(table)
    low = taken(values, i)
    share = (low + (place - i) * (taken(values, i + 1) - low))[..., None]
    haze = to_device(colour, np.float32)
    return Batch((((image.data - haze) * share + haze) + 0.5).to(torch.uint8))
