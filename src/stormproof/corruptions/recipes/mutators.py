"""Simple mutators (Pezzementi et al. 2018): what can go wrong without knowing the scene.

Their Gaussian blur and JPEG compression are the corruptions `gaussian_blur` and `jpeg_compression`. All
work on grey levels 0..255, rounded and saturated. None has a scale of severities: the suite `mutators`
holds the paper's own numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Image
from stormproof.corruptions.registry import corruption, free

HAZE = (205.0, 208.0, 211.0)  # the grey of fog, in grey levels
_LEVELS = 4096  # outcomes per grey level of signal-dependent noise


@corruption(family="light", cite="pezzementi2018", factor=free(low=0, high=255, unit="×"))
def brightness_shift(image: Image, *, factor: float) -> Image:
    """Sudden light or poor exposure: every channel multiplied by a factor, with saturation."""
    table = np.clip(np.rint(factor * np.arange(256)), 0, 255).astype(np.uint8)
    return imaging.look_up(image, np.tile(table, (image.shape[2], 1)))


@corruption(family="weather", cite="pezzementi2018", alpha=free(low=0, high=1, unit="weight"))
def alpha_blend(image: Image, *, alpha: float) -> Image:
    """The image blended with the grey of fog, (205, 208, 211): haze without depth.

    α is the weight of the grey. The paper's prose lists image weights, its results haze weights.
    """
    colour = np.array(imaging.in_channels(HAZE, image.shape[2]))[:, None]
    tables = (1 - alpha) * np.arange(256) + alpha * colour
    return imaging.look_up(image, np.rint(tables).astype(np.uint8))


@corruption(family="noise", cite="pezzementi2018", amount=free(low=0, high=1, unit="of all pixels"))
def salt_and_pepper(image: Image, draw: Draw, *, amount: float) -> Image:
    """Bits lost on the way: a fraction of the pixels, all channels at once, turns black or white.

    Unlike `impulse_noise`, which hits every channel on its own.
    """
    return imaging.black_and_white_pixels(image, amount, draw.bits("pixels", image.shape[:2]))


# Full-range ITU-R BT.601, as JPEG has it: what R, G, B become when one of Cb, Cr (128 is neutral) turns 0.
_CB = np.array([-0.168736, -0.331264, 0.5, 128.0])
_CR = np.array([0.5, -0.418688, -0.081312, 128.0])
_SPREAD = {"Cb": np.array([0.0, -0.344136, 1.772]), "Cr": np.array([1.402, -0.714136, 0.0])}


@lru_cache(maxsize=8)
def _without(channel: str) -> npt.NDArray[np.float64]:
    """The 3×4 matrix that takes a channel out."""
    matrix = np.eye(3, 4)
    if channel in "RGB":
        matrix["RGB".index(channel)] = 0
        return matrix
    return matrix - np.outer(_SPREAD[channel], _CB if channel == "Cb" else _CR)


@corruption(family="channels", cite="pezzementi2018", channel=free(choices=("R", "G", "B", "Cb", "Cr")))
def channel_drop(image: Image, *, channel: str) -> Image:
    """A channel lost: R, G or B set to 0, or Cb or Cr set to 0 in YCbCr, which casts a strong colour.

    A grey image has no colour channel to lose and comes back as it is.
    """
    if image.shape[2] == 1:
        return image.copy()
    return imaging.transform_colours(image, _without(channel))


@lru_cache(maxsize=16)
def _additive_table(zeta_w: float, zeta_u: float, psi: float) -> npt.NDArray[np.uint8]:
    """table[P, i]: P plus a quantile of the sum of both noises, which is one normal noise."""
    levels = np.arange(256.0)[:, None]
    sd = np.hypot(zeta_w, levels**psi * zeta_u)
    normal = normal_quantiles().reshape(_LEVELS, -1).mean(axis=1)
    return np.asarray(np.clip(np.rint(levels + sd * normal / normal.std()), 0, 255), np.uint8)


@corruption(
    family="noise",
    cite="pezzementi2018",
    zeta_w=free(low=0, high=255, unit="grey levels"),
    zeta_u=free(low=0, high=255, unit="grey levels"),
    psi=free(low=0, high=2, unit="exponent"),
)
def additive_noise(image: Image, draw: Draw, *, zeta_w: float, zeta_u: float, psi: float) -> Image:
    """Thermal noise, film grain and speckle: P + P^ψ·N(0, ζu²) + N(0, ζw²), in grey levels."""
    return imaging.noise_by_table(
        image, _additive_table(zeta_w, zeta_u, psi), draw.bits("noise", image.shape)
    )
