"""Holes in disparity maps, filled in two dimensions by what surrounds them (after Hirschmüller 2008)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import theilslopes

from stormproof.context.depthmaps import Map
from stormproof.sample import Bools

_LOWER, _ROWS = 0.6, 20  # share of the height below which ground is looked for; rows it takes
_ENOUGH, _ENVELOPE, _OFF = 0.5, 0.4, 0.15
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2))  # and their opposites


def fill_around(disparity: Map, hidden: Bools) -> Map:
    """Every NaN from the first known values in sixteen directions.

    What one camera does not see (`hidden`) lies behind what hides it, so it takes the farther of its two
    neighbours in the row. Elsewhere the matcher failed on a surface, which goes on as around it: the median.
    """
    holes = np.isnan(disparity)
    if not holes.any():
        return disparity
    if holes.all():
        return np.zeros_like(disparity)
    seen = np.stack([_first_known(disparity, dy, dx)[holes] for dy, dx in _both_ways()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # holes that no direction leads out of, below
        around = np.nanmedian(seen, axis=0)
    behind = np.fmin(*(seen[k] for k, (dy, _) in enumerate(_both_ways()) if dy == 0))
    values = np.where(hidden[holes] & ~np.isnan(behind), behind, around)
    filled = disparity.copy()
    filled[holes] = np.where(np.isnan(values), np.nanmedian(disparity), values)
    return filled


def hidden_from(right: Map, left: Map) -> Bools:
    """The pixels of the left image that no pixel of the right one matches, by the right one's disparities.

    Those before the first known pixel of their row lie outside the right image, not behind something.
    """
    height, width = right.shape
    rows, columns = np.nonzero(~np.isnan(right))
    met = np.zeros((height, width + 2), np.bool_)
    places = columns + right[rows, columns]
    for place in (np.floor(places), np.ceil(places)):
        met[rows, np.minimum(place, width).astype(np.int64)] = True
    hidden: Bools = ~met[:, :width] & np.logical_or.accumulate(~np.isnan(left), axis=1)
    return hidden


def above_ground(disparity: Map) -> Map:
    """Without what lies far below a flat ground: paving repeats itself, and matchers fall for it.

    Towards the lower edge a street's disparity rises row by row along a line. Where the lower rows follow
    one, a pixel with less than half of it would be a hole in the street, and becomes unknown.
    """
    height = len(disparity)
    rows = [y for y in range(int(_LOWER * height), height) if np.mean(~np.isnan(disparity[y])) > _ENOUGH]
    if len(rows) < _ROWS:
        return disparity
    low = np.array([np.nanquantile(disparity[y], _ENVELOPE) for y in rows])
    slope, level, *_ = theilslopes(low, rows)
    line = level + slope * np.arange(height)
    follows = np.abs(low - line[rows]) < _OFF * np.maximum(line[rows], 1)
    if slope <= 0 or follows.mean() < _ENOUGH:
        return disparity
    floor = np.where(np.arange(height) >= rows[0], line / 2, -np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(disparity < floor[:, None], np.float32(np.nan), disparity).astype(np.float32)


def _both_ways() -> list[tuple[int, int]]:
    return [(sign * dy, sign * dx) for dy, dx in _DIRECTIONS for sign in (1, -1)]


def _first_known(field: Map, dy: int, dx: int) -> Map:
    """For each pixel the nearest known value at (−dy, −dx) times some number of steps; NaN if none."""
    if dy == 0:
        return _along(field.T, dx).T
    if abs(dx) > abs(dy):
        return _along(field.T, dx, dy).T
    return _along(field, dy, dx)


def _along(field: Map, step: int, slope: int = 0) -> Map:
    """Values carried from row to row, `step` rows and `slope` columns at a time."""
    carried = field.copy()
    height, width = field.shape
    order = range(step, height) if step > 0 else range(height + step - 1, -1, -1)
    for y in order:
        before = np.full(width, np.nan, np.float32)
        source = carried[y - step]
        if slope >= 0:
            before[slope:] = source[: width - slope]
        else:
            before[:slope] = source[-slope:]
        carried[y] = np.where(np.isnan(field[y]), before, field[y])
    return carried
