"""Dense depth from sparse depth: laser points spread along the picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stormproof.context.depthmaps import fill_unknown
from stormproof.context.refine import refine
from stormproof.errors import InvalidTruth
from stormproof.sample import Image

Map = npt.NDArray[np.float32]

_SPREAD = 400.0  # lines of a laser lie up to ten pixels apart: far enough to bridge them
_FILLED = np.float32(0.01)  # how much a filled pixel counts beside a measured one


def densify(depth: Map, image: Image) -> Map:
    """Depth for every pixel from depth for some (NaN is unknown), its edges where the picture has them.

    Inverse depth is what spreads: on a plane it changes evenly over the picture, and the sky is 0.
    """
    known = ~np.isnan(depth)
    if not known.any():
        raise InvalidTruth("The depth map holds no known pixel; there is nothing to spread.")
    if known.all():
        return depth
    with np.errstate(divide="ignore"):
        near = np.float32(1) / fill_unknown(depth)
    confidence = np.where(known, np.float32(1), _FILLED)
    spread = refine(near, confidence, image, strength=_SPREAD)
    with np.errstate(divide="ignore"):
        return np.where(known, depth, np.float32(1) / np.maximum(spread, 0)).astype(np.float32)
