"""The street: its course, its cross-section, and the ground around it.

Street coordinates: s metres along the middle line from the camera, t metres to its right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from stormproof.world.classes import ROAD, SIDEWALK, VEGETATION
from stormproof.world.looks import Marks
from stormproof.world.materials import GRASS, GRAVEL, MATTE, PAVING, Colour
from stormproof.world.materials import ROAD as ASPHALT
from stormproof.world.mesh import Corners, Mesh, join, paint, quads
from stormproof.world.stage import Placement

KERB = 0.13  # metres
FAR = 1e6  # the position of things that a street does not have
EDGE = 70.0  # how far the modelled ground reaches to either side


@dataclass(frozen=True, slots=True)
class StreetSide:
    """One side of the street from the kerb outwards, widths in metres."""

    verge: float  # grass between kerb and pavement
    pavement: float
    yard: bool  # grass (True) or paved ground (False) up to the buildings


@dataclass(frozen=True, slots=True)
class Street:
    """A street's course and cross-section."""

    bend: float  # curvature at the camera, 1/m, positive to the right
    sway: float  # its change, 1/m²
    slope: float
    left: StreetSide
    right: StreetSide
    marks: Marks

    def height(self, s: float) -> float:
        """Metres above the road at the camera; the hill levels out in the distance."""
        return self.slope * 120.0 * s / (abs(s) + 120.0)

    def tilt(self, s: float) -> float:
        far = abs(s) + 120.0
        return self.slope * 120.0 * 120.0 / (far * far)

    def ahead(self, s: float) -> tuple[float, float]:
        """The unit direction of travel."""
        q = min(s, 140.0)
        lean = self.bend * q + 0.5 * self.sway * q * q
        size = sqrt(1.0 + lean * lean)
        return lean / size, 1.0 / size

    def point(self, s: float, t: float) -> tuple[float, float, float]:
        """Position in the world at road level."""
        q = min(s, 140.0)
        x = 0.5 * self.bend * q * q + self.sway * q * q * q / 6.0
        x += (s - q) * (self.bend * q + 0.5 * self.sway * q * q)
        hx, hy = self.ahead(s)
        return x + t * hy, s - t * hx, self.height(s)

    def side(self, t: float) -> StreetSide:
        return self.right if t > 0 else self.left

    def ground(self, t: float) -> float:
        """Height above road level of the ground at t."""
        return 0.0 if abs(t) < self.marks.half else KERB

    def foot(self, s: float, t: float) -> tuple[float, float, float]:
        """Position in the world of something that stands there: on the road, or a kerb higher beside it."""
        x, y, z = self.point(s, t)
        return x, y, z + self.ground(t)

    def crosses(self, s: float, margin: float = 0.0) -> bool:
        """Whether the cross street is at s."""
        return abs(s - self.marks.crossing) < self.marks.crossing_half + margin


def turned(street: Street, s: float, side: int) -> tuple[float, float]:
    """The heading of an object whose x axis points away from the street."""
    hx, hy = street.ahead(s)
    return (hx, hy) if side > 0 else (-hx, -hy)


def _breaks(street: Street) -> list[float]:
    """Subdivision along s: fine near the camera, with cuts at the cross street's kerbs and corners."""
    cuts = [
        -14.0, -8.0, -4.0, *np.arange(0, 40, 2.0).tolist(), *np.arange(40, 110, 5.0).tolist(),
        *np.arange(110, 260, 15.0).tolist(), 300.0, 400.0, 600.0,
    ]  # fmt: skip
    m = street.marks
    if m.crossing < FAR:
        near, far = m.crossing - m.crossing_half, m.crossing + m.crossing_half
        cuts += [
            near - street.right.pavement - street.right.verge,
            near,
            far,
            far + street.right.pavement + street.right.verge,
        ]
    return sorted(set(cuts))


def _faces(grid: Corners, s: Corners, t: Corners, pick: Corners) -> tuple[Corners, Corners]:
    """Triangles of the picked cells, and their texture (s, t, 0)."""
    rows, columns = np.nonzero(pick)
    source = [(0, 0), (0, 1), (1, 1), (1, 0)]
    four = np.stack([grid[rows + i, columns + j] for i, j in source], axis=1)
    flat = np.stack(
        [np.stack([s[rows + i], t[columns + j], np.zeros(len(rows))], axis=1) for i, j in source], axis=1
    )
    return quads(four), quads(flat)


def _kerbs(low: Corners, high: Corners, raised: Corners) -> Corners:
    """Vertical faces where raised ground meets the road."""
    out = []
    step = np.diff(raised.astype(int), axis=1)
    for i, j in zip(*np.nonzero(step), strict=True):
        a, b = (i, i + 1) if step[i, j] > 0 else (i + 1, i)
        out.append([low[b, j + 1], low[a, j + 1], high[a, j + 1], high[b, j + 1]])
    step = np.diff(raised.astype(int), axis=0)
    for i, j in zip(*np.nonzero(step), strict=True):
        a, b = (j, j + 1) if step[i, j] > 0 else (j + 1, j)
        out.append([low[i + 1, a], low[i + 1, b], high[i + 1, b], high[i + 1, a]])
    return quads(out)


def ground(
    street: Street, paving: Colour, kerb: Colour, grass: Colour, yard: Colour, slab: float, seed: int
) -> Iterator[Placement]:
    """Road, pavements, verges, yards and the country beyond."""
    cuts, m = _breaks(street), street.marks
    left, right = street.left, street.right
    lanes = sorted(
        {
            -EDGE, -m.half - left.verge - left.pavement, -m.half - left.verge, -m.half, m.half,
            m.half + right.verge, m.half + right.verge + right.pavement, EDGE,
        }
    )  # fmt: skip
    low = np.array([[street.point(s, t) for t in lanes] for s in cuts])  # at road level
    high = low + np.array([0.0, 0.0, KERB])
    s, t = np.array(cuts), np.array(lanes)
    mid_s, mid_t = (s[1:] + s[:-1]) / 2, (t[1:] + t[:-1]) / 2
    across = np.array([street.crosses(x) for x in mid_s])
    corner = np.array([street.crosses(x, right.pavement + right.verge + 0.01) for x in mid_s])
    on_road = (np.abs(mid_t) < m.half)[None, :] | across[:, None]
    out = np.abs(mid_t) - m.half
    verge = np.array([x < street.side(y).verge for x, y in zip(out, mid_t, strict=True)])
    walk = np.array(
        [x < street.side(y).verge + street.side(y).pavement for x, y in zip(out, mid_t, strict=True)]
    )
    green = np.array([street.side(y).yard for y in mid_t])
    pave = ~on_road & ((walk & ~verge)[None, :] | corner[:, None])
    lawn = ~on_road & ~pave & (verge | (green & ~walk))[None, :]
    yards = ~on_road & ~pave & ~lawn
    corners, texture = _faces(low, s, t, on_road)
    yield Placement(paint(corners, ASPHALT, texture=texture), semantic=ROAD)
    corners, texture = _faces(high, s, t, pave)
    walks = join(paint(corners, PAVING, 0, texture=texture), paint(_kerbs(low, high, ~on_road), MATTE, 1))
    yield Placement(walks, colours=(paving, kerb), params=(slab,), semantic=SIDEWALK, seed=seed)
    if lawn.any():
        corners, texture = _faces(high, s, t, lawn)
        yield Placement(
            paint(corners, GRASS, texture=texture), colours=(grass,), semantic=VEGETATION, seed=seed + 1
        )
    if yards.any():
        corners, texture = _faces(high, s, t, yards)
        yield Placement(
            paint(corners, GRAVEL, texture=texture), colours=(yard,), semantic=SIDEWALK, seed=seed + 2
        )
    yield Placement(_country(street), colours=(grass,), semantic=VEGETATION, seed=seed + 3)


def _country(street: Street) -> Mesh:
    """Open land to the horizon, a little lower than the street."""
    rows = [-20.0, 60.0, 150.0, 300.0, 600.0, 3000.0]
    wall = []
    for a, b in itertools.pairwise(rows):
        za, zb = (
            min(street.height(y), 0.0 if y < 100 else street.height(y)) - 0.5 - 0.002 * abs(y) for y in (a, b)
        )
        wall.append([(-2500.0, a, za), (2500.0, a, za), (2500.0, b, zb), (-2500.0, b, zb)])
    return paint(quads(wall), GRASS)
