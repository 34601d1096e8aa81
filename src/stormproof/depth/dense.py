"""Dense depth from sparse depth: laser points spread along the image."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidTruth
from stormproof.core.sample import Image
from stormproof.depth.depthmaps import Map, fill_unknown
from stormproof.depth.refine import refine

_SPREAD = 400.0  # lines of a laser lie up to ten pixels apart: far enough to bridge them
_REACH = 20.0  # px over which a gap takes its nearest neighbour's depth rather than the surroundings
_COARSE = 8  # the surroundings are averaged in an image this many times smaller
_FILLED = np.float32(0.01)  # how much a filled pixel counts beside a measured one


def densify(depth: Map, image: Image) -> Map:
    """Depth for every pixel from depth for some (NaN is unknown), its edges where the image has them.

    Inverse depth is what spreads: on a plane it changes evenly over the image, and the sky is 0.
    """
    known = ~np.isnan(depth)
    if not known.any():
        raise InvalidTruth("The depth map holds no known pixel; there is nothing to spread.")
    if known.all():
        return depth
    near = _first_guess(depth, known)
    confidence = np.where(known, np.float32(1), _FILLED)
    spread = refine(near, confidence, image, strength=_SPREAD)
    with np.errstate(divide="ignore"):
        return np.where(known, depth, np.float32(1) / np.maximum(spread, 0)).astype(np.float32)


def _first_guess(depth: Map, known: npt.NDArray[np.bool_]) -> Map:
    """Inverse depth: a small gap's is its nearest neighbour's, a large one's that of the surroundings.

    A laser sees nothing above its highest line. What is up there is rarely the car below it: the
    surroundings' root mean square depth leans to the far side.
    """
    with np.errstate(divide="ignore"):
        nearest = np.float32(1) / fill_unknown(depth)
    distance = cv2.distanceTransform((~known).astype(np.uint8), cv2.DIST_L2, 5)
    share = np.exp(-distance / np.float32(_REACH))
    return np.asarray(share * nearest + (1 - share) * _surroundings(depth, known), np.float32)


def _surroundings(depth: Map, known: npt.NDArray[np.bool_]) -> Map:
    """Inverse of the root mean square depth within about a sixteenth of the width.

    What is infinitely far has inverse depth 0 and counts by its share.
    """
    height, width = depth.shape
    small = (max(width // _COARSE, 1), max(height // _COARSE, 1))
    finite = known & np.isfinite(depth)
    squares = np.where(finite, depth, 0).astype(np.float32) ** 2
    parts = (squares, finite.astype(np.float32), known.astype(np.float32))
    coarse = [cv2.resize(part, small, interpolation=cv2.INTER_AREA) for part in parts]
    sigma = max(small[0] / 16, 0.5)
    total, near, weight = (
        cv2.GaussianBlur(part, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE) for part in coarse
    )
    # Far from every measurement all vanish; a little of the overall mean keeps the ratios defined.
    mean, share = squares.sum() / max(int(finite.sum()), 1), finite.sum() / max(int(known.sum()), 1)
    ratio = (total + 1e-6 * mean) / (near + 1e-6)
    inverse = (near + 1e-6 * share) / (weight + 1e-6) / np.sqrt(np.maximum(ratio, 1e-6))
    wide = cv2.resize(inverse.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(wide, np.float32)
