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
    """A measure on the whole picture and its mean over object crops per size (NaN where there is none)."""

    whole: float
    small: float
    medium: float
    large: float


def object_quality(clean: Image, corrupted: Image, objects: Instances, measure: Measure) -> Floats:
    """`measure` on each object's bounding-box crop, edges rounded outwards; NaN for a box off the picture.

    >>> from stormproof.metrics.quality import rmse
    >>> objects = Instances([[0, 0, 8, 8], [90, 90, 99, 99]], [0, 0])
    >>> object_quality(np.zeros((20, 20), np.uint8), np.full((20, 20), 3, np.uint8), objects, rmse).tolist()
    [3.0, nan]
    """
    height, width = clean.shape[:2]
    low = np.floor(objects.boxes[:, :2]).clip(0, (width, height)).astype(int)
    high = np.ceil(objects.boxes[:, 2:]).clip(0, (width, height)).astype(int)
    values = np.full(len(objects), np.nan)
    for i, ((x1, y1), (x2, y2)) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if x2 > x1 and y2 > y1:
            values[i] = measure(clean[y1:y2, x1:x2], corrupted[y1:y2, x1:x2])
    return values


def quality_by_size(pairs: Iterable[tuple[Image, Image, Instances]], measure: Measure) -> QualityBySize:
    """The mean over a set of (clean, corrupted, objects): pictures for `whole`, objects for the sizes.

    Objects are binned by `area` at COCO's bounds 32² and 96².
    """
    wholes: list[float] = []
    values: list[Floats] = []
    areas: list[Floats] = []
    for clean, corrupted, objects in pairs:
        wholes.append(measure(clean, corrupted))
        values.append(object_quality(clean, corrupted, objects, measure))
        areas.append(objects.area)
    every, area = np.concatenate([np.zeros(0), *values]), np.concatenate([np.zeros(0), *areas])
    seen = ~np.isnan(every)
    bins = {name: every[seen & (area >= low) & (area < high)] for name, (low, high) in SIZES.items()}
    means = {name: float(kept.mean()) if kept.size else math.nan for name, kept in bins.items()}
    return QualityBySize(float(np.mean(wholes)) if wholes else math.nan, **means)
