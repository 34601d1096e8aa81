"""How an image is fitted into a network's input, and how outputs are mapped back to the image.

Pixel centres lie at half integers: a box edge at x in the image lies at x·scale + offset in the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
import numpy.typing as npt
import PIL.Image

from stormproof.core.forms import Size
from stormproof.core.sample import Floats, Image

Resize = Literal["stretch", "letterbox", "shortest", "none"]
Align = Literal["centre", "top-left"]
Rounding = Literal["nearest", "down"]
Interpolation = Literal["nearest", "linear", "area", "cubic", "antialias"]
INTERPOLATIONS = {
    "nearest": cv2.INTER_NEAREST, "linear": cv2.INTER_LINEAR,
    "area": cv2.INTER_AREA, "cubic": cv2.INTER_CUBIC,
}  # fmt: skip
# Interpolations that exist there, with the same bytes. OpenCV's cubic has no bytes of its own: with Intel's
# library IPP, which it uses where it was built with it, 3.5 % of values are another grey level than without.
ON_DEVICE = ("nearest", "linear", "area", "antialias")


@dataclass(frozen=True, slots=True)
class Fit:
    """Where an image lies in a network's input: `inner` pixels of it, starting at `offset`."""

    image: Size
    canvas: Size
    inner: Size
    offset: tuple[int, int] = (0, 0)
    ratio: float | None = None  # the exact scale, where sides were cut to whole pixels afterwards

    @property
    def scale(self) -> tuple[float, float]:
        """Input pixels per image pixel, down and across."""
        if self.ratio is not None:
            return self.ratio, self.ratio
        return self.inner[0] / self.image[0], self.inner[1] / self.image[1]

    def boxes_to_image(self, boxes: npt.NDArray[Any]) -> Floats:
        """Boxes in input pixels converted to image pixels and cut at the image's border.

        >>> fit = plan_fit((100, 200), (50, 50), "letterbox", "top-left")
        >>> fit.boxes_to_image(np.array([[10.0, 10.0, 60.0, 20.0]])).tolist()
        [[40.0, 40.0, 200.0, 80.0]]
        """
        shift, scale, limit = self.sides
        placed: Floats = np.clip((boxes.astype(np.float64) - shift) / scale, 0, limit)
        return placed

    @property
    def sides(self) -> Floats:
        """Offset, scale and size of the image, each for the sides x1 y1 x2 y2 of a box: 3×4."""
        return np.array([each[::-1] * 2 for each in (self.offset, self.scale, self.image)], np.float64)

    def points_to_image(self, points: npt.NDArray[Any]) -> Floats:
        """Points in input pixels converted to image pixels: x and y begin the last axis. They are not
        cut at the border: a joint or a corner may lie beyond it."""
        (down, across), (top, left) = self.scale, self.offset
        placed: Floats = np.array(points, np.float64)
        placed[..., :2] = (placed[..., :2] - (left, top)) / (across, down)
        return placed

    def plane_to_image(self, plane: npt.NDArray[Any], interpolation: str = "linear") -> npt.NDArray[Any]:
        """An h×w plane that covers the whole input (at any resolution), resampled to the image's size.

        >>> fit = plan_fit((1, 4), (1, 2), "stretch")
        >>> fit.plane_to_image(np.array([[0.0, 1.0]], np.float32)).tolist()
        [[0.0, 0.25, 0.75, 1.0]]
        """
        size = (self.image[1], self.image[0])
        if interpolation == "linear" and self.inner == self.canvas:
            # A warp rounds positions to 1/32 of a pixel; the frameworks' own resizing does not.
            return cv2.resize(plane, size, interpolation=cv2.INTER_LINEAR)
        ratio = np.array([plane.shape[0] / self.canvas[0], plane.shape[1] / self.canvas[1]])
        step = ratio * self.scale  # plane pixels per image pixel
        start = ratio * self.offset
        matrix = np.array(
            [[step[1], 0, start[1] + step[1] / 2 - 0.5], [0, step[0], start[0] + step[0] / 2 - 0.5]]
        )
        flags = INTERPOLATIONS[interpolation] | cv2.WARP_INVERSE_MAP
        return cv2.warpAffine(plane, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def plan_fit(
    image: Size,
    size: Size,
    resize: Resize,
    align: Align = "centre",
    multiple: int = 1,
    rounding: Rounding = "nearest",
) -> Fit:
    """Where an image of the given size goes.

    `stretch` fills the input; `letterbox` keeps proportions and pads; `shortest` scales the short side to
    size[0] unless the long side would exceed size[1]; `none` keeps the pixels. The last two round the input
    up to a multiple of `multiple`. With `rounding` `down`, sides are truncated to whole pixels: both sides in
    a letterbox, as in YOLOX, the long side in `shortest`, as in DETR.
    """
    height, width = image
    if resize == "stretch":
        return Fit(image, size, size)
    if resize == "letterbox":
        ratio = min(size[0] / height, size[1] / width)
        cut = rounding == "down"
        inner = (max(1, int(height * ratio)), max(1, int(width * ratio))) if cut else _scale(image, ratio)
        free = size[0] - inner[0], size[1] - inner[1]
        offset = (free[0] // 2, free[1] // 2) if align == "centre" else (0, 0)
        return Fit(image, size, inner, offset, ratio if cut else None)
    ratio = 1.0 if resize == "none" else min(size[0] / min(image), size[1] / max(image))
    cut = resize == "shortest" and rounding == "down"
    inner = _cut(image, size) if cut else _scale(image, ratio)
    canvas = -(-inner[0] // multiple) * multiple, -(-inner[1] // multiple) * multiple
    return Fit(image, canvas, inner)


def _scale(image: Size, ratio: float) -> Size:
    return max(1, round(image[0] * ratio)), max(1, round(image[1] * ratio))


def _cut(image: Size, size: Size) -> Size:
    """A size with the short side size[0], the long side truncated to whole pixels and at most size[1].

    Operation by operation as DETR computes it, so that both round the same way.

    >>> _cut((640, 427), (160, 260)), _cut((100, 400), (160, 260))
    ((239, 160), (65, 260))
    """
    short, long = min(image), max(image)
    side = size[0] if long / short * size[0] <= size[1] else size[1] * short / long
    small, large = max(1, round(side)), max(1, int(side * long / short))
    return (small, large) if image[0] <= image[1] else (large, small)


def place(image: Image, fit: Fit, pad: int, interpolation: str = "linear") -> Image:
    """The RGB image resized and padded as planned."""
    height, width = fit.inner
    inner = image
    if fit.inner != fit.image and interpolation == "antialias":  # averages where it shrinks, as Pillow does
        smoothed = PIL.Image.fromarray(image).resize((width, height), PIL.Image.Resampling.BILINEAR)
        inner = np.asarray(smoothed)
    elif fit.inner != fit.image:
        inner = np.asarray(cv2.resize(image, (width, height), interpolation=INTERPOLATIONS[interpolation]))
    if fit.inner == fit.canvas:
        return np.asarray(inner, np.uint8)
    canvas = np.full((*fit.canvas, 3), pad, np.uint8)
    top, left = fit.offset
    canvas[top : top + height, left : left + width] = inner
    return canvas
