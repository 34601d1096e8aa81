"""Holes in maps of depth and disparity, filled in three ways.

From their surroundings (after Hirschmüller 2008).

By planes: a part of the image without edges that was matched only here and there is one plane in disparity. A
truck's side has too little texture to match except at its lettering and its rims. A plane in space is a plane
in disparity, a·x + b·y + c, so a few sure pixels determine all of it (after Klaus, Sormann and Karner 2006).

By smoothing along the image: values spread where the image is even and stop at its edges. Pixels of low
confidence take the values of pixels of high confidence, so holes are filled from their own side of an edge.
The smoother solves a weighted least-squares problem line by line (Min et al. 2014); the bilateral solver of
Pezzementi et al. does so in a grid.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
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
_PASSES = 3
_CONTRAST = np.float32(3)  # grey levels from one pixel to the next at which spreading drops to a third
_FADE = 5.0  # px from a measured pixel at which confidence is one half


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


@kernel
def _smooth_lines(values: Any, links: Any, strength: Any) -> None:
    """Solve (1 + A)·u = values along each row, in place; A couples neighbours by strength·links."""
    height, width, depth = values.shape
    slope = np.empty(width, np.float32)
    for y in range(height):
        before = np.float32(0)
        for x in range(width):
            after = strength * links[y, x] if x + 1 < width else np.float32(0)
            share = before * (slope[x - 1] if x else np.float32(0))
            pivot = np.float32(1) / (np.float32(1) + before + after - share)
            slope[x] = after * pivot
            for k in range(depth):
                earlier = before * values[y, x - 1, k] if x else np.float32(0)
                values[y, x, k] = (values[y, x, k] + earlier) * pivot
            before = after
        for x in range(width - 2, -1, -1):
            for k in range(depth):
                values[y, x, k] += slope[x] * values[y, x + 1, k]


def _links(image: Image) -> tuple[Map, Map]:
    """How freely values pass to the next pixel, right and down: 1 if the image is even, 0 at an edge."""
    levels = image.astype(np.int16).reshape(*image.shape[:2], -1)
    down = np.abs(np.diff(levels, axis=0, append=levels[-1:])).max(axis=2)
    across = np.abs(np.diff(levels, axis=1, append=levels[:, -1:])).max(axis=2)
    right, below = (np.exp(-step.astype(np.float32) / _CONTRAST) for step in (across, down))
    return right.astype(np.float32), below.astype(np.float32)


def _jumps(field: Map, jump: float, axis: int) -> Map:
    """1 where the field is smooth along an axis, 1/2 where it steps by `jump`, 0 at a large step."""
    step = np.diff(field, axis=axis, append=np.take(field, [-1], axis=axis))
    return (1 / (1 + (step / np.float32(jump)) ** 2)).astype(np.float32)


def refine(
    field: Map, confidence: Map, image: Image, *, strength: float = 200.0, jump: float = math.inf
) -> Map:
    """Smooth the field along the image; each pixel is weighted by its confidence (0 is a hole).

    `strength` is how far values spread (its square root, in pixels), `jump` the step of the field itself at
    which spreading drops to half. Pixels that nothing reaches keep their value.
    """
    links_right, links_below = _links(image)
    if math.isfinite(jump):
        links_right *= _jumps(field, jump, axis=1)
        links_below *= _jumps(field, jump, axis=0)
    known = np.where(confidence > 0, field, np.float32(0))
    values = np.stack((known * confidence, confidence), axis=-1).astype(np.float32)
    for turn in range(_PASSES):
        share = np.float32(1.5 * strength * 4.0 ** (_PASSES - 1 - turn) / (4.0**_PASSES - 1))
        _smooth_lines(values, links_right, share)
        turned = np.ascontiguousarray(values.transpose(1, 0, 2))
        _smooth_lines(turned, np.ascontiguousarray(links_below.T), share)
        values = np.ascontiguousarray(turned.transpose(1, 0, 2))
    reached = values[..., 1] > 1e-6
    return np.where(reached, values[..., 0] / np.maximum(values[..., 1], 1e-6), field).astype(np.float32)


def nearness(measured: Bools) -> Map:
    """Confidence: 1 at measured pixels, one half `_FADE` pixels away, and quickly falling beyond."""
    if not measured.any():
        return np.zeros(measured.shape, np.float32)
    distance = cv2.distanceTransform((~measured).astype(np.uint8), cv2.DIST_L2, 5)
    return np.asarray(1 / (1 + (distance / np.float32(_FADE)) ** 2), np.float32)
