"""Sparse depth, as a laser measures it, made dense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.depth_scene import scene, thinned
from stormproof import apply, open_dataset
from stormproof.core.errors import InvalidTruth, MissingContext
from stormproof.core.sample import Context, Sample
from stormproof.depth.complete import complete
from stormproof.depth.estimate import FromGiven

SIZE = (120, 240)
SCAN = 60  # the row of the highest line of the laser
WHITE, ROAD, BRICK, STONE = (250, 250, 250), (80, 80, 80), (150, 70, 50), (90, 110, 90)


def _no_sky(depth: np.ndarray) -> np.ndarray:
    return np.zeros(depth.shape, np.bool_)


def _street() -> Sample:
    """White sky, a brick wall at 10 m on the left, a stone one at 40 m on the right; measured in part."""
    image = np.full((*SIZE, 3), WHITE, np.uint8)
    depth = np.full(SIZE, np.nan, np.float32)
    image[10:90, :90], image[30:90, 150:] = BRICK, STONE
    image[90:] = ROAD
    depth[SCAN:90:4, :90:3], depth[SCAN:90:4, 150::3] = 10, 40
    depth[92::4, ::3] = (8 * 30 / (np.arange(92, 120, 4) - 89.0))[:, None].clip(3, 40)
    return Sample("street", image, context=Context(depth=depth))


def test_walls_keep_their_depth_above_the_highest_line() -> None:
    dense = FromGiven()(_street()).depth
    assert np.abs(dense[12:SCAN, 4:86] / 10 - 1).max() < 0.1
    assert np.abs(dense[34:SCAN, 156:236] / 40 - 1).max() < 0.1


def test_the_sky_of_the_image_is_infinitely_far_and_dissolves_nothing() -> None:
    sample = _street()
    dense = FromGiven()(sample).depth
    assert np.isinf(dense[4:55, 100:140]).all()
    assert not np.isinf(dense[12:90, :86]).any()
    hazy = apply(replace(sample, context=Context(depth=dense)), "haze[beta=0.012]").image
    wall = hazy[16:SCAN, 6:80].astype(int)
    assert np.abs(wall - wall[-1, 0]).max() <= 3  # as much haze above the scan as within it


def test_depth_is_bounded_by_what_was_measured() -> None:
    dense = FromGiven()(_street()).depth
    finite = dense[np.isfinite(dense)]
    assert finite.max() <= 1.25 * 40
    assert finite.min() >= 3 / 1.25


def test_columns_that_no_line_comes_near_stay_unknown() -> None:
    sample = _street()
    depth = sample.context.depth.copy()  # type: ignore[union-attr]
    depth[:, 120:] = np.nan
    dense = complete(depth, sample.image, _no_sky(depth))
    assert np.isnan(dense[:, 155:]).all()
    assert np.isfinite(dense[:, :140]).all()


def test_points_that_the_scanner_sees_past_an_object_are_dropped() -> None:
    """The scanner sits above the camera: background points lie among those of the object before it."""
    image = np.full((60, 80, 3), 120, np.uint8)
    depth = np.full((60, 80), np.nan, np.float32)
    depth[::4, ::4] = 5
    depth[2::8, 2::8] = 30
    dense = complete(depth, image, _no_sky(depth))
    assert np.abs(dense / 5 - 1).max() < 0.01


def test_a_column_without_an_echo_takes_the_depth_of_those_beside_it() -> None:
    """A car at 6 m before a house at 30 m whose windows give no echo: the house is not at 6 m."""
    image = np.full((*SIZE, 3), BRICK, np.uint8)
    depth = np.full(SIZE, np.nan, np.float32)
    depth[40:90:3, ::3] = 30
    depth[40:70, 100:140] = np.nan
    image[70:90, 100:140], depth[70:90, 100:140] = (20, 20, 90), np.nan
    depth[70:90:3, 100:140:3] = 6
    depth[90::3, ::3] = 6
    dense = complete(depth, image, _no_sky(depth))
    assert np.abs(dense[:30, 100:140] / 30 - 1).max() < 0.1


def test_narrow_bright_parts_of_a_wall_are_no_sky() -> None:
    image = np.full((200, 300, 3), STONE, np.uint8)
    image[:120, 150:] = WHITE
    image[:100, 40:45] = WHITE  # a pipe
    image[:24, 80:104] = WHITE  # a window
    depth = np.full((200, 300), np.nan, np.float32)
    depth[130::4, ::3] = 12
    dense = FromGiven()(Sample("house", image, context=Context(depth=depth))).depth
    assert np.isinf(dense[:110, 160:]).all()
    assert not np.isinf(dense[:, :140]).any()


def test_sparse_depth_spreads_to_the_images_edges() -> None:
    image, depth = scene()
    dense = complete(thinned(depth), image, _no_sky(depth))
    assert (np.abs(dense / depth - 1) < 0.1).mean() > 0.98


def test_measured_pixels_keep_their_depth() -> None:
    image, depth = scene()
    sparse = thinned(depth)
    dense = complete(sparse, image, _no_sky(depth))
    kept = ~np.isnan(sparse)
    assert (dense[kept] == sparse[kept]).mean() > 0.97  # all but points beside a nearer object
    assert np.isfinite(dense).all()


def test_a_map_without_a_pixel_is_refused() -> None:
    image, depth = scene()
    with pytest.raises(InvalidTruth, match="no known pixel"):
        complete(np.full_like(depth, np.nan), image, _no_sky(depth))
    with pytest.raises(MissingContext, match="depth=FOLDER"):
        FromGiven()(Sample("a", image))


def test_a_sky_that_the_map_knows_spreads_into_no_gap() -> None:
    grey = np.full((200, 300, 3), 128, np.uint8)
    depth = np.full((200, 300), np.nan, np.float32)
    depth[:40], depth[190:] = np.inf, 20
    dense = complete(depth, grey, _no_sky(depth))
    assert np.isinf(dense[:40]).all()
    assert np.abs(dense[40:] / 20 - 1).max() < 0.01
    depth[190:] = np.nan
    assert np.isnan(complete(depth, grey, _no_sky(depth))[40:]).all()


def test_real_laser_points_predict_those_left_out(shared: Path) -> None:
    folder = shared / "data/kitti_object"
    errors = []
    for sample in (open_dataset(f"kitti:{folder},depth={folder}/depth_velo")[i] for i in range(3)):
        sparse = sample.context.depth
        assert sparse is not None
        held = (np.random.default_rng(0).random(sparse.shape) < 0.2) & ~np.isnan(sparse)
        dense = complete(np.where(held, np.nan, sparse).astype(np.float32), sample.image, _no_sky(sparse))
        errors.append(np.nanmedian(np.abs(dense[held] / sparse[held] - 1)))
    assert max(errors) < 0.03


def test_real_lines_held_back_are_predicted_by_those_below(shared: Path) -> None:
    """The upper lines of the scan are removed: walls and trees there have the depth of their columns."""
    folder = shared / "data/kitti_object"
    ratios = []
    for sample in (open_dataset(f"kitti:{folder},depth={folder}/depth_velo")[i] for i in range(5)):
        sparse = sample.context.depth
        assert sparse is not None
        highest = int(np.flatnonzero(~np.isnan(sparse).all(axis=1))[0])
        held = ~np.isnan(sparse) & (np.arange(len(sparse)) < highest + 30)[:, None]
        given = replace(sample.context, depth=np.where(held, np.nan, sparse).astype(np.float32))
        ratios.append(FromGiven()(replace(sample, context=given)).depth[held] / sparse[held])
    ratio = np.concatenate(ratios)
    assert (np.maximum(ratio, 1 / ratio) < 1.25).mean() > 0.85
    assert not np.isinf(ratio).any()
