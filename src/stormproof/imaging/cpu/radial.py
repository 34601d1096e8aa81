"""What changes with the distance from a point of the image: haze around a centre, a lens's falloff."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import Field


@kernel
def _radial(
    image: Any, profile: Any, row: Any, column: Any, per_pixel: Any, colour: Any, channels: Any, out: Any
) -> None:
    """`image` and `out` are H × (W·C)."""
    height, n = image.shape
    width = n // channels
    half = np.float32(0.5)
    last = profile.shape[0] - 2
    gain = np.empty(n, np.float32)
    for y in range(height):
        dy = np.float32(y) - row
        square = dy * dy
        for x in range(width):
            dx = np.float32(x) - column
            place = np.sqrt(dx * dx + square) * per_pixel
            i = min(np.int32(place), last)
            value = profile[i] + (place - np.float32(i)) * (profile[i + 1] - profile[i])
            for c in range(channels):
                gain[x * channels + c] = value
        source, target = image[y], out[y]
        for x in range(n):
            level = colour + gain[x] * (np.float32(source[x]) - colour) + half
            target[x] = np.uint8(min(max(level, np.float32(0)), np.float32(255)))


def radial(image: Image, profile: Field, *, centre: tuple[float, float], reach: float, grey: float) -> Image:
    """g·image + (1 − g)·grey, rounded, where g depends on the distance from `centre` = (row, column).

    `profile` holds g at equal steps from distance 0 to `reach` pixels, with straight lines between.
    """
    out = np.empty_like(image, order="C")
    height, _, channels = image.shape
    numbers = np.array([*centre, (len(profile) - 1) / reach, grey], np.float32)
    _radial(
        np.ascontiguousarray(image).reshape(height, -1),
        profile,
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        channels,
        out.reshape(height, -1),
    )
    return out
