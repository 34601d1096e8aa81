"""Noise by table: 16 random bits choose, for each value, one of its equally likely outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.cpu.layouts import by_pixel, by_value
from stormproof.imaging.plans import Field

Bits = npt.NDArray[np.uint16]


@kernel
def _add(values: Any, steps: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        out[i] = min(max(np.int32(values[i]) + np.int32(steps[bits[i]]), 0), 255)


def add_noise(image: Image, steps: npt.NDArray[np.int16], bits: Bits) -> Image:
    """Add to each value the step that its random bits choose out of 65,536, and clip."""
    return by_value(_add, image, steps, np.ravel(bits))


@kernel
def _look_up(values: Any, table: Any, shift: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        out[i] = table[values[i], bits[i] >> shift]


def noise_by_table(image: Image, table: npt.NDArray[np.uint8], bits: Bits) -> Image:
    """Replace each value v by table[v, top bits]; the table's width is a power of two up to 65,536."""
    shift = np.uint16(17 - int(table.shape[1]).bit_length())
    return by_value(_look_up, image, table, shift, np.ravel(bits))


@kernel
def _replace(values: Any, low: Any, high: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        u = bits[i]
        kept = np.uint8(255) if u < high else values[i]
        out[i] = np.uint8(0) if u < low else kept


def salt_and_pepper(image: Image, amount: float, bits: Bits) -> Image:
    """Set a fraction `amount` of the values to 0 or 255, half each."""
    low, high = (np.uint32(round(share * 65536)) for share in (amount / 2, amount))
    return by_value(_replace, image, low, high, np.ravel(bits))


def dissolve(image: Image, other: Image, share: float, bits: Bits) -> Image:
    """The image with a share of its pixels replaced by those of `other`; 16 random bits per pixel."""
    return np.where((bits < round(share * 65536))[..., None], other, image)


def black_and_white_pixels(image: Image, amount: float, bits: Bits) -> Image:
    """Set a fraction `amount` of the pixels to black or white, half each."""
    out = np.array(image, order="C")
    out[bits < round(amount * 65536)] = 255
    out[bits < round(amount / 2 * 65536)] = 0
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
    """Noise added in another domain: back[forward[v] + steps[common] + steps[own]], all integers.

    `common` is one draw per pixel, the same for all channels; `own` is one per channel.
    """
    each = own.reshape(-1, image.shape[2])
    return by_pixel(_noise_within, image, forward, steps, np.ravel(common), each, back)


@kernel
def _expose(
    values: Any,
    gain: Any,
    veil: Any,
    light: Any,
    full: Any,
    read: Any,
    normal: Any,
    bits: Any,
    back: Any,
    out: Any,
) -> None:
    last = np.float32(back.shape[0] - 1)
    gain_step, veil_step = min(gain.shape[0] - 1, 1), min(veil.shape[0] - 1, 1)  # 0 for one number
    for i in range(values.shape[0]):
        electrons = (light[values[i]] * gain[i * gain_step] + veil[i * veil_step]) * full
        seen = electrons + np.sqrt(electrons + read) * normal[bits[i]]
        place = min(max(seen / full, np.float32(0)), np.float32(1)) * last
        out[i] = back[np.int32(place + np.float32(0.5))]


def expose(
    image: Image,
    gain: Field,
    veil: Field,
    *,
    light: Field,
    electrons: float,
    read: float,
    normal: Field,
    bits: Bits,
    back: npt.NDArray[np.uint8],
) -> Image:
    """Take the picture again under other light, with the noise of a sensor.

    A value v has the linear light[v]·gain + veil, both of the image's shape or 1×1×1. A pixel that is
    just white collects `electrons`, whose shot noise adds to `read` electrons of read noise.
    `normal` holds 65,536 quantiles of the normal distribution, `back` the grey levels of linear light from
    0 to 1.
    """
    full, spread = np.float32(electrons), np.float32(read * read)
    lit, added = np.ravel(gain), np.ravel(veil)
    return by_value(_expose, image, lit, added, light, full, spread, normal, np.ravel(bits), back)
