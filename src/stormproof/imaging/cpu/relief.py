"""The relief of water drops on a lens, by OpenCV."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.imaging.plans import EDGES, EMBOSS, FAR, Field


def _distance(edges: Any) -> Field:
    """Each pixel's distance to the nearest edge, by OpenCV's own integers.

    On Intel's processors OpenCV would use Intel's library, which rounds differently: pixels would depend on
    the machine. The switch is the thread's own.
    """
    used = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    try:
        distance: Any = cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5)
    finally:
        cv2.ipp.setUseIPP(used)
    return np.asarray(distance, np.float32)


def relief(layer: npt.NDArray[np.uint8]) -> Field:
    """Light on drops: the distance from their edges, equalised and embossed, as a map of 0..255."""
    distance = _distance(cv2.Canny(layer, *EDGES))
    near = cv2.blur(np.minimum(distance, FAR), (3, 3)).astype(np.uint8)
    embossed = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, np.array(EMBOSS))
    return cv2.blur(embossed, (3, 3)).astype(np.float32)
