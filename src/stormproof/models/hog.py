"""OpenCV's built-in pedestrian detector, `hog:people` or `hog:daimler`; it needs no weights or framework.

Histograms of oriented gradients and a linear classifier (Dalal and Triggs 2005): a baseline from before
neural networks that runs anywhere.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Image, Prediction
from stormproof.models.candidates import nms
from stormproof.models.decoding import sigmoid
from stormproof.models.model import ADAPTERS, PerImage, bgr

# The window's width and height in pixels, and the classifier's weights.
_DETECTORS: dict[str, tuple[tuple[int, int], Any]] = {
    "people": ((64, 128), cv2.HOGDescriptor.getDefaultPeopleDetector),
    "daimler": ((48, 96), cv2.HOGDescriptor.getDaimlerPeopleDetector),
}
_IOU, _KEEP = 0.5, 100


@ADAPTERS.declare("hog")
def open_hog(main: str = "people", *, margin: float = 0.0, step: int = 8, scale: float = 1.05) -> PerImage:
    """Upright people. Scores are the classifier's margins through a sigmoid, so 0.5 is its boundary.

    `margin` is the lowest margin kept, `step` the window's stride in pixels, `scale` the ratio between the
    sizes searched.
    """
    if main not in _DETECTORS:
        raise UnknownName("HOG detector", main, _DETECTORS, f"Detectors: {', '.join(_DETECTORS)}.")
    if step < 1 or not scale > 1:  # OpenCV would write beyond its memory, or search one size only
        raise InvalidOption(f"step={step}, scale={scale}: step must be at least 1, and scale above 1.")
    window, weights = _DETECTORS[main]
    descriptor = cv2.HOGDescriptor(window, (16, 16), (8, 8), (8, 8), 9)
    descriptor.setSVMDetector(weights())

    def predict(image: Image) -> Prediction:
        if image.shape[1] < window[0] or image.shape[0] < window[1]:
            return Prediction()  # OpenCV rejects images smaller than its window
        found, margins = descriptor.detectMultiScale(
            bgr(image), hitThreshold=margin, winStride=(step, step), scale=scale, groupThreshold=0
        )
        return _prediction(np.asarray(found, np.float64).reshape(-1, 4), np.ravel(margins), image)

    settings = {"detector": main, "margin": margin, "step": step, "scale": scale, "opencv": cv2.__version__}
    return PerImage(f"hog-{main}", predict, ("person",), settings=settings)


def _prediction(found: Any, margins: Any, image: Image) -> Prediction:
    """Windows x y w h with their margins as boxes; overlapping ones are suppressed."""
    height, width = image.shape[:2]
    boxes = np.clip(np.hstack([found[:, :2], found[:, :2] + found[:, 2:]]), 0, [width, height, width, height])
    scores = sigmoid(np.asarray(margins, np.float64))
    # OpenCV searches sizes in parallel and lists them as they finish; this restores a fixed order.
    order = np.lexsort((*boxes.T[::-1], -scores))
    boxes, scores, labels = boxes[order], scores[order], np.zeros(len(order), np.int64)
    stay = nms(boxes, scores, labels, iou=_IOU, keep=_KEEP)
    return Prediction(boxes[stay], scores[stay], labels[stay])
