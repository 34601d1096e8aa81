"""Image quality around each object, by object size: what a detector had to go on (*theodoridis*, Fig. 4)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stormproof.core.sample import Floats, Image, Instances

Measure = Callable[[Image, Image], float]
SIZES = {"small": 32.0**2, "medium": 96.0**2, "large": math.inf}  # COCO's: an object is below its size's area


def size_of(area: float) -> str:
    """The name of an object's size.

    >>> size_of(1023.0), size_of(1024.0)
    ('small', 'medium')
    """
    return next(name for name, limit in SIZES.items() if area < limit)


def object_quality(
    clean: Image, corrupted: Image, objects: Instances, measure: Measure, *, least: int = 1
) -> Floats:
    """`measure` on each object's bounding-box crop, edges rounded outwards; NaN for a box off the image.

    Crops grow evenly, within the image, to `least` pixels a side, for measures that need an area
    (41 for `vifp`, 80 for `vif` and `ifc`).

    >>> from stormproof.metrics.quality import rmse
    >>> objects = Instances([[0, 0, 8, 8], [90, 90, 99, 99]], [0, 0])
    >>> object_quality(np.zeros((20, 20), np.uint8), np.full((20, 20), 3, np.uint8), objects, rmse).tolist()
    [3.0, nan]
    """
    height, width = clean.shape[:2]
    values = np.full(len(objects), np.nan)
    for i, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        columns, rows = _extent(x1, x2, width, least), _extent(y1, y2, height, least)
        if columns and rows:
            crop = slice(*rows), slice(*columns)
            values[i] = measure(clean[crop], corrupted[crop])
    return values


def _extent(low: float, high: float, size: int, least: int) -> tuple[int, int] | None:
    """The pixels that an interval touches, at least `least` of them if the image has as many."""
    start, stop = max(math.floor(low), 0), min(math.ceil(high), size)
    if stop <= start:
        return None
    grow = max(0, least - (stop - start))
    start = max(0, min(start - grow // 2, size - max(least, stop - start)))
    return start, min(size, max(stop, start + least))
