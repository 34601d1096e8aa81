"""Dense depth whose edges follow the image: a smoother with confidences, and completion of sparse depth.

Values spread where the image is even and stop at its edges. Pixels of low confidence take the values of
pixels of high confidence, so holes are filled from their own side of an edge. The smoother solves a
weighted least-squares problem line by line (Min et al. 2014); the bilateral solver of Pezzementi et al.
does so in a grid.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import InvalidTruth
from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Image
from stormproof.datasets.depthmaps import Map, fill_unknown

_PASSES = 3
_FADE = 16.0  # px over which the confidence of a filled pixel falls to a third
_SPREAD = 400.0  # bridges the gaps of up to ten pixels between the lines of a laser
_REACH = 20.0  # px within which a gap takes the depth of its nearest neighbour, not of its surroundings
_COARSE = 8  # the surroundings are averaged in an image this many times smaller
_FILLED = np.float32(0.01)  # weight of a filled pixel, relative to a measured one


@kernel
def _smooth_lines(values: Any, links: Any, strength: Any) -> None:
    """Solve (1 + A)·u = values along each row, in place; A couples neighbours by strength·links."""
    height, width, depth = values.shape
    slope = np.empty(width, np.float32)
    for y in range(height):
        before = np.float32(0)
        for x in range(width):
            after = strength * links[y, x] if x + 1 < width else np.float32(0)
            share = before * (slope[x - 1] if x else np.float32(0))
            pivot = np.float32(1) / (np.float32(1) + before + after - share)
            slope[x] = after * pivot
            for k in range(depth):
                earlier = before * values[y, x - 1, k] if x else np.float32(0)
                values[y, x, k] = (values[y, x, k] + earlier) * pivot
            before = after
        for x in range(width - 2, -1, -1):
            for k in range(depth):
                values[y, x, k] += slope[x] * values[y, x + 1, k]


def _links(image: Image, contrast: float) -> tuple[Map, Map]:
    """How freely values pass to the next pixel, right and down: 1 if the image is even, 0 at an edge."""
    levels = image.astype(np.int16).reshape(*image.shape[:2], -1)
    down = np.abs(np.diff(levels, axis=0, append=levels[-1:])).max(axis=2)
    across = np.abs(np.diff(levels, axis=1, append=levels[:, -1:])).max(axis=2)
    right, below = (np.exp(-step.astype(np.float32) / np.float32(contrast)) for step in (across, down))
    return right.astype(np.float32), below.astype(np.float32)


def _jumps(field: Map, jump: float, axis: int) -> Map:
    """1 where the field is smooth along an axis, 1/2 where it steps by `jump`, 0 at a large step."""
    step = np.diff(field, axis=axis, append=np.take(field, [-1], axis=axis))
    return (1 / (1 + (step / np.float32(jump)) ** 2)).astype(np.float32)


def refine(
    field: Map,
    confidence: Map,
    image: Image,
    *,
    strength: float = 200.0,
    contrast: float = 3.0,
    jump: float = math.inf,
) -> Map:
    """Smooth the field along the image; each pixel is weighted by its confidence (0 is a hole).

    `strength` is how far values spread (its square root, in pixels); `contrast` the step in grey levels
    at which spreading drops to a third; `jump` the step of the field itself at which it drops to half.
    Pixels that nothing reaches keep their value.
    """
    links_right, links_below = _links(image, contrast)
    if math.isfinite(jump):
        links_right *= _jumps(field, jump, axis=1)
        links_below *= _jumps(field, jump, axis=0)
    known = np.where(confidence > 0, field, np.float32(0))
    values = np.stack((known * confidence, confidence), axis=-1).astype(np.float32)
    for turn in range(_PASSES):
        share = np.float32(1.5 * strength * 4.0 ** (_PASSES - 1 - turn) / (4.0**_PASSES - 1))
        _smooth_lines(values, links_right, share)
        turned = np.ascontiguousarray(values.transpose(1, 0, 2))
        _smooth_lines(turned, np.ascontiguousarray(links_below.T), share)
        values = np.ascontiguousarray(turned.transpose(1, 0, 2))
    reached = values[..., 1] > 1e-6
    return np.where(reached, values[..., 0] / np.maximum(values[..., 1], 1e-6), field).astype(np.float32)


def densify(depth: Map, image: Image) -> Map:
    """Dense depth from sparse depth (NaN is unknown), with edges where the image has them.

    Inverse depth is interpolated: it is linear in the image on a plane, and 0 in the sky.
    """
    known = ~np.isnan(depth)
    if not known.any():
        raise InvalidTruth("The depth map has no known pixel, so its gaps cannot be filled.")
    if known.all():
        return depth
    near = _first_guess(depth, known)
    confidence = np.where(known, np.float32(1), _FILLED)
    spread = refine(near, confidence, image, strength=_SPREAD)
    with np.errstate(divide="ignore"):
        return np.where(known, depth, np.float32(1) / np.maximum(spread, 0)).astype(np.float32)


def _first_guess(depth: Map, known: Bools) -> Map:
    """Inverse depth: in small gaps that of the nearest neighbour, in large ones that of the surroundings.

    A laser sees nothing above its highest line, where there is rarely the car below it; the root mean square
    depth of the surroundings leans to the far side.
    """
    with np.errstate(divide="ignore"):
        nearest = np.float32(1) / fill_unknown(depth)
    distance = cv2.distanceTransform((~known).astype(np.uint8), cv2.DIST_L2, 5)
    share = np.exp(-distance / np.float32(_REACH))
    return np.asarray(share * nearest + (1 - share) * _surroundings(depth, known), np.float32)


def _surroundings(depth: Map, known: Bools) -> Map:
    """Inverse of the root mean square depth within about a sixteenth of the width.

    Infinitely far pixels have inverse depth 0 and are weighted by their share.
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
    # Far from all measurements the sums vanish; a little of the overall mean keeps the ratios defined.
    mean, share = squares.sum() / max(int(finite.sum()), 1), finite.sum() / max(int(known.sum()), 1)
    ratio = (total + 1e-6 * mean) / (near + 1e-6)
    inverse = (near + 1e-6 * share) / (weight + 1e-6) / np.sqrt(np.maximum(ratio, 1e-6))
    wide = cv2.resize(inverse.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(wide, np.float32)


def certainty(measured: Bools) -> Map:
    """Confidence: 1 at measured pixels, elsewhere at most 1/2, falling with the distance from these."""
    if not measured.any():
        return np.zeros(measured.shape, np.float32)
    distance = cv2.distanceTransform((~measured).astype(np.uint8), cv2.DIST_L2, 5)
    return np.where(measured, 1, 0.5 * np.exp(-distance / _FADE)).astype(np.float32)
