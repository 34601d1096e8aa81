"""The sky of a stereo pair, and flat surfaces, on scenes drawn by hand."""

from __future__ import annotations

import numpy as np

from stormproof.datasets.depthmaps import DepthEstimate
from stormproof.depth.holes import fill_planes
from stormproof.depth.sky import find_sky, unveiled_sky
from stormproof.depth.stereo import photometric_change, stereo_disparity

SIZE = (100, 160)
UNKNOWN = np.full(SIZE, np.nan, np.float32)
BLUE, WHITE, STREET, LEAF = (110, 160, 220), (225, 225, 225), (60, 60, 60), (30, 60, 20)


def _street(sky: tuple[int, int, int] = BLUE) -> np.ndarray:
    image = np.full((*SIZE, 3), sky, np.uint8)
    image[46:] = STREET
    return image


def _nothing() -> np.ndarray:
    return np.zeros(SIZE, bool)


def test_a_white_box_that_reaches_the_upper_edge_is_no_sky() -> None:
    """It runs into a sky as white as itself, but the other view shows it elsewhere."""
    image = _street(WHITE)
    image[:70, 100:] = (222, 222, 222)
    moved = _nothing()
    moved[:46, 80:100] = True  # the sky beside the box, where the right view shows the box
    parallax = UNKNOWN.copy()
    parallax[:40, :70] = 0
    found = find_sky(image, parallax=parallax, moved=moved)
    assert found[:44, :78].all()
    assert not found[:, 104:].any()


def test_sky_hidden_in_the_other_view_continues_the_visible_sky() -> None:
    image = _street()
    image[:46, 110:130] = STREET  # a tower, and to its left the sky that it hides
    moved = _nothing()
    moved[:46, 85:130] = True
    found = find_sky(image, parallax=UNKNOWN, moved=moved)
    assert found[:44, :107].all()
    assert not found[:44, 113:127].any()


def test_the_sky_shows_through_leaves() -> None:
    """Gaps that have moved with their leaves, at the leaves' parallax: only their colour tells."""
    image, parallax, moved = _street(), UNKNOWN.copy(), _nothing()
    crown = (slice(10, 44), slice(60, 100))
    gaps = _nothing()
    gaps[14:42:8, 64:98:8] = gaps[15:42:8, 64:98:8] = gaps[14:42:8, 65:98:8] = gaps[15:42:8, 65:98:8] = True
    image[crown] = LEAF
    image[gaps] = BLUE
    parallax[crown], moved[crown] = 12, True
    found = find_sky(image, parallax=parallax, moved=moved)
    assert found[gaps].all()
    leaves = _nothing()
    leaves[12:42, 62:98] = True
    assert not found[leaves & ~gaps].any()


def test_a_pale_post_before_a_blue_sky_stays() -> None:
    image, parallax, moved = _street(), UNKNOWN.copy(), _nothing()
    image[:, 70:80] = (200, 205, 215)
    parallax[:, 70:80], moved[:, 70:80] = 12, True
    assert not find_sky(image, parallax=parallax, moved=moved)[:, 72:78].any()


def test_a_strip_at_the_edge_that_no_match_reaches_has_the_sky_of_the_rest() -> None:
    """Beyond a post the cameras differ a little; a panel there in another colour is none of the sky."""
    image, moved = _street(), _nothing()
    image[:46, 138:142] = STREET
    moved[:, 138:] = True
    assert find_sky(image, parallax=UNKNOWN, moved=moved)[:44, 146:158].all()
    image[:46, 142:] = (190, 200, 190)
    assert not find_sky(image, parallax=UNKNOWN, moved=moved)[:44, 146:158].any()


def test_a_small_blue_patch_is_sky_only_where_there_is_no_other() -> None:
    image = np.full((*SIZE, 3), STREET, np.uint8)
    image[:20, 20:40] = BLUE
    assert find_sky(image, parallax=UNKNOWN, moved=_nothing())[:18, 22:38].all()
    image[:40, 60:] = WHITE
    found = find_sky(image, parallax=UNKNOWN, moved=_nothing())
    assert found[:38, 64:].all()
    assert not found[:18, 22:38].any()


def test_a_plain_side_lies_on_the_plane_of_its_lettering() -> None:
    image = np.full((*SIZE, 3), STREET, np.uint8)
    image[20:80, 30:130] = WHITE
    rows, columns = np.indices(SIZE)
    plane = (5 + 0.3 * columns + 0.05 * rows).astype(np.float32)
    known = np.where((rows % 12 == 0) | ~np.isin(columns, range(50, 110)), plane, np.nan).astype(np.float32)
    known[24, 60] = 3  # a mistake
    filled = fill_planes(known, image)
    inside = (slice(25, 75), slice(35, 125))
    assert np.abs(filled - plane)[inside].max() < 0.1
    assert np.isnan(fill_planes(np.where(columns < 33, plane, np.nan).astype(np.float32), image)[50, 60])


def test_gaps_without_a_plane_stay_unknown() -> None:
    image = np.full((*SIZE, 3), WHITE, np.uint8)
    ragged = np.random.default_rng(0).uniform(2, 40, SIZE).astype(np.float32)
    ragged[40:60, 40:120] = np.nan
    assert np.isnan(fill_planes(ragged, image)[40:60, 40:120]).all()


def test_photometric_change_tells_right_from_wrong_matches() -> None:
    texture = np.random.default_rng(0).integers(0, 256, (40, 120, 3), dtype=np.uint8)
    left, right = texture[:, :-10], texture[:, 10:]
    disparity = np.full((40, 110), 10, np.float32)
    assert photometric_change(left, right, disparity)[4:-4, 16:-4].max() <= 1
    assert np.median(photometric_change(left, right, disparity - 10)) > 30


def test_an_object_cut_off_in_the_other_view_is_not_taken_for_sky() -> None:
    """Its left part is outside the right image: it is as near as the rest, not as far as the sky."""
    texture = np.random.default_rng(0).integers(0, 90, (60, 200, 3), dtype=np.uint8)
    left = np.full((60, 160, 3), BLUE, np.uint8)
    right = left.copy()
    left[30:], right[30:] = texture[30:, :160], texture[30:, 16:176]
    left[8:30, :40], right[8:30, :24] = texture[8:30, :40], texture[8:30, 16:40]
    found, _ = stereo_disparity(left, right, sky=True)
    assert np.median(found[12:28, 2:14]) > 8
    assert (found[2:6, 60:] == 0).all()


def test_a_distant_tower_is_no_sky() -> None:
    """It stands as still as the sky, reaches the upper edge, and has another colour."""
    image = _street()
    image[:46, 110:140] = (150, 95, 90)
    parallax = np.full(SIZE, 0.5, np.float32)
    parallax[46:] = 12
    found = find_sky(image, parallax=parallax, moved=_nothing())
    assert found[:44, :106].all()
    assert not found[:44, 113:137].any()


def test_the_plain_roof_of_a_bus_is_no_sky_beside_one_that_is_seen_to_be_far() -> None:
    image, parallax = _street((230, 190, 160)), UNKNOWN.copy()
    image[:44, :70] = (90, 140, 150)
    image[44:, :70] = STREET
    parallax[:40, 80:] = 0
    found = find_sky(image, parallax=parallax, moved=_nothing())
    assert found[:44, 75:].all()
    assert not found[:, :66].any()


def test_plain_sky_behind_a_post_has_the_colour_of_the_rest() -> None:
    """A narrow strip without any match; the sky grows brighter towards it."""
    image, parallax, moved = _street(), UNKNOWN.copy(), _nothing()
    image[:46] = np.clip(np.array(BLUE) + np.arange(160)[:, None] // 8, 0, 255)
    image[:46, 138:144] = LEAF
    parallax[:40, :120] = 0
    moved[:46, 136:146] = True
    assert find_sky(image, parallax=parallax, moved=moved)[:44, 148:].all()


def test_a_large_blue_region_that_no_match_fills_is_sky_though_lamps_lend_it_their_parallax() -> None:
    """A plain sky, darker towards one side in one of the cameras, with matches copied from lamps."""
    image, parallax, moved = _street(), UNKNOWN.copy(), _nothing()
    image[:46] = np.array(BLUE) + 9 * (np.arange(160) % 8 < 4)[:, None]
    parallax[:46, ::2], moved[:46, 100:] = 8, True
    found = find_sky(image, parallax=parallax, moved=moved)
    assert found[:44].all()
    parallax[:46] = 8  # a blue wall is matched throughout
    assert not find_sky(image, parallax=parallax, moved=moved).any()


def test_counts_what_looks_like_sky_but_has_a_doubtful_depth() -> None:
    image = _street()
    depth, sure = np.full(SIZE, 30, np.float32), np.full(SIZE, 0.2, np.float32)
    assert unveiled_sky(image, DepthEstimate(depth, sure)) > 0.4
    assert unveiled_sky(image, DepthEstimate(depth, np.ones(SIZE, np.float32))) == 0  # a measured wall
    depth[:46] = np.inf
    assert unveiled_sky(image, DepthEstimate(depth, sure)) < 0.03
