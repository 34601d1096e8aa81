"""Magenta's arbitrary style transfer (ghiasi2017): one graph encodes a style as a vector, one paints with it.

α blends vectors, from the content's own (which nearly reconstructs the content) to the style's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.sample import Image
from stormproof.style.layers import Field
from stormproof.style.onnx import fingerprint, session


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    planes: Field
    own: Field
    size: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Magenta:
    """The two sessions; images are resized to the sides their graphs were exported for, and back."""

    name: str
    predict: Any
    transform: Any
    fingerprint: str

    def encode_content(self, image: Image) -> Content:
        planes = _resized(image, _sides(self.transform))
        return Content(planes, self.encode_style(image), (image.shape[0], image.shape[1]))

    def encode_style(self, image: Image) -> Field:
        return _run(self.predict, _resized(image, _sides(self.predict)))

    def load_style(self, path: Path) -> Field:
        raise InvalidOption(f"{path}: {self.name} has no saved statistics; give style images.")

    def paint(self, content: Content, style: Field, alpha: float) -> Image:
        vector = (np.float32(1 - alpha) * content.own + np.float32(alpha) * style).astype(np.float32)
        painted = _run(self.transform, content.planes, vector)[0]
        height, width = content.size
        back = cv2.resize(painted, (width, height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(np.clip(np.rint(back * 255), 0, 255), np.uint8)


def _sides(opened: Any) -> tuple[int, int]:
    """The image height and width that a graph takes; 384 per side if it takes any."""
    _, height, width, _ = opened.get_inputs()[0].shape
    return (height, width) if isinstance(height, int) else (384, 384)


def _resized(image: Image, size: tuple[int, int]) -> Field:
    method = cv2.INTER_AREA if min(image.shape[:2]) > min(size) else cv2.INTER_LINEAR
    small = cv2.resize(image, size[::-1], interpolation=method)
    return np.asarray(small, np.float32)[None] / np.float32(255)


def _run(opened: Any, *given: Field) -> Field:
    names = [node.name for node in opened.get_inputs()]
    return np.asarray(opened.run(None, dict(zip(names, given, strict=True)))[0], np.float32)


def open_magenta(main: str, *, transform: str) -> Magenta:
    """Open both graphs: `main` predicts the style's vector, `transform` paints."""
    files = [Path(main), Path(transform)]
    for file in files:
        if not file.is_file():
            raise InvalidOption(f"{file}: no such model file; check the path.")
    predict, paint = map(session, files)
    if len(predict.get_inputs()) != 1 or len(paint.get_inputs()) != 2:
        raise ModelError(
            f"{main}, {transform}: give the predicting graph first, then transform=PAINTING GRAPH."
        )
    return Magenta("magenta", predict, paint, fingerprint(files))
