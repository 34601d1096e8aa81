"""Operations on whole pixels: colour transforms, dead pixels, and noise in another domain."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.noise import Bits


def transform_colours(image: Image, matrix: npt.NDArray[np.float64]) -> Image:
    """matrix · (R, G, B, 1) for every pixel, rounded and saturated; `matrix` is 3×4, grey levels."""
    out = cv2.transform(np.ascontiguousarray(image), matrix.astype(np.float32))
    return np.asarray(out, np.uint8)


@kernel
def _dead(pixels: Any, low: Any, high: Any, bits: Any, out: Any) -> None:
    channels = pixels.shape[1]
    for i in range(pixels.shape[0]):
        u = bits[i]
        if u < high:
            level = np.uint8(0) if u < low else np.uint8(255)
            for c in range(channels):
                out[i, c] = level


def black_and_white_pixels(image: Image, amount: float, bits: Bits) -> Image:
    """Set a fraction `amount` of the pixels, all channels at once, to black or white, half each."""
    out = np.array(image, order="C")
    low, high = (np.uint32(round(share * 65536)) for share in (amount / 2, amount))
    channels = image.shape[2]
    _dead(out.reshape(-1, channels), low, high, np.ravel(bits), out.reshape(-1, channels))
    return out


@kernel
def _noise_within(image: Any, forward: Any, steps: Any, common: Any, own: Any, back: Any, out: Any) -> None:
    last = np.int32(back.shape[0] - 1)
    channels = image.shape[1]
    for i in range(image.shape[0]):
        shared = steps[common[i]]
        for c in range(channels):
            place = forward[image[i, c]] + shared + steps[own[i, c]]
            out[i, c] = back[min(max(place, np.int32(0)), last)]


def noise_within(
    image: Image,
    forward: npt.NDArray[np.int32],
    steps: npt.NDArray[np.int32],
    common: Bits,
    own: Bits,
    back: npt.NDArray[np.uint8],
) -> Image:
    """Noise added in another domain: back[forward[v] + steps[common] + steps[own]], integers throughout.

    `common` is one draw a pixel, the same for all channels; `own` one for every channel.
    """
    channels = image.shape[2]
    out = np.empty_like(image, order="C")
    _noise_within(
        np.ascontiguousarray(image).reshape(-1, channels),
        forward,
        steps,
        np.ravel(common),
        own.reshape(-1, channels),
        back,
        out.reshape(-1, channels),
    )
    return out
