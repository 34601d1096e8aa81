"""Training with corruption: a transform for a torch `DataLoader`, or for batches already on the device."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption, counted
from stormproof.core.randomness import Draw
from stormproof.corruptions import corrupt_image
from stormproof.corruptions.chain import check_alone
from stormproof.corruptions.grammar import read_conditions

AnyImages = Any  # a torch tensor or a PIL image: neither is imported before it is used


class CorruptionTransform:
    """Corrupts a share of the images, each under a condition drawn by image and epoch (kamann, section 6).

    `conditions` name suites, corruptions or conditions. Corruptions that need depth or objects are refused.
    The choice and the noise depend on (seed, epoch, id) only, not on workers or batches. Without ids, as
    inside torchvision's `Compose`, a counter takes their place: images then differ from call to call, and
    what an image gets depends on the order of calls and, in a `DataLoader`, on the worker's seed.

    >>> import torch
    >>> transform = CorruptionTransform("imagenet-c", share=0.5)
    >>> transform(torch.zeros((3, 32, 32), dtype=torch.uint8), "street.png", epoch=2).shape
    torch.Size([3, 32, 32])
    """

    def __init__(self, conditions: str | Sequence[str], *, share: float = 0.5, seed: int = 0) -> None:
        if not 0 <= share <= 1:
            raise InvalidOption(f"share={share}: the share of images to corrupt must lie in 0 … 1.")
        self.conditions = read_conditions(conditions)
        if not self.conditions:
            raise InvalidOption("conditions is empty: name suites, corruptions or conditions.")
        for condition in self.conditions:
            check_alone(condition)
        self.share, self.seed = share, seed
        self._calls = 0

    def __call__(
        self, images: AnyImages, ids: str | Sequence[str] | None = None, *, epoch: int = 0
    ) -> AnyImages:
        """A batch N×3×H×W with N ids, one image 3×H×W with its id, or one PIL image; tensors are uint8, or
        floats from 0 to 1. The result is of the kind given."""
        if not hasattr(images, "clone"):
            return self._pil(images, ids, epoch=epoch)
        if images.ndim == 3:
            return self(images[None], ids, epoch=epoch)[0]
        names = self._names(ids, len(images))
        groups: dict[Condition, list[int]] = defaultdict(list)
        for i, name in enumerate(names):
            condition = self._drawn(name, epoch)
            if condition is not None:
                groups[condition].append(i)
        out = images.clone()
        for condition, members in groups.items():
            from stormproof.corruptions.on_device import corrupt_batch

            keys = [_key(names[i], epoch) for i in members]
            out[members] = corrupt_batch(images[members], condition, ids=keys, seed=self.seed)
        return out

    def _pil(self, image: Any, ids: str | Sequence[str] | None, *, epoch: int) -> Any:
        """The same pixels as for a tensor; torch is not needed."""
        import PIL.Image

        if not isinstance(image, PIL.Image.Image):
            raise InvalidImage(f"Give a tensor or a PIL image, not {type(image).__name__}.")
        (name,) = self._names(ids, 1)
        pixels, condition = np.array(image.convert("RGB")), self._drawn(name, epoch)
        if condition is not None:
            pixels = corrupt_image(pixels, condition, seed=self.seed, image_id=_key(name, epoch))
        return PIL.Image.fromarray(pixels)

    def _drawn(self, name: str, epoch: int) -> Condition | None:
        """The condition of an image in an epoch; None if it stays clean."""
        draw = Draw.keyed(self.seed, name, "training", epoch)
        if _share(draw, "corrupt") >= self.share:
            return None
        return self.conditions[int(_share(draw, "condition") * len(self.conditions))]

    def _names(self, ids: str | Sequence[str] | None, count: int) -> Sequence[str]:
        """The ids given, or names for images that have none: how many came before, in which worker of a
        `DataLoader`."""
        if ids is not None:
            names = [ids] if isinstance(ids, str) else ids
            if len(names) != count:
                raise InvalidOption(f"ids= names {counted(len(names), 'image')}, but {count} are given.")
            return names
        worker = None
        if "torch.utils.data" in sys.modules:  # only then can this be a worker of a DataLoader
            from torch.utils.data import get_worker_info

            worker = get_worker_info()
        self._calls += count
        return [f"{worker.seed if worker else ''} {self._calls - k}" for k in range(count - 1, -1, -1)]


def _key(name: str, epoch: int) -> str:
    """What the noise of an image is drawn by."""
    return f"{name} epoch {epoch}"


def _share(draw: Draw, name: str) -> float:
    """A number in [0, 1) from a hash: a generator is not needed for one number per image."""
    key = Draw.keyed(draw.key[0], draw.key[1], name).key
    return key[0] / 2**32
