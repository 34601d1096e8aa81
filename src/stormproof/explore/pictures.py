"""Images as files for a browser: exact ones for the microscope, small ones for lists."""

from __future__ import annotations

import threading
from collections import OrderedDict

import cv2
import numpy as np

from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.datasets.dataset import Dataset
from stormproof.report.imagery import paint_map
from stormproof.tools.drawing import painted_map

THUMB = 200  # pixels of a small image's longer side
_QUALITY = 70
_FASTEST = 1  # of PNG's compression: the file goes no further than this machine


def png(image: Image) -> bytes:
    """Every pixel's value, quickly."""
    rgb = image if image.ndim == 3 and image.shape[2] == 4 else as_rgb(image)
    code = cv2.COLOR_RGBA2BGRA if rgb.shape[2] == 4 else cv2.COLOR_RGB2BGR
    _, packed = cv2.imencode(".png", cv2.cvtColor(rgb, code), [cv2.IMWRITE_PNG_COMPRESSION, _FASTEST])
    return packed.tobytes()


def thumbnail(image: Image) -> bytes:
    """A small WebP."""
    height, width = image.shape[:2]
    ratio = min(1.0, THUMB / max(height, width))
    size = max(1, round(width * ratio)), max(1, round(height * ratio))
    small = cv2.resize(as_rgb(image), size, interpolation=cv2.INTER_AREA)
    _, packed = cv2.imencode(
        ".webp", cv2.cvtColor(small, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_WEBP_QUALITY, _QUALITY]
    )
    return packed.tobytes()


def painting(found: Prediction, dataset: Dataset) -> bytes | None:
    """A predicted label map or panoptic map in the report's colours; None if there is neither."""
    drawn = painted_map(found)
    if drawn is None:
        return None
    return png(np.asarray(paint_map(drawn[0], len(dataset.semantic_classes)), np.uint8))


class Shelf:
    """Files that were made, the last ones used up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._files: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> bytes | None:
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
            return self._files.get(key)

    def put(self, key: tuple[object, ...], content: bytes) -> bytes:
        with self._lock:
            self._held += len(content) - len(self._files.pop(key, b""))
            self._files[key] = content
            while self._held > self._most and len(self._files) > 1:
                self._held -= len(self._files.popitem(last=False)[1])
        return content
