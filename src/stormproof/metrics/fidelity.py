"""Information fidelity (Sheikh, Bovik & de Veciana 2005; Sheikh & Bovik 2006): how much of the clean image's
information a corrupted image retains.

`vifp` works on pixels at four scales, `vif` and `ifc` on wavelet bands, as their authors' code does. All take
(clean, corrupted) in this order and use luma only, rounded to 8 bits as a grey image is. *liu* reports VIF
and IFC (with their spelled-out names swapped).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import cv2
import numpy as np

from stormproof.core.errors import InvalidImage
from stormproof.core.sample import Floats, Image, check_image
from stormproof.metrics.pyramid import pyramid_bands
from stormproof.metrics.quality import check_pair, grey

_NO_INFORMATION = 1e-6  # bits in a whole image; rounding leaves less than this in a flat image
_EPS, _WAVELET_EPS = 1e-10, 1e-15
_PIXEL_NOISE, _WAVELET_NOISE = 2.0, 0.4  # variance of the eye's own noise, in grey levels²
_MIN_PIXEL_SIDE, _MIN_WAVELET_SIDE = 41, 80  # a smaller image has no pixels left at the last scale
_BLOCK, _LEVELS = 3, 4


def vifp(clean: Image, corrupted: Image) -> float:
    """Visual information fidelity in the pixel domain; 1 for equal images, above 1 for gained contrast."""
    check_pair(clean, corrupted)
    _require_side(clean, _MIN_PIXEL_SIDE, "VIF in the pixel domain")
    a, b = grey(clean), grey(corrupted)
    kept = total = 0.0
    for side in (17, 9, 5, 3):
        if side < 17:
            a, b = _smooth(a, side)[::2, ::2], _smooth(b, side)[::2, ::2]
        gain, noise, variance_a = _channel(a, b, partial(_smooth, side=side), _EPS)
        kept += float(np.log10(1 + gain * gain * variance_a / (noise + _PIXEL_NOISE)).sum())
        total += float(np.log10(1 + variance_a / _PIXEL_NOISE).sum())
    return _share(kept, total, _same_luma(clean, corrupted))


def vif(clean: Image, corrupted: Image) -> float:
    """Visual information fidelity on wavelet bands: the bits that the eye gets from the corrupted image over
    those it gets from the clean one."""
    return Reference(clean).vif_and_ifc(corrupted)[0]


def ifc(clean: Image, corrupted: Image) -> float:
    """Information fidelity criterion: bits per pixel that the two images share; +∞ for equal images."""
    return Reference(clean).vif_and_ifc(corrupted)[1]


class Reference:
    """A clean image, analysed once, for `vif` and `ifc` of many corrupted versions in a fraction of the
    time."""

    def __init__(self, clean: Image) -> None:
        check_image(clean, "the clean image")
        _require_side(clean, _MIN_WAVELET_SIDE, "Wavelet VIF")
        self.clean = clean
        self._bands = [
            [(band, *_scale_mixture(band)) for band in map(_whole_blocks, level)]
            for level in pyramid_bands(grey(clean), _LEVELS)
        ]

    def vif_and_ifc(self, corrupted: Image) -> tuple[float, float]:
        """`vif` and `ifc` of this image and a corrupted one."""
        kept = total = shared = 0.0
        for gain, noise, energy, eigenvalues in self._channels(corrupted):
            power = gain * gain
            kept += _bits(power, noise + _WAVELET_NOISE, energy, eigenvalues)
            total += _bits(np.ones_like(gain), _WAVELET_NOISE, energy, eigenvalues)
            shared += _bits(power, noise + _EPS, energy, eigenvalues)
        height, width = corrupted.shape[:2]
        same = _same_luma(self.clean, corrupted)
        return _share(kept, total, same), math.inf if same else shared / float(height * width)

    def _channels(self, corrupted: Image) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """For each band: gain and noise of the channel, energy of the clean band, eigenvalues of its
        covariance."""
        check_pair(self.clean, corrupted)
        levels = pyramid_bands(grey(corrupted), _LEVELS)
        for level, (ours, theirs) in enumerate(zip(self._bands, levels, strict=True)):
            window = 2 ** (_LEVELS - level) + 1  # widest at the finest level: all cover the same area
            trim = math.ceil((window - 1) / 2 / _BLOCK)
            inner = (slice(trim, -trim), slice(trim, -trim))
            for (band, energy, eigenvalues), theirs_band in zip(ours, theirs, strict=True):
                mean = partial(_block_means, window=window)
                gain, noise, _ = _channel(band, _whole_blocks(theirs_band), mean, _WAVELET_EPS)
                yield gain[inner], noise[inner], energy[inner], eigenvalues


def _share(kept: float, total: float, same: bool) -> float:
    """The share of the information that is kept; NaN if the clean image is flat, so has none, and changed."""
    if total < _NO_INFORMATION:
        return 1.0 if same else math.nan
    return (kept + _EPS) / (total + _EPS)


def _same_luma(clean: Image, corrupted: Image) -> bool:
    return np.array_equal(grey(clean), grey(corrupted))


def _bits(power_gain: Floats, noise: Floats | float, energy: Floats, eigenvalues: Floats) -> float:
    ratio = power_gain * energy / noise
    return float(np.log2(1 + ratio[..., None] * eigenvalues).sum())


def _scale_mixture(band: Floats) -> tuple[Floats, Floats]:
    """The Gaussian scale mixture of 3×3 blocks: each block's energy s², and the eigenvalues of C_u."""
    views = np.lib.stride_tricks.sliding_window_view(band, (_BLOCK, _BLOCK)).reshape(-1, _BLOCK**2)
    covariance = np.cov(views, rowvar=False, bias=True)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues = eigenvalues.clip(min=0)
    rows, columns = band.shape[0] // _BLOCK, band.shape[1] // _BLOCK
    blocks = band.reshape(rows, _BLOCK, columns, _BLOCK).swapaxes(1, 2).reshape(rows, columns, _BLOCK**2)
    whitened = np.square(blocks @ vectors)
    spread = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > _EPS)
    energy: Floats = whitened @ spread / _BLOCK**2
    return energy, eigenvalues


def _block_means(values: Floats, window: int) -> Floats:
    """The mean over a window around the centre of every block."""
    averaged = cv2.blur(values, (window, window), borderType=cv2.BORDER_REFLECT_101)
    return np.asarray(averaged, np.float64)[_BLOCK // 2 :: _BLOCK, _BLOCK // 2 :: _BLOCK]


def _channel(
    a: Floats, b: Floats, mean: Callable[[Floats], Floats], tiny: float
) -> tuple[Floats, Floats, Floats]:
    """Gain and noise variance of corrupted = gain · clean + noise by least squares over local means, and the
    variance of the clean image; the gain is 0 where either patch is flat or contrast is reversed."""
    mean_a, mean_b = mean(a), mean(b)
    variance_a = (mean(a * a) - mean_a * mean_a).clip(min=0)
    variance_b = (mean(b * b) - mean_b * mean_b).clip(min=0)
    covariance = mean(a * b) - mean_a * mean_b
    gain = covariance / (variance_a + tiny)
    lost = (variance_a < tiny) | (gain < 0)
    flat = variance_b < tiny
    noise = np.where(lost | flat, variance_b, variance_b - gain * covariance)
    gain[lost | flat], noise[flat] = 0.0, 0.0
    return gain, np.maximum(noise, tiny), variance_a


def _smooth(values: Floats, side: int) -> Floats:
    """Gaussian-weighted mean (σ = side / 5) around every pixel whose window lies inside the image."""
    half = side // 2
    blurred = cv2.GaussianBlur(values, (side, side), side / 5)
    return np.asarray(blurred, np.float64)[half:-half, half:-half]


def _whole_blocks(band: Floats) -> Floats:
    rows, columns = (n - n % _BLOCK for n in band.shape)
    return np.ascontiguousarray(band[:rows, :columns])


def _require_side(image: Image, least: int, what: str) -> None:
    if min(image.shape[:2]) < least:
        raise InvalidImage(
            f"{what} needs at least {least} pixels a side; this image is {image.shape[0]}×{image.shape[1]}."
        )
