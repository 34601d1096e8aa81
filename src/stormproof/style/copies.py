"""Stylized copies: several styles per image, soft mask edges, and the repeated JPEG of the paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Bools, Image, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.corruption import find
from stormproof.corruptions.needs import part_mask, part_of
from stormproof.corruptions.suites import FEATURE
from stormproof.datasets.dataset import Dataset
from stormproof.style.networks import open_network
from stormproof.style.painting import stylize
from stormproof.style.sources import check_style, style_draw, styles_for, write_style_map
from stormproof.tools.derived import Version

PAPER_QUALITY = 75  # Pillow's default, with which the authors' scripts save
STYLES = "styles.json"


@dataclass(frozen=True, slots=True)
class Painted(Version):
    """An image under a `style` condition.

    Of the `styles` styles of an image, it gets number `index`; `feather` softens mask edges by that many
    pixels. `paper` repeats the object-centric study: every stage is saved as a JPEG of quality 75.
    """

    index: int = 0
    styles: int = 1
    feather: float = 0.0
    paper: bool = False

    @property
    def quality(self) -> int | None:
        return PAPER_QUALITY if self.paper else None

    def check(self, image_ids: Sequence[str], seed: int) -> None:
        open_network(str(find("style").parameters(Condition.parse(self.condition))["network"]))
        chosen = {self.chosen(name, seed)[1] for name in image_ids}
        problems = [problem for path in sorted(chosen) if (problem := check_style(path))]
        if problems:
            first = "; ".join(problems[:3])
            raise InvalidOption(
                f"{len(problems)} styles cannot be used: {first} Remove them and start again."
            )

    def make(self, sample: Sample, dataset: Dataset, seed: int) -> Sample:
        condition = Condition.parse(self.condition)
        known = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
        if self.index == 0 and not self.feather and not self.paper:
            return apply(sample, condition, seed=seed, **known)
        part = part_of(condition)
        mask = None if part is None else part_mask(sample, part, **known)
        return dataclasses.replace(sample, image=self._paint(sample, condition, mask, seed))

    def style(self, image_id: str, seed: int) -> str | None:
        return self.chosen(image_id, seed)[0]

    def write_styles(self, out: Path, styles: Mapping[str, tuple[str, ...]], seed: int) -> None:
        write_style_map(out / STYLES, styles, seed)

    def chosen(self, image_id: str, seed: int) -> tuple[str, Path]:
        """The name and file of the style that an image gets."""
        values = find("style").parameters(Condition.parse(self.condition))
        draw, styles, stylemap = style_draw(seed, image_id), str(values["styles"]), str(values["stylemap"])
        chosen = styles_for(draw, styles, stylemap, self.styles)
        return chosen[self.index % len(chosen)]

    def _paint(self, sample: Sample, condition: Condition, mask: Bools | None, seed: int) -> Image:
        _, path = self.chosen(sample.id, seed)
        values = find("style").parameters(condition)
        alpha, space, network = float(values["alpha"]), str(values["space"]), str(values["network"])
        if space == FEATURE or not self.paper:
            painted = stylize(sample.image, path, alpha=alpha, space=space, network=network)
            painted = as_jpeg(painted) if self.paper else painted
        else:
            full = as_jpeg(stylize(sample.image, path, alpha=1.0, network=network))
            mixed = PIL.Image.blend(PIL.Image.fromarray(sample.image), PIL.Image.fromarray(full), alpha)
            painted = as_jpeg(np.asarray(mixed, np.uint8))
        return painted if mask is None else blend(sample.image, painted, mask, self.feather)


def blend(original: Image, painted: Image, mask: Bools, feather: float) -> Image:
    """Painted inside the mask, original outside; `feather` is the deviation of a soft edge in pixels."""
    shape = (*mask.shape, *[1] * (original.ndim - 2))
    if not feather:
        return np.where(mask.reshape(shape), painted, original)
    weight = np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (0, 0), feather)).reshape(shape)
    mixed = original + weight * (painted.astype(np.float32) - original)
    return np.asarray(np.rint(mixed), np.uint8)


def as_jpeg(image: Image) -> Image:
    """The image after saving it as a JPEG of quality 75."""
    buffer = BytesIO()
    PIL.Image.fromarray(image).save(buffer, "JPEG", quality=PAPER_QUALITY)
    with PIL.Image.open(buffer) as saved:
        return np.array(saved, np.uint8)
