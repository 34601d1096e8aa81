"""The gallery: every corruption at every severity in one labelled image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from stormproof.condition import SEVERITIES, Condition
from stormproof.corruptions import corrupt_image, find
from stormproof.sample import Image

_INK, _PAPER, _FAINT = (25, 28, 33), (250, 250, 248), (120, 124, 130)
_GAP = 6
_MARGIN = 16


def tiles(image: Image, names: Sequence[str], *, seed: int, width: int) -> Iterator[tuple[int, int, Image]]:
    """(row, column, image) for every corruption and severity; column 0 is clean.

    The image is first brought to twice the tile's width: blur radii and flake sizes are absolute
    pixels, and on a thumbnail they would look stronger than on the image people test with.
    """
    working = _to_width(image, min(2 * width, image.shape[1]))
    for row, name in enumerate(names):
        for column in (0, *find(name).severities):
            condition = Condition.of(name, column) if column else Condition()
            yield (
                row,
                column,
                _to_width(corrupt_image(working, condition, seed=seed, image_id="gallery"), width),
            )


def _to_width(image: Image, width: int) -> Image:
    height = max(round(image.shape[0] * width / image.shape[1]), 1)
    shrink = width < image.shape[1]
    resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrink else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


class Sheet:
    """A labelled grid that tiles are pasted into one by one."""

    def __init__(self, names: Sequence[str], tile: tuple[int, int]) -> None:
        self.height, self.width = tile
        size = max(self.width // 14, 9)
        self.font = PIL.ImageFont.load_default(size=size)
        self.left = _MARGIN + int(max(self.font.getlength(name) for name in names)) + 2 * _GAP
        self.top = _MARGIN + 2 * size
        columns = 1 + len(SEVERITIES)
        right = self.left + columns * (self.width + _GAP) - _GAP + _MARGIN
        bottom = self.top + len(names) * (self.height + _GAP) - _GAP + _MARGIN
        self.paper = PIL.Image.new("RGB", (right, bottom), _PAPER)
        pen = PIL.ImageDraw.Draw(self.paper)
        for column in range(columns):
            label = f"severity {column}" if column else "clean"
            x = self.left + column * (self.width + _GAP) + self.width // 2
            pen.text((x, self.top - _GAP), label, _FAINT, self.font, anchor="ms")
        for row, name in enumerate(names):
            y = self.top + row * (self.height + _GAP) + self.height // 2
            pen.text((self.left - 2 * _GAP, y), name, _INK, self.font, anchor="rm")

    def paste(self, row: int, column: int, image: Image) -> None:
        place = self.left + column * (self.width + _GAP), self.top + row * (self.height + _GAP)
        self.paper.paste(PIL.Image.fromarray(image).convert("RGB"), place)

    def image(self) -> Image:
        return np.asarray(self.paper)
