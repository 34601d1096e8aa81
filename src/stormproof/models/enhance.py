"""Image enhancement before a model: does it win back what a corruption took? (liu 2024, RQ4)

An enhanced model is another model: the steps are part of its name and fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.randomness import Draw, digest
from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.core.wrapper import Wrapper
from stormproof.models.fingerprint import fingerprint
from stormproof.models.model import Model, Precomputed
from stormproof.style.networks import open_network
from stormproof.style.painting import stylize
from stormproof.style.sources import list_styles
from stormproof.style.stylemap import draw_styles


def clahe(image: Image, *, clip: float = 2.0, tiles: int = 8) -> Image:
    """Contrast-limited adaptive histogram equalisation of the luma; colours keep their chroma.

    `clip` bounds how steep a tile's histogram may make the contrast; the image has tiles×tiles of them.
    """
    luma = cv2.createCLAHE(clipLimit=clip, tileGridSize=(tiles, tiles))
    if image.ndim == 2 or image.shape[2] == 1:
        return np.asarray(luma.apply(image.reshape(image.shape[:2])), np.uint8).reshape(image.shape)
    planes = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)
    planes[..., 0] = luma.apply(np.ascontiguousarray(planes[..., 0]))
    return np.asarray(cv2.cvtColor(planes, cv2.COLOR_YCrCb2RGB), np.uint8)


def nlm(image: Image, *, strength: float = 3.0, template: int = 7, search: int = 21) -> Image:
    """Non-local means: a pixel becomes the mean of those whose surroundings look alike.

    `template` and `search` are the sides in pixels of the surroundings and of the area searched;
    the defaults are OpenCV's, as the paper keeps its methods' own settings.
    """
    # OpenCV takes BGR for its conversion to CIELAB, where it tells luma from colour.
    reverse = np.ascontiguousarray(as_rgb(image)[..., ::-1])
    cleaned = cv2.fastNlMeansDenoisingColored(reverse, None, strength, strength, template, search)
    return np.ascontiguousarray(cleaned[..., ::-1])


def style(image: Image) -> Image:
    """The image repainted in one of the built-in styles, which its own content chooses."""
    image = as_rgb(image)
    names = list_styles()
    chosen = draw_styles(Draw.keyed(0, digest(image), "enhance"), tuple(names))[0]
    return stylize(image, names[chosen], alpha=1.0)


STEPS: dict[str, Callable[[Image], Image]] = {"clahe": clahe, "nlm": nlm, "style": style}
# Raised when a step's defaults change, since then its images do.
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Enhanced(Wrapper):
    """A model that sees every image after some steps of enhancement, first to last."""

    model: Model
    steps: tuple[str, ...]

    @property
    def _inner(self) -> Model:
        return self.model

    @property
    def name(self) -> str:
        return "+".join((self.model.name, *self.steps))

    @property
    def fingerprint(self) -> str:
        own = {"model": self.model.fingerprint, "steps": self.steps, "version": _VERSION}
        if "style" in self.steps:
            own["network"] = open_network().fingerprint
        return fingerprint((), own)

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        return self.model([self._prepare(image) for image in images])

    def _prepare(self, image: Image) -> Image:
        for step in self.steps:
            image = STEPS[step](image)
        return image


def enhanced(model: Model | Precomputed, steps: Sequence[str]) -> Model | Precomputed:
    """`model` behind the named steps; none leaves it as it is."""
    for step in steps:
        if step not in STEPS:
            raise UnknownName("enhancement", step, STEPS, f"Known: {', '.join(STEPS)}.")
    if not steps:
        return model
    if isinstance(model, Precomputed):
        fix = "there is no image to enhance"
        raise InvalidOption(f"{model.name} holds predictions made beforehand; {fix}.")
    return Enhanced(model, tuple(steps))
