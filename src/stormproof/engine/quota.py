"""A part of the grid: every corrupted condition on its own images, the clean one on all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.randomness import Draw


@dataclass(frozen=True, slots=True)
class Quota:
    """`size` images for each corrupted condition, consecutive in a random order of all images.

    Conditions begin at places spread evenly over the order, so every image serves about equally often; one
    set of images for all conditions would have several times the error (docs/adr/0091). A larger size only
    adds images.
    """

    size: int
    ranks: tuple[int, ...]  # by image: its place in the order
    starts: dict[str, int]  # by corrupted condition

    @classmethod
    def of(cls, size: int, images: int, conditions: Iterable[Condition], seed: int) -> Quota:
        """The quota that follows from the run alone, so that repeated commands agree.

        >>> texts = ("clean", "fog@1", "fog@2")
        >>> quota = Quota.of(1, 2, map(Condition.parse, texts), seed=0)
        >>> [sum(quota.wants(image, text) for image in (0, 1)) for text in texts]
        [2, 1, 1]
        """
        draw = Draw.keyed(seed, "quota")
        ranks = np.argsort(np.argsort(draw.uniforms("images", images), kind="stable"))
        texts = sorted(str(condition) for condition in conditions if not condition.is_clean)
        turns = np.argsort(np.argsort(draw.uniforms("conditions", len(texts)), kind="stable"))
        starts = {text: int(turn) * images // len(texts) for text, turn in zip(texts, turns, strict=True)}
        return cls(size, tuple(ranks.tolist()), starts)

    def wants(self, index: int, condition: str) -> bool:
        """Whether an image is among a condition's."""
        start = self.starts.get(condition)  # none when clean
        return start is None or (self.ranks[index] - start) % len(self.ranks) < self.size
