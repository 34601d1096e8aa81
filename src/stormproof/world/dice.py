"""Random numbers of a scene: choices in order, and texture noise from a table.

Both are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.randomness import Draw

Item = TypeVar("Item")


class Dice:
    """Random numbers from one stream of a draw, one by one.

    >>> Dice(Draw.keyed(0, "world", "val", 0), "trees").integer(6) in range(6)
    True
    """

    def __init__(self, draw: Draw, theme: str) -> None:
        self._draw, self._theme, self._page = draw, theme, 0
        self._numbers: list[float] = []

    def unit(self) -> float:
        """A number in [0, 1)."""
        if not self._numbers:
            numbers = self._draw.uniforms(f"{self._theme}/{self._page}", 256).tolist()
            self._numbers = numbers[::-1]
            self._page += 1
        return self._numbers.pop()

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.unit()

    def integer(self, count: int) -> int:
        """A whole number in [0, count)."""
        return int(self.unit() * count)

    def chance(self, probability: float) -> bool:
        return self.unit() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.integer(len(items))]


# One tile of random numbers in [0, 1), repeated over the plane; seeds shift it.
_SIDE = 128
_TILE = Draw.keyed(0, "world-noise").uniforms("tile", _SIDE * _SIDE).astype(np.float32).reshape(_SIDE, _SIDE)


@kernel(allocates=False)
def chance(x: int, y: int, seed: int) -> float:
    """The random number in [0, 1) of a cell of the integer grid."""
    return float(_TILE[(x + 37 * seed) & (_SIDE - 1), (y + 101 * seed + (seed >> 7)) & (_SIDE - 1)])


@kernel(allocates=False)
def smooth(u: float, v: float, seed: int) -> float:
    """Value noise in [0, 1) with features one unit wide."""
    fu, fv = math.floor(u), math.floor(v)
    a, b = u - fu, v - fv
    a, b = a * a * (3.0 - 2.0 * a), b * b * (3.0 - 2.0 * b)
    x, y = int(fu) + 37 * seed, int(fv) + 101 * seed + (seed >> 7)
    x0, y0, x1, y1 = x & (_SIDE - 1), y & (_SIDE - 1), (x + 1) & (_SIDE - 1), (y + 1) & (_SIDE - 1)
    low = _TILE[x0, y0] * (1.0 - a) + _TILE[x1, y0] * a
    high = _TILE[x0, y1] * (1.0 - a) + _TILE[x1, y1] * a
    return float(low * (1.0 - b) + high * b)


@kernel(allocates=False)
def visible(size: float, sharp: float) -> float:
    """How visible a pattern with features of `size` metres is at `sharp` pixels per metre, from 1 to 0."""
    return min(1.0, max(0.0, size * sharp - 0.7))


@kernel(allocates=False)
def past(x: float, edge: float, sharp: float) -> float:
    """The fraction of a pixel at x that lies beyond an edge."""
    return min(1.0, max(0.0, (x - edge) * sharp + 0.5))


@kernel(allocates=False)
def band(x: float, low: float, high: float, sharp: float) -> float:
    """The fraction of a pixel at x that lies between two edges."""
    return max(0.0, past(x, low, sharp) - past(x, high, sharp))
