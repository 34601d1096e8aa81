"""Images painted in a style: at some α, in feature or in pixel space, encoded once for all α.

The enhancement `style`, which repaints every image before a model sees it, is registered in the entry point
group `stormproof.enhancements`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from stormproof.core.randomness import Draw, digest
from stormproof.core.sample import Image, as_rgb
from stormproof.corruptions.suites import FEATURE, PIXEL
from stormproof.style.networks import open_network
from stormproof.style.recipe import BUILT_IN
from stormproof.style.sources import draw_styles, encoded_style, list_styles

KEPT = 12  # paintings of one image: a sequence of eleven, and one more


class _Content(NamedTuple):
    """The features of an image, and its paintings, which objects and background share."""

    key: tuple[str, str]  # the network, and a digest of the image
    features: Any
    painted: dict[tuple[str, float], Image]


_NOTHING = _Content(("", ""), None, {})
_last = _NOTHING  # replaced as a whole, since other threads may be painting other images


def stylize(
    image: Image, style: Path, *, alpha: float, space: str = FEATURE, network: str = BUILT_IN
) -> Image:
    """The image painted in a style; same shape, a new array.

    In feature space α blends features, so α = 0 is the network's reconstruction; in pixel space it
    blends the original with the fully painted image, so α = 0 is the original. Grey images stay grey.
    """
    if space == PIXEL:
        if alpha == 0:
            return image.copy()
        return blend(image, stylize(image, style, alpha=1.0, network=network), alpha)
    if image.ndim == 2 or image.shape[2] == 1:
        painted = stylize(as_rgb(image), style, alpha=alpha, network=network)
        return np.asarray(cv2.cvtColor(painted, cv2.COLOR_RGB2GRAY), np.uint8).reshape(image.shape)
    global _last
    opened, wanted = open_network(network), encoded_style(network, style)
    key = (network, digest(image))
    asked, content = (str(style), alpha), _last
    if content.key != key:
        _last = content = _Content(key, opened.encode_content(image), {})
    kept = content.painted.get(asked)
    if kept is None:
        if len(content.painted) >= KEPT:
            content.painted.clear()
        kept = content.painted[asked] = opened.paint(content.features, wanted, alpha)
    return kept.copy()


def blend(original: Image, painted: Image, alpha: float) -> Image:
    """(1−α)·original + α·painted, to the nearest grey level.

    >>> blend(np.zeros((1, 1, 3), np.uint8), np.full((1, 1, 3), 200, np.uint8), 0.25)[0, 0].tolist()
    [50, 50, 50]
    """
    if alpha == 1:
        return painted.copy()
    mixed = original.astype(np.float32)
    mixed += np.float32(alpha) * (painted.astype(np.float32) - mixed)
    return np.rint(mixed).astype(np.uint8)


class StyleEnhancement:
    """Repaints an image in a built-in style, chosen by its content: equal images are repainted alike."""

    @property
    def fingerprint(self) -> str:
        return open_network().fingerprint

    def __call__(self, image: Image) -> Image:
        image = as_rgb(image)
        names = list_styles()
        chosen = draw_styles(Draw.keyed(0, digest(image), "enhance"), tuple(names))[0]
        return stylize(image, names[chosen], alpha=1.0)


style = StyleEnhancement()
