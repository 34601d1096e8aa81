"""A model that is asked about one image at a time, whatever framework answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.models.fingerprint import fingerprint


@dataclass(frozen=True, eq=False)
class PerImage:
    """`predict` takes one H×W×3 RGB image. `files` and `settings` make the fingerprint.

    One image at a time, because an image that shares its batch with larger ones is padded to their
    size by most frameworks, and then its prediction depends on its neighbours.
    """

    name: str
    predict: Callable[[Image], Prediction]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        names = {"classes": self.classes, "semantic_classes": self.semantic_classes}
        return fingerprint(self.files, {**self.settings, **names})

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        return [self.predict(as_rgb(image)) for image in images]


def bgr(image: Image) -> Image:
    """An image with its channels the other way round, as OpenCV and the frameworks built on it want it."""
    return np.ascontiguousarray(image[..., ::-1])
