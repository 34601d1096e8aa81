"""One version of an image: a condition, which of its styles, how masks are joined, how often it was saved."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from stormproof.core.condition import Condition
from stormproof.core.sample import Bools, Image, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.groups import FEATURE
from stormproof.corruptions.partial import part_mask
from stormproof.corruptions.registry import find, part_of
from stormproof.datasets.dataset import Dataset
from stormproof.style.painting import stylize
from stormproof.style.recipe import DRAWN
from stormproof.style.sources import list_styles
from stormproof.style.stylemap import StyleMap, draw_styles, style_draw

PAPER_QUALITY = 75  # Pillow's default, with which the authors' scripts save


@dataclass(frozen=True, slots=True)
class Version:
    """What is done to an image. `style` counts an image's styles; `feather` softens masks by so many pixels.

    `paper` repeats the object-centric study: every stage goes through a JPEG of quality 75.
    """

    condition: str = "clean"
    style: int = 0
    styles: int = 1
    feather: float = 0.0
    paper: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is what a run would see under the condition."""
        return self.style == 0 and not self.feather and not self.paper


def make(sample: Sample, version: Version, dataset: Dataset, seed: int) -> Sample:
    """The sample in that version, truth included."""
    condition = Condition.parse(version.condition)
    known = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    if condition.corruption != "style" or version.is_plain:
        return apply(sample, condition, seed=seed, **known)
    part = part_of(condition)
    mask = None if part is None else part_mask(sample, part, **known)
    return dataclasses.replace(sample, image=_painted(sample, condition, version, mask, seed))


def style_of(image_id: str, version: Version, seed: int) -> tuple[str, Path] | None:
    """The name and file of the style that a version uses; None where it uses none."""
    condition = Condition.parse(version.condition)
    if condition.corruption != "style":
        return None
    values = find("style").parameters(condition)
    found = list_styles(str(values["styles"]))
    if values["stylemap"] == DRAWN:
        names = draw_styles(style_draw(seed, image_id), tuple(found), version.styles)
    else:
        names = StyleMap.read(str(values["stylemap"])).of(image_id, found)
    name = names[version.style % len(names)]
    return name, found[name]


def _painted(sample: Sample, condition: Condition, version: Version, mask: Bools | None, seed: int) -> Image:
    chosen = style_of(sample.id, version, seed)
    assert chosen is not None
    values = find("style").parameters(condition)
    alpha, space, network = float(values["alpha"]), str(values["space"]), str(values["network"])
    if space == FEATURE or not version.paper:
        painted = stylize(sample.image, chosen[1], alpha=alpha, space=space, network=network)
        painted = again(painted) if version.paper else painted
    else:
        full = again(stylize(sample.image, chosen[1], alpha=1.0, network=network))
        mixed = PIL.Image.blend(PIL.Image.fromarray(sample.image), PIL.Image.fromarray(full), alpha)
        painted = again(np.asarray(mixed, np.uint8))
    return painted if mask is None else join(sample.image, painted, mask, version.feather)


def join(original: Image, painted: Image, mask: Bools, feather: float) -> Image:
    """Painted inside the mask, original outside; `feather` is the deviation in pixels of a soft edge."""
    shape = (*mask.shape, *[1] * (original.ndim - 2))
    if not feather:
        return np.where(mask.reshape(shape), painted, original)
    weight = np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (0, 0), feather)).reshape(shape)
    mixed = original + weight * (painted.astype(np.float32) - original)
    return np.asarray(np.rint(mixed), np.uint8)


def again(image: Image) -> Image:
    """The image as it comes back from a JPEG of quality 75."""
    buffer = BytesIO()
    PIL.Image.fromarray(image).save(buffer, "JPEG", quality=PAPER_QUALITY)
    with PIL.Image.open(buffer) as saved:
        return np.array(saved, np.uint8)
