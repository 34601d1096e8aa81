"""Thresholds, suppression and masks, against slow readings of the same rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.errors import ModelError
from stormproof.models.candidates import Candidates, Limits, nms, to_prediction, to_semantic
from stormproof.models.geometry import plan_fit

WHOLE = plan_fit((64, 96), (64, 96), "stretch")


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(across, 0) * max(down, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def slow_nms(boxes, scores, labels, iou: float, keep: int) -> list[int]:
    stay: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(labels[i] != labels[j] or overlap(boxes[i], boxes[j]) <= iou for j in stay):
            stay.append(i)
    return stay[:keep]


@given(st.integers(0, 2**31), st.integers(0, 60), st.sampled_from([0.3, 0.5, 0.7]))
def test_nms_equals_a_slow_implementation(seed: int, count: int, iou: float) -> None:
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 20, (count, 2))
    boxes = np.hstack([corner, corner + rng.integers(1, 20, (count, 2))]).astype(float)
    scores, labels = rng.integers(0, 10, count) / 10, rng.integers(0, 3, count)
    assert nms(boxes, scores, labels, iou=iou, keep=20).tolist() == slow_nms(boxes, scores, labels, iou, 20)


def test_the_best_stay_and_boxes_are_cut_at_the_border() -> None:
    boxes = np.array([[-5.0, -5, 20, 20], [0, 0, 20, 20], [40, 40, 200, 200], [96, 0, 120, 20]])
    scores = np.array([[0.9, 0.0], [0.8, 0.3], [0.0, 0.005], [0.9, 0.9]])
    found = to_prediction(Candidates(boxes, scores), WHOLE, Limits(score=0.01, keep=10, iou=0.5))
    assert found.boxes.tolist() == [[0, 0, 20, 20], [0, 0, 20, 20]]  # the last lies outside
    assert found.labels.tolist() == [0, 1]
    assert found.scores.tolist() == [0.9, 0.3]


@pytest.mark.parametrize("labels", [None, np.zeros(3, np.int64)])
def test_a_score_just_at_the_threshold_is_kept(labels: np.ndarray | None) -> None:
    boxes, scores = np.tile([0.0, 0, 9, 9], (3, 1)), np.array([0.5, 0.25, np.nextafter(0.25, 0)])
    found = Candidates(boxes, scores if labels is not None else scores[:, None], labels)
    assert to_prediction(found, WHOLE, Limits(score=0.25)).scores.tolist() == [0.5, 0.25]


def test_boxes_suppress_one_another_before_they_are_cut() -> None:
    """Half of both boxes lies in the padding, where they part; in the image they are one."""
    fit = plan_fit((50, 100), (100, 100), "letterbox", "centre")
    boxes = np.array([[10.0, 25, 40, 100], [10, 25, 40, 76]])
    found = to_prediction(Candidates(boxes, np.array([[0.9], [0.8]])), fit, Limits(0.01, 10, iou=0.7))
    assert found.boxes.tolist() == [[10, 0, 40, 50], [10, 0, 40, 50]]
    gone = to_prediction(Candidates(boxes, np.array([[0.9], [0.8]])), fit, Limits(0.01, 10, iou=0.6))
    assert len(gone) == 1


def test_label_offset_drops_what_falls_below_zero() -> None:
    found = Candidates(np.tile([0.0, 0, 9, 9], (2, 1)), np.array([0.9, 0.8]), np.array([0, 3]))
    assert to_prediction(found, WHOLE, Limits(0.01, 10), offset=-1).labels.tolist() == [2]


def test_many_candidates_keep_their_order() -> None:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 60, (9000, 2))
    boxes, scores = np.hstack([corner, corner + 3]), rng.uniform(0.1, 1, (9000, 1))
    found = to_prediction(Candidates(boxes, scores), WHOLE, Limits(0.01, 100, 0.5))
    assert len(found) == 100
    assert (np.diff(found.scores) <= 0).all()
    assert found.scores[0] == scores.max()


@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN"), (np.inf, "NaN"), (7.0, "logits: true")])
def test_refuses_impossible_scores(value: float, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        to_prediction(Candidates(np.zeros((1, 4)), np.array([[value]])), WHOLE, Limits(0.01, 10))


def test_prototype_masks_stay_in_their_box() -> None:
    prototypes = np.full((1, 16, 24), 5.0, np.float32)  # lit everywhere, at a quarter of the input
    found = Candidates(
        np.array([[8.0, 8, 40, 24]]), np.array([[0.9]]), coefficients=np.ones((1, 1)), prototypes=prototypes
    )
    (mask,) = to_prediction(found, WHOLE, Limits(0.01, 10, 0.5)).masks or ()
    truth = np.zeros((64, 96), bool)
    truth[8:24, 8:40] = True
    assert (mask.to_mask() == truth).all()


def test_whole_masks_are_mapped_back_through_a_letterbox() -> None:
    fit = plan_fit((30, 60), (64, 64), "letterbox")
    planes = np.zeros((1, 64, 64), np.float32)
    planes[0, 16:48, 32:] = 1  # the right half of the image
    found = Candidates(np.array([[32.0, 16, 64, 48]]), np.array([0.9]), np.array([0]), masks=planes)
    said = to_prediction(found, fit, Limits(0.01, 10))
    assert said.masks is not None
    assert said.masks[0].size == (30, 60)
    assert said.masks[0].area == pytest.approx(900, abs=30)
    assert said.boxes[0] == pytest.approx([30, 0, 60, 30])


def test_semantic_scores_are_resized_before_the_best_is_taken() -> None:
    scores = np.zeros((3, 8, 12), np.float32)
    scores[2, :, 6:] = 1
    scores[0, :, :6] = 1
    found = to_semantic(scores, WHOLE).semantic
    assert found is not None
    assert found.shape == (64, 96)
    assert {*found[:, :46].ravel()} == {0}
    assert {*found[:, 50:].ravel()} == {2}
    slow = np.stack([WHOLE.plane_to_image(plane) for plane in scores]).argmax(axis=0)
    assert (found == slow).all()


def test_semantic_maps_of_many_classes_are_wide() -> None:
    found = to_semantic(np.full((4, 4), 300), WHOLE).semantic
    assert found is not None
    assert found.dtype == np.uint16
    with pytest.raises(ModelError, match="NaN"):
        to_semantic(np.full((2, 4, 4), np.nan), WHOLE)
