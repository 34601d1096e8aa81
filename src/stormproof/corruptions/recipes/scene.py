"""Corruptions that depend on depth: fog along each ray of sight, focus, motion of the camera, a flash.

All but `ray_fog` are 3D Common Corruptions (Kar et al. 2022), after their published parameters; the code is
our own. Lengths in pixels are given for a side of 512 px, the side of the square of equal area, and grow
with it. Depth counts from 0 to 1 at `reach` metres: the authors' rooms are 8 m deep, a street is 80 m.
"""

from __future__ import annotations

from functools import lru_cache
from math import cos, pi, sin, sqrt

import numpy as np

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Camera, Image
from stormproof.corruptions.corruption import constant, corruption, ladder
from stormproof.corruptions.recipes.mutators import (
    STEPS_PER_DEPTH,
    extinction,
    extinction_of_range,
    transmission,
)

VIEW = constant(50.0, low=1, high=170, unit="degrees across, where no focal length is known")


def facing(depth: imaging.Field, camera: Camera) -> imaging.Field:
    """The cosine between each surface's normal and the ray of sight.

    Slopes are taken over a hundredth of the side: estimated depth is too rough from pixel to pixel.
    """
    step = max(round(sqrt(depth.shape[0] * depth.shape[1]) / 100), 1)
    return imaging.facing(depth, camera, step)


@lru_cache(maxsize=4)
def ray_lengths(size: tuple[int, int], camera: Camera) -> imaging.Field:
    """The length of each pixel's ray up to a depth of 1 m: distance along the ray is depth times this."""
    y, x = (np.arange(side, dtype=np.float64) for side in size)
    down, across = (y - camera.cy) / camera.fy, (x - camera.cx) / camera.fx
    return np.sqrt(1 + down[:, None] ** 2 + across**2).astype(np.float32)


@corruption(
    family="weather",
    cite="sakaridis2018",
    needs=("depth", "camera"),
    derived={"beta": (extinction, extinction_of_range)},
    beta=ladder(0.005, 0.01, 0.02, low=0, high=100, between="log", unit="1/m"),
    view=VIEW,
)
def ray_fog(image: Image, *, depth: imaging.Field, camera: Camera, beta: float) -> Image:
    """Fog of Foggy Cityscapes: I·t + L·(1 − t) with t = exp(−β·ℓ), where ℓ is the distance along the ray.

    L is found in the image: among the 0.1 % of pixels with the brightest dark channel (the least of all
    channels within 15×15 pixels), the pixel of median grey. β is in 1/m; in metres, `mor` = 2.996/β (the
    meteorological optical range, at which 5 % of the contrast is left) or `visibility` = 3.912/β (2 %) may be
    given instead; the paper's severities are mor=600, 300 and 150. Focal lengths are the dataset's; where it
    has none, `view` degrees across the image are assumed. Depth is taken as it is, without smoothing.
    """
    distance = depth * ray_lengths((image.shape[0], image.shape[1]), camera)
    light = imaging.airlight(image, window=15, share=0.001)
    return imaging.fade(image, distance, transmission(), STEPS_PER_DEPTH * beta, light)


REACH = constant(80.0, low=0.1, high=10000, unit="m")
_AUTHORS_SIDE = 512  # px
_OCTILE = 1 / 16  # the middle of the nearest of eight equal shares of the pixels


def _per_pixel(image: Image) -> float:
    """Pixels here for one pixel of the authors' images."""
    return sqrt(image.shape[0] * image.shape[1]) / _AUTHORS_SIDE


def _depth_at(depth: imaging.Field, share: float) -> float:
    """The depth that a share of the pixels does not exceed."""
    flat = np.asarray(depth).ravel()
    low, high = flat.min(), flat.max()
    # Clipped depths and skies are often equal, and partitioning equal numbers is slow.
    inner = flat[(flat > low) & (flat < high)]
    place = min(int(share * flat.size), flat.size - 1) - np.count_nonzero(flat == low)
    if not 0 <= place < len(inner):
        return float(low if place < 0 else high)
    return float(np.partition(inner, place)[place])


@corruption(
    family="weather",
    cite="kar2022",
    needs=("depth",),
    alpha=ladder(4.0, 8.0, 12.0, 16.0, 20.0, low=0, high=1000, unit="optical depth at `reach`"),
    reach=REACH,
)
def fog_3d(image: Image, *, depth: imaging.Field, alpha: float, reach: float) -> Image:
    """Fog in the image's own mean colour: I·t + mean·(1 − t) with t = exp(−α·depth/reach).

    Depths beyond `reach`, the sky included, count as `reach`.
    """
    near = np.minimum(depth, np.float32(reach))
    mean = imaging.channel_means(image)
    return imaging.fade(image, near, transmission(), STEPS_PER_DEPTH * alpha / reach, mean)


_NEAREST = 1 / 4  # of `reach`; the blur of anything nearer would grow without bound


def _focused(image: Image, depth: imaging.Field, amount: float, reach: float, share: float) -> Image:
    """Blurred by σ = amount·|d − f|/d pixels, f the depth that a share of the pixels does not exceed."""
    clipped = np.clip(depth, np.float32(_NEAREST * reach), np.float32(reach))
    focus = np.float32(_depth_at(clipped, share))
    sigma = np.abs(clipped - focus) / clipped * np.float32(amount * _per_pixel(image))
    return imaging.scatter_gaussian(image, sigma)


@corruption(
    family="blur",
    cite="kar2022",
    needs=("depth",),
    amount=ladder(3.0, 4.0, 5.0, 6.0, 7.0, low=0, high=100, unit="px of 512"),
    reach=REACH,
)
def near_focus(image: Image, *, depth: imaging.Field, amount: float, reach: float) -> Image:
    """Focused on the nearest things: a Gaussian of σ = amount·|d − f|/d pixels blurs what is farther.

    f is the middle of the nearest eighth of the pixels. Depths count as `reach` beyond it and as a quarter of
    it below. Every pixel spreads its own light, as in `defocus`.
    """
    return _focused(image, depth, amount, reach, _OCTILE)


@corruption(
    family="blur",
    cite="kar2022",
    needs=("depth",),
    amount=ladder(1.5, 2.5, 3.5, 4.5, 5.5, low=0, high=100, unit="px of 512"),
    reach=REACH,
)
def far_focus(image: Image, *, depth: imaging.Field, amount: float, reach: float) -> Image:
    """Focused on the farthest things: a Gaussian of σ = amount·|d − f|/d pixels blurs what is nearer.

    f is the middle of the farthest eighth of the pixels. Depths count as `reach` beyond it and as a quarter
    of it below.
    """
    return _focused(image, depth, amount, reach, 1 - _OCTILE)


def _closeness(depth: imaging.Field) -> imaging.Field:
    """f/d, where f is the depth of the nearest eighth of the pixels: 1 for them, 0 for the sky."""
    near = np.float32(min(_depth_at(depth, _OCTILE), 1e6))
    closeness: imaging.Field = np.divide(near, np.maximum(depth, near))
    return closeness


@corruption(
    family="blur",
    cite="kar2022",
    owner="frame",
    needs=("depth",),
    path=ladder(25.0, 37.5, 50.0, 62.5, 75.0, low=0, high=1000, unit="px of 512"),
)
def xy_motion_blur(image: Image, draw: Draw, *, depth: imaging.Field, path: float) -> Image:
    """The camera moves sideways during exposure: near things smear farther than far ones.

    The nearest eighth of the pixels moves by `path` in a random direction, the rest by as much less as it is
    farther away. The paths are 20, 30, 40, 50 and 60 sixtieths of the authors' 75 pixels.
    """
    angle = draw.uniform("angle", -pi, pi)
    push = _closeness(depth) * np.float32(path * _per_pixel(image))
    return imaging.streak(image, push * np.float32(sin(angle)), push * np.float32(cos(angle)))


@corruption(
    family="blur",
    cite="kar2022",
    needs=("depth", "camera"),
    advance=ladder(
        20 / 60, 25 / 60, 30 / 60, 35 / 60, 38 / 60, low=0, high=0.95, unit="of the nearest depth"
    ),
    view=VIEW,
)
def z_motion_blur(image: Image, *, depth: imaging.Field, camera: Camera, advance: float) -> Image:
    """The camera moves forward during exposure: near things smear away from the middle.

    It covers the share `advance` of the way to the nearest eighth of the pixels: 20, 25, 30, 35 and 38 of the
    authors' 60 steps.
    """
    pull = _closeness(depth) * np.float32(-advance)
    y, x = (np.arange(side, dtype=np.float32) for side in image.shape[:2])
    return imaging.streak(
        image, pull * (y - np.float32(camera.cy))[:, None], pull * (x - np.float32(camera.cx))
    )


@corruption(
    family="light",
    cite="kar2022",
    version=3,
    needs=("depth", "camera"),
    divisor=ladder(2.4, 1.4, 0.9, 0.6, 0.4, low=0.01, high=100, unit="×"),
    view=VIEW,
)
def flash(image: Image, *, depth: imaging.Field, camera: Camera, divisor: float) -> Image:
    """A flash at the camera: v becomes v + v·s/divisor, where s is the cosine of the angle light falls at.

    Surfaces seen face on brighten most; the sky has no surface and stays.
    """
    gain = np.float32(1) + facing(depth, camera) / np.float32(divisor)
    return np.clip(image * gain[..., None], 0, 255).astype(np.uint8)
