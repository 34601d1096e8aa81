"""How far a corrupted image is from the clean one: RMSE, SNR, SSIM, colour histograms; also by object.

Every measure takes (clean, corrupted), two images of the same shape; the order matters for SNR.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np

from stormproof.core.errors import InvalidImage
from stormproof.core.sample import Floats, Image, Instances, check_image

_WINDOW, _SIGMA, _K1, _K2 = 11, 1.5, 0.01, 0.03  # Wang et al. 2004
_SOBEL_MAX = math.sqrt(20)  # the largest magnitude of a 3×3 Sobel filter on [0, 1]: 4 one way, 2 the other
SIZES = {"small": 32.0**2, "medium": 96.0**2, "large": math.inf}  # COCO's: areas below these limits


def check_pair(clean: Image, corrupted: Image) -> None:
    """Refuse images that cannot be compared."""
    check_image(clean, "the clean image")
    check_image(corrupted, "the corrupted image")
    if clean.shape != corrupted.shape:
        raise InvalidImage(
            f"The clean image is {clean.shape}, the corrupted one {corrupted.shape}; "
            "compare images of the same size."
        )


def grey(image: Image) -> Floats:
    """Luma 0.299 R + 0.587 G + 0.114 B rounded to 8 bits, as floats in 0..255."""
    flat = image if image.ndim == 2 or image.shape[2] == 3 else image[..., 0]
    luma = cv2.cvtColor(flat, cv2.COLOR_RGB2GRAY) if flat.ndim == 3 else flat
    return luma.astype(np.float64)


class ImageChange(NamedTuple):
    """How far a corrupted image is from the clean one: `rmse` in grey levels, `snr` in dB."""

    rmse: float
    snr: float


def change(clean: Image, corrupted: Image) -> ImageChange:
    """RMSE and SNR together, as a run stores them for every cell. Sums of squares of bytes are exact.

    >>> change(np.full((4, 4, 3), 100, np.uint8), np.full((4, 4, 3), 110, np.uint8))
    ImageChange(rmse=10.0, snr=20.0)
    """
    check_pair(clean, corrupted)
    # Some builds of OpenCV square a square root; rounding restores the integers on every machine.
    noise, power = cv2.norm(clean, corrupted, cv2.NORM_L2SQR), cv2.norm(clean, cv2.NORM_L2SQR)
    return change_from_sums(round(noise), round(power), clean.size)


def change_from_sums(noise: int, power: int, values: int) -> ImageChange:
    """The change from the sums of squares of the differences and of the clean image's `values` values."""
    error = math.sqrt(noise / values)
    if noise == 0:
        return ImageChange(error, math.inf)
    return ImageChange(error, 10 * math.log10(power / noise) if power > 0 else -math.inf)


def rmse(clean: Image, corrupted: Image) -> float:
    """Root mean squared difference over pixels and channels, in grey levels (*michaelis*, section 3.4)."""
    return change(clean, corrupted).rmse


def snr(clean: Image, corrupted: Image) -> float:
    """Signal-to-noise ratio 10 log₁₀ Σx² / Σ(x − y)² in dB, as in *kamann*'s figures; +∞ for equal images."""
    return change(clean, corrupted).snr


def ssim(clean: Image, corrupted: Image) -> float:
    """Structural similarity (Wang et al. 2004): grey, Gaussian 11×11 window with σ 1.5, over the valid area.

    Sides below 11 px are padded by reflection.

    >>> image = np.arange(400, dtype=np.uint8).reshape(20, 20)
    >>> ssim(image, image)
    1.0
    """
    check_pair(clean, corrupted)
    return ssim_of_maps(grey(clean), grey(corrupted), data_range=255.0)


def gradient_ssim(clean: Image, corrupted: Image) -> float:
    """SSIM of the Sobel gradient magnitudes (*theodoridis*): how well shapes survive, apart from colour.

    The paper names no operator; here, grey is in [0, 1], Sobel is 3×3, the magnitude is scaled to [0, 1].
    """
    check_pair(clean, corrupted)
    return ssim_of_maps(_gradient(grey(clean)), _gradient(grey(corrupted)), data_range=1.0)


def colour_wasserstein(clean: Image, corrupted: Image) -> float:
    """Wasserstein distance of the 256-bin histograms on a [0, 1] axis, mean over channels (*theodoridis*).

    >>> black, white = np.zeros((4, 4, 3), np.uint8), np.full((4, 4, 3), 255, np.uint8)
    >>> colour_wasserstein(black, black), colour_wasserstein(black, white)
    (0.0, 1.0)
    """
    check_pair(clean, corrupted)
    channels = 1 if clean.ndim == 2 else clean.shape[2]
    pairs = zip(
        np.split(clean.reshape(-1, channels), channels, axis=1),
        np.split(corrupted.reshape(-1, channels), channels, axis=1),
        strict=True,
    )
    return float(np.mean([np.abs(_cumulative(a) - _cumulative(b))[:-1].sum() / 255 for a, b in pairs]))


def ssim_of_maps(a: Floats, b: Floats, *, data_range: float) -> float:
    """Mean SSIM of two float maps, with population (not sample) covariances."""
    short = [max(0, _WINDOW - side) for side in a.shape]
    if any(short):
        pad = [((n + 1) // 2, n // 2) for n in short]
        a, b = np.pad(a, pad, mode="symmetric"), np.pad(b, pad, mode="symmetric")
    c1, c2 = (_K1 * data_range) ** 2, (_K2 * data_range) ** 2
    mean_a, mean_b = _window(a), _window(b)
    product, squares = mean_a * mean_b, mean_a * mean_a + mean_b * mean_b
    covariance = _window(a * b) - product
    variances = _window(a * a + b * b) - squares
    similar = (2 * product + c1) * (2 * covariance + c2) / ((squares + c1) * (variances + c2))
    return float(similar.mean())


def _window(values: Floats) -> Floats:
    """The Gaussian-weighted mean around every pixel whose window lies inside the image."""
    half = _WINDOW // 2
    blurred = cv2.GaussianBlur(values, (_WINDOW, _WINDOW), _SIGMA, borderType=cv2.BORDER_REFLECT)
    inner: Floats = np.asarray(blurred, np.float64)[half:-half, half:-half]
    return inner


def _gradient(luma: Floats) -> Floats:
    dx = cv2.Sobel(luma / 255, cv2.CV_64F, 1, 0)
    dy = cv2.Sobel(luma / 255, cv2.CV_64F, 0, 1)
    magnitude: Floats = np.hypot(dx, dy) / _SOBEL_MAX
    return magnitude


def _cumulative(channel: Image) -> Floats:
    histogram = np.bincount(channel.ravel(), minlength=256)
    running: Floats = np.cumsum(histogram) / channel.size
    return running


def size_of(area: float) -> str:
    """The name of an object's size, by its area in pixels.

    >>> size_of(1023.0), size_of(1024.0)
    ('small', 'medium')
    """
    return next(name for name, limit in SIZES.items() if area < limit)


def object_quality(
    clean: Image, corrupted: Image, objects: Instances, measure: Callable[[Image, Image], float]
) -> Floats:
    """A measure of quality around each object, on the crop of its bounding box (*theodoridis*, Fig. 4).

    Edges are rounded outwards; the result is NaN if the box is empty or outside the image.

    >>> objects = Instances([[0, 0, 8, 8], [90, 90, 99, 99]], [0, 0])
    >>> object_quality(np.zeros((20, 20), np.uint8), np.full((20, 20), 3, np.uint8), objects, rmse).tolist()
    [3.0, nan]
    """
    values = np.full(len(objects), np.nan)
    low, high = np.floor(objects.boxes[:, :2]), np.ceil(objects.boxes[:, 2:])
    edges = np.concatenate([low, high], axis=1).clip(0, max(clean.shape)).astype(np.int64)
    for i, (x1, y1, x2, y2) in enumerate(edges.tolist()):
        crop = slice(y1, y2), slice(x1, x2)
        if clean[crop].size:
            values[i] = measure(clean[crop], corrupted[crop])
    return values
