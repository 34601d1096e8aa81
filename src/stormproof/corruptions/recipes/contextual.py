"""Contextual mutators (Pezzementi et al. 2018): haze and defocus, which grow with distance."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.sample import Image
from stormproof.corruptions.recipes.mutators import HAZE
from stormproof.corruptions.registry import corruption, free, ladder

KOSCHMIEDER = 3.912  # −ln 0.02: at the visibility distance 2 % of the contrast is left
_OPAQUE = 6.24  # −ln(½ / 255): beyond this optical depth less than half a grey level comes through
_STEPS = 4096
_SOFTENING = 2.0  # px; the paper smooths depth so that haze has no hard edges
_WIDEST = 64.0  # px; scenes closer than a hand's breadth would blur over the whole image


def extinction(visibility: float) -> float:
    """β in 1/m from the visibility distance in metres (Koschmieder)."""
    return KOSCHMIEDER / visibility


def camera_constant(f_number: float, focal_length: float, pixel_width: float) -> float:
    """κ in pixel·metres from the aperture's f-number N, and f and γ in metres: κ = f² / (N·γ).

    The paper prints γ·f²/N, which has the wrong unit; f²/(N·γ) gives its κ = 3.6 from its own Table III.

    >>> round(camera_constant(1.4, 2.5e-3, 1.24e-6), 3)
    3.6
    """
    return focal_length**2 / (f_number * pixel_width)


@lru_cache(maxsize=1)
def _transmission() -> npt.NDArray[np.float32]:
    """exp(−t) for optical depths t from 0 to `_OPAQUE`, and nothing beyond."""
    table = np.exp(-np.linspace(0, _OPAQUE, _STEPS + 1))
    return np.append(table, table[-1]).astype(np.float32)


@corruption(
    family="weather",
    cite="pezzementi2018",
    needs=("depth",),
    derived={"beta": extinction},
    beta=ladder(0.004, 0.012, 0.04, low=0, high=100, between="log", unit="1/m"),
)
def haze(image: Image, *, depth: imaging.Field, beta: float) -> Image:
    """Haze: light fades with distance towards the grey of fog, I·T + h·(1 − T) with T = exp(−β·depth).

    β is in 1/m; `visibility` in metres may be given instead, u_V = 3.912/β. Depth is smoothed with a
    Gaussian of 2 px first. Beyond an optical depth of 6.24, where nothing visible comes through, all
    depths count as that one, the sky included: otherwise smoothing would draw its haze over every rim.
    """
    if beta == 0:
        return image.copy()
    near = np.minimum(depth, np.float32(_OPAQUE / beta))
    soft = imaging.gaussian_field(near, (_SOFTENING, _SOFTENING), truncate=3, rule="nearest")
    grey = imaging.in_channels(HAZE, image.shape[2])
    return imaging.fade(image, soft, _transmission(), _STEPS * beta / _OPAQUE, grey)


def blur_radius(depth: imaging.Field, kappa: float, focus: float) -> imaging.Field:
    """ρ in pixels: κ·|D − u_f| / (D·u_f), which is κ / u_f for the sky."""
    radius = np.float32(kappa) * np.abs(np.float32(1 / focus) - np.float32(1) / depth)
    capped: imaging.Field = np.minimum(radius, np.float32(_WIDEST))
    return capped


@corruption(
    family="blur",
    cite="pezzementi2018",
    needs=("depth",),
    derived={"kappa": camera_constant},
    kappa=free(low=0, high=1000, unit="px·m"),
    focus=free(low=0.01, high=10000, unit="m"),
)
def defocus(image: Image, *, depth: imaging.Field, kappa: float, focus: float) -> Image:
    """A lens focused at `focus` metres: each point of the scene is scattered by its distance.

    Every pixel y sends its light out by a Gaussian of σ = ρ(y) pixels, and what arrives is divided by the
    weight that arrives (Eq. 3). So a blurred background takes no colour from a sharp object before it,
    the object keeps its edge, and the background's light spills over its rim. κ, in pixel·metres, is
    the camera's; `f_number`, `focal_length` and `pixel_width` (metres) may be given instead. ρ stops at
    64 px.
    """
    return imaging.scatter_gaussian(image, blur_radius(depth, kappa, focus))
