"""Training with corruption: a transform for a torch `DataLoader`, or for batches already on the device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.randomness import Draw
from stormproof.corruptions.grammar import read_conditions
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.corruptions.registry import find

if TYPE_CHECKING:
    from torch import Tensor


class CorruptionTransform:
    """Corrupts a share of the images, each under a condition drawn by image and epoch (kamann, section 6).

    `conditions` name suites, corruptions or conditions. The choice and the noise depend on (seed, epoch, id)
    only, not on workers or batches. Corruptions that need depth or objects are refused.

    >>> import torch
    >>> transform = CorruptionTransform("imagenet-c", share=0.5)
    >>> transform(torch.zeros((3, 32, 32), dtype=torch.uint8), "street.png", epoch=2).shape
    torch.Size([3, 32, 32])
    """

    def __init__(self, conditions: str | Sequence[str], *, share: float = 0.5, seed: int = 0) -> None:
        if not 0 <= share <= 1:
            raise InvalidOption(f"share={share}: the share of images to corrupt must lie in 0 … 1.")
        self.conditions = read_conditions(conditions)
        for condition in self.conditions:
            if condition.corruption is not None:
                find(condition.corruption).check_alone(condition)
        self.share, self.seed = share, seed

    def __call__(self, images: Tensor, ids: str | Sequence[str], *, epoch: int = 0) -> Tensor:
        """A batch N×3×H×W with N ids, or one image 3×H×W with its id."""
        if isinstance(ids, str):
            return self(images[None], [ids], epoch=epoch)[0]
        groups: dict[Condition, list[int]] = defaultdict(list)
        for i, name in enumerate(ids):
            draw = Draw.keyed(self.seed, name, "training", epoch)
            if _share(draw, "corrupt") < self.share:
                groups[self.conditions[int(_share(draw, "condition") * len(self.conditions))]].append(i)
        out = images.clone()
        for condition, members in groups.items():
            names = [f"{ids[i]} epoch {epoch}" for i in members]
            out[members] = corrupt_batch(images[members], condition, ids=names, seed=self.seed)
        return out


def _share(draw: Draw, name: str) -> float:
    """A number in [0, 1) from a hash: one number per image needs no generator."""
    key = Draw.keyed(draw.key[0], draw.key[1], name).key
    return key[0] / 2**32
