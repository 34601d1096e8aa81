"""Optics and sensor of a real camera (Kamann & Rother 2020): noise, aberrations, distortion.

Lenses are tables of how wide the point spread function is at each angle from the optical axis.
A table is a CSV file with the header `angle,radial,tangential`: the angle in degrees, and the standard
deviations of the spread along and across the radius in pixels. They hold for an image `width` pixels wide
with a horizontal view of `view` degrees; comment lines such as `# width=2048` and `# view=90` (the defaults)
set these. Images of other widths are assumed to have the same view, so the spread scales with width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_lines
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Floats, Image
from stormproof.corruptions.corruption import constant, corruption, ladder

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
    owner="frame",
    version=2,
    weight=ladder(0.025, 0.037, 0.053, 0.075, 0.105, low=0, high=10, unit="of full scale"),
)
def intensity_noise(image: Image, draw: Draw, *, weight: float) -> Image:
    """A CMOS sensor's noise: luminance and chrominance noise in the linear domain, weaker in bright areas.

    With Φ in 0..1, log2(2^Φ + w·(N_lum + N_chrom)): N_lum is one standard normal draw per pixel, N_chrom one
    per channel. It is twice as strong at black as at white. The paper does not publish w; these values put
    severity 3 where its figures show it, near the first severity of Gaussian and shot noise.
    """
    forward, back = _linear()
    luminance, chrominance = draw.bits("luminance", image.shape[:2]), draw.bits("chrominance", image.shape)
    return imaging.noise_within(image, forward, _linear_steps(weight), luminance, chrominance, back)


_COLUMNS = ("angle", "radial", "tangential")
_WIDEST = 40.0  # px; no usable lens blurs more


@dataclass(frozen=True, slots=True)
class Lens:
    """Spread in pixels, along and across the radius, at angles in degrees from the axis."""

    angles: tuple[float, ...]
    radial: tuple[float, ...]
    tangential: tuple[float, ...]
    width: float = 2048.0
    view: float = 90.0

    def spread(self, radius: Floats, width: int) -> tuple[Floats, Floats]:
        """Radial and tangential standard deviations, `radius` pixels off centre in an image of that width."""
        focal = width / 2 / math.tan(math.radians(self.view / 2))
        angle = np.degrees(np.arctan(radius / focal))
        scale = width / self.width
        radial, tangential = (
            np.interp(angle, self.angles, s) * scale for s in (self.radial, self.tangential)
        )
        return np.minimum(radial, _WIDEST), np.minimum(tangential, _WIDEST)


def _quadratic(centre: float, edge: float, *, astigmatism: float) -> Lens:
    """Spread that grows with the square of the angle, from `centre` on the axis to `edge` at 45°."""
    angles = np.arange(0.0, 91.0, 1.0)
    radial = centre + (edge - centre) * (angles / 45) ** 2
    return Lens(tuple(angles.tolist()), tuple(radial.tolist()), tuple((astigmatism * radial).tolist()))


LENSES: dict[str, Lens] = {
    "front_camera_1": _quadratic(0.25, 0.6, astigmatism=1.3),
    "front_camera_2": _quadratic(0.5, 1.2, astigmatism=1.3),
    "front_camera_3": _quadratic(0.8, 1.8, astigmatism=1.3),
}


def read_lens(path: str) -> Lens:
    """The lens that a CSV file describes."""
    try:
        stamp = Path(path).stat().st_mtime_ns
    except OSError as error:
        names = ", ".join(LENSES)
        raise InvalidOption(f"lens={path}: {error.strerror}; name a CSV table or one of {names}.") from None
    return _read_lens(path, stamp)


@lru_cache(maxsize=8)
def _read_lens(path: str, stamp: int) -> Lens:
    lines = read_lines(Path(path), error=InvalidOption)
    notes = dict(_note(line) for line in lines if line.startswith("#") and "=" in line)
    rows = [tuple(part.strip() for part in line.split(",")) for line in lines if not line.startswith("#")]
    if not rows or rows[0] != _COLUMNS:
        raise InvalidOption(f"lens={path}: the first line must be {','.join(_COLUMNS)}.")
    try:
        table = np.array([[float(part) for part in row] for row in rows[1:]]).reshape(-1, 3)
        width, view = float(notes.get("width", 2048)), float(notes.get("view", 90))
    except ValueError as error:
        raise InvalidOption(f"lens={path}: {error}; write three numbers per line.") from None
    rising = len(table) > 0 and bool((np.diff(table[:, 0]) > 0).all())
    if not rising or not np.isfinite(table).all() or (table < 0).any():
        raise InvalidOption(
            f"lens={path}: angles must increase from line to line, and no number may be negative."
        )
    if not (width > 0 and 0 < view < 180):
        raise InvalidOption(
            f"lens={path}: width={width:g} must be positive, view={view:g} between 0 and 180."
        )
    angles, radial, tangential = (tuple(column.tolist()) for column in table.T)
    return Lens(angles, radial, tangential, width, view)


def _note(line: str) -> tuple[str, str]:
    key, _, value = line.lstrip("# ").partition("=")
    return key.strip(), value.strip()


@lru_cache(maxsize=4)
def _lens_kernels(size: tuple[int, int], lens: Lens) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The point spread function at the centre of each patch, and its radius."""
    rows, columns = imaging.patch_centres(size)
    y, x = np.meshgrid(rows - (size[0] - 1) / 2, columns - (size[1] - 1) / 2, indexing="ij")
    radial, tangential = lens.spread(np.hypot(y, x), size[1])
    return imaging.spread_kernels(np.arctan2(y, x), radial, tangential)


@corruption(family="blur", cite="kamann2020", version=2, lens=ladder(*LENSES))
def psf_blur(image: Image, *, lens: str) -> Image:
    """A lens's aberrations: the point spread function widens with the distance from the image centre.

    Three severities: lenses of a front camera with a 90° horizontal view, whose blur (σ at the centre, σ at
    45°) is (0.25, 0.6), (0.5, 1.2) and (0.8, 1.8) px at 2048 px width, and 1.3 times as much across the
    radius as along it. The paper's lenses were made with Zemax and are not published. `lens` may also name
    a table of your own: see `stormproof.corruptions.recipes.optics`. Each 16×16 patch has its own kernel;
    pixels emit and receive light evenly over their area.
    """
    chosen = LENSES[lens] if lens in LENSES else read_lens(lens)
    return imaging.blur_patches(image, *_lens_kernels((image.shape[0], image.shape[1]), chosen))


THIRD = 1 / 3  # equal shares, as in the barrel that hendrycks' generator holds


def radial_field(
    size: tuple[int, int],
    *,
    delta: float,
    quartic: float = THIRD,
    cubic: float = THIRD,
    quadratic: float = THIRD,
) -> tuple[imaging.Field, imaging.Field]:
    """(dy, dx) of a radial distortion that moves the frame's corners by the share δ of their radius."""
    return imaging.radial_field(size, delta, (quartic, cubic, quadratic))


@corruption(
    family="optics",
    cite="kamann2020",
    version=3,
    moves=radial_field,
    labels="moved",
    delta=ladder(0.01, 0.02, 0.03, 0.04, 0.05, low=-0.3, high=2, unit="of the half diagonal"),
    quartic=constant(THIRD, low=-1, high=1, unit="weight"),
    cubic=constant(THIRD, low=-1, high=1, unit="weight"),
    quadratic=constant(THIRD, low=-1, high=1, unit="weight"),
)
def geometric_distortion(
    image: Image, *, delta: float, quartic: float, cubic: float, quadratic: float
) -> Image:
    """A lens that bends straight lines: barrel distortion, or pincushion for negative δ. Labels move too.

    An output pixel at radius r (1 in the corners) shows the scene at r + δ·(quartic·r⁴ + cubic·r³ +
    quadratic·r²), the paper's polynomial of grade 4, by default with equal shares. Pixels that a barrel
    leaves uncovered are black, and ignored in the labels. The paper's coefficients are not published.
    `labels=fixed` leaves labels where they were.
    """
    size = (image.shape[0], image.shape[1])
    field = radial_field(size, delta=delta, quartic=quartic, cubic=cubic, quadratic=quadratic)
    return imaging.move(image, *field)
