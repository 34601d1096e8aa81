"""Texture noise from integer hashes: the same value for the same place on every machine."""

from __future__ import annotations

import math

from stormproof.world.kernel import kernel


@kernel
def chance(x: int, y: int, seed: int) -> float:
    """A number in [0, 1) that belongs to a cell of the integer grid."""
    h = (x * 374761393 + y * 668265263 + seed * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 1103515245) & 0xFFFFFFFF
    return float(h ^ (h >> 16)) * (1.0 / 4294967296.0)


@kernel
def smooth(u: float, v: float, seed: int) -> float:
    """Value noise in [0, 1) with features one unit wide."""
    fu, fv = math.floor(u), math.floor(v)
    x, y = int(fu), int(fv)
    a, b = u - fu, v - fv
    a, b = a * a * (3.0 - 2.0 * a), b * b * (3.0 - 2.0 * b)
    low = chance(x, y, seed) * (1.0 - a) + chance(x + 1, y, seed) * a
    high = chance(x, y + 1, seed) * (1.0 - a) + chance(x + 1, y + 1, seed) * a
    return low * (1.0 - b) + high * b


@kernel
def visible(size: float, sharp: float) -> float:
    """How much of a pattern with features of `size` metres survives at `sharp` pixels per metre: 1 to 0."""
    return min(1.0, max(0.0, size * sharp - 0.7))


@kernel
def past(x: float, edge: float, sharp: float) -> float:
    """The fraction of a pixel at x that lies beyond an edge."""
    return min(1.0, max(0.0, (x - edge) * sharp + 0.5))


@kernel
def band(x: float, low: float, high: float, sharp: float) -> float:
    """The fraction of a pixel at x that lies between two edges."""
    return max(0.0, past(x, low, sharp) - past(x, high, sharp))
