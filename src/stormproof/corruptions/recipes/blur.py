"""Blur: the lens, the glass in front of it, and the camera's movement."""

from __future__ import annotations

from functools import lru_cache, partial
from math import cos, floor, radians, sin

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, ladder

blur = partial(corruption, family="blur", cite="hendrycks2019")


@blur(sigma=ladder(1.0, 2, 3, 4, 6, low=0, high=200, unit="px"))
def gaussian_blur(image: Image, *, sigma: float) -> Image:
    """A soft lens: Gaussian blur of σ pixels, truncated at 4σ, edges repeated."""
    return imaging.gaussian_blur(image, sigma)


@lru_cache(maxsize=16)
def disk(radius: int, softness: float) -> npt.NDArray[np.float64]:
    """The aperture's image: a disk, its rim softened by a small Gaussian.

    The reference softens the finished kernel with mirrored borders. Where the disk touches the
    kernel's edge (radius 8 and up) that doubles some of the rim, and the kernel sums to 1.013 or
    1.011: severities 4 and 5 brighten by a percent. Published scores contain that; so does this.
    """
    reach = max(radius, 8)
    axis = np.arange(-reach, reach + 1)
    flat = ((axis[:, None] ** 2 + axis**2) <= radius**2).astype(np.float64)
    flat /= flat.sum()
    half = 1 if radius <= 8 else 2
    rim = (
        np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * softness**2))
        if softness > 0.02  # below, a neighbour's weight underflows
        else np.eye(1, 2 * half + 1, half)[0]
    )
    rim /= rim.sum()
    for _ in range(2):  # rows, then columns
        padded = np.pad(flat, ((half, half), (0, 0)), mode="reflect")
        flat = sum(w * padded[i : i + len(axis)] for i, w in enumerate(rim)).T
    return flat


@blur(
    radius=ladder(3, 4, 6, 8, 10, low=0, high=100, unit="px"),
    softness=ladder(0.1, 0.5, 0.5, 0.5, 0.5, low=0, high=10, unit="px"),
    version=2,
)
def defocus_blur(image: Image, *, radius: int, softness: float) -> Image:
    """Out of focus: each point becomes a disk of `radius` pixels with a softened rim.

    The kernel is even within `radius` pixels and 0 outside, its rim smoothed by a Gaussian of `softness`
    pixels; its sum is 1.
    """
    return imaging.convolve(image, disk(radius, softness))


@blur(
    owner="camera",
    sigma=ladder(0.7, 0.9, 1.0, 1.1, 1.5, low=0, high=50, unit="px"),
    reach=ladder(1, 2, 2, 3, 4, low=1, high=60, unit="px"),
    iterations=ladder(2, 1, 3, 2, 2, low=1, high=20, unit="times"),
)
def glass_blur(image: Image, draw: Draw, *, sigma: float, reach: int, iterations: int) -> Image:
    """Frosted glass: blurred, pixels scattered within `reach`, blurred again.

    Both blurs are Gaussians of σ pixels; the scattering is repeated `iterations` times.
    The reference intends to swap two pixels, but its exchange of two array views only copies: the pixel
    takes its partner's value and the partner keeps it. Some values spread and some are lost; offsets reach
    one pixel further up and left than down and right; a frame of about `reach` pixels never changes.
    Published scores follow exactly this rule.
    """
    soft = imaging.gaussian_blur(image, sigma)
    rows, columns = (max(side - 2 * reach, 0) for side in image.shape[:2])
    shifts = draw.integer_field("shift", (iterations, rows, columns, 2), -reach, reach)
    return imaging.gaussian_blur(imaging.scatter(soft, shifts, reach), sigma)


def motion_path(
    size: tuple[int, ...], radius: int, sigma: float, angle: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Weights and (dy, dx) of a camera moving along `angle` degrees for 2·radius + 1 steps.

    The path is one-sided, so the image shifts towards its origin, by 2 to 11 pixels over the severities;
    labels stay where they were. A path longer than the image is truncated and not renormalised (it darkens).
    Several angles give the paths of several images in one array: all have as many steps, some of weight 0.
    """
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    # Computed from the end point's length, as in the reference: the last bit decides some ceilings.
    angles = [radians(a) for a in np.atleast_1d(angle).tolist()]
    end = len(steps) * np.array([[sin(a), cos(a)] for a in angles])
    length = np.hypot(end[:, 0], end[:, 1])[:, None, None]
    shifts = np.ceil(steps[:, None] * end[:, None] / length - 0.5).astype(np.int64)
    limits = np.stack(size[:2], axis=-1)[..., None, :]
    inside = (np.abs(shifts) < limits).all(axis=2)  # up to some step: paths only go outwards
    if np.ndim(angle) == 0:
        return weights[inside[0]], shifts[0, inside[0]]
    return weights * inside, shifts * inside[..., None]


@blur(
    owner="frame",
    radius=ladder(10, 15, 15, 15, 20, low=0, high=200, unit="px"),
    sigma=ladder(3.0, 5, 8, 12, 15, low=0.01, high=500, unit="px"),
)
def motion_blur(image: Image, draw: Draw, *, radius: int, sigma: float) -> Image:
    """The camera moves during exposure, in a random direction within 45° of horizontal.

    A pixel becomes the mean over 2·radius + 1 steps of one pixel along a line, weighted by exp(−step²/2σ²).
    """
    size = (image.shape[0], image.shape[1])
    angle = draw.each_uniform("angle", -45, 45)
    return imaging.line_blur(image, *motion_path(size, radius, sigma, angle))


def _factors(reach: float, step: float) -> npt.NDArray[np.float64]:
    """The enlargement factors of a zoom, from 1."""
    count = floor((reach - 1) / step + 1e-9) + 1
    # (1 + step) − 1 is the step that NumPy's arange takes; its last bit decides some crop sizes.
    return 1 + ((1 + step) - 1) * np.arange(count, dtype=np.float64)


def zoom_field(size: tuple[int, int], *, reach: float, step: float) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx) of the mean enlargement: where, on average, the light at each pixel comes from."""
    shares = np.append(_factors(reach, step), 1.0)  # the sharp image once more
    crops = np.array([imaging.crop_for_zoom(size, z) for z in shares])
    spans = np.rint(crops * shares[:, None])
    starts = (np.array(size) - crops) // 2
    slopes = (crops - 1) / np.maximum(spans - 1, 1)
    fields = []
    for axis in (0, 1):
        place = np.arange(size[axis])
        source = (starts[:, axis, None] + slopes[:, axis, None] * place).mean(axis=0)
        fields.append((source - place).astype(np.float32))
    return (
        np.ascontiguousarray(np.broadcast_to(fields[0][:, None], size)),
        np.ascontiguousarray(np.broadcast_to(fields[1], size)),
    )


@blur(
    moves=zoom_field,
    reach=ladder(1.11, 1.15, 1.20, 1.24, 1.30, low=1, high=10, unit="×"),
    step=ladder(0.01, 0.01, 0.02, 0.02, 0.03, low=0.001, high=5, unit="×"),
)
def zoom_blur(image: Image, *, reach: float, step: float) -> Image:
    """The camera rushes forward: mean of enlargements from 1 to `reach` in steps.

    Factor 1 is one of them, so the sharp image counts twice. Enlargements are cropped at the top left.
    Labels stay where they are, as in the papers; `labels=moved` enlarges them by the mean zoom.
    """
    return imaging.zoom_mean(image, _factors(reach, step))
