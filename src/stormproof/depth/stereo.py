"""Depth from a rectified stereo pair: semi-global matching, checked both ways, filled and refined.

OpenCV's matcher leaves holes where the two views disagree, and its edges differ from those of the image.
Here both views are matched, and pixels on which they disagree are dropped; the sky is found; holes are
filled from their surroundings, and pixels that only one camera sees from behind; and a smoother guided by
the image moves edges to those of the image.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidTruth
from stormproof.core.sample import Bools, Camera, Image
from stormproof.datasets.depthmaps import Calibration, DepthEstimate, Map, depth_from_disparity
from stormproof.depth.holes import (
    above_ground,
    fill_around,
    fill_planes,
    find_ground,
    hidden_from,
    nearness,
    refine,
)
from stormproof.depth.sky import find_sky

_BLOCK = 5  # px
_SMALLEST = 8  # px; smallest side of an image that can be matched
_TOLERANCE = 1.0  # px by which the two views may disagree
_JUMP = 0.5  # px between neighbours at which smoothing drops to half
_FILLED = np.float32(0.03)  # weight of a filled pixel, relative to a matched one
_RIM = np.float32(0.05)  # weight of a pixel beside a step, where the matcher's blocks straddle two surfaces
_LEAST = 1 / 16  # px; the resolution of the matcher; less is infinitely far
_CHANGE = 6  # grey levels between the two views that noise and exposure do not explain
_UNLIKE = 20  # grey levels between a pixel and its match above which the match is wrong
_BESIDE, _RELATIVE = 7, 0.25  # px around a pixel, and the relative step in parallax there that halves trust
_ERROR = 1.2  # px of parallax at which trust is one half; matches err by about 0.3 px
_PATCH = 15  # px; the size of a patch of errors
_STEP = 2.0  # px of disparity that count as a step


def stereo_depth(
    left: Image, right: Image, camera: Camera, max_disparity: int | None = None, *, sky: bool = True
) -> DepthEstimate:
    """Dense depth of the left image in metres; infinite in the sky and where there is no parallax."""
    disparity, confidence = stereo_disparity(left, right, max_disparity, offset=camera.offset, sky=sky)
    return DepthEstimate(depth_from_disparity(disparity, Calibration(camera, camera.offset)), confidence)


def stereo_disparity(
    left: Image, right: Image, max_disparity: int | None = None, *, offset: float = 0.0, sky: bool = False
) -> tuple[Map, Map]:
    """Dense disparity of the left image of a rectified pair in pixels, and its confidence from 0 to 1.

    The search reaches `max_disparity` pixels, by default a fifth of the width. Calibrations add `offset` to
    disparities: −offset is infinitely far.
    """
    if left.shape != right.shape:
        raise InvalidTruth(
            f"The left image is {left.shape}, the right {right.shape}; both need the same size and channels."
        )
    if min(left.shape[:2]) < _SMALLEST:
        raise InvalidTruth(
            f"A pair of {left.shape[:2]} is too small to match; it needs {_SMALLEST} pixels a side."
        )
    # The matcher searches a multiple of 16 pixels.
    reach = max(int(np.ceil((max_disparity or left.shape[1] / 5) / 16)) * 16, 16)
    ours, theirs = match(left, right, reach), _match_right(left, right, reach)
    agreed = cross_check(ours, theirs)
    agreed = np.where(photometric_change(left, right, agreed) > _UNLIKE, np.float32(np.nan), agreed)
    ground = find_ground(agreed)
    checked = above_ground(agreed, ground)
    sure = ~np.isnan(checked)
    above = np.zeros(sure.shape, np.bool_)
    # Infinitely far pixels have not moved.
    moved = photometric_change(left, right, np.full_like(checked, -offset)) > _CHANGE
    if sky:
        above = find_sky(left, parallax=checked + np.float32(offset), moved=moved)
    # Holes outside the sky are not filled from it: a tree at the image's edge is nearer than the sky.
    checked = np.where(above, np.float32(np.nan), checked)
    filled = fill_around(fill_planes(checked, left), hidden_from(theirs, checked))
    filled, checked = (np.where(above, np.float32(-offset), field) for field in (filled, checked))
    filled = np.where(np.isnan(checked), np.maximum(filled, ground[:, None]), filled)
    filled = np.asarray(cv2.medianBlur(filled, 5), np.float32)
    weight = np.where(np.isnan(checked), _FILLED, np.float32(1))
    weight[_rims(filled)] = _RIM
    refined = refine(filled, weight, left, jump=_JUMP)
    refined = np.where(refined + offset < _LEAST, np.float32(-offset), refined)
    refined = np.where(above, np.float32(-offset), refined)
    return refined.astype(np.float32), _confidence(refined + np.float32(offset), sure, above, moved)


def _confidence(parallax: Map, sure: Bools, sky: Bools, moved: Bools) -> Map:
    """How far each pixel's depth can be trusted, from 0 to 1.

    Trust is lowest in holes, beside steps, where two surfaces meet, and where the parallax is as small as the
    matcher's errors. Sky that moved between the views was recognised by its colour only. Errors come in
    patches, so a pixel is trusted no more than those around it.
    """
    around = np.ones((_BESIDE, _BESIDE), np.uint8)
    step = (cv2.dilate(parallax, around) - cv2.erode(parallax, around)) / np.maximum(parallax, 1)
    even = 1 / (1 + (step / _RELATIVE) ** 2)
    near = 1 / (1 + (_ERROR / np.maximum(parallax, 1e-3)) ** 2)
    solid = np.where(sure, 1, 0.5 * nearness(sure)) * even * near
    own = np.where(sky, np.where(moved, 0.5, 1), solid).astype(np.float32)
    return np.asarray(np.sqrt(own * cv2.blur(own, (_PATCH, _PATCH))), np.float32)


def match(left: Image, right: Image, reach: int) -> Map:
    """Plain semi-global matching, including the left edge; NaN where there is no match."""
    channels = 1 if left.ndim == 2 else left.shape[2]
    matcher = cv2.StereoSGBM.create(
        minDisparity=0,
        numDisparities=reach,
        blockSize=_BLOCK,
        P1=8 * channels * _BLOCK**2,
        P2=32 * channels * _BLOCK**2,
        disp12MaxDiff=-1,
        uniquenessRatio=5,
        speckleWindowSize=100,
        speckleRange=2,
        preFilterCap=31,
        mode=cv2.STEREO_SGBM_MODE_HH,
    )
    pair = [cv2.copyMakeBorder(view, 0, 0, reach, 0, cv2.BORDER_REPLICATE) for view in (left, right)]
    disparity = matcher.compute(*pair)[:, reach:].astype(np.float32) / 16
    return np.where(disparity >= 0, disparity, np.float32(np.nan)).astype(np.float32)


def _match_right(left: Image, right: Image, reach: int) -> Map:
    """The same for the right image: in mirrored images, the right camera is the left one."""
    mirrored = match(np.ascontiguousarray(right[:, ::-1]), np.ascontiguousarray(left[:, ::-1]), reach)
    return np.ascontiguousarray(mirrored[:, ::-1])


def cross_check(left: Map, right: Map) -> Map:
    """The left disparities that the right view confirms; NaN elsewhere."""
    height, width = left.shape
    columns = np.arange(width) - np.nan_to_num(left, nan=0.0)
    nearest = np.rint(columns).astype(np.int64)
    inside = (nearest >= 0) & ~np.isnan(left)
    partner = right[np.arange(height)[:, None], np.clip(nearest, 0, width - 1)]
    with np.errstate(invalid="ignore"):
        same = np.abs(partner - left) <= _TOLERANCE
    return np.where(inside & same, left, np.float32(np.nan)).astype(np.float32)


def photometric_change(left: Image, right: Image, disparity: Map) -> npt.NDArray[np.int16]:
    """Grey levels between each pixel and its match by the disparity."""
    rows, columns = (np.ascontiguousarray(axis, np.float32) for axis in np.indices(disparity.shape))
    views = [cv2.GaussianBlur(view, (0, 0), 1.0) for view in (left, right)]
    places = (columns - np.nan_to_num(disparity)).astype(np.float32)
    partner = np.asarray(cv2.remap(views[1], places, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
    steps = np.abs(views[0].astype(np.int16) - partner.reshape(views[0].shape).astype(np.int16))
    most: npt.NDArray[np.int16] = steps.reshape(*disparity.shape, -1).max(axis=2)
    return most


def _rims(disparity: Map) -> npt.NDArray[np.bool_]:
    """Pixels beside a step in disparity."""
    around = np.ones((3, 3), np.uint8)
    rims: npt.NDArray[np.bool_] = cv2.dilate(disparity, around) - cv2.erode(disparity, around) > _STEP
    return rims
