"""A steerable pyramid (Simoncelli & Freeman 1995): oriented band-pass images, an octave apart.

Filters are defined in the frequency domain: raised cosines of the log-radius, cosⁿ of the angle. The
transform is scaled as a tight frame (each octave down doubles the amplitude of a constant), like the spatial
filters used for image quality.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stormproof.core.sample import Floats

Spectrum = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters for images of one shape: a first low pass, then the angular windows and the low pass of
    each level."""

    low: Floats
    levels: tuple[tuple[tuple[Spectrum, ...], Floats], ...]


def make_filters(shape: tuple[int, ...], *, levels: int, orientations: tuple[int, ...], of: int) -> Filters:
    """Filters of the given orientations, out of `of` equally spaced ones; 0 responds to vertical edges.

    Sides must be multiples of 2^(levels − 1); each level halves them.
    """
    filters = []
    for level in range(levels):
        octave, angle = _polar(tuple(side >> level for side in shape))
        high = _high(octave + 1)
        filters.append((tuple(high * _fan(angle, k, of) for k in orientations), _low(octave + 1)))
    return Filters(_low(_polar(shape)[0]), tuple(filters))


def filtered(image: Floats, filters: Filters) -> Iterator[list[Floats]]:
    """For each level, finest first, the image's band at each orientation."""
    spectrum: Spectrum = np.fft.fftshift(np.fft.fft2(image, norm="ortho")) * filters.low
    for fans, low in filters.levels:
        yield [_real(spectrum * fan) for fan in fans]
        spectrum = _inner_half(spectrum * low)


def _polar(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """log₂ of the radius (0 at the Nyquist frequency) and the angle, with zero frequency in the middle."""
    rows, columns = ((np.arange(n) - n // 2) / (n / 2) for n in shape)
    x, y = np.meshgrid(columns, rows)
    radius = np.hypot(x, y)
    radius[shape[0] // 2, shape[1] // 2] = np.finfo(float).tiny  # zero frequency: far below every octave
    return np.log2(radius), np.arctan2(y, x)


def _high(octave: Floats) -> Floats:
    """High pass: 1 from `octave` 0 up, 0 below −1; the squares of this and of `_low` add up to 1."""
    gain: Floats = np.cos(math.pi / 2 * np.clip(-octave, 0, 1))
    return gain


def _low(octave: Floats) -> Floats:
    gain: Floats = np.sin(math.pi / 2 * np.clip(-octave, 0, 1))
    return gain


def _fan(angle: Floats, k: int, of: int) -> Spectrum:
    """The k-th of `of` angular windows; their squares add up to 1 over both half planes."""
    order = of - 1
    scale = 2.0**order * math.factorial(order) / math.sqrt(of * math.factorial(2 * order))
    window: Spectrum = (-1j) ** order * scale * np.cos(angle - math.pi * k / of) ** order
    return window


def _real(spectrum: Spectrum) -> Floats:
    band: Floats = np.fft.ifft2(np.fft.ifftshift(spectrum), norm="ortho").real
    return band


def _inner_half(spectrum: Spectrum) -> Spectrum:
    rows, columns = (n // 2 for n in spectrum.shape)
    top, left = rows - rows // 2, columns - columns // 2
    return spectrum[top : top + rows, left : left + columns]
