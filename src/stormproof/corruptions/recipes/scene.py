"""What a scene's depth decides: fog along each ray of sight."""

from __future__ import annotations

import numpy as np

from stormproof import imaging
from stormproof.core.sample import Camera, Image
from stormproof.corruptions.recipes.mutators import (
    STEPS_PER_DEPTH,
    extinction,
    extinction_of_range,
    transmission,
)
from stormproof.corruptions.registry import constant, corruption, ladder

VIEW = constant(50.0, low=1, high=170, unit="degrees across, where no focal length is known")


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
