"""How sure a depth map is: 1 where depth was measured, less the farther a pixel is from what was."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from stormproof.core.sample import Bools
from stormproof.depth.depthmaps import Map

_REACH = 16.0  # px over which a filled pixel's confidence falls to a third


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Depth in metres and the confidence of each pixel, from 0 to 1."""

    depth: Map
    confidence: Map

    @property
    def sure(self) -> float:
        """The mean confidence: about the share of the image whose depth was measured or is near to it."""
        return float(self.confidence.mean())


def certainty(measured: Bools) -> Map:
    """1 at measured pixels, and half as much and less at the others, by their distance from these."""
    if not measured.any():
        return np.zeros(measured.shape, np.float32)
    distance = cv2.distanceTransform((~measured).astype(np.uint8), cv2.DIST_L2, 5)
    return np.where(measured, 1, 0.5 * np.exp(-distance / _REACH)).astype(np.float32)
