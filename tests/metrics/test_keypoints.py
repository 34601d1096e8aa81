"""OKS AP equals pycocotools and hotcoco; PCK equals a plain count."""

from __future__ import annotations

from dataclasses import replace

import hotcoco
import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from helpers.poses import pose_set, ten_numbers
from stormproof.core.errors import InvalidPrediction
from stormproof.core.joints import usual_sigmas
from stormproof.metrics.keypoints import NUMBERS, PAIRS, Posed, score_joints, score_points
from stormproof.metrics.records import Detections, DetectionTruth

SETS = {
    "photographs": {"images": 40, "people": 150, "detections": 700},
    "more than twenty detections": {"images": 4, "people": 30, "detections": 400},
    "two classes": {"images": 15, "people": 80, "detections": 300, "classes": 2},
    "one image": {"images": 1, "people": 3, "detections": 6},
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_oks_ap_equals_pycocotools(name, seed):
    truth, found = pose_set(np.random.default_rng(seed), **SETS[name])
    assert numbers(truth, found) == pytest.approx(
        ten_numbers(COCO, COCOeval, truth, found), abs=1e-12, nan_ok=True
    )


def test_oks_ap_equals_hotcoco():
    truth, found = pose_set(np.random.default_rng(5), **SETS["photographs"])
    theirs = ten_numbers(hotcoco.COCO, hotcoco.COCOeval, truth, found)
    assert numbers(truth, found) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def test_oks_takes_other_sigmas_and_numbers_of_points():
    rng = np.random.default_rng(1)
    truth, found = pose_set(rng, images=10, people=50, detections=200, joints=5)
    truth = replace(truth, data={**truth.data, "sigmas": np.tile(rng.uniform(0.02, 0.2, 5), (50, 1))})
    theirs = ten_numbers(COCO, COCOeval, truth, found)
    assert numbers(truth, found) == pytest.approx(theirs, abs=1e-12, nan_ok=True)
    assert usual_sigmas(5).tolist() == [0.2] * 5


def test_points_that_a_class_lacks_are_ignored():
    truth, found = pose_set(np.random.default_rng(2), images=6, people=30, detections=90, joints=5)
    expected = numbers(truth, found)
    more = {
        "points": np.concatenate([truth.data["points"], np.zeros((30, 2, 3))], axis=1),
        "sigmas": np.concatenate([truth.data["sigmas"], np.full((30, 2), np.nan)], axis=1),
    }
    wide = np.concatenate([found.data["points"], np.full((90, 2, 3), 7.0)], axis=1)
    padded = replace(truth, data=more), replace(found, data={"points": wide})
    assert numbers(*padded) == pytest.approx(expected, abs=1e-15, nan_ok=True)


def numbers(truth, found) -> list[float]:
    scores = score_points(Posed(truth, found), np.ones((1, len(truth.ids)))).scores
    return [scores[name] for name in NUMBERS]


def one_person(found_points, box=(0, 0, 40, 100)) -> Posed:
    """One person with all joints at (20, 50), found once."""
    points = np.tile([20.0, 50.0, 2.0], (1, 17, 1))
    truth = DetectionTruth(
        ("a", "b"), ("person",), np.array([0]), np.array([box], float), np.array([0]), np.array([False]),
        np.array([False]), np.array([2000.0]), (None,), data={"points": points},
    )  # fmt: skip
    data = {"points": np.asarray(found_points, float)}
    found = Detections(np.array([0]), np.array([box], float), np.array([0.9]), np.array([0]), data=data)
    return Posed(truth, found)


def test_pck_counts_joints_within_a_tenth_of_the_longer_side():
    moved = np.tile([20.0, 50.0, 1.0], (1, 17, 1))
    moved[0, 0, 0] += 10.0  # just near enough: the longer side is 100
    moved[0, 9, 1] += 10.1  # one wrist is not
    posed, ones = one_person(moved), np.ones((1, 2))
    assert score_points(posed, ones).scores["PCK"] == pytest.approx(16 / 17)
    joints = score_joints(posed, ones).scores
    assert joints["PCK wrists"] == 0.5
    assert joints["PCK nose"] == joints["PCK ankles"] == 1.0
    assert list(PAIRS) == [
        "nose", "eyes", "ears", "shoulders", "elbows", "wrists", "hips", "knees", "ankles",
    ]  # fmt: skip


def test_offsets_are_mean_distances_over_the_joints_of_detected_people():
    moved = np.tile([20.0, 50.0, 1.0], (1, 17, 1))
    moved[0, 0, 0] += 10.0  # the nose: a tenth of the longer side, 100
    moved[0, 9, 1] += 4.0  # one of two wrists
    posed, ones = one_person(moved), np.ones((1, 2))
    joints, whole = score_joints(posed, ones).scores, score_points(posed, ones).scores
    assert [joints["joint offset nose"], joints["joint offset nose px"]] == pytest.approx([0.1, 10.0])
    assert [joints["joint offset wrists"], joints["joint offset wrists px"]] == pytest.approx([0.02, 2.0])
    assert whole["joint offset"] == pytest.approx(14 / 17 / 100)
    assert whole["joint offset px"] == pytest.approx(14 / 17)
    moved[0, 0] = [900.0, 50.0, 1.0]  # farther than the longer side counts as that far
    assert score_joints(one_person(moved), ones).scores["joint offset nose px"] == 100.0
    nobody = score_points(one_person(np.full((1, 17, 3), 500.0)), ones).scores
    assert np.isnan(nobody["joint offset"])


def test_objects_are_found_by_their_points_not_by_their_boxes():
    right, wrong = np.tile([20.0, 50.0, 1.0], (1, 17, 1)), np.tile([20.0, 90.0, 1.0], (1, 17, 1))
    assert one_person(right).located.found_at.tolist() == [0.9]
    assert one_person(wrong).located.found_at.tolist() == [-1]  # although the boxes are the same
    posed = one_person(right)
    unlabelled = replace(posed.truth, data={"points": np.zeros((1, 17, 3))})
    assert Posed.counting(unlabelled).tolist() == [False]
    assert len(Posed(unlabelled, posed.found).located.found_at) == 0


def test_joints_of_a_person_that_is_not_found_are_not_in_place():
    far = np.tile([300.0, 300.0, 1.0], (1, 17, 1))
    assert score_points(one_person(far), np.ones((1, 2))).scores["PCK"] == 0.0


def test_detections_without_keypoints_match_no_person():
    posed = one_person(np.full((1, 17, 3), np.nan))
    assert score_points(posed, np.ones((1, 2))).scores["OKS AP"] == 0.0


def test_weights_of_images_equal_repeated_images():
    truth, found = pose_set(np.random.default_rng(3), images=8, people=40, detections=150)
    weights = np.random.default_rng(0).integers(0, 3, (1, 8))
    weighted = score_points(Posed(truth, found), weights).scores
    several = Posed(truth, found).repeated(weights[0])
    repeated = score_points(several, np.ones((1, len(several.truth.ids)))).scores
    for name in ("PCK", "OKS AR", "OKS AR50", "joint offset", "joint offset px"):
        assert weighted[name] == pytest.approx(repeated[name], abs=1e-12, nan_ok=True)


def test_refuses_another_number_of_points():
    with pytest.raises(InvalidPrediction, match="predicts 5 points per object, but the truth has 17"):
        score_points(one_person(np.zeros((1, 5, 3))), np.ones((1, 2)))


def test_joints_of_other_sets_of_points_are_unknown():
    truth, found = pose_set(np.random.default_rng(1), images=3, people=9, detections=20, joints=5)
    assert np.isnan(score_joints(Posed(truth, found), np.ones((1, 3))).scores["PCK nose"])
