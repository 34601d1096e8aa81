"""Image quality around each object, by object size: what a detector had to go by (*theodoridis*, Fig. 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from stormproof.sample import Floats, Image, Instances

Measure = Callable[[Image, Image], float]
SIZES = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}


@dataclass(frozen=True, slots=True)
class QualityBySize:
    """A measure on the whole image and its mean over object crops per size (NaN where there is none)."""

    whole: float
    small: float
    medium: float
    large: float


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
    """The pixels an interval touches, at least `least` of them where the image has as many."""
    start, stop = max(math.floor(low), 0), min(math.ceil(high), size)
    if stop <= start:
        return None
    grow = max(0, least - (stop - start))
    start = max(0, min(start - grow // 2, size - max(least, stop - start)))
    return start, min(size, max(stop, start + least))


def quality_by_size(
    pairs: Iterable[tuple[Image, Image, Instances]], measure: Measure, *, least: int = 1
) -> QualityBySize:
    """The mean over a set of (clean, corrupted, objects): images for `whole`, objects for the sizes.

    Objects are binned by `area` at COCO's bounds 32² and 96²; `least` as in `object_quality`.
    """
    wholes: list[float] = []
    values: list[Floats] = []
    areas: list[Floats] = []
    for clean, corrupted, objects in pairs:
        wholes.append(measure(clean, corrupted))
        values.append(object_quality(clean, corrupted, objects, measure, least=least))
        areas.append(objects.area)
    every, area = np.concatenate([np.zeros(0), *values]), np.concatenate([np.zeros(0), *areas])
    seen = ~np.isnan(every)
    bins = {name: every[seen & (area >= low) & (area < high)] for name, (low, high) in SIZES.items()}
    means = {name: float(kept.mean()) if kept.size else math.nan for name, kept in bins.items()}
    return QualityBySize(float(np.mean(wholes)) if wholes else math.nan, **means)
