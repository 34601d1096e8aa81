"""Dense depth whose edges follow the image: a smoother with confidences.

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

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Image
from stormproof.datasets.depthmaps import Map

_PASSES = 3
_FADE = 5.0  # px from a measured pixel at which confidence is one half


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


def nearness(measured: Bools) -> Map:
    """Confidence: 1 at measured pixels, one half `_FADE` pixels away, and quickly falling beyond."""
    if not measured.any():
        return np.zeros(measured.shape, np.float32)
    distance = cv2.distanceTransform((~measured).astype(np.uint8), cv2.DIST_L2, 5)
    return np.asarray(1 / (1 + (distance / np.float32(_FADE)) ** 2), np.float32)
