"""Corruptions: recipes by what goes wrong in the world, and the two ways to apply one."""

from __future__ import annotations

import dataclasses
from importlib import import_module

from stormproof.condition import Condition
from stormproof.corruptions.registry import Corruption, find, registered
from stormproof.corruptions.suites import SUITES, find_suite
from stormproof.randomness import Draw
from stormproof.sample import Image, Sample, check_image

# Importing a room registers its recipes; this order is the order of lists and galleries.
for _room in ("noise", "blur", "weather", "light", "digital"):
    import_module(f"stormproof.corruptions.{_room}")

__all__ = ["SUITES", "Corruption", "apply", "corrupt_image", "find", "find_suite", "registered"]


def corrupt_image(image: Image, condition: Condition | str, *, seed: int = 0, image_id: str = "") -> Image:
    """The image under a condition: same shape, same dtype, a new array.

    The random part depends on (seed, image_id, corruption, severity) and on nothing else. Conditions
    with free parameters and no severity share severity 0, so a sweep over a parameter keeps its noise.

    >>> import numpy as np
    >>> corrupt_image(np.full((4, 4, 3), 128, np.uint8), "contrast@3").shape
    (4, 4, 3)
    """
    check_image(image)
    condition = Condition.parse(condition) if isinstance(condition, str) else condition
    if condition.corruption is None:
        return image.copy()
    found = find(condition.corruption)
    draw = Draw.keyed(seed, image_id, found.name, condition.severity or 0)
    pixels = image if image.ndim == 3 else image[..., None]
    return found.apply(pixels, condition, draw).reshape(image.shape)


def apply(sample: Sample, condition: Condition | str, *, seed: int = 0) -> Sample:
    """The sample with its image under a condition; its id is the identity of the draw."""
    image = corrupt_image(sample.image, condition, seed=seed, image_id=sample.id)
    return dataclasses.replace(sample, image=image)
