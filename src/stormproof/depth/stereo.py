"""Depth from a rectified stereo pair: semi-global matching, checked both ways, filled and refined.

OpenCV's matcher leaves holes where the two views disagree and pulls edges off the image's. Here both
views are matched; pixels on which they disagree are dropped; the sky is found; holes are filled by what
surrounds them, what only one camera sees by what lies behind; and a smoother guided by the image lays the
edges where the image has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, InvalidTruth
from stormproof.core.sample import Camera, Image
from stormproof.datasets.depthmaps import Calibration, Estimate, Map, depth_from_disparity
from stormproof.depth.holes import above_ground, fill_around, fill_planes, find_ground, hidden_from
from stormproof.depth.refine import certainty, refine
from stormproof.depth.sky import find_sky

_BLOCK = 5  # px
_SMALLEST = 8  # px a side of an image that can be matched
_TOLERANCE = 1.0  # px by which the two views may disagree
_JUMP = 0.5  # px a neighbour may differ by and still half belong to the same surface
_FILLED = np.float32(0.03)  # how much a filled pixel counts beside a matched one
_RIM = np.float32(0.05)  # and one beside a step, where the matcher's blocks straddle two surfaces
_LEAST = 1 / 16  # px; the matcher counts no finer, and less is infinitely far
_CHANGE = 6  # grey levels between the two views that noise and exposure do not explain
_UNLIKE = 20  # grey levels between a pixel and its match that make it a mistake
_STEP = 2.0  # px of disparity that make a step


@dataclass(frozen=True, slots=True)
class Matching:
    """How far to search, in pixels; None takes a fifth of the image's width."""

    max_disparity: int | None = None

    def __post_init__(self) -> None:
        if self.max_disparity is not None and self.max_disparity < 1:
            raise InvalidOption(f"max_disparity={self.max_disparity}: it is a number of pixels, at least 1.")

    def reach(self, width: int) -> int:
        """The search range, a multiple of 16 as the matcher wants it."""
        wanted = self.max_disparity or width / 5
        return max(int(np.ceil(wanted / 16)) * 16, 16)


def stereo_depth(
    left: Image,
    right: Image,
    camera: Camera,
    matching: Matching = Matching(),  # noqa: B008
    *,
    sky: bool = True,
) -> Estimate:
    """Dense depth in metres of the left image; infinity where there is no parallax, and in a sky found."""
    if camera.baseline is None:
        raise InvalidTruth("Depth from stereo needs the camera's baseline; add it to the calibration.")
    disparity, confidence = stereo_disparity(left, right, matching, offset=camera.offset, sky=sky)
    return Estimate(depth_from_disparity(disparity, Calibration(camera, camera.offset)), confidence)


def stereo_disparity(
    left: Image,
    right: Image,
    matching: Matching = Matching(),  # noqa: B008
    *,
    offset: float = 0.0,
    sky: bool = False,
) -> tuple[Map, Map]:
    """Dense disparity in pixels of the left image of a rectified pair, and how sure it is, from 0 to 1.

    `offset` is what calibrations add to disparities: −offset is infinitely far.
    """
    if left.shape != right.shape:
        raise InvalidTruth(
            f"The left image is {left.shape}, the right {right.shape}; both need one size and channels alike."
        )
    if min(left.shape[:2]) < _SMALLEST:
        raise InvalidTruth(
            f"A pair of {left.shape[:2]} is too small to match; it takes {_SMALLEST} pixels a side."
        )
    reach = matching.reach(left.shape[1])
    ours, theirs = match(left, right, reach), _match_right(left, right, reach)
    agreed = agree(ours, theirs)
    agreed = np.where(change(left, right, agreed) > _UNLIKE, np.float32(np.nan), agreed)
    ground = find_ground(agreed)
    checked = above_ground(agreed, ground)
    sure = ~np.isnan(checked)
    above = np.zeros(sure.shape, np.bool_)
    if sky:
        moved = (
            change(left, right, np.full_like(checked, -offset)) > _CHANGE
        )  # what is infinitely far has not
        above = find_sky(left, parallax=checked + np.float32(offset), moved=moved)
    # What is no sky takes nothing from it: a crown at the image's edge is not as far as the sky beside it.
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
    return refined.astype(np.float32), np.maximum(certainty(sure), above).astype(np.float32)


def match(left: Image, right: Image, reach: int) -> Map:
    """Plain semi-global matching, the left edge included; NaN where it finds nothing."""
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
    found = matcher.compute(*pair)[:, reach:].astype(np.float32) / 16
    return np.where(found >= 0, found, np.float32(np.nan)).astype(np.float32)


def _match_right(left: Image, right: Image, reach: int) -> Map:
    """The same for the right image: mirrored, the right camera is the left one of a pair."""
    mirrored = match(np.ascontiguousarray(right[:, ::-1]), np.ascontiguousarray(left[:, ::-1]), reach)
    return np.ascontiguousarray(mirrored[:, ::-1])


def agree(left: Map, right: Map) -> Map:
    """The left disparities that the right view confirms; NaN elsewhere."""
    height, width = left.shape
    columns = np.arange(width) - np.nan_to_num(left, nan=0.0)
    nearest = np.rint(columns).astype(np.int64)
    inside = (nearest >= 0) & ~np.isnan(left)
    partner = right[np.arange(height)[:, None], np.clip(nearest, 0, width - 1)]
    with np.errstate(invalid="ignore"):
        same = np.abs(partner - left) <= _TOLERANCE
    return np.where(inside & same, left, np.float32(np.nan)).astype(np.float32)


def change(left: Image, right: Image, disparity: Map) -> npt.NDArray[np.int16]:
    """Grey levels by which each pixel differs from the one that its disparity says is the same."""
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
