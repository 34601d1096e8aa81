"""Depth from real stereo pairs, against the truth measured with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.stats import rankdata

from stormproof import open_dataset
from stormproof.core.errors import InvalidOption, InvalidTruth, MissingContext
from stormproof.core.imagefile import read_image
from stormproof.core.sample import Camera, Context, Sample
from stormproof.datasets.depthmaps import depth_from_disparity, read_calibration, read_disparity
from stormproof.depth.estimate import FromStereo
from stormproof.depth.holes import above_ground, fill_around, find_ground, hidden_from
from stormproof.depth.sky import find_sky
from stormproof.depth.stereo import cross_check, stereo_depth, stereo_disparity


@dataclass(frozen=True)
class Pair:
    left: np.ndarray
    right: np.ndarray
    truth: np.ndarray
    offset: float
    reach: int


@cache
def pair(shared: Path, name: str) -> Pair:
    folder = shared / "data" / "stereo_depth"
    files = {
        "street": (
            "kitti2015_000046/left.png",
            "kitti2015_000046/right.png",
            "kitti2015_000046/disp_occ_0.png",
        ),
        "motorcycle": tuple(
            f"middlebury2014_motorcycle_Q/{f}" for f in ("im0.png", "im1.png", "disp0GT.pfm")
        ),
        "aloe": tuple(f"middlebury2006_aloe/{f}" for f in ("aloeL.jpg", "aloeR.jpg", "aloeGT.png")),
    }[name]
    left, right, truth = folder / files[0], folder / files[1], read_disparity(folder / files[2])
    images = [read_image(left), read_image(right)]
    if name == "aloe":  # half the size is enough, and four times as fast
        images = [np.ascontiguousarray(image[::2, ::2]) for image in images]
        truth = truth[::2, ::2] / 2
    offset = read_calibration(folder / "middlebury2014_motorcycle_Q/calib.txt").offset
    return Pair(*images, truth, offset if name == "motorcycle" else 0.0, 128 if name != "street" else 96)


def search(given: Pair) -> np.ndarray:
    return stereo_disparity(given.left, given.right, given.reach)[0]


@cache
def ours(shared: Path, name: str) -> np.ndarray:
    return search(pair(shared, name))


def plain(given: Pair) -> np.ndarray:
    """OpenCV's matcher as its own documentation sets it up."""
    matcher = cv2.StereoSGBM.create(
        numDisparities=given.reach,
        blockSize=5,
        P1=8 * 3 * 25,
        P2=32 * 3 * 25,
        disp12MaxDiff=1,
        uniquenessRatio=10,
        speckleWindowSize=100,
        speckleRange=32,
    )
    found = matcher.compute(given.left, given.right).astype(np.float32) / 16
    return np.where(found >= 0, found, np.nan)


def bad(disparity: np.ndarray, truth: np.ndarray, limit: float) -> float:
    """The share of the pixels with truth that are off by more than `limit`, or missing."""
    known = truth > 0
    return float((~(np.abs(disparity - truth)[known] <= limit)).mean())


NAMES = ("street", "motorcycle", "aloe")


@pytest.mark.parametrize("name", NAMES)
def test_the_median_depth_is_within_two_per_cent(shared: Path, name: str) -> None:
    given, found = pair(shared, name), ours(shared, name)
    known = given.truth > 0
    # Depth is one over disparity, so their relative errors are the same.
    ratio = (given.truth + given.offset)[known] / np.maximum(found + given.offset, 1e-3)[known]
    assert np.median(np.abs(ratio - 1)) < 0.02


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [1, 3])
def test_fewer_pixels_are_bad_than_with_the_plain_matcher(shared: Path, name: str, limit: int) -> None:
    given = pair(shared, name)
    assert bad(ours(shared, name), given.truth, limit) < 0.75 * bad(plain(given), given.truth, limit)


@pytest.mark.parametrize("name", NAMES)
def test_every_pixel_has_a_disparity(shared: Path, name: str) -> None:
    found = ours(shared, name)
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_depth_edges_lie_on_image_edges(shared: Path) -> None:
    """Just beside its steps, refined depth errs less often than filled depth does."""
    given = pair(shared, "motorcycle")
    steep = np.hypot(*np.gradient(np.nan_to_num(given.truth))) > 3
    near = cv2.dilate(steep.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
    truth = np.where(near, given.truth, np.nan)
    assert bad(ours(shared, "motorcycle"), truth, 2) < 0.75 * bad(plain(given), truth, 2)


def test_offset_principal_points_enter_the_depth(shared: Path) -> None:
    folder = shared / "data/stereo_depth/middlebury2014_motorcycle_Q"
    calibration = read_calibration(folder / "calib.txt")
    assert calibration.camera.offset == pytest.approx(32.778)
    given, rows = pair(shared, "motorcycle"), slice(160, 340)  # some are enough
    context = Context(camera=calibration.camera, right=given.right[rows])
    depth = FromStereo(128)(Sample("m", given.left[rows], context=context)).depth
    truth = depth_from_disparity(given.truth[rows], calibration)
    known = np.isfinite(truth)
    assert np.median(np.abs(depth[known] / truth[known] - 1)) < 0.05


def _shifted(shift: int) -> tuple[np.ndarray, np.ndarray]:
    texture = np.random.default_rng(0).integers(0, 256, (60, 200, 3), dtype=np.uint8)
    texture = cv2.GaussianBlur(texture, (0, 0), 1)
    return texture[:, :-shift] if shift else texture, texture[:, shift:]


def test_a_shifted_image_is_a_plane() -> None:
    left, right = _shifted(20)
    camera = Camera(fx=500, fy=500, cx=0, cy=0, baseline=0.2)
    depth = stereo_depth(left, right, camera, 48).depth
    assert np.median(depth[:, 40:]) == pytest.approx(500 * 0.2 / 20, rel=0.01)


def test_no_parallax_is_infinitely_far() -> None:
    left, right = _shifted(0)
    depth = stereo_depth(left, right, Camera(500, 500, 0, 0, 0.2), 32).depth
    assert np.isinf(depth).mean() > 0.95


def test_accepts_grey_pairs() -> None:
    left, right = _shifted(8)
    found = stereo_disparity(left[..., :1], right[..., :1], 32)[0]
    assert np.median(found[:, 30:]) == pytest.approx(8, abs=0.2)


def test_the_views_must_agree() -> None:
    left = np.array([[3, 3, 3, 3, 3, 3, 3, 3]], np.float32)
    right = np.array([[3, 3, 9, 3, 3, 3, 3, 3]], np.float32)
    assert np.isnan(cross_check(left, right)).tolist() == [
        [True, True, True, False, False, True, False, False]
    ]


def test_hidden_pixels_take_the_background_disparity() -> None:
    nan = np.nan
    rows = np.array([[9, nan, nan, 2, nan, 5]] * 3, np.float32)
    hidden = np.isnan(rows)
    assert fill_around(rows, hidden).tolist() == [[9, 2, 2, 2, 2, 5]] * 3
    assert fill_around(np.full((2, 3), nan, np.float32), np.ones((2, 3), bool)).tolist() == [[0] * 3] * 2


def test_a_hole_in_a_surface_takes_the_disparity_around_it() -> None:
    """A car at 20 px before a street at 2: a hole in its side is not a window, though it reaches its edge."""
    field = np.full((40, 60), 2, np.float32)
    field[10:30, 10:50] = 20
    field[18:22, 12:50] = np.nan
    filled = fill_around(field, np.zeros(field.shape, bool))
    assert (filled[18:22, 12:49] == 20).all()


def test_disparities_below_the_ground_are_removed() -> None:
    street = np.tile(np.linspace(-40, 60, 101, dtype=np.float32)[:, None].clip(0), (1, 80))
    wrong = street.copy()
    wrong[70:, 44:] = 1  # paving that looks the same everywhere, on almost half of the rows
    ground = find_ground(wrong)
    assert np.isneginf(ground[:60]).all()
    assert ground[61:] == pytest.approx(street[61:, 0], abs=1)
    mended = above_ground(wrong, ground)
    assert np.isnan(mended[70:, 44:]).all()
    assert np.isnan(mended).sum() == 31 * 36


def test_a_wall_is_not_taken_for_the_ground() -> None:
    wall = np.full((100, 80), 17, np.float32)
    wall[80:90, 20:40] = 1
    assert np.isneginf(find_ground(wall)).all()
    assert not np.isnan(above_ground(wall, find_ground(wall))).any()
    assert np.isneginf(find_ground(np.full((100, 80), np.nan, np.float32))).all()


def test_what_moves_between_the_views_is_no_sky() -> None:
    """A pale bus that reaches the upper edge is a wall where its stripes have moved, and sky where not."""
    image = np.full((60, 100, 3), (150, 170, 200), np.uint8)
    image[28:] = (60, 60, 60)
    nowhere = np.full((60, 100), np.nan, np.float32)
    moved = np.zeros((60, 100), bool)
    assert find_sky(image, parallax=nowhere, moved=moved)[:26].all()
    moved[:28:2] = moved[:6] = True
    assert not find_sky(image, parallax=nowhere, moved=moved).any()
    evening = np.where(image > 100, (220, 170, 150), image).astype(np.uint8)
    assert find_sky(evening, parallax=nowhere, moved=np.zeros((60, 100), bool))[:26].all()
    assert not find_sky(evening, parallax=nowhere).any()


def test_pixels_beyond_the_other_images_edge_are_not_hidden() -> None:
    left = np.array([[np.nan, np.nan, 2, 2, np.nan, 2]], np.float32)
    right = np.array([[2, 2, np.nan, 2, np.nan, np.nan]], np.float32)
    assert hidden_from(right, left).tolist() == [[False, False, False, False, True, False]]


def test_names_the_missing_context() -> None:
    image = np.zeros((10, 40, 3), np.uint8)
    with pytest.raises(MissingContext, match="right=FOLDER"):
        FromStereo()(Sample("a", image))
    with pytest.raises(MissingContext, match="calib=FOLDER"):
        FromStereo()(Sample("a", image, context=Context(right=image)))
    with pytest.raises(InvalidTruth, match="same size"):
        stereo_disparity(image, image[:5])
    with pytest.raises(InvalidOption, match="at least 1"):
        FromStereo(max_disparity=0)


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [((20, 30, 3), (20, 30, 1), "same size and channels"), ((1, 1, 3), (1, 1, 3), "too small to match")],
)
def test_refuses_pairs_that_cannot_be_matched(
    left: tuple[int, ...], right: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InvalidTruth, match=said):
        stereo_disparity(np.zeros(left, np.uint8), np.zeros(right, np.uint8))


def test_confidence_tells_where_depth_is_wrong() -> None:
    """On the street, whose depth is exact: a wrong pixel has less confidence than a right one, mostly."""
    scenes = open_dataset("world:test,seed=12,stereo=true,count=2")
    confidence, wrong = [], []
    for sample in (scenes[i] for i in range(2)):
        exact, found = sample.context.depth, FromStereo()(sample)
        assert exact is not None
        with np.errstate(invalid="ignore"):
            ratio = np.where(np.isinf(exact) & np.isinf(found.depth), 1, found.depth / exact)
        wrong.append(~((ratio > 0.8) & (ratio < 1.25)))
        confidence.append(found.confidence)
    scores, wrongs = np.concatenate(confidence).ravel(), np.concatenate(wrong).ravel()
    ranks = rankdata(scores)
    count = int(wrongs.sum())
    area = 1 - (ranks[wrongs].sum() - count * (count + 1) / 2) / (count * (len(scores) - count))
    assert area > 0.7


def test_finds_the_blue_sky_of_a_real_street(shared: Path) -> None:
    """KITTI 2015, 000046: about a fifth of the image is blue sky that matches cannot tell from trees."""
    given = pair(shared, "street")
    found, _ = stereo_disparity(given.left, given.right, given.reach, sky=True)
    assert 0.19 < (found == 0).mean() < 0.26
    assert (found[20:60, 420:540] == 0).mean() > 0.9  # between signs and a lamp
