"""Small copies of images for a page: WebP, each once, within a budget of bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.sample import RLE, Image, as_rgb

SIDE = 360  # the longer side of an image on the page, in pixels
_QUALITY = 62
_ELEMENT = 60  # bytes around an image in the page
_PACKED = 0.4  # what is left of JSON after gzip and base64, about


class Album:
    """The images of a page; once the budget is spent, nothing more goes in."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.spent = 0
        self.webp: dict[str, str] = {}

    def add(self, image: Image, *, exact: bool = False) -> str | None:
        """The key of an image, or none if it does not fit any more; `exact` keeps every pixel's value."""
        rgb = image if image.ndim == 3 and image.shape[2] == 4 else as_rgb(image)
        code = cv2.COLOR_RGBA2BGRA if rgb.shape[2] == 4 else cv2.COLOR_RGB2BGR
        quality = 101 if exact else _QUALITY  # above 100 is lossless
        _, packed = cv2.imencode(".webp", cv2.cvtColor(rgb, code), [cv2.IMWRITE_WEBP_QUALITY, quality])
        text = base64.b64encode(packed.tobytes()).decode()
        if self.spent + len(text) + _ELEMENT > self.budget:
            return None
        self.spent += len(text) + _ELEMENT
        key = str(len(self.webp))
        self.webp[key] = text
        return key

    def charge(self, content: object) -> None:
        """Count what the page holds beside the images: boxes and names."""
        self.spent += int(_PACKED * len(json.dumps(content, ensure_ascii=False)))


def ratio_of(image: npt.NDArray[Any]) -> float:
    """Pixels of the page per pixel of the image."""
    return min(1.0, SIDE / int(max(image.shape[:2])))


def shrunk(image: Image) -> Image:
    """The image as large as it is on the page."""
    if ratio_of(image) == 1:
        return image
    return np.asarray(cv2.resize(image, _small(image), interpolation=cv2.INTER_AREA), np.uint8)


def _small(image: npt.NDArray[Any]) -> tuple[int, int]:
    """Width and height on the page."""
    height, width = image.shape[:2]
    return max(1, round(width * ratio_of(image))), max(1, round(height * ratio_of(image)))


def outline(mask: RLE, ratio: float) -> str:
    """The outline of a mask as the path of an SVG, in the small image's pixels."""
    pixels = mask.to_mask().astype(np.uint8)
    found, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    paths = []
    for contour in found:
        points = cv2.approxPolyDP(contour.astype(np.float32) * ratio, 0.8, True).reshape(-1, 2)
        if len(points) > 2:
            paths.append("M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points) + "Z")
    return "".join(paths)


def painted(labels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], classes: int) -> Image:
    """A label map in colours that differ in hue and brightness; pixels without a class are clear."""
    small = cv2.resize(labels, _small(labels), interpolation=cv2.INTER_NEAREST)
    hue = (np.arange(max(classes, 1)) * 67) % 180  # far apart for neighbours
    value = 130 + (np.arange(max(classes, 1)) * 53) % 126
    table = np.stack([hue, np.full_like(hue, 200), value], axis=1).astype(np.uint8)[None]
    colours = cv2.cvtColor(table, cv2.COLOR_HSV2RGB)[0]
    known = small < classes
    rgba = np.zeros((*small.shape, 4), np.uint8)
    rgba[known, :3] = colours[small[known]]
    rgba[known, 3] = 255
    return rgba
