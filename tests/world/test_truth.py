"""Truth is exact: every map, box and mask follows from the same geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormproof.world.classes import SEMANTIC, SEMANTIC_OF, SKY, VOID
from stormproof.world.samples import FEW, SEGMENT_BASE, Solid, render, render_truth
from stormproof.world.scene import Scene, compose, look
from stormproof.world.stage import assemble

SCENES = st.tuples(st.integers(0, 3), st.sampled_from(["train", "val", "test"]), st.integers(0, 199))
SIZES = st.tuples(st.integers(32, 320), st.integers(32, 240))


@settings(max_examples=20)
@given(SCENES, SIZES)
def test_maps_boxes_and_masks_agree(scene: tuple[int, str, int], size: tuple[int, int]) -> None:
    rendered = render(*scene, width=size[0], height=size[1])
    truth, depth = rendered.sample.truth, rendered.sample.context.depth
    assert truth.instances is not None
    assert truth.instances.masks is not None
    assert truth.semantic is not None
    assert truth.panoptic is not None
    assert depth is not None
    semantic, objects = truth.semantic.labels, truth.instances
    covered = np.zeros(semantic.shape, bool)
    for k, mask in enumerate(m.to_mask() for m in objects.masks):
        rows, columns = np.nonzero(mask)
        box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert objects.boxes[k].tolist() == box
        assert objects.area[k] == mask.sum()
        assert objects.ignore[k] == (mask.sum() < FEW)
        expected = SEMANTIC_OF[objects.labels[k]]
        assert (semantic[mask] == expected).all()
        assert (truth.panoptic[mask] == (expected + 1) * SEGMENT_BASE + objects.ids[k]).all()
        assert (rendered.instance[mask] == k + 1).all()
        assert not covered[mask].any()
        covered |= mask
    assert np.array_equal(covered, rendered.instance > 0)
    stuff = ~covered
    assert np.array_equal(
        truth.panoptic[stuff],
        np.where(semantic == VOID, 0, (semantic.astype(int) + 1) * SEGMENT_BASE)[stuff],
    )
    assert np.array_equal(np.isinf(depth), semantic == SKY)
    assert (depth > 0).all()
    assert set(np.unique(semantic)) <= {*range(len(SEMANTIC)), VOID}
    assert ((objects.occlusion >= 0) & (objects.occlusion < 1)).all()
    assert ((objects.truncation >= 0) & (objects.truncation < 1)).all()


@pytest.mark.parametrize("index", range(6))
def test_each_object_painted_alone_gives_its_mask(index: int) -> None:
    scene = compose(0, "val", index, shadows=False)
    full = look(scene, 320, 200)
    number = 0
    for placement in scene.stage.placements:
        if placement.label < 0:
            continue
        number += 1
        alone = look(Scene(scene.plan, assemble([placement]), None, scene.tracks), 320, 200)
        nearest = (alone.instance == 1) & (alone.depth <= full.depth)
        mask = full.instance == number
        assert not (mask & ~nearest).any()  # what is seen of it is where it is nearest
        assert (alone.depth[nearest] == full.depth[nearest]).all()
        assert (full.depth[nearest & ~mask] == alone.depth[nearest & ~mask]).all()
        assert (nearest & ~mask).sum() <= 2  # exact ties, which the earlier surface keeps
        assert full.framed[number] == (alone.instance == 1).sum()


@pytest.mark.parametrize("index", range(5))
def test_depth_warps_left_onto_right(index: int) -> None:
    rendered = render(0, "test", index, width=512, height=320, stereo=True)
    context, left = rendered.sample.context, rendered.sample.image.astype(float)
    assert context.right is not None
    assert context.disparity is not None
    assert context.camera is not None
    assert context.depth is not None
    baseline = context.camera.baseline
    assert baseline is not None
    right_depth = look(compose(0, "test", index, shadows=False), 512, 320, shift=baseline).depth
    expected = context.camera.fx * baseline / context.depth
    assert np.allclose(context.disparity, expected, rtol=1e-5)
    error, seen = warp_error(left, context.right, context.disparity, context.depth, right_depth)
    assert seen > 0.6
    assert np.median(error) < 1.0
    near = np.where(context.disparity > 8, context.disparity, np.nan)
    true, short, long = (
        warp_error(left, context.right, near * k, context.depth, right_depth)[0].mean()
        for k in (1, 0.98, 1.02)
    )
    assert true < 0.8 * min(short, long)  # no other disparity explains the pair as well


def warp_error(left: Any, right: Any, disparity: Any, depth: Any, right_depth: Any) -> tuple[Any, float]:
    """Errors of the right image brought over the left one, off occlusions; and how much is seen."""
    rows, columns = np.indices(depth.shape)
    target = np.nan_to_num(columns - disparity, nan=-1)
    inside = (target >= 0) & (target <= depth.shape[1] - 2)
    base = np.clip(np.floor(target).astype(int), 0, depth.shape[1] - 2)
    part = (target - base)[..., None]
    warped = right[rows, base].astype(float) * (1 - part) + right[rows, base + 1].astype(float) * part
    nearest = np.minimum(right_depth[rows, base], right_depth[rows, base + 1])
    with np.errstate(invalid="ignore"):
        same = np.abs(nearest - depth) < 0.02 * depth
    visible = inside & (same | (np.isinf(nearest) & np.isinf(depth)))
    return np.abs(warped - left)[visible], float(visible.mean())


def test_truth_alone_is_the_same_as_with_the_image() -> None:
    alone, whole = (
        render_truth(3, "train", 10**6, width=200, height=150),
        render(3, "train", 10**6, width=200, height=150).sample.truth,
    )
    assert alone.instances is not None
    assert whole.instances is not None
    assert np.array_equal(alone.instances.boxes, whole.instances.boxes)
    assert alone.panoptic is not None
    assert np.array_equal(alone.panoptic, whole.panoptic)


def test_objects_span_sizes_and_hide_each_other() -> None:
    truths = [render_truth(0, "val", k, width=640, height=400).instances for k in range(60)]
    kept = [t for t in truths if t is not None]
    area = np.concatenate([t.area[~t.ignore] for t in kept])
    hidden = np.concatenate([t.occlusion[~t.ignore] for t in kept])
    cut = np.concatenate([t.truncation[~t.ignore] for t in kept])
    labels = np.concatenate([t.labels for t in kept])
    assert min((area < 32**2).mean(), ((area >= 32**2) & (area < 96**2)).mean()) > 0.2
    assert (area >= 96**2).mean() > 0.05
    assert (hidden > 0.3).mean() > 0.15
    assert (cut > 0.1).mean() > 0.03
    assert (np.bincount(labels, minlength=7) >= 10).all()


def test_distances_are_the_depth_of_what_is_seen() -> None:
    sample = render(0, "val", 3, width=256, height=160).sample
    objects, depth = sample.truth.instances, sample.context.depth
    assert objects is not None
    assert objects.masks is not None
    assert depth is not None
    assert len(objects) > 2
    expected = [float(np.median(depth[mask.to_mask()])) for mask in objects.masks]
    assert objects.distance.tolist() == expected
    truth = render_truth(0, "val", 3, width=256, height=160).instances
    assert truth is not None
    assert truth.distance.tolist() == expected


@pytest.mark.parametrize(
    ("at", "turn", "alpha"),
    [
        ((1.84, 1.47, 8.41), 0.01, -0.20),  # of KITTI's own labels: location, rotation_y and alpha
        ((0.47, 1.49, 69.44), -1.56, -1.57),
        ((-16.53, 2.39, 58.49), 1.57, 1.85),
        ((4.59, 1.32, 45.84), -1.55, -1.65),
        ((-3.0, 1.5, 3.0), 3.0, 3.0 + np.pi / 4 - 2 * np.pi),  # within −π and π
    ],
)
def test_the_viewing_angle_is_kitti_s(at: tuple[float, float, float], turn: float, alpha: float) -> None:
    assert Solid(1.5, 1.6, 4.0, at, turn).alpha == pytest.approx(alpha, abs=0.01)
