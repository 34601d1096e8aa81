"""Noise by table: 16 random bits choose, for each value, one of its equally likely outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image

Bits = npt.NDArray[np.uint16]


@kernel
def _add(values: Any, steps: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        out[i] = min(max(np.int32(values[i]) + np.int32(steps[bits[i]]), 0), 255)


def add_noise(image: Image, steps: npt.NDArray[np.int16], bits: Bits) -> Image:
    """Add to each value the step that its random bits choose out of 65,536, and saturate."""
    out = np.empty_like(image, order="C")
    _add(np.ravel(image), steps, np.ravel(bits), out.reshape(-1))
    return out


@kernel
def _look_up(values: Any, table: Any, shift: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        out[i] = table[values[i], bits[i] >> shift]


def noise_by_table(image: Image, table: npt.NDArray[np.uint8], bits: Bits) -> Image:
    """Replace each value v by table[v, top bits]; the table's width is a power of two up to 65,536."""
    out = np.empty_like(image, order="C")
    shift = np.uint16(17 - int(table.shape[1]).bit_length())
    _look_up(np.ravel(image), table, shift, np.ravel(bits), out.reshape(-1))
    return out


@kernel
def _replace(values: Any, low: Any, high: Any, bits: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        u = bits[i]
        kept = np.uint8(255) if u < high else values[i]
        out[i] = np.uint8(0) if u < low else kept


def salt_and_pepper(image: Image, amount: float, bits: Bits) -> Image:
    """Set a fraction `amount` of the values to 0 or 255, half each."""
    out = np.empty_like(image, order="C")
    low, high = (np.uint32(round(share * 65536)) for share in (amount / 2, amount))
    _replace(np.ravel(image), low, high, np.ravel(bits), out.reshape(-1))
    return out
