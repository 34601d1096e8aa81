"""Random choices of one theme of one scene, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stormproof.core.randomness import Draw

Item = TypeVar("Item")


class Dice:
    """Numbers from one stream of a draw, handed out one by one.

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
