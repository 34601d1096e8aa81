"""OKS AP equals pycocotools and hotcoco; PCK equals a plain count."""

from __future__ import annotations

import hotcoco
import numpy as np
import pytest
from poses import pose_set, ten_numbers
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from stormproof.core.errors import InvalidPrediction
from stormproof.metrics.keypoints import NUMBERS, PAIRS, match_points, score_joints, score_poses
from stormproof.metrics.oks import COCO_SIGMAS, usual_sigmas
from stormproof.metrics.records import Detections, DetectionTruth

SETS = {
    "photographs": dict(images=40, people=150, detections=700),
    "more than twenty detections": dict(images=4, people=30, detections=400),
    "two classes": dict(images=15, people=80, detections=300, classes=2),
    "one image": dict(images=1, people=3, detections=6),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_oks_ap_equals_pycocotools(name, seed):
    truth, points, found, found_points = pose_set(np.random.default_rng(seed), **SETS[name])
    theirs = ten_numbers(COCO, COCOeval, truth, points, found, found_points)
    assert numbers(truth, points, found, found_points) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def test_oks_ap_equals_hotcoco():
    truth, points, found, found_points = pose_set(np.random.default_rng(5), **SETS["photographs"])
    theirs = ten_numbers(hotcoco.COCO, hotcoco.COCOeval, truth, points, found, found_points)
    assert numbers(truth, points, found, found_points) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def test_own_sigmas_and_another_number_of_points():
    rng = np.random.default_rng(1)
    truth, points, found, found_points = pose_set(rng, images=10, people=50, detections=200, joints=5)
    sigmas = rng.uniform(0.02, 0.2, 5)
    theirs = ten_numbers(COCO, COCOeval, truth, points, found, found_points, sigmas)
    assert numbers(truth, points, found, found_points, sigmas) == pytest.approx(
        theirs, abs=1e-12, nan_ok=True
    )
    assert usual_sigmas(5).tolist() == [0.2] * 5


def numbers(truth, points, found, found_points, sigmas=COCO_SIGMAS) -> list[float]:
    poses = match_points(truth, found, points, np.tile(sigmas, (len(points), 1)), found_points)
    scored = score_poses(poses, np.ones((1, len(truth.ids))))
    return [scored.scores[name] for name in NUMBERS]


def one_person(found_points, box=(0, 0, 40, 100), **more):
    """One person with all joints at (20, 50), found once."""
    truth = DetectionTruth(
        ("a", "b"), ("person",), np.array([0]), np.array([box], float), np.array([0]), np.array([False]),
        np.array([False]), np.array([2000.0]), (None,), **more,
    )  # fmt: skip
    points = np.tile([20.0, 50.0, 2.0], (1, 17, 1))
    found = Detections(np.array([0]), np.array([box], float), np.array([0.9]), np.array([0]))
    return match_points(truth, found, points, COCO_SIGMAS[None], np.asarray(found_points, float))


def test_pck_counts_joints_within_a_tenth_of_the_longer_side():
    moved = np.tile([20.0, 50.0, 1.0], (1, 17, 1))
    moved[0, 0, 0] += 10.0  # just near enough: the longer side is 100
    moved[0, 9, 1] += 10.1  # one wrist is not
    poses = one_person(moved)
    ones = np.ones((1, 2))
    assert score_poses(poses, ones).scores["PCK"] == pytest.approx(16 / 17)
    joints = score_joints(poses, ones).scores
    assert joints["PCK wrists"] == 0.5
    assert joints["PCK nose"] == joints["PCK ankles"] == 1.0
    assert list(PAIRS) == [
        "nose", "eyes", "ears", "shoulders", "elbows", "wrists", "hips", "knees", "ankles",
    ]  # fmt: skip


def test_joints_of_a_person_that_is_not_found_are_not_in_place():
    far = np.tile([300.0, 300.0, 1.0], (1, 17, 1))
    assert score_poses(one_person(far), np.ones((1, 2))).scores["PCK"] == 0.0


def test_weights_of_images_equal_repeated_images():
    truth, points, found, found_points = pose_set(
        np.random.default_rng(3), images=8, people=40, detections=150
    )
    sigmas = np.tile(COCO_SIGMAS, (len(points), 1))
    weights = np.random.default_rng(0).integers(0, 3, (1, 8))
    weighted = score_poses(match_points(truth, found, points, sigmas, found_points), weights).scores
    chosen = np.repeat(np.arange(8), weights[0])
    kept = np.concatenate([np.flatnonzero(truth.image == i) for i in chosen])
    seen = np.concatenate([np.flatnonzero(found.image == i) for i in chosen])
    several = match_points(
        truth.of_images(chosen), found.of_images(chosen), points[kept], sigmas[kept], found_points[seen]
    )
    repeated = score_poses(several, np.ones((1, len(chosen)))).scores
    for name in ("PCK", "OKS AR", "OKS AR50"):
        assert weighted[name] == pytest.approx(repeated[name], abs=1e-12, nan_ok=True)


def test_refuses_another_number_of_points():
    with pytest.raises(InvalidPrediction, match="predicts 5 points per object, the truth has 17"):
        one_person(np.zeros((1, 5, 3)))


def test_joints_of_other_sets_of_points_are_unknown():
    truth, points, found, found_points = pose_set(
        np.random.default_rng(1), images=3, people=9, detections=20, joints=5
    )
    poses = match_points(truth, found, points, np.full((9, 5), 0.1), found_points)
    assert np.isnan(score_joints(poses, np.ones((1, 3))).scores["PCK nose"])
