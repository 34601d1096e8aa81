"""Truth that moves with the image."""

from __future__ import annotations

import numpy as np
import pytest
import skimage.data

from stormproof import apply, corrupt_image, imaging
from stormproof.core.condition import Condition
from stormproof.core.randomness import Draw
from stormproof.core.sample import RLE, Context, Instances, Sample, SemanticMap, Truth
from stormproof.corruptions import find, truth_under
from stormproof.corruptions.chain import steps
from stormproof.corruptions.geometry import move_points
from stormproof.corruptions.recipes.optics import radial_field

SIZE = (300, 420)
PLACES = [(60, 70, 40), (90, 320, 55), (220, 200, 48), (235, 370, 36)]  # row, column, radius
WARPS = (
    "geometric_distortion[delta=0.2]",
    "geometric_distortion[delta=0.2,quartic=0,cubic=0.8,quadratic=0.2]",
    "geometric_distortion[delta=-0.15]",
    "elastic_transform@5[labels=moved]",
)


def disks() -> list[np.ndarray]:
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    return [np.hypot(y - row, x - column) <= radius for row, column, radius in PLACES]


def iou(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def box_iou(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    both = np.prod(np.maximum(high - low, 0))
    return float(both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both))


def box_of(mask: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def pattern(shape: np.ndarray, masks: bool) -> Sample:
    """One white shape on grey: what the image shows is what the label says."""
    image = np.full((*SIZE, 3), 100, np.uint8)
    image[shape] = 255
    held = (RLE.from_mask(shape),) if masks else None
    truth = Truth(Instances([box_of(shape)], [3], masks=held, ids=[7]), SemanticMap(shape.astype(np.uint8)))
    return Sample("pattern", image, truth)


@pytest.mark.parametrize("warp", WARPS)
@pytest.mark.parametrize("disk", disks())
def test_masks_boxes_and_maps_agree_with_the_image(warp: str, disk: np.ndarray) -> None:
    moved = apply(pattern(disk, masks=True), warp)
    seen = moved.image[..., 0] > 177
    assert moved.truth.instances is not None
    assert moved.truth.instances.masks is not None
    assert moved.truth.semantic is not None
    mask = moved.truth.instances.masks[0].to_mask()
    assert iou(mask, seen) > 0.98
    assert ((moved.truth.semantic.labels == 1) == mask).all()
    assert moved.truth.instances.boxes[0].tolist() == list(box_of(mask))
    # Boxes of masks are whole pixels, so each edge may be off by one (docs/adr/0004).
    assert np.abs(moved.truth.instances.boxes[0] - np.array(box_of(seen), float)).max() <= 1
    assert moved.truth.instances.ids.tolist() == [7]
    assert moved.truth.instances.area[0] == mask.sum()


@pytest.mark.parametrize("warp", WARPS)
def test_boxes_without_masks_enclose_the_moved_pixels(warp: str) -> None:
    for row, column, radius in PLACES:
        square = np.zeros(SIZE, bool)
        square[max(row - radius, 0) : row + radius, max(column - radius, 0) : column + radius] = True
        moved = apply(pattern(square, masks=False), warp)
        seen = np.array(box_of(moved.image[..., 0] > 177), float)
        assert moved.truth.instances is not None
        box = moved.truth.instances.boxes[0]
        assert np.abs(box - seen).max() <= 1.1  # the image only shows whole pixels
        assert box_iou(box, seen) > (0.98 if "quartic=0" in warp else 0.97)


def _sample(image: np.ndarray) -> Sample:
    labels = np.ones(image.shape[:2], np.uint8)
    depth = np.full(image.shape[:2], 5, np.float32)
    truth = Truth(semantic=SemanticMap(labels), panoptic=labels.astype(np.int32))
    return Sample("a", image, truth, Context(depth=depth, disparity=depth))


def test_what_has_no_source_is_black_and_ignored() -> None:
    moved = apply(_sample(np.full((*SIZE, 3), 200, np.uint8)), "geometric_distortion@5")
    outside = (moved.image == 0).all(axis=2)
    assert 0.05 < outside.mean() < 0.6
    assert outside[0, 0]
    assert moved.truth.semantic is not None
    assert ((moved.truth.semantic.labels == 255) == outside).all()
    assert ((moved.truth.panoptic == 0) == outside).all()
    assert (np.isnan(moved.context.depth) == outside).all()
    assert (np.isnan(moved.context.disparity) == outside).all()


def test_a_pincushion_covers_the_whole_image() -> None:
    moved = apply(_sample(np.full((*SIZE, 3), 200, np.uint8)), "geometric_distortion[delta=-0.2]")
    assert (moved.image == 200).all()


def test_labels_can_stay_where_they_were() -> None:
    sample = pattern(disks()[0], masks=True)
    fixed = apply(sample, "geometric_distortion@5[labels=fixed]")
    assert fixed.truth is sample.truth
    assert (fixed.image == apply(sample, "geometric_distortion@5").image).all()
    assert apply(sample, "elastic_transform@5").truth is sample.truth
    assert apply(sample, "zoom_blur@5").truth is sample.truth


def test_truth_moves_without_pixels_too() -> None:
    sample = pattern(disks()[1], masks=True)
    condition = Condition.parse("elastic_transform@3[labels=moved]")
    alone = truth_under(sample.truth, SIZE, condition, seed=4, image_id="pattern").instances
    beside = apply(sample, condition, seed=4).truth.instances
    assert alone is not None
    assert beside is not None
    assert (alone.boxes == beside.boxes).all()


def test_objects_that_leave_the_frame_are_dropped() -> None:
    boxes = [[0.0, 0.0, 4.0, 4.0], [180.0, 130.0, 240.0, 170.0]]
    sample = Sample("a", np.zeros((*SIZE, 3), np.uint8), Truth(Instances(boxes, [1, 2], ids=[10, 20])))
    moved = apply(sample, "geometric_distortion[delta=-0.3]").truth.instances
    assert moved is not None
    assert moved.ids.tolist() == [20]
    assert moved.labels.tolist() == [2]


def _fields() -> dict[str, tuple[imaging.Field, imaging.Field]]:
    elastic = find("elastic_transform").field(
        SIZE, Condition.parse("elastic_transform@1"), Draw.keyed(0, "a")
    )
    return {
        "barrel": radial_field(SIZE, delta=0.2),
        "strong barrel": radial_field(SIZE, delta=1.0),
        "pincushion": radial_field(SIZE, delta=-0.2),
        "elastic": elastic,
    }


@pytest.mark.parametrize("name", ["barrel", "strong barrel", "pincushion", "elastic"])
def test_points_go_where_the_field_reads_them_from(name: str) -> None:
    dy, dx = _fields()[name]
    places = np.argwhere(imaging.sources(dy, dx) < dy.size)[::97]
    rows, columns = places.T
    shown = np.stack((columns + dx[rows, columns], rows + dy[rows, columns]), axis=1) + 0.5
    back = move_points(shown, dy, dx)
    assert np.abs(back - places[:, ::-1] - 0.5).max() < 0.05


def inverse_field(dy: imaging.Field, dx: imaging.Field) -> tuple[imaging.Field, imaging.Field]:
    """The field that undoes a field, as far as the frame holds what is needed."""
    height, width = dy.shape
    y, x = np.mgrid[:height, :width]
    centres = np.stack((x, y), axis=-1).reshape(-1, 2) + 0.5
    moved = (move_points(centres, dy, dx) - centres).reshape(height, width, 2).astype(np.float32)
    return np.ascontiguousarray(moved[..., 1]), np.ascontiguousarray(moved[..., 0])


@pytest.mark.parametrize("name", ["barrel", "pincushion", "elastic"])
def test_moving_points_there_and_back_errs_by_less_than_half_a_pixel(name: str) -> None:
    dy, dx = _fields()[name]
    there_dy, there_dx = inverse_field(dy, dx)
    points = np.random.default_rng(0).uniform((90, 70), (330, 230), (500, 2))
    there = move_points(points, dy, dx)
    assert np.abs(move_points(there, there_dy, there_dx) - points).max() < 0.5


@pytest.mark.parametrize("side", [64, 256])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_points_in_a_folded_image_are_closer_to_where_they_appear_than_unmoved_ones(
    side: int, severity: int
) -> None:
    """At 64 pixels, elastic waves fold a third of the image: Newton's method was 1.6 px off, staying 0.7."""
    condition = Condition.parse(f"elastic_transform@{severity}[labels=moved]")
    y, x = np.mgrid[:side, :side] + 0.5
    moved, unmoved = [], []
    for k, point in enumerate(np.random.default_rng(0).uniform(8, side - 8, (40, 2))):
        spot = np.exp(((x - point[0]) ** 2 + (y - point[1]) ** 2) / (-2 * 1.5**2))
        sample = Sample(f"{k}", (255 * spot).astype(np.uint8))
        light = apply(sample, condition).image.astype(float)
        seen = np.array([(light * x).sum(), (light * y).sum()]) / light.sum()
        (step,) = steps(condition)
        field = step.field((side, side), sample.frame, seed=0)
        moved.append(np.hypot(*(move_points(point[None], *field)[0] - seen)))
        unmoved.append(np.hypot(*(point - seen)))
    assert np.mean(moved) < 0.6
    assert np.mean(moved) < 0.8 * np.mean(unmoved)
    assert np.max(moved) < 2


def test_an_image_warped_there_and_back_is_the_image() -> None:
    image = np.ascontiguousarray(skimage.data.astronaut()[: SIZE[0], : SIZE[1]])
    smooth = imaging.gaussian_blur(image, 2)
    dy, dx = radial_field(SIZE, delta=0.1)
    back = imaging.move(imaging.move(smooth, dy, dx), *inverse_field(dy, dx)).astype(int)
    inner = (slice(30, -30), slice(30, -30))
    assert np.abs(back - smooth)[inner].mean() < 1.0
    assert np.percentile(np.abs(back - smooth)[inner], 99.5) < 8


def test_barrel_reads_further_out_and_moves_the_corners_by_delta() -> None:
    dy, dx = radial_field(SIZE, delta=0.2)
    assert dx[150, 400] > 0 > dx[150, 20]
    half = np.hypot(*SIZE) / 2
    corner = np.hypot(dy[0, 0], dx[0, 0])
    assert corner == pytest.approx(0.2 * half, rel=0.02)


@pytest.mark.parametrize("shares", [{}, {"quartic": 0.5, "cubic": 0.3, "quadratic": 0.2}])
def test_the_polynomial_has_degree_four(shares: dict[str, float]) -> None:
    """Without shares, those of r⁴, r³ and r² are equal."""
    dy, dx = radial_field(SIZE, delta=0.1, **shares)
    quartic, cubic, quadratic = shares.values() or (1 / 3,) * 3
    y, x = np.mgrid[: SIZE[0], : SIZE[1]] - (np.array(SIZE).reshape(2, 1, 1) - 1) / 2
    r = np.hypot(y, x) / (np.hypot(*SIZE) / 2)
    shown = np.hypot(y + dy, x + dx) / (np.hypot(*SIZE) / 2)
    expected = r + 0.1 * (quartic * r**4 + cubic * r**3 + quadratic * r**2)
    assert shown == pytest.approx(expected, abs=1e-5)


def test_zoom_moves_labels_by_the_mean_enlargement() -> None:
    square = np.zeros(SIZE, bool)
    square[130:170, 330:370] = True
    moved = apply(pattern(square, masks=False), "zoom_blur@3[labels=moved]")
    light = moved.image[..., 0].astype(float) - 100
    columns = (light.sum(axis=0) * (np.arange(SIZE[1]) + 0.5)).sum() / light.sum()
    assert moved.truth.instances is not None
    x1, _, x2, _ = moved.truth.instances.boxes[0]
    assert (x1 + x2) / 2 == pytest.approx(columns, abs=2.0)


def test_truth_moves_in_tiny_images() -> None:
    for size in ((1, 1), (1, 5), (5, 1), (2, 2)):
        image = np.zeros((*size, 3), np.uint8)
        sample = Sample("a", image, Truth(Instances([[0, 0, size[1], size[0]]], [0])))
        assert apply(sample, "geometric_distortion@5").image.shape == image.shape


def test_an_image_without_truth_is_distorted_alike() -> None:
    sample = pattern(disks()[2], masks=True)
    assert (
        corrupt_image(sample.image, "geometric_distortion@4") == apply(sample, "geometric_distortion@4").image
    ).all()
