"""How much boxes share, pairwise. Boxes are x1 y1 x2 y2 edges in pixels, so a side is x2 − x1.

Devkits that count inclusive pixel indices (VOC) mean the box whose edges are x1 − 1 and x2: a reader
that converts them once makes these formulas equal to theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stormproof.sample import Floats

Overlap = Callable[[Floats, Floats], Floats]


def areas(boxes: Floats) -> Floats:
    """Square pixels of each box."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def intersections(a: Floats, b: Floats) -> Floats:
    """Shared area of every box in `a` (rows) with every box in `b` (columns)."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared: Floats = (high - low).clip(min=0).prod(axis=2)
    return shared


def iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union; 0 where both boxes are empty.

    >>> iou(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2]])).round(3).tolist()
    [[0.333]]
    """
    shared = intersections(a, b)
    return _ratio(shared, areas(a)[:, None] + areas(b)[None, :] - shared)


def enclosing_overlap(a: Floats, b: Floats) -> Floats:
    """Intersection over the smallest box around both: *liu*'s Eq. 2 as it is printed.

    >>> enclosing_overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 1, 3, 3]])).round(3).tolist()
    [[0.111]]
    """
    low = np.minimum(a[:, None, :2], b[None, :, :2])
    high = np.maximum(a[:, None, 2:], b[None, :, 2:])
    return _ratio(intersections(a, b), (high - low).prod(axis=2))


def coverage(a: Floats, b: Floats) -> Floats:
    """The part of each box in `a` that lies inside each box in `b`."""
    return _ratio(intersections(a, b), np.broadcast_to(areas(a)[:, None], (len(a), len(b))))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
