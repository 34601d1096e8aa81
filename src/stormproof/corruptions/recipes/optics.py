"""Optics and sensor of a real camera (Kamann & Rother 2020): noise, aberrations, distortion."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Image
from stormproof.corruptions.lens import LENSES, Lens, read_lens
from stormproof.corruptions.registry import constant, corruption, ladder

_ONE = 1 << 16  # steps of the linear domain from 1 to 2


@lru_cache(maxsize=1)
def _linear() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """2^Φ − 1 of each grey level in steps of 1/65536, and the grey level of each such step."""
    forward = np.rint((2 ** (np.arange(256) / 255) - 1) * _ONE).astype(np.int32)
    back = np.rint(255 * np.log2(1 + np.arange(_ONE + 1) / _ONE)).astype(np.uint8)
    return forward, back


@lru_cache(maxsize=16)
def _linear_steps(weight: float) -> npt.NDArray[np.int32]:
    return np.rint(weight * normal_quantiles() * _ONE).astype(np.int32)


@corruption(
    family="noise",
    cite="kamann2020",
    version=2,
    weight=ladder(0.025, 0.037, 0.053, 0.075, 0.105, low=0, high=10, unit="of full scale"),
)
def intensity_noise(image: Image, draw: Draw, *, weight: float) -> Image:
    """A CMOS sensor's noise: luminance and chrominance noise in the linear domain, weaker where it is bright.

    With Φ in 0..1, log2(2^Φ + w·(N_lum + N_chrom)): N_lum is one standard normal draw a pixel, N_chrom one
    a channel. It is twice as strong at black as at white. The paper does not publish w; these are set so
    that severity 3 stands where its figures put it, near the first severity of Gaussian and shot noise.
    """
    forward, back = _linear()
    luminance, chrominance = draw.bits("luminance", image.shape[:2]), draw.bits("chrominance", image.shape)
    return imaging.noise_within(image, forward, _linear_steps(weight), luminance, chrominance, back)


@lru_cache(maxsize=4)
def _lens_kernels(size: tuple[int, int], lens: Lens) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The point spread function in the middle of each patch, and the radius that holds it."""
    rows, columns = imaging.patch_centres(size)
    y, x = np.meshgrid(rows - (size[0] - 1) / 2, columns - (size[1] - 1) / 2, indexing="ij")
    radial, tangential = lens.spread(np.hypot(y, x), size[1])
    return imaging.spread_kernels(np.arctan2(y, x), radial, tangential)


@corruption(family="blur", cite="kamann2020", version=2, lens=ladder(*LENSES))
def psf_blur(image: Image, *, lens: str) -> Image:
    """A lens's aberrations: the point spread function widens with the distance from the image centre.

    Three severities: lenses of a front camera with a 90° horizontal view, whose blur goes from (σ centre,
    σ at 45°) = (0.25, 0.6), (0.5, 1.2) to (0.8, 1.8) px at 2048 px width, 1.3 times as much across the
    radius as along it. The paper's own were made with Zemax and are not published. `lens` may also name
    a table of your own: see `stormproof.corruptions.lens`. Each 16×16 patch has its own kernel; a pixel
    gives and takes light evenly over its square.
    """
    chosen = LENSES[lens] if lens in LENSES else read_lens(lens)
    return imaging.blur_patches(image, *_lens_kernels((image.shape[0], image.shape[1]), chosen))


def radial_field(
    size: tuple[int, int], *, delta: float, quartic: float = 0.0, cubic: float = 0.8, quadratic: float = 0.2
) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx) of a radial distortion that moves the frame's corners by the share δ of their radius."""
    return imaging.radial_field(size, delta, (quartic, cubic, quadratic))


@corruption(
    family="optics",
    cite="kamann2020",
    version=2,
    moves=radial_field,
    labels="moved",
    delta=ladder(0.01, 0.02, 0.03, 0.04, 0.05, low=-0.3, high=2, unit="of the half diagonal"),
    quartic=constant(0.0, low=-1, high=1, unit="weight"),
    cubic=constant(0.8, low=-1, high=1, unit="weight"),
    quadratic=constant(0.2, low=-1, high=1, unit="weight"),
)
def geometric_distortion(
    image: Image, *, delta: float, quartic: float, cubic: float, quadratic: float
) -> Image:
    """A lens that bends straight lines: barrel distortion, pincushion for negative δ. Labels move too.

    An output pixel at radius r (1 in the corners) shows the scene at r + δ·(quartic·r⁴ + cubic·r³ +
    quadratic·r²), by default with shares 0, 0.8 and 0.2. What a barrel leaves uncovered is black and, in
    the labels, ignored. The paper's coefficients are not published. `labels=fixed` leaves labels where
    they were.
    """
    size = (image.shape[0], image.shape[1])
    field = radial_field(size, delta=delta, quartic=quartic, cubic=cubic, quadratic=quadratic)
    return imaging.move(image, *field)
