"""The gallery: conditions side by side in one labelled image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import cv2
import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.sample import Context, Image, Sample
from stormproof.corruptions import apply

Rows = dict[str, list[Condition]]
_INK, _PAPER, _FAINT = (25, 28, 33), (250, 250, 248), (120, 124, 130)
_GAP = 6
_MARGIN = 16


def rows_of(conditions: Iterable[Condition]) -> Rows:
    """Group conditions into rows: one per series of severities, or per corruption if they have none.

    >>> from stormproof.corruptions.grammar import read_conditions
    >>> rows = rows_of(read_conditions("fog@1-2,gaussian_noise[sigma=0.1]"))
    >>> {name: len(row) for name, row in rows.items()}
    {'fog': 2, 'gaussian_noise': 1}
    """
    rows: Rows = {}
    for condition in conditions:
        if not condition.is_clean:
            rows.setdefault(condition.series, []).append(condition)
    return rows


Depth = npt.NDArray[np.float32]


def tiles(
    image: Image, rows: Rows, *, seed: int, width: int, depth: Depth | None = None
) -> Iterator[tuple[int, int, Condition, Image]]:
    """Yield (row, column, condition, image): clean in column 0, each severity in its own, others in order.

    The image is first resized to twice the tile's width: blur radii and flake sizes are in pixels, so they
    would look stronger on a thumbnail than on a test image. `depth`, in metres, is for haze and defocus.
    """
    working = _to_width(image, min(2 * width, image.shape[1]))
    if depth is not None:
        size = working.shape[1], working.shape[0]
        depth = np.asarray(cv2.resize(depth, size, interpolation=cv2.INTER_NEAREST), np.float32)
    sample = Sample("gallery", working, context=Context(depth=depth))
    for row, conditions in enumerate(rows.values()):
        for place, condition in enumerate((CLEAN, *conditions)):
            made = apply(sample, condition, seed=seed).image
            yield row, condition.whole_severity or place, condition, _to_width(made, width)


def _to_width(image: Image, width: int) -> Image:
    height = max(round(image.shape[0] * width / image.shape[1]), 1)
    shrink = width < image.shape[1]
    resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrink else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


class Sheet:
    """A labelled grid that tiles are pasted into one by one."""

    def __init__(self, rows: Rows, tile: tuple[int, int]) -> None:
        self.height, self.width = tile
        size = max(self.width // 14, 9)
        self.font = PIL.ImageFont.load_default(size=size)
        self.left = _MARGIN + int(max(self.font.getlength(name) for name in rows)) + 2 * _GAP
        self.top = _MARGIN + 2 * size
        graded = max(condition.whole_severity or 0 for row in rows.values() for condition in row)
        columns = 1 + max([graded, *(len(row) for row in rows.values() if row[0].whole_severity is None)])
        right = self.left + columns * (self.width + _GAP) - _GAP + _MARGIN
        bottom = self.top + len(rows) * (self.height + _GAP) - _GAP + _MARGIN
        self.paper = PIL.Image.new("RGB", (right, bottom), _PAPER)
        self.pen = PIL.ImageDraw.Draw(self.paper)
        for column in range(1 + graded):
            label = f"severity {column}" if column else "clean"
            x = self.left + column * (self.width + _GAP) + self.width // 2
            self.pen.text((x, self.top - _GAP), label, _FAINT, self.font, anchor="ms")
        for row, name in enumerate(rows):
            y = self.top + row * (self.height + _GAP) + self.height // 2
            self.pen.text((self.left - 2 * _GAP, y), name, _INK, self.font, anchor="rm")

    def paste(self, row: int, column: int, condition: Condition, image: Image) -> None:
        """Paste a tile; label it with its parameters if the column header is not enough."""
        x, y = self.left + column * (self.width + _GAP), self.top + row * (self.height + _GAP)
        self.paper.paste(PIL.Image.fromarray(image).convert("RGB"), (x, y))
        if not condition.is_clean and condition.whole_severity is None:
            level = [] if condition.severity is None else [f"severity {condition.severity}"]
            values = (f"{key} {value}" for key, value in condition.params)
            words = "\n".join([*level, *values, *map(str, condition.chain)])
            low = (x + _GAP, y + self.height - _GAP)
            box = self.pen.textbbox(low, words, self.font, anchor="ld")
            self.pen.rectangle((box[0] - 2, box[1] - 2, box[2] + 2, box[3] + 2), _PAPER)
            self.pen.text(low, words, _INK, self.font, anchor="ld")

    def image(self) -> Image:
        return np.asarray(self.paper)
