"""Depth that keeps to the image's edges: a fast global smoother with confidences.

Where the image is even, values spread; where it has an edge, they stop. Pixels that count little take
what pixels that count much send them, so holes fill from their own side of an edge. The smoother solves
a weighted least-squares problem one line at a time (Min et al. 2014), as the bilateral solver of
Pezzementi et al. does in a grid.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.depth.depthmaps import Map

_PASSES = 3


@kernel
def _smooth_lines(values: Any, links: Any, strength: Any) -> None:
    """Along each row solve (1 + A)·u = values in place, A coupling neighbours by strength·links."""
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
    """How freely values pass to the next pixel, right and below: 1 on even ground, 0 over an edge."""
    levels = image.astype(np.int16).reshape(*image.shape[:2], -1)
    down = np.abs(np.diff(levels, axis=0, append=levels[-1:])).max(axis=2)
    across = np.abs(np.diff(levels, axis=1, append=levels[:, -1:])).max(axis=2)
    right, below = (np.exp(-step.astype(np.float32) / np.float32(contrast)) for step in (across, down))
    return right.astype(np.float32), below.astype(np.float32)


def _jumps(field: Map, jump: float, axis: int) -> Map:
    """1 where the field is smooth along an axis, a half where it steps by `jump`, 0 at a cliff."""
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
    """`field` smoothed along the image, each pixel counting by its confidence (0 is a hole).

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
