"""Numbered looks: any number of styles made from the built-in images, the same on every machine.

A look is a rotated, recoloured crop of one image; half of the looks take the broad patches of a second one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.style.adain import Field

FOLDER = Path(__file__).with_name("images")
SUFFIX = ".look"  # of a style that is not a file
COUNT = 300
SIDE = 384  # pixels
BROAD = 20.0  # pixels: larger features are patches, smaller ones strokes
_NAMED = re.compile(r"looks(?:-([1-9][0-9]{0,5}))?")


def list_looks(source: str) -> dict[str, Path] | None:
    """The looks that `looks` or `looks-50` names; None if `source` is something else.

    >>> list(list_looks("looks-2"))
    ['look-000000', 'look-000001']
    """
    match = _NAMED.fullmatch(source)
    if match is None:
        return None
    names = [f"look-{k:06d}" for k in range(int(match[1] or COUNT))]
    return {name: FOLDER / f"{name}{SUFFIX}" for name in names}


def draw_look(name: str) -> Image:
    """The look of that name, a square RGB image."""
    draw = Draw.keyed(0, "look", name)
    look = _cut(draw, "first")
    if draw.uniform("mixed") < 0.5:
        look = _combined(look, _cut(draw, "second"))
    return np.clip(np.rint(_recoloured(draw, look)), 0, 255).astype(np.uint8)


@lru_cache(maxsize=1)
def _shipped() -> tuple[Image, ...]:
    opened = (PIL.Image.open(path) for path in sorted(FOLDER.glob("*.jpg")))
    return tuple(np.asarray(image.convert("RGB"), np.uint8) for image in opened)


def _cut(draw: Draw, which: str) -> Field:
    """A square crop of one image, rotated and mirrored; the smaller it is, the broader its strokes become."""
    images = _shipped()
    image = images[draw.integer(f"{which} image", len(images))]
    side = round(min(image.shape[:2]) * draw.uniform(f"{which} size", 0.4, 1.0))
    top, left = (
        draw.integer(f"{which} {axis}", n - side + 1) for axis, n in zip("yx", image.shape, strict=False)
    )
    turned = np.rot90(image[top : top + side, left : left + side], draw.integer(f"{which} turn", 4))
    if draw.uniform(f"{which} mirror") < 0.5:
        turned = turned[:, ::-1]
    method = cv2.INTER_CUBIC
    return np.asarray(
        cv2.resize(np.ascontiguousarray(turned), (SIDE, SIDE), interpolation=method), np.float32
    )


def _combined(strokes: Field, patches: Field) -> Field:
    """The strokes of one image over the patches of another."""
    fine = strokes - cv2.GaussianBlur(strokes, (0, 0), BROAD)
    return np.asarray(cv2.GaussianBlur(patches, (0, 0), BROAD / 2) + fine, np.float32)


def _recoloured(draw: Draw, look: Field) -> Field:
    """Permute the channels, sometimes invert them, and make each brighter or darker."""
    order = np.argsort(draw.uniforms("order", 3))
    share = np.clip(look[..., order] / 255, 0, 1)
    if draw.uniform("negative") < 0.15:
        share = 1 - share
    return np.asarray(255 * share ** np.exp(draw.uniforms("gamma", 3) - 0.5), np.float32)
