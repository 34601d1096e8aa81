"""What changes with the distance from a point of the image: haze around a centre, a lens's falloff."""

from __future__ import annotations

import numpy as np
import torch

from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import resident, root, taken
from stormproof.imaging.plans import Field


def radial(image: Batch, profile: Field, *, centre: tuple[float, float], reach: float, grey: float) -> Batch:
    """g·image + (1 − g)·grey, rounded, where g depends on the distance from `centre` = (row, column).

    `profile` holds g at equal steps from distance 0 to `reach` pixels, with straight lines between.
    """
    data = image.data
    row, column, per_pixel, colour = (
        float(number) for number in np.array([*centre, (len(profile) - 1) / reach, grey], np.float32)
    )
    height, width = image.shape[:2]
    dy = torch.arange(height, dtype=torch.float32, device=data.device) - row
    dx = torch.arange(width, dtype=torch.float32, device=data.device) - column
    place = root(dx * dx + (dy * dy)[:, None]) * per_pixel
    i = place.to(torch.int32).clamp(max=len(profile) - 2)
    table = resident(profile)
    low = taken(table, i)
    gain = low + (place - i) * (taken(table, i + 1) - low)
    level = ((data.to(torch.float32) - colour) * gain[..., None] + colour) + 0.5
    return Batch(level.clamp(0, 255).to(torch.uint8))
