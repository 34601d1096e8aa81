"""Rotated IoU equals shapely's, of rectangles, other quadrilaterals, and those that touch or have no area."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.rotated import oriented_iou, rotated_rows
from stormproof.core.oriented import (
    polygon_areas,
    rotated_corners,
    shared_area,
    upright,
)

SQUARE = np.array([[0.0, 0], [10, 0], [10, 10], [0, 10]])


def shapely_iou(a, b):
    polygons = pytest.importorskip("shapely").Polygon
    table = np.zeros((len(a), len(b)))
    for i, first in enumerate(map(polygons, a)):
        for k, second in enumerate(map(polygons, b)):
            common = first.intersection(second).area
            table[i, k] = common / (first.area + second.area - common)
    return table


def random_rows(rng, count, spread=60.0):
    return np.column_stack([
        rng.uniform(0, spread, (count, 2)), np.exp(rng.normal(2.5, 1, (count, 2))), rng.uniform(-7, 7, count)
    ])  # fmt: skip


@pytest.mark.parametrize("offset", [0.0, 20_000.0])
def test_rectangles_equal_shapely(offset):
    rng = np.random.default_rng(0)
    a, b = (rotated_corners(random_rows(rng, 120)) + offset for _ in range(2))
    assert oriented_iou(a, b) == pytest.approx(shapely_iou(a, b), abs=1e-9 if offset else 1e-12)


def test_any_quadrilaterals_equal_shapely():
    rng = np.random.default_rng(1)
    angle = np.sort(rng.uniform(0, 2 * np.pi, (150, 4)), axis=1)
    shape = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * rng.uniform(1, 25, (150, 4, 1))
    gaps = np.diff(np.concatenate([angle, angle[:, :1] + 2 * np.pi], axis=1), axis=1)
    shape = shape[(gaps < 3.0).all(axis=1)] + rng.uniform(0, 30, (1, 1, 2))  # simple, some of them concave
    turned = shape[:, ::-1]  # in the other sense
    assert oriented_iou(shape, turned) == pytest.approx(shapely_iou(shape, turned), abs=1e-12)


def test_a_box_overlaps_itself_entirely():
    corners = rotated_corners(random_rows(np.random.default_rng(2), 50)) + 3000.0
    for turns in range(4):
        again = np.roll(corners, turns, axis=1)
        same = [float(oriented_iou(corners[k : k + 1], again[k : k + 1])[0, 0]) for k in range(50)]
        assert same == pytest.approx([1.0] * 50, abs=1e-12)


def test_boxes_that_touch_share_nothing():
    beside, below_corner = SQUARE + np.array([10, 0]), SQUARE + 10
    turned = rotated_corners(np.array([[10 + 5 * 2**0.5, 5, 10, 10, np.pi / 4]]))[0]  # its corner on the side
    for other in (beside, below_corner):
        assert oriented_iou(SQUARE[None], other[None])[0, 0] == 0.0
    assert oriented_iou(SQUARE[None], turned[None])[0, 0] == pytest.approx(0.0, abs=1e-12)


def test_boxes_without_area_overlap_nothing():
    line, point = SQUARE * np.array([1, 0]) + np.array([0, 5]), np.full((4, 2), 5.0)
    for flat in (line, point):
        assert polygon_areas(flat[None])[0] == 0.0
        assert oriented_iou(SQUARE[None], flat[None])[0, 0] == 0.0
        assert oriented_iou(flat[None], flat[None])[0, 0] == 0.0


def test_a_box_within_another_shares_its_own_area():
    assert shared_area(SQUARE, SQUARE * 0.3 + 2) == pytest.approx(9.0)
    shared_side = SQUARE * 0.5
    assert oriented_iou(SQUARE[None], shared_side[None])[0, 0] == pytest.approx(0.25, abs=1e-15)


def test_a_thin_box_across_another_equals_shapely():
    thin = rotated_corners(np.array([[5.0, 5.0, 40.0, 1e-6, 0.3]]))
    expected = shapely_iou(SQUARE[None], thin)
    assert oriented_iou(SQUARE[None], thin) == pytest.approx(expected, rel=1e-9)


def test_corners_and_rows_are_inverse():
    rows = random_rows(np.random.default_rng(3), 200)
    again = rotated_rows(rotated_corners(rows))
    assert again[:, :4] == pytest.approx(rows[:, :4])
    assert np.cos(again[:, 4] - rows[:, 4]) == pytest.approx(np.ones(200))
    assert rotated_corners(again) == pytest.approx(rotated_corners(rows))


def test_upright_boxes_enclose_the_corners():
    corners = rotated_corners(np.array([[5.0, 5.0, 10.0, 10.0, np.pi / 4]]))
    half = 5 * 2**0.5
    assert upright(corners)[0] == pytest.approx([5 - half, 5 - half, 5 + half, 5 + half])
