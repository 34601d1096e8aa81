"""Lenses as tables: how wide the point spread function is at each angle from the optical axis.

A table is a CSV file with a header `angle,radial,tangential`: the angle in degrees, and the standard
deviations of the spread along and across the radius in pixels. They hold for an image `width` pixels
wide that sees `view` degrees horizontally, given in comment lines such as `# width=2048` and `# view=90`
(those are the defaults); other images are taken to show the same view, so the spread scales with width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_lines

_COLUMNS = ("angle", "radial", "tangential")
_WIDEST = 40.0  # px; a lens with more blur than this is not one to drive with

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lens:
    """Spread in pixels, along and across the radius, at angles in degrees from the axis."""

    angles: tuple[float, ...]
    radial: tuple[float, ...]
    tangential: tuple[float, ...]
    width: float = 2048.0
    view: float = 90.0

    def spread(self, radius: Floats, width: int) -> tuple[Floats, Floats]:
        """Standard deviations, radial and tangential, `radius` pixels off centre in an image that wide."""
        focal = width / 2 / math.tan(math.radians(self.view / 2))
        angle = np.degrees(np.arctan(radius / focal))
        scale = width / self.width
        radial, tangential = (
            np.interp(angle, self.angles, s) * scale for s in (self.radial, self.tangential)
        )
        return np.minimum(radial, _WIDEST), np.minimum(tangential, _WIDEST)


def quadratic(centre: float, edge: float, *, astigmatism: float) -> Lens:
    """Spread growing with the square of the angle, from `centre` on the axis to `edge` at 45°."""
    angles = np.arange(0.0, 91.0, 1.0)
    radial = centre + (edge - centre) * (angles / 45) ** 2
    return Lens(tuple(angles.tolist()), tuple(radial.tolist()), tuple((astigmatism * radial).tolist()))


LENSES: dict[str, Lens] = {
    "front_camera_1": quadratic(0.25, 0.6, astigmatism=1.3),
    "front_camera_2": quadratic(0.5, 1.2, astigmatism=1.3),
    "front_camera_3": quadratic(0.8, 1.8, astigmatism=1.3),
}


def read_lens(path: str) -> Lens:
    """The lens a CSV file describes."""
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
        raise InvalidOption(f"lens={path}: {error}; write three numbers a line.") from None
    rising = len(table) > 0 and bool((np.diff(table[:, 0]) > 0).all())
    if not rising or not np.isfinite(table).all() or (table < 0).any():
        raise InvalidOption(f"lens={path}: angles must rise from line to line, and nothing be negative.")
    if not (width > 0 and 0 < view < 180):
        raise InvalidOption(
            f"lens={path}: width={width:g} must be positive, view={view:g} between 0 and 180."
        )
    angles, radial, tangential = (tuple(column.tolist()) for column in table.T)
    return Lens(angles, radial, tangential, width, view)


def _note(line: str) -> tuple[str, str]:
    key, _, value = line.lstrip("# ").partition("=")
    return key.strip(), value.strip()
