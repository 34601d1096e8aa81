"""Regions of known depth: the vehicle's hood, the sky and others.

A file of priors is JSON, a list of regions that hold for every image of a dataset:

    [{"polygon": [[0, 430], [640, 430], [640, 480], [0, 480]], "depth": 1.5},
     {"class": "sky", "depth": "inf"},
     {"above": 170, "depth": "inf"},
     {"sky": "found", "depth": "inf"}]

A region is a polygon of x, y pixels, a class of the semantic map, all rows above one, or the sky found in
the image; its depth is in metres, or "inf" for infinitely far. Later regions override earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, MissingContext, UnknownName
from stormproof.core.files import read_json
from stormproof.core.sample import Bools, Floats, Sample
from stormproof.datasets.depthmaps import Map
from stormproof.depth.sky import sky_of

_KINDS = ("polygon", "class", "above", "sky")


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the image with a known depth in metres, given in exactly one of four ways."""

    depth: float
    polygon: tuple[tuple[float, float], ...] = ()
    semantic_class: str = ""
    above: float | None = None
    sky: bool = False

    def mask(self, sample: Sample, semantic_classes: Sequence[str]) -> Bools:
        height, width = sample.image.shape[:2]
        if self.sky:
            return sky_of(sample)
        if self.above is not None:
            return np.broadcast_to((np.arange(height) + 0.5 < self.above)[:, None], (height, width))
        if self.polygon:
            return _inside(np.array(self.polygon, np.float64), (height, width))
        return self._of_class(sample, semantic_classes)

    def _of_class(self, sample: Sample, semantic_classes: Sequence[str]) -> Bools:
        if sample.truth.semantic is None:
            fix = "give the region as a polygon or as rows above one"
            raise MissingContext(
                f"Sample {sample.id!r} has no semantic map to find {self.semantic_class!r} in; {fix}."
            )
        if self.semantic_class not in semantic_classes:
            listed = f"Classes: {', '.join(semantic_classes)}."
            raise UnknownName("class in priors", self.semantic_class, semantic_classes, listed)
        inside: Bools = sample.truth.semantic.labels == semantic_classes.index(self.semantic_class)
        return inside


def _inside(corners: Floats, size: tuple[int, int]) -> Bools:
    """Whether each pixel's centre lies in a polygon, given in pixels from the frame's corner."""
    y, x = np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5
    inside = np.zeros(size, np.bool_)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        rows = np.flatnonzero((y1 <= y) != (y2 <= y))  # that the edge crosses; pixels left of it change
        crossing = x1 + (y[rows] - y1) * (x2 - x1) / (y2 - y1)
        inside[rows] ^= x < crossing[:, None]
    return inside


def put_priors(
    depth: Map, regions: Sequence[Region], sample: Sample, semantic_classes: Sequence[str] = ()
) -> Map:
    """The depth map, with the known depth in every region."""
    known = depth.copy()
    for region in regions:
        known[region.mask(sample, semantic_classes)] = region.depth
    return known


def read_priors(path: Path) -> tuple[Region, ...]:
    """Read the regions that a JSON file lists."""
    content = read_json(path, error=InvalidOption)
    if not isinstance(content, list):
        raise InvalidOption(f"{path}: priors must be a list of regions, not {type(content).__name__}.")
    return tuple(_region(entry, f"{path}, region {i}") for i, entry in enumerate(content))


def _region(entry: Any, where: str) -> Region:
    if not isinstance(entry, dict) or sum(kind in entry for kind in _KINDS) != 1 or len(entry) != 2:
        raise InvalidOption(f"{where}: give depth and exactly one of {', '.join(_KINDS)}, not {entry!r:.80}.")
    try:
        depth = float(entry["depth"])
        corners = tuple((float(x), float(y)) for x, y in entry.get("polygon", ()))
        above = float(entry["above"]) if "above" in entry else None
    except (KeyError, TypeError, ValueError):
        fix = 'depth is metres or "inf", a polygon a list of [x, y], above a row'
        raise InvalidOption(f"{where}: cannot read {entry!r:.80}; {fix}.") from None
    if not depth > 0 or ("polygon" in entry and len(corners) < 3):
        raise InvalidOption(f"{where}: depth must be above 0, and a polygon needs at least three corners.")
    if entry.get("sky", "found") != "found":
        raise InvalidOption(f'{where}: write "sky": "found", not {entry["sky"]!r}.')
    return Region(depth, corners, str(entry.get("class", "")), above, "sky" in entry)
