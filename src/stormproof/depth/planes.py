"""Flat surfaces: a part of the image without edges, matched here and there, is one plane in disparity.

A truck's side has too little texture to match but at its lettering and its rims. A plane in space is a plane
in disparity, a·x + b·y + c, so a few sure pixels give all of it (after Klaus, Sormann and Karner 2006).
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.sample import Bools, Image
from stormproof.depth.depthmaps import Map

_EVEN = 3.0  # grey levels per pixel that a surface without edges may have
_HOLE = 1 / 4000  # share of the image; smaller holes are filled well enough by what surrounds them
_KNOWN = 24  # sure pixels that a plane takes
_MOST = 1000  # and as many are enough
_NEAR, _SHARE = 1.0, 0.6  # px off the plane that a sure pixel may lie, and the share that must
_SPREAD = 4.0  # px; the standard deviation of the sure pixels across their narrow side
_BEYOND = 1.25  # times the nearest and the farthest sure pixel, that a plane reaches
_ROUNDS = 8


def fill_planes(disparity: Map, image: Image) -> Map:
    """`disparity` with the holes (NaN) of even parts of the image filled where what is known is a plane."""
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
    """Grey levels per pixel in the channel where they change most."""
    soft = cv2.GaussianBlur(image, (0, 0), 1.0).reshape(*image.shape[:2], -1)
    axes = ((1, 0), (0, 1))
    across, down = (cv2.Sobel(soft, cv2.CV_32F, *axis, ksize=3, scale=1 / 8) for axis in axes)
    return np.asarray(np.hypot(across, down).reshape(soft.shape).max(axis=2), np.float32)


def _plane(disparity: Map, known: Bools, holes: Bools) -> npt.NDArray[np.float64] | None:
    """The disparity in the holes of the plane through the known pixels; None if they lie on none."""
    places = np.argwhere(known)[:: max(int(known.sum()) // _MOST, 1)]
    values = disparity[tuple(places.T)].astype(np.float64)
    centre = places.mean(axis=0)
    weight = np.ones(len(values))
    design = np.column_stack((places - centre, np.ones(len(values))))
    for _ in range(_ROUNDS):  # reweighted to least absolute errors: mismatches do not turn the plane
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
