"""Information fidelity (Sheikh, Bovik & de Veciana 2005; Sheikh & Bovik 2006): how much of what the clean
picture says is still there.

`vifp` works on pixels at four scales; `vif` and `ifc` on the wavelet bands the originals use. All take
(clean, corrupted) in this order and look at luma only. *liu* reports VIF and IFC (with their spelled-out
names swapped).
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from stormproof.errors import InvalidImage
from stormproof.metrics.pyramid import oriented_bands
from stormproof.metrics.quality import check_pair, grey
from stormproof.sample import Floats, Image

_EPS = 1e-10
_PIXEL_NOISE, _WAVELET_NOISE = 2.0, 0.4  # variance of the eye's own noise, in grey levels²
_MIN_PIXEL_SIDE, _MIN_WAVELET_SIDE = 41, 80  # what is left of a smaller picture at the last scale is nothing
_BLOCK, _LEVELS = 3, 4


def vifp(clean: Image, corrupted: Image) -> float:
    """Visual information fidelity in the pixel domain; 1 for equal pictures, above 1 for gained contrast."""
    check_pair(clean, corrupted)
    _require_side(clean, _MIN_PIXEL_SIDE, "VIF in the pixel domain")
    a, b = grey(clean), grey(corrupted)
    kept = said = 0.0
    for side in (17, 9, 5, 3):
        if side < 17:
            a, b = _smooth(a, side)[::2, ::2], _smooth(b, side)[::2, ::2]
        mean_a, mean_b = _smooth(a, side), _smooth(b, side)
        variance_a = (_smooth(a * a, side) - mean_a * mean_a).clip(min=0)
        variance_b = (_smooth(b * b, side) - mean_b * mean_b).clip(min=0)
        gain, noise = _channel(variance_a, variance_b, _smooth(a * b, side) - mean_a * mean_b, _EPS)
        kept += float(np.log10(1 + gain * gain * variance_a / (noise + _PIXEL_NOISE)).sum())
        said += float(np.log10(1 + variance_a / _PIXEL_NOISE).sum())
    return (kept + _EPS) / (said + _EPS)


def vif(clean: Image, corrupted: Image) -> float:
    """Visual information fidelity on wavelet bands: bits the eye gets from the corrupted picture over those
    from the clean one."""
    bands = _bands(clean, corrupted)
    kept: float = sum(_bits(g * g, noise + _WAVELET_NOISE, energy, lam) for g, noise, energy, lam in bands)
    said = sum(_bits(np.ones_like(g), _WAVELET_NOISE, energy, lam) for g, _, energy, lam in bands)
    return (kept + _EPS) / (said + _EPS)


def ifc(clean: Image, corrupted: Image) -> float:
    """Information fidelity criterion: bits per pixel that the two pictures share; +∞ for equal pictures."""
    check_pair(clean, corrupted)
    if np.array_equal(grey(clean), grey(corrupted)):
        return math.inf
    bands = _bands(clean, corrupted)
    shared: float = sum(_bits(g * g, noise + _EPS, energy, lam) for g, noise, energy, lam in bands)
    height, width = clean.shape[:2]
    return shared / float(height * width)


def _bits(power_gain: Floats, noise: Floats | float, energy: Floats, eigenvalues: Floats) -> float:
    ratio = power_gain * energy / noise
    return float(np.log2(1 + ratio[..., None] * eigenvalues).sum())


def _bands(clean: Image, corrupted: Image) -> list[tuple[Floats, Floats, Floats, Floats]]:
    """Per band: the channel's gain and noise, the clean band's local energy, its covariance's eigenvalues."""
    check_pair(clean, corrupted)
    _require_side(clean, _MIN_WAVELET_SIDE, "Wavelet VIF")
    crop = tuple(slice(0, n - n % 2**_LEVELS) for n in clean.shape[:2])
    pyramids = [
        oriented_bands(grey(image)[crop], levels=_LEVELS, orientations=(0, 3), of=6)
        for image in (clean, corrupted)
    ]
    bands = []
    for level, (ours, theirs) in enumerate(zip(*pyramids, strict=True)):
        window = 2 ** (_LEVELS - level) + 1  # widest at the finest level, so that all see the same area
        trim = math.ceil((window - 1) / 2 / _BLOCK)
        inner = (slice(trim, -trim), slice(trim, -trim))
        for a, b in zip(ours, theirs, strict=True):
            a, b = _whole_blocks(a), _whole_blocks(b)
            gain, noise = _local_channel(a, b, window)
            energy, eigenvalues = _scale_mixture(a)
            bands.append((gain[inner], noise[inner], energy[inner], eigenvalues))
    return bands


def _scale_mixture(band: Floats) -> tuple[Floats, Floats]:
    """A Gaussian scale mixture of 3×3 neighbourhoods: each block's energy s², and the eigenvalues of C_u."""
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


def _local_channel(a: Floats, b: Floats, window: int) -> tuple[Floats, Floats]:
    """Gain and noise of corrupted = gain · clean + noise, at the centre of every block."""

    def mean(values: Floats) -> Floats:
        averaged = cv2.blur(values, (window, window), borderType=cv2.BORDER_REFLECT_101)
        return np.asarray(averaged, np.float64)[_BLOCK // 2 :: _BLOCK, _BLOCK // 2 :: _BLOCK]

    mean_a, mean_b = mean(a), mean(b)
    variance_a = (mean(a * a) - mean_a * mean_a).clip(min=0)
    variance_b = (mean(b * b) - mean_b * mean_b).clip(min=0)
    return _channel(variance_a, variance_b, mean(a * b) - mean_a * mean_b, 1e-15)


def _channel(
    variance_a: Floats, variance_b: Floats, covariance: Floats, tiny: float
) -> tuple[Floats, Floats]:
    """Least-squares gain and residual variance, never negative; a flat or reversed patch carries nothing."""
    gain = covariance / (variance_a + tiny)
    noise = variance_b - gain * covariance
    flat = variance_a < tiny
    gain[flat], noise[flat] = 0.0, variance_b[flat]
    silent = variance_b < tiny
    gain[silent], noise[silent] = 0.0, 0.0
    reversed_ = gain < 0
    gain[reversed_], noise[reversed_] = 0.0, variance_b[reversed_]
    return gain, np.maximum(noise, tiny)


def _smooth(values: Floats, side: int) -> Floats:
    """Gaussian mean (σ = side / 5) wherever the window lies inside."""
    half = side // 2
    blurred = cv2.GaussianBlur(values, (side, side), side / 5)
    return np.asarray(blurred, np.float64)[half:-half, half:-half]


def _whole_blocks(band: Floats) -> Floats:
    rows, columns = (n - n % _BLOCK for n in band.shape)
    return np.ascontiguousarray(band[:rows, :columns])


def _require_side(image: Image, least: int, what: str) -> None:
    if min(image.shape[:2]) < least:
        raise InvalidImage(
            f"{what} needs at least {least} pixels a side; this picture is {image.shape[0]}×{image.shape[1]}."
        )
