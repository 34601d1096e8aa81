"""Luma and chroma as cameras transfer them, and choosing between two images pixel by pixel."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image


def to_yuv(image: Image) -> Image:
    """RGB as Y, Cr, Cb of ITU-R BT.601 over the full 8 bits, chroma centred on 128; grey stays Y."""
    return (
        image.copy()
        if image.shape[2] == 1
        else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb), np.uint8)
    )


def from_yuv(image: Image) -> Image:
    """The way back: RGB of Y, Cr, Cb; grey of Y."""
    return (
        image.copy()
        if image.shape[2] == 1
        else np.asarray(cv2.cvtColor(image, cv2.COLOR_YCrCb2RGB), np.uint8)
    )


@kernel
def _dissolve(image: Any, other: Any, bound: Any, bits: Any, out: Any) -> None:
    for i in range(bits.shape[0]):
        chosen = bits[i] < bound
        for c in range(image.shape[1]):
            out[i, c] = other[i, c] if chosen else image[i, c]


def dissolve(image: Image, other: Image, share: float, bits: npt.NDArray[np.uint16]) -> Image:
    """The image with a share of its pixels, whole, taken from `other`; `bits` has 16 for each pixel."""
    out = np.empty_like(image, order="C")
    channels = image.shape[2]
    mine, theirs = (np.ascontiguousarray(a).reshape(-1, channels) for a in (image, other))
    _dissolve(mine, theirs, np.uint32(round(share * 65536)), np.ravel(bits), out.reshape(-1, channels))
    return out
