"""How much boxes share. Boxes are x1 y1 x2 y2 edges in pixels, so a side is x2 − x1.

Devkits that count inclusive pixel indices (VOC) mean the box whose edges are x1 − 1 and x2: a reader
that converts them once makes these formulas equal to theirs.

`area`, `shared`, `union` and `overlap` take one box or two and are for compiled loops; `iou` and
`enclosing_overlap` take two lists of boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from stormproof.sample import Floats

Overlap = Callable[[Floats, Floats], Floats]


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def area(a: Any) -> Any:
    """Square pixels of a box."""
    return (a[2] - a[0]) * (a[3] - a[1])


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def shared(a: Any, b: Any) -> Any:
    """Square pixels that lie in both boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def union(a: Any, b: Any) -> Any:
    """Square pixels that lie in either box."""
    return area(a) + area(b) - shared(a, b)


@numba.njit(cache=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def overlap(a: Any, b: Any) -> Any:
    """Intersection over union of two boxes; 0 where both are empty."""
    common = shared(a, b)
    return common / union(a, b) if common > 0 else 0.0


def iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union of every box in `a` (rows) with every box in `b` (columns).

    >>> iou(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2]])).round(3).tolist()
    [[0.333]]
    """
    table: Floats = _iou(a, b)
    return table


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _iou(a: Any, b: Any) -> Any:
    table = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for k in range(len(b)):
            table[i, k] = overlap(a[i], b[k])
    return table


def enclosing_overlap(a: Floats, b: Floats) -> Floats:
    """Intersection over the smallest box around both: *liu*'s Eq. 2 as it is printed.

    >>> enclosing_overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 1, 3, 3]])).round(3).tolist()
    [[0.111]]
    """
    table: Floats = _enclosing(a, b)
    return table


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _enclosing(a: Any, b: Any) -> Any:
    table = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        for k in range(len(b)):
            common = shared(a[i], b[k])
            if common > 0:
                width = max(a[i, 2], b[k, 2]) - min(a[i, 0], b[k, 0])
                table[i, k] = common / (width * (max(a[i, 3], b[k, 3]) - min(a[i, 1], b[k, 1])))
    return table
