"""Operations on whole pixels: colour transforms, dead pixels, and noise in another domain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.gpu.tensors import resident, taken


def transform_colours(image: Batch, matrix: npt.NDArray[np.float64]) -> Batch:
    """matrix · (R, G, B, 1) for every pixel, rounded and saturated; `matrix` is 3×4, grey levels."""
    r, g, b = image.data.to(torch.int32).unbind(3)
    # OpenCV multiplies 8-bit colours in integers of 10 fractional bits.
    shares = np.rint(matrix.astype(np.float32)[:, :3] * 1024).astype(int).tolist()
    offsets = np.rint((matrix.astype(np.float32)[:, 3] + np.float32(0.5)) * 1024).astype(int).tolist()
    rows = [(r * p + g * q + b * s + t) >> 10 for (p, q, s), t in zip(shares, offsets, strict=True)]
    return Batch(torch.stack(rows, 3).clamp(0, 255).to(torch.uint8))


def black_and_white_pixels(image: Batch, amount: float, bits: Batch) -> Batch:
    """Set a fraction `amount` of the pixels, all channels at once, to black or white, half each."""
    low, high = (round(share * 65536) for share in (amount / 2, amount))
    drawn = bits.data[..., None]
    return Batch(image.data.masked_fill(drawn < high, 255).masked_fill(drawn < low, 0))


def noise_within(
    image: Batch,
    forward: npt.NDArray[np.int32],
    steps: npt.NDArray[np.int32],
    common: Batch,
    own: Batch,
    back: npt.NDArray[np.uint8],
) -> Batch:
    """Noise added in another domain: back[forward[v] + steps[common] + steps[own]], integers throughout.

    `common` is one draw a pixel, the same for all channels; `own` one for every channel.
    """
    noise = taken(resident(steps), common.data)[..., None] + taken(resident(steps), own.data)
    place = taken(resident(forward), image.data.to(torch.int32)) + noise
    return Batch(taken(resident(back), place.clamp(0, len(back) - 1)))
