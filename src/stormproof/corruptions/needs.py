"""The depth and the camera that some corruptions need, and the checks depth must pass.

Depth is in metres along the optical axis, one number per pixel. Infinity is the sky; NaN is unknown. Up to
half of the pixels may be unknown: each takes the depth of the nearest known pixel. Sparser maps are refused,
since haze made from them would be a guess. Zero and negative depths, and depths with a median beyond a
kilometre, are refused: they are missing values and millimetres.
"""

from __future__ import annotations

import math

import numpy as np

from stormproof import imaging
from stormproof.core.errors import InvalidTruth, MissingContext
from stormproof.core.sample import Camera, Context, Image

DENSE = 0.5  # share of pixels whose depth must be known
FARTHEST_MEDIAN = 1000.0  # metres; beyond it the numbers are more likely millimetres

_HOW = (
    "open the dataset with depth=FOLDER (or disparity=FOLDER,calib=FOLDER), "
    "or compute it once with 'stormproof depth DATASET --out FOLDER'"
)


def missing(corruption: str) -> MissingContext:
    """The error for a sample without depth."""
    return MissingContext(f"{corruption} needs the depth of every pixel, but there is none; {_HOW}.")


def needed(kind: str, corruption: str, image: Image, context: Context) -> imaging.Field:
    """The context of that kind, checked and without holes; the error says how to provide it."""
    if kind != "depth":
        raise ValueError(f"{corruption} needs {kind!r}; only depth and camera are available")
    if context.depth is None:
        raise missing(corruption)
    return usable_depth(context.depth, image.shape[:2], corruption)


def pinhole(size: tuple[int, int], view: float) -> Camera:
    """The camera that sees `view` degrees across an image of (height, width), its axis in the middle.

    >>> round(pinhole((100, 200), 90).fx)
    100
    """
    height, width = size
    focal = width / 2 / math.tan(math.radians(view / 2))
    return Camera(focal, focal, (width - 1) / 2, (height - 1) / 2)


def usable_depth(depth: object, size: tuple[int, ...], user: str) -> imaging.Field:
    """`depth` as a float32 map of metres without holes; the input is not modified.

    >>> usable_depth(np.array([[5.0, np.nan]]), (1, 2), "haze").tolist()
    [[5.0, 5.0]]
    """
    if not isinstance(depth, np.ndarray) or depth.dtype.kind != "f" or depth.shape != tuple(size):
        found = f"{depth.dtype} {depth.shape}" if isinstance(depth, np.ndarray) else type(depth).__name__
        raise InvalidTruth(f"Depth for {user} must be floats of the image's size {tuple(size)}, not {found}.")
    metres = np.asarray(depth, np.float32)
    lowest, known, finite, beyond = imaging.survey(metres, FARTHEST_MEDIAN)
    if lowest <= 0:
        where = tuple(int(i) for i in np.argwhere(metres <= 0)[0])
        fix = "mark unknown depth as NaN and the sky as infinity"
        raise InvalidTruth(f"Depth for {user} is {lowest:g} m at (row, column) {where}; {fix}.")
    if 2 * beyond > finite:
        fix = "if they are millimetres, open the dataset with depth_scale=1000"
        raise InvalidTruth(
            f"Depth for {user}: the median lies beyond {FARTHEST_MEDIAN:g} m; depth is in metres, {fix}."
        )
    if known == metres.size:
        return metres
    if known < DENSE * metres.size:
        fix = "fill it with fill_depth=true, or with 'stormproof depth DATASET --from given --out FOLDER'"
        share = 100 * known / metres.size
        raise MissingContext(
            f"{user} needs dense depth, but only {share:.1f} % of the pixels have any; {fix}."
        )
    return imaging.fill_holes(metres)
