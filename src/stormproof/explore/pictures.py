"""Images as files for a browser: exact ones for the microscope, small ones for lists."""

from __future__ import annotations

import threading
from collections import OrderedDict

import cv2
import numpy as np

from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.datasets.dataset import Dataset
from stormproof.report.imagery import encode, paint_map, shrunk
from stormproof.tools.drawing import painted_map

THUMB = 200  # pixels of a small image's longer side
_QUALITY = 70
_FASTEST = 1  # of PNG's compression: the file goes no further than this machine


def png(image: Image) -> bytes:
    """Every pixel's value, quickly."""
    return encode(image, ".png", cv2.IMWRITE_PNG_COMPRESSION, _FASTEST)


def thumbnail(image: Image) -> bytes:
    """A small WebP."""
    return encode(shrunk(as_rgb(image), THUMB), ".webp", cv2.IMWRITE_WEBP_QUALITY, _QUALITY)


def painting(prediction: Prediction, dataset: Dataset) -> bytes | None:
    """A predicted label map or panoptic map in the report's colours; None if there is neither."""
    drawn = painted_map(prediction)
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
