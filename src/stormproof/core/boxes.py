"""Overlap of boxes. Boxes are x1 y1 x2 y2 edges in pixels, so a side is x2 − x1.

Devkits with inclusive pixel indices (VOC) mean the box with edges x1 − 1 and x2; once a reader has converted
the boxes, these formulas agree with theirs.

`area`, `shared`, `union` and `overlap` take one box or two, inside compiled loops; `iou` and
`enclosing_overlap` take two arrays of boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats

Overlap = Callable[[Floats, Floats], Floats]


@kernel(inline=True)
def area(a: Any) -> Any:
    """Area of a box in square pixels."""
    return (a[2] - a[0]) * (a[3] - a[1])


@kernel(inline=True)
def shared(a: Any, b: Any) -> Any:
    """Area of the intersection in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


@kernel(inline=True)
def union(a: Any, b: Any) -> Any:
    """Area of the union in square pixels."""
    return area(a) + area(b) - shared(a, b)


@kernel(inline=True)
def overlap(a: Any, b: Any) -> Any:
    """Intersection over union of two boxes; 0 where both are empty."""
    common = shared(a, b)
    return common / union(a, b) if common > 0 else 0.0


@kernel(inline=True)
def _enclosing_overlap(a: Any, b: Any) -> Any:
    width = max(a[2], b[2]) - min(a[0], b[0])
    height = max(a[3], b[3]) - min(a[1], b[1])
    common = shared(a, b)
    return common / (width * height) if common > 0 else 0.0


@kernel
def iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union of every box in `a` (rows) with every box in `b` (columns).

    >>> iou(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2]])).round(3).tolist()
    [[0.333]]
    """
    table = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for k in range(len(b)):
            table[i, k] = overlap(a[i], b[k])
    return table


@kernel
def enclosing_overlap(a: Floats, b: Floats) -> Floats:
    """Intersection over the smallest box around both: *liu*'s Eq. 2 as printed.

    >>> enclosing_overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 1, 3, 3]])).round(3).tolist()
    [[0.111]]
    """
    table = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for k in range(len(b)):
            table[i, k] = _enclosing_overlap(a[i], b[k])
    return table
