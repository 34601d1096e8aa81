"""Mutators (Pezzementi et al. 2018): simple ones, and haze and defocus, which grow with distance.

Their Gaussian blur and JPEG compression are the corruptions `gaussian_blur` and `jpeg_compression`. All work
on grey levels 0..255, rounded and clipped. Only haze has severities: the suites `mutators` and `contextual`
hold the paper's own numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, free, ladder

HAZE = (205.0, 208.0, 211.0)  # the grey of fog, in grey levels
_LEVELS = 4096  # outcomes per grey level of signal-dependent noise


@corruption(family="light", cite="pezzementi2018", factor=free(low=0, high=255, unit="×"))
def brightness_shift(image: Image, *, factor: float) -> Image:
    """Sudden light or poor exposure: every channel is multiplied by a factor and clipped."""
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


@corruption(
    family="noise", cite="pezzementi2018", owner="frame", amount=free(low=0, high=1, unit="of all pixels")
)
def salt_and_pepper(image: Image, draw: Draw, *, amount: float) -> Image:
    """Transmission errors: a fraction of the pixels turns black or white.

    All channels of a pixel change together, unlike in `impulse_noise`.
    """
    return imaging.black_and_white_pixels(image, amount, draw.bits("pixels", image.shape[:2]))


# Full-range ITU-R BT.601, as in JPEG: what R, G, B become when Cb or Cr (128 is neutral) turns 0.
_CB = np.array([-0.168736, -0.331264, 0.5, 128.0])
_CR = np.array([0.5, -0.418688, -0.081312, 128.0])
_SPREAD = {"Cb": np.array([0.0, -0.344136, 1.772]), "Cr": np.array([1.402, -0.714136, 0.0])}


@lru_cache(maxsize=8)
def _without(channel: str) -> npt.NDArray[np.float64]:
    """The 3×4 matrix that removes a channel."""
    matrix = np.eye(3, 4)
    if channel in "RGB":
        matrix["RGB".index(channel)] = 0
        return matrix
    return matrix - np.outer(_SPREAD[channel], _CB if channel == "Cb" else _CR)


@corruption(family="channels", cite="pezzementi2018", channel=free(choices=("R", "G", "B", "Cb", "Cr")))
def channel_drop(image: Image, *, channel: str) -> Image:
    """A lost channel: R, G or B is set to 0, or Cb or Cr in YCbCr, which gives a strong colour cast.

    A grey image has no colour channel to lose and is returned unchanged.
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
    owner="frame",
    zeta_w=free(low=0, high=255, unit="grey levels"),
    zeta_u=free(low=0, high=255, unit="grey levels"),
    psi=free(low=0, high=2, unit="exponent"),
)
def additive_noise(image: Image, draw: Draw, *, zeta_w: float, zeta_u: float, psi: float) -> Image:
    """Thermal noise, film grain and speckle: P + P^ψ·N(0, ζu²) + N(0, ζw²), in grey levels."""
    return imaging.noise_by_table(
        image, _additive_table(zeta_w, zeta_u, psi), draw.bits("noise", image.shape)
    )


KOSCHMIEDER = 3.912  # −ln 0.02: at the visibility distance 2 % of the contrast is left
METEOROLOGICAL = 2.996  # −ln 0.05: at the meteorological optical range 5 % of it is left
_OPAQUE = 6.24  # −ln(½ / 255): beyond this optical depth less than half a grey level comes through
_STEPS = 4096
STEPS_PER_DEPTH = _STEPS / _OPAQUE  # of `transmission`, per unit of optical depth
_SOFTENING = 2.0  # px; the paper smooths depth to avoid hard edges in the haze
_WIDEST = 64.0  # px; scenes closer than a hand's breadth would blur the whole image


def extinction(visibility: float) -> float:
    """β in 1/m from the visibility distance in metres (Koschmieder)."""
    return KOSCHMIEDER / visibility


def extinction_of_range(mor: float) -> float:
    """β in 1/m from the meteorological optical range in metres."""
    return METEOROLOGICAL / mor


def camera_constant(f_number: float, focal_length: float, pixel_width: float) -> float:
    """κ in pixel·metres from the aperture's f-number N, and f and γ in metres: κ = f² / (N·γ).

    The paper prints γ·f²/N, which has the wrong unit; f²/(N·γ) gives its κ = 3.6 from its own Table III.

    >>> round(camera_constant(1.4, 2.5e-3, 1.24e-6), 3)
    3.6
    """
    return focal_length**2 / (f_number * pixel_width)


@lru_cache(maxsize=1)
def transmission() -> npt.NDArray[np.float32]:
    """exp(−t) for optical depths t from 0 to `_OPAQUE`."""
    table = np.exp(-np.linspace(0, _OPAQUE, _STEPS + 1))
    return np.append(table, table[-1]).astype(np.float32)


@corruption(
    family="weather",
    cite="pezzementi2018",
    needs=("depth",),
    derived={"beta": (extinction, extinction_of_range)},
    beta=ladder(0.004, 0.012, 0.04, low=0, high=100, between="log", unit="1/m"),
)
def haze(image: Image, *, depth: imaging.Field, beta: float) -> Image:
    """Haze: light fades with distance towards the grey of fog, I·T + h·(1 − T) with T = exp(−β·depth).

    β is in 1/m; in metres, `visibility` = 3.912/β (2 % of the contrast is left) or `mor` = 2.996/β (5 %, the
    meteorological optical range) may be given instead. Depth is smoothed with a
    Gaussian of 2 px first. Optical depths beyond 6.24, where nothing is visible, count as 6.24, the sky
    included: otherwise smoothing would spread the sky's haze over the edges of objects.
    """
    if beta == 0:
        return image.copy()
    near = np.minimum(depth, np.float32(_OPAQUE / beta))
    soft = imaging.gaussian_field(near, (_SOFTENING, _SOFTENING), truncate=3, rule="nearest")
    grey = imaging.in_channels(HAZE, image.shape[2])
    return imaging.fade(image, soft, transmission(), STEPS_PER_DEPTH * beta, grey)


def blur_radius(depth: imaging.Field, kappa: float, focus: float) -> imaging.Field:
    """ρ in pixels: κ·|D − u_f| / (D·u_f), which is κ / u_f for the sky."""
    radius = np.float32(kappa) * np.abs(np.float32(1 / focus) - np.float32(1) / depth)
    capped: imaging.Field = np.minimum(radius, np.float32(_WIDEST))
    return capped


@corruption(
    family="blur",
    cite="pezzementi2018",
    needs=("depth",),
    derived={"kappa": (camera_constant,)},
    kappa=free(low=0, high=1000, unit="px·m"),
    focus=free(low=0.01, high=10000, unit="m"),
)
def defocus(image: Image, *, depth: imaging.Field, kappa: float, focus: float) -> Image:
    """A lens focused at `focus` metres: each point of the scene is blurred according to its distance.

    Every pixel y spreads its light by a Gaussian of σ = ρ(y) pixels, and the light that arrives is divided by
    the weight that arrives (Eq. 3). So a blurred background takes no colour from a sharp object in front of
    it, the object keeps its edge, and the background's light spills over that edge. κ, in pixel·metres, is a
    constant of the camera; `f_number`, `focal_length` and `pixel_width` (metres) may be given instead. ρ is
    at most 64 px.
    """
    return imaging.scatter_gaussian(image, blur_radius(depth, kappa, focus))
