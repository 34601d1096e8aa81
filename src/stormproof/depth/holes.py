"""Holes in disparity maps, filled from their surroundings (after Hirschmüller 2008) and by planes.

A part of the image without edges that was matched only here and there is one plane in disparity: a truck's
side has too little texture to match except at its lettering and its rims. A plane in space is a plane in
disparity, a·x + b·y + c, so a few sure pixels determine all of it (after Klaus, Sormann and Karner 2006).
"""

from __future__ import annotations

import warnings

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.sample import Bools, Image
from stormproof.datasets.depthmaps import Map

_LOWER, _HIGHEST = 0.6, 0.2  # of the height: where the search for ground begins, and the highest horizon
_SEEN, _ENOUGH = 0.3, 0.5  # of these pixels that must be known, and of the known ones that must be ground
_SUNK = 0.5  # of the ground's disparity; anything less would be a hole in the street
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2))  # and their opposites
_EVEN = 3.0  # largest gradient, in grey levels per pixel, of a surface without edges
_HOLE = 1 / 4000  # fraction of the image; smaller holes are filled well enough from their surroundings
_KNOWN = 24  # reliable pixels needed for a plane
_MOST = 1000  # pixels used at most
_NEAR, _SHARE = 1.0, 0.6  # px between a pixel and its plane, and the fraction of pixels that must be so close
_SPREAD = 4.0  # px; standard deviation of the reliable pixels in their narrow direction
_BEYOND = 1.25  # factor by which a plane may exceed the nearest and the farthest reliable pixel
_ROUNDS = 8


def fill_around(disparity: Map, hidden: Bools) -> Map:
    """Fill every NaN from the first known values in sixteen directions.

    Pixels that one camera does not see (`hidden`) lie behind what hides them, so they take the farther of
    their two neighbours in the row. Elsewhere the matcher failed on a surface, which continues: the median.
    """
    holes = np.isnan(disparity)
    if not holes.any():
        return disparity
    if holes.all():
        return np.zeros_like(disparity)
    seen = np.stack([_first_known(disparity, dy, dx)[holes] for dy, dx in _both_ways()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # holes without any known value, see below
        around = np.nanmedian(seen, axis=0)
    behind = np.fmin(*(seen[k] for k, (dy, _) in enumerate(_both_ways()) if dy == 0))
    values = np.where(hidden[holes] & ~np.isnan(behind), behind, around)
    filled = disparity.copy()
    filled[holes] = np.where(np.isnan(values), np.nanmedian(disparity), values)
    return filled


def hidden_from(right: Map, left: Map) -> Bools:
    """The pixels of the left image that no pixel of the right image matches, by the right disparities.

    Pixels before the first known one of their row lie outside the right image; nothing hides them.
    """
    height, width = right.shape
    rows, columns = np.nonzero(~np.isnan(right))
    matched = np.zeros((height, width + 2), np.bool_)
    places = columns + right[rows, columns]
    for place in (np.floor(places), np.ceil(places)):
        matched[rows, np.minimum(place, width).astype(np.int64)] = True
    hidden: Bools = ~matched[:, :width] & np.logical_or.accumulate(~np.isnan(left), axis=1)
    return hidden


def find_ground(disparity: Map) -> Map:
    """The disparity of flat ground in each row; −∞ in upper rows, and everywhere if there is no ground.

    A street's disparity grows row by row along a line that starts at the horizon. Every known pixel of the
    lower rows votes for the lines it lies on (after Labayrade 2002); a line with half of the votes is ground.
    """
    height = len(disparity)
    none = np.full(height, -np.inf, np.float32)
    rows = np.arange(int(_LOWER * height), height)
    y, x = np.nonzero(~np.isnan(disparity[rows]))
    bins = int(np.nanmax(disparity, initial=0)) + 2
    if len(y) < _SEEN * disparity[rows].size:
        return none
    votes = np.zeros((len(rows), bins), np.int64)
    np.add.at(votes, (y, np.rint(disparity[rows][y, x]).astype(np.int64)), 1)
    near = votes.copy()  # a pixel votes for lines within one pixel of it
    near[:, 1:] += votes[:, :-1]
    near[:, :-1] += votes[:, 1:]
    horizons = np.arange(int(_HIGHEST * height), rows[0], max(height // 100, 1))
    rise = (rows - horizons[:, None]) / (height - 1 - horizons[:, None])  # horizon × row, 1 at the lower edge
    lines = rise * np.arange(2, bins)[:, None, None]  # nearest × horizon × row
    support = near[np.arange(len(rows)), np.minimum(np.rint(lines).astype(np.int64), bins - 1)].sum(axis=2)
    best = np.unravel_index(int(support.argmax()), support.shape) if support.size else None
    if best is None or support[best] < _ENOUGH * len(y):
        return none
    none[rows] = lines[best]
    return none


def above_ground(disparity: Map, ground: Map) -> Map:
    """Remove disparities far below the ground, which repetitive paving causes."""
    with np.errstate(invalid="ignore"):
        below = disparity < np.float32(_SUNK) * ground[:, None]
    return np.where(below, np.float32(np.nan), disparity).astype(np.float32)


def _both_ways() -> list[tuple[int, int]]:
    return [(sign * dy, sign * dx) for dy, dx in _DIRECTIONS for sign in (1, -1)]


def _first_known(field: Map, dy: int, dx: int) -> Map:
    """For each pixel, the nearest known value in direction (−dy, −dx); NaN if there is none."""
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


def fill_planes(disparity: Map, image: Image) -> Map:
    """Fill the holes (NaN) of even parts of the image whose known pixels lie on a plane."""
    count, parts = cv2.connectedComponents((steepness(image) < _EVEN).astype(np.uint8), connectivity=4)
    known = ~np.isnan(disparity)
    holes, sure = (np.bincount(parts[kind], minlength=count) for kind in (~known, known))
    wanted = (holes > _HOLE * disparity.size) & (sure >= _KNOWN)
    wanted[0] = False  # the edges themselves
    filled = disparity.copy()
    for part in np.flatnonzero(wanted):
        inside = parts == part
        values = _plane(disparity, inside & known, inside & ~known)
        if values is not None:
            filled[inside & ~known] = values
    return filled


def steepness(image: Image) -> Map:
    """The gradient in grey levels per pixel, in the channel where it is largest."""
    soft = cv2.GaussianBlur(image, (0, 0), 1.0).reshape(*image.shape[:2], -1)
    axes = ((1, 0), (0, 1))
    across, down = (cv2.Sobel(soft, cv2.CV_32F, *axis, ksize=3, scale=1 / 8) for axis in axes)
    return np.asarray(np.hypot(across, down).reshape(soft.shape).max(axis=2), np.float32)


def _plane(disparity: Map, known: Bools, holes: Bools) -> npt.NDArray[np.float64] | None:
    """The disparity in the holes, by the plane through the known pixels; None if they do not lie on one."""
    places = np.argwhere(known)[:: max(int(known.sum()) // _MOST, 1)]
    values = disparity[tuple(places.T)].astype(np.float64)
    centre = places.mean(axis=0)
    weight = np.ones(len(values))
    design = np.column_stack((places - centre, np.ones(len(values))))
    for _ in range(_ROUNDS):  # reweighting towards least absolute errors: mismatches do not tilt the plane
        root = np.sqrt(weight)[:, None]
        plane, *_ = np.linalg.lstsq(design * root, values * root[:, 0], rcond=None)
        weight = 1 / np.maximum(np.abs(design @ plane - values), 0.25)
    close = np.abs(design @ plane - values) < _NEAR
    if close.mean() < _SHARE or close.sum() < _KNOWN:
        return None
    across = np.sqrt(max(np.linalg.eigvalsh(np.cov(places[close].T))[0], 0))
    if across < _SPREAD:
        return None
    guess = np.column_stack((np.argwhere(holes) - centre, np.ones(int(holes.sum())))) @ plane
    return np.asarray(
        np.clip(guess, values[close].min() / _BEYOND, values[close].max() * _BEYOND), np.float64
    )
