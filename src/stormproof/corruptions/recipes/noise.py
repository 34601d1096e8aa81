"""Noise: what a sensor and its wiring add to every value."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, ladder

noise = partial(corruption, family="noise", cite="hendrycks2019")

_LEVELS = 4096  # outcomes per grey level where noise depends on it: a table of 1 MiB fits in cache


@lru_cache(maxsize=16)
def normal_steps(sd: float) -> npt.NDArray[np.int16]:
    """The step for each 16-bit draw. The floor is the reference's truncation: ⌊v + n⌋ = v + ⌊n⌋."""
    return np.clip(np.floor(sd * normal_quantiles()), -256, 256).astype(np.int16)


@noise(owner="frame", sigma=ladder(0.08, 0.12, 0.18, 0.26, 0.38, low=0, high=10, unit="of full scale"))
def gaussian_noise(image: Image, draw: Draw, *, sigma: float) -> Image:
    """Independent normal noise in every channel, as a sensor adds in low light.

    A value v becomes v + 255·σ·N(0, 1), drawn independently for each channel of each pixel.
    """
    return imaging.add_noise(image, normal_steps(255 * sigma), draw.bits("noise", image.shape))


@lru_cache(maxsize=16)
def poisson_table(photons: float) -> npt.NDArray[np.uint8]:
    """table[v, i]: truncated grey level of the (i + ½)/4096 quantile of Poisson(photons·v/255)/photons."""
    means = photons * np.arange(256) / 255
    counts = np.arange(int(photons + 12 * np.sqrt(photons) + 24))
    # Probabilities by logarithms: exact enough far into both tails, without special functions.
    factorials = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    levels = (np.clip(counts / photons, 0, 1) * 255).astype(np.uint8)
    quantiles = (np.arange(_LEVELS) + 0.5) / _LEVELS
    table = np.empty((256, _LEVELS), np.uint8)
    for row, mean in zip(table, means, strict=True):  # row by row, to save memory
        below = np.cumsum(np.exp(counts * np.log(max(mean, 1e-300)) - factorials - mean))
        row[:] = levels[np.minimum(np.searchsorted(below, quantiles, side="left"), len(counts) - 1)]
    return table


@noise(
    owner="frame",
    photons=ladder(60, 25, 12, 5, 3.0, low=0.05, high=10000, between="log", unit="photons at white"),
)
def shot_noise(image: Image, draw: Draw, *, photons: float) -> Image:
    """Few photons: each value is a Poisson count with `photons` expected at white.

    A value v becomes 255/photons · Poisson(photons·v/255), clipped at white.
    """
    return imaging.noise_by_table(image, poisson_table(photons), draw.bits("noise", image.shape))


@noise(owner="frame", amount=ladder(0.03, 0.06, 0.09, 0.17, 0.27, low=0, high=1, unit="of all values"))
def impulse_noise(image: Image, draw: Draw, *, amount: float) -> Image:
    """Salt and pepper from transmission faults.

    A share `amount` of all values becomes 0 or 255, with equal probability.
    Channels are hit independently, so at severity 5 three pixels in five change colour.
    """
    return imaging.salt_and_pepper(image, amount, draw.bits("noise", image.shape))


@lru_cache(maxsize=16)
def _speckle_table(sigma: float) -> npt.NDArray[np.uint8]:
    """table[v, i]: truncated v·(1 + σ·normal quantile)."""
    normal = normal_quantiles().reshape(_LEVELS, -1).mean(axis=1)
    gains = 1 + sigma * normal / normal.std()
    table = np.empty((256, _LEVELS), np.uint8)
    for level, row in enumerate(table):
        row[:] = np.clip(level * gains + 1e-9, 0, 255)
    return table


@noise(owner="frame", sigma=ladder(0.15, 0.2, 0.35, 0.45, 0.6, low=0, high=10, unit="of the value"))
def speckle_noise(image: Image, draw: Draw, *, sigma: float) -> Image:
    """Normal noise in proportion to brightness, as from coherent light and gain errors.

    A value v becomes v + v·σ·N(0, 1), drawn independently for each channel of each pixel.
    """
    return imaging.noise_by_table(image, _speckle_table(sigma), draw.bits("noise", image.shape))


@noise(
    cite="kar2022",
    owner="frame",
    sigma=ladder(0.056, 0.084, 0.126, 0.182, 0.266, low=0, high=10, unit="of full scale"),
)
def iso_noise(image: Image, draw: Draw, *, sigma: float) -> Image:
    """High ISO: few photons, 25 at white, and the amplifier's own noise.

    A value v becomes 255/25 · Poisson(25·v/255), clipped at white, + 255·σ·N(0, 1); σ is 0.7 times that of
    `gaussian_noise`.
    """
    counted = imaging.noise_by_table(image, poisson_table(25.0), draw.bits("photons", image.shape))
    return imaging.add_noise(counted, normal_steps(255 * sigma), draw.bits("noise", image.shape))


@corruption(
    family="light",
    cite="kar2022",
    owner="frame",
    gain=ladder(0.6, 0.5, 0.4, 0.3, 0.2, low=0, high=1, unit="×"),
)
def low_light(image: Image, draw: Draw, *, gain: float) -> Image:
    """Too little light: darkened towards its shadows, with the noise of few photons.

    A value v becomes gain·((v − min)/(max − min))² on a scale of 0 to 1, with the image's least and greatest
    value; then come Poisson noise of 120 photons at white and normal noise of σ = 0.018.
    """
    low, high = image.min() / 255, image.max() / 255
    levels = (np.arange(256) / 255 - low) / np.maximum(high - low, 1 / 255)
    table = np.rint(np.clip(levels, 0, 1) * np.clip(levels, 0, 1) * (255 * gain)).astype(np.uint8)
    dark = imaging.look_up(image, np.repeat(table[None], image.shape[2], axis=0))
    counted = imaging.noise_by_table(dark, poisson_table(120.0), draw.bits("photons", image.shape))
    return imaging.add_noise(counted, normal_steps(255 * 0.018), draw.bits("noise", image.shape))
