"""Dense depth from sparse depth, as a laser scanner measures it.

Between the lines of a scanner depth spreads along even parts of the image and stops at its edges. Above the
highest line nothing was measured, and the surfaces there, walls, trees and posts, are mostly vertical: they
keep the depth at which their column was last measured, or that of a column nearby that looks more like them.
Nothing spreads from the sky, and no depth exceeds what was measured.
"""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidTruth
from stormproof.core.sample import Bools, Image
from stormproof.datasets.depthmaps import Map, fill_unknown
from stormproof.depth.holes import refine

_SPREAD = 400.0  # bridges the gaps of up to ten pixels between the lines of a laser
_FILLED = np.float32(0.01)  # weight of a filled pixel, relative to a measured one
_BEHIND, _WINDOW = 1.5, (9, 6)  # times farther than points on both sides, within this many rows and columns
_BINS = 160  # columns of the coarse image in which surfaces are continued upwards
_BAND = 0.04  # of the height: the rows whose points are the top of a column
_NO_ECHO = 0.03  # of the height: how far below the scan's upper edge a column may end and still be used
_ALIKE = 18.0  # grey levels between the colours of a place and of a column at which its weight is a third
_ASIDE = 0.6  # columns per row above the scan at which a column's weight is a third; it begins at one
_FARTHER = 1.25  # factor by which a depth may exceed the farthest measurement
_UNSEEN = 1 / 8  # of the width: farther than this from any measured column depth stays unknown

Floats32 = npt.NDArray[np.float32]


def complete(depth: Map, image: Image, sky: Bools) -> Map:
    """Dense depth from sparse depth (NaN is unknown), with edges where the image has them.

    Inverse depth is interpolated: it is linear in the image on a plane. The sky is infinitely far and touches
    nothing else. Columns far from any measurement stay unknown, and no depth exceeds 5/4 of the farthest
    measured one.
    """
    unknown = np.isnan(depth)
    if not unknown.any():
        return depth
    if unknown.all():
        raise InvalidTruth("The depth map has no known pixel, so its gaps cannot be filled.")
    sky = (sky & unknown) | np.isinf(depth)
    known = np.isfinite(depth)
    if not known.any():
        return np.where(sky, np.float32(np.inf), depth).astype(np.float32)
    seen = np.where(known & ~_hidden(depth, known), depth, np.float32(np.nan)).astype(np.float32)
    measured = ~np.isnan(seen)
    guess = _first_guess(seen, image)
    weight = np.where(measured, np.float32(1), _FILLED)
    weight[sky] = 0
    spread = refine(guess, weight, image, strength=_SPREAD)
    nearest, farthest = float(seen[measured].min()), float(seen[measured].max())
    filled = np.clip(1 / np.maximum(spread, 1e-6), nearest / _FARTHER, farthest * _FARTHER)
    filled = np.where(_out_of_sight(measured), np.float32(np.nan), filled)
    return np.where(sky, np.float32(np.inf), np.where(measured, depth, filled)).astype(np.float32)


def _hidden(depth: Map, known: Bools) -> Bools:
    """Points between nearer ones: the scanner sits above the camera and sees past what the camera sees."""
    near = np.where(known, depth, np.float32(1e6)).astype(np.float32)
    side = np.ones(_WINDOW, np.uint8)
    left, right = (
        cv2.erode(near, side, anchor=(x, _WINDOW[0] // 2), borderValue=1e6) for x in (_WINDOW[1] - 1, 0)
    )
    hidden: Bools = known & (near > np.float32(_BEHIND) * np.maximum(left, right))
    return hidden


def _first_guess(depth: Map, image: Image) -> Map:
    """Inverse depth: of the nearest measured pixel, and above the scan that of the columns below."""
    height, width = depth.shape
    inverse = np.float32(1) / fill_unknown(depth)
    edges = np.linspace(0, width, min(_BINS, width) + 1).round().astype(int)
    tops, rows = _column_tops(depth, edges)
    if np.isnan(tops).all():
        return inverse
    crest = int(np.nanmin(rows)) if height else 0
    above = _above(image, tops, rows, edges)
    reach = np.repeat(np.where(np.isnan(rows), crest, rows), np.diff(edges))
    return np.where(np.arange(height)[:, None] < reach, above, inverse).astype(np.float32)


def _column_tops(depth: Map, edges: npt.NDArray[np.int_]) -> tuple[Floats32, Floats32]:
    """For each bin of columns, the inverse depth of its highest points and their row; NaN if not usable.

    A bin that ends far below the others got no echo from above, so its last depth is not used.
    """
    height = len(depth)
    tops, rows = np.full((2, len(edges) - 1), np.nan, np.float32)
    for k, (left, right) in enumerate(pairwise(edges)):
        y, x = np.nonzero(~np.isnan(depth[:, left:right]))
        if len(y):
            band = y <= y.min() + _BAND * height
            tops[k], rows[k] = np.median(1 / depth[:, left:right][y[band], x[band]]), y.min()
    if not np.isnan(rows).all():
        tops[rows > np.nanpercentile(rows, 25) + _NO_ECHO * height] = np.nan
    return tops, rows


def _above(image: Image, tops: Floats32, rows: Floats32, edges: npt.NDArray[np.int_]) -> Map:
    """Inverse depth above the scan: the mean of nearby columns, weighted by their likeness to the place.

    The higher a place is above the scan, the farther away the column that it belongs to may be.
    """
    height, width = image.shape[:2]
    bins = len(tops)
    size = max(round(height * bins / width), 1)
    soft = cv2.resize(
        image.reshape(height, width, -1).astype(np.float32), (bins, size), interpolation=cv2.INTER_AREA
    ).reshape(size, bins, -1)
    usable = np.flatnonzero(~np.isnan(tops))
    top = np.clip((rows[usable] * size / height).astype(int) + 1, 0, size - 1)
    colour = soft[top, usable]
    unlike = np.abs(soft[:, :, None] - colour).mean(axis=3) / _ALIKE
    aside = np.abs(np.arange(bins)[:, None] - usable)
    up = np.maximum(top - np.arange(size)[:, None], 0)  # rows of bins, by which a column lies below the place
    weight = np.exp(-unlike - aside / (1 + _ASIDE * up[:, None]))
    inverse = (weight * tops[usable]).sum(axis=2) / np.maximum(weight.sum(axis=2), 1e-12)
    return np.asarray(
        cv2.resize(inverse.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR), np.float32
    )


def _out_of_sight(measured: Bools) -> Bools:
    """Columns farther from any measured one than `_UNSEEN` of the width."""
    width = measured.shape[1]
    seen = np.flatnonzero(measured.any(axis=0))
    columns = np.arange(width)
    after = np.clip(np.searchsorted(seen, columns), 0, len(seen) - 1)
    gap = np.minimum(np.abs(columns - seen[after]), np.abs(columns - seen[np.maximum(after - 1, 0)]))
    return np.broadcast_to(gap > _UNSEEN * width, measured.shape)
