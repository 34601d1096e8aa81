"""Calibration and LRP against their definitions, written out plainly, and against other packages."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from helpers.coco_oracle import xywh
from helpers.crowds import crowded_set, repeated
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.calibration import (
    BINS,
    LAECE_BINS,
    MIN_SCORE,
    Tuned,
    _bins,
    d_ece,
    fit_errors,
    kept_precision,
    reliability,
)  # fmt: skip
from stormproof.metrics.cocomatching import match_boxes
from stormproof.metrics.inputs import Objects
from stormproof.metrics.lrp import PARTS, locate
from stormproof.metrics.records import Detections, DetectionTruth


@pytest.fixture(scope="module")
def crowded():
    return crowded_set(20, np.random.default_rng(4))


def one(truth):
    return np.ones((1, len(truth.ids)))


def test_hits_equal_those_of_coco(crowded):
    truth, found = crowded
    matches, located = match_boxes(truth, found), locate(truth, found, 0.5)
    excused = (matches.judged.excused[:, 0] & 1).astype(bool)
    assert np.array_equal(matches.score[~excused], located.score)
    assert np.array_equal((matches.judged.hit[:, 0] & 1).astype(bool)[~excused], located.hit)


@pytest.mark.parametrize("count", [BINS, LAECE_BINS])
def test_a_bin_includes_its_upper_edge_alone(count):
    """A score of exactly 0.5 lies in the bin up to 0.5, the next larger number in the bin above."""
    edges = np.linspace(0, 1, count + 1)
    assert _bins(edges, count).tolist() == [0, *range(count)]
    assert _bins(np.nextafter(edges[:-1], 2), count).tolist() == [*range(count)]
    assert _bins(np.nextafter(edges[1:], 0), count).tolist() == [*range(count)]


def test_scores_on_an_edge_count_in_the_bin_below_it():
    """Scored 0.5: one right, and one wrong of 0.6, are two bins whose errors do not cancel."""
    boxes = np.array([[0.0, 0, 10, 10], [20, 0, 30, 10]])
    truth = DetectionTruth.of([("a", Instances(boxes[:1], np.array([0])))], ("car",))
    found = Detections(np.array([0, 0]), boxes, np.array([0.5, 0.6]), np.array([0, 0]))
    counts = reliability(locate(truth, found, 0.5), one(truth), 1)[0]
    assert counts[0].nonzero()[0].tolist() == [4, 5]  # 0.4 to 0.5, 0.5 to 0.6
    assert counts[2].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert d_ece(counts[None])[0] == pytest.approx((0.5 + 0.6) / 2)


def test_a_box_scored_exactly_0_3_counts():
    """Right at 0.3 and wrong at 0.9: precision is one half; just below 0.3 the box is ignored."""
    boxes = np.array([[0.0, 0, 10, 10], [20, 0, 30, 10]])
    truth = DetectionTruth.of([("a", Instances(boxes[:1], np.array([0])))], ("car",))
    for score, precision, counted in ((0.3, 0.5, 2), (np.nextafter(0.3, 0), 0.0, 1)):
        found = Detections(np.array([0, 0]), boxes, np.array([score, 0.9]), np.array([0, 0]))
        located = locate(truth, found, 0.5)
        assert reliability(located, one(truth), 1)[0, 0].sum() == counted
        assert kept_precision(located, located, one(truth))[0, 0] == precision


def test_d_ece_by_hand(crowded):
    truth, found = crowded
    located = locate(truth, found, 0.5)
    gap = total = 0.0
    edges = np.linspace(0, 1, BINS + 1)
    for low, high in pairwise(edges):
        inside = (located.score > low) & (located.score <= high) & (located.score >= MIN_SCORE)
        if inside.any():
            gap += inside.sum() * abs(located.score[inside].mean() - located.hit[inside].mean())
        total += inside.sum()
    counts = reliability(located, one(truth), len(truth.ids))
    assert d_ece(counts)[0] == pytest.approx(gap / total, abs=1e-12)


def test_d_ece_equals_hotcoco(crowded):
    """hotcoco calls it ECE; its bins include their lower edge, but no score here lies on an edge."""
    from hotcoco import COCO, COCOeval

    truth, found = crowded
    loud = found.scores >= MIN_SCORE
    plain = DetectionTruth(
        truth.ids, truth.classes, truth.image, truth.boxes, truth.labels, np.zeros(len(truth), bool),
        truth.ignore, truth.area, truth.masks,
    )  # fmt: skip
    few = Detections(*(column[loud] for column in (found.image, found.boxes, found.scores, found.labels)))
    few.scores[:] = np.round(few.scores, 3) + 1e-4
    ours = d_ece(reliability(locate(plain, few, 0.5), one(truth), len(truth.ids)))[0]
    annotations = {
        "images": [{"id": int(name), "height": 900, "width": 900} for name in truth.ids],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(truth.classes)],
        "annotations": [
            {
                "id": i + 1, "image_id": int(truth.image[i]) + 1, "category_id": int(truth.labels[i]) + 1,
                "bbox": xywh(truth.boxes[i]), "area": float(truth.area[i]), "iscrowd": 0,
            }
            for i in range(len(truth))
        ],
    }  # fmt: skip
    said = [
        {
            "image_id": int(few.image[i]) + 1, "category_id": int(few.labels[i]) + 1,
            "bbox": xywh(few.boxes[i]), "score": float(few.scores[i]),
        }
        for i in range(len(few))
    ]  # fmt: skip
    index = COCO(annotations)
    run = COCOeval(index, index.load_res(said), "bbox")
    run.evaluate()
    assert ours == pytest.approx(run.calibration(n_bins=BINS, iou_threshold=0.5)["ece"], abs=1e-9)


def best_lrp(located, label, tau=0.5):
    """LRP, its parts and the threshold of a class, by trying every threshold."""
    objects = int((located.truth_label == label).sum())
    mine = located.label == label
    tried = []
    for threshold in np.unique(located.score[mine])[::-1]:
        kept = mine & (located.score >= threshold)
        overlaps = located.overlap[kept & located.hit]
        hits, false = len(overlaps), int((kept & ~located.hit).sum())
        if hits:
            lrp = ((1 - overlaps).sum() / (1 - tau) + false + objects - hits) / (objects + false)
            tried.append((lrp, (1 - overlaps).mean(), false / (hits + false), 1 - hits / objects, threshold))
    return min(tried)


@pytest.mark.parametrize("tau", [0.5, 0.0])
def test_olrp_by_hand(crowded, tau):
    truth, found = crowded
    located = locate(truth, found, tau)
    best = located.optimal(one(truth))[0]
    for label in range(5):
        assert best[:, label] == pytest.approx(best_lrp(located, label, tau), abs=1e-12)
    fixed = located.at(best[4][None], one(truth))[0]
    assert fixed == pytest.approx(best[:4], abs=1e-12)


def test_lrp_of_two_boxes_by_hand():
    """Two cats, one found with IoU 0.8 and one missed, and a lower-scored box on the background."""
    truth = DetectionTruth.of([("a", Instances([[0, 0, 10, 10], [50, 0, 60, 10]], [0, 0]))], ["cat", "dog"])
    said = {"a": Prediction([[0, 0, 10, 8], [80, 0, 90, 10]], [0.9, 0.6], [0, 0])}
    located = locate(truth, Detections.of(said, truth), 0.5)
    lrp, loc, fp, fn, threshold = located.optimal(one(truth))[0, :, 0]
    assert (lrp, loc, fp, fn, threshold) == pytest.approx(((0.2 / 0.5 + 0 + 1) / 2, 0.2, 0.0, 0.5, 0.9))
    lower = located.at(np.full((1, 2), 0.5), one(truth))[0]
    assert lower[:, 0] == pytest.approx([(0.4 + 1 + 1) / 3, 0.2, 0.5, 0.5])
    assert np.isnan(lower[:, 1]).all()  # there is no dog
    nothing = located.at(np.full((1, 2), math.nan), one(truth))[0]
    assert nothing[0, 0] == nothing[3, 0] == 1.0  # no threshold: nothing is said


def test_a_class_without_a_hit_has_an_lrp_of_1():
    truth = DetectionTruth.of([("a", Instances([[0, 0, 10, 10]], [0]))], ["cat"])
    said = {"a": Prediction([[80, 0, 90, 10]], [0.9], [0])}
    best = locate(truth, Detections.of(said, truth), 0.5).optimal(one(truth))[0, :, 0]
    assert best[[0, 3]].tolist() == [1.0, 1.0]
    assert np.isnan(best[[1, 2, 4]]).all()


def test_laece_and_laace_by_hand(crowded):
    truth, found = crowded
    touching = locate(truth, found, 0.0)
    thresholds = touching.optimal(one(truth))[:, 4]
    errors = fit_errors(touching, thresholds, one(truth))[0]
    edges = np.linspace(0, 1, LAECE_BINS + 1)
    for label in range(5):
        mine = (touching.label == label) & (touching.score >= thresholds[0, label])
        score, overlap = touching.score[mine], touching.overlap[mine]
        total = 0.0
        for low, high in pairwise(edges):
            inside = (score > low) & (score <= high)
            if inside.any():
                right = overlap[inside] > 0
                target = right.mean() * (overlap[inside][right].mean() if right.any() else 0.0)
                total += inside.mean() * abs(score[inside].mean() - target)
        assert errors[0, label] == pytest.approx(total, abs=1e-12)
        assert errors[1, label] == pytest.approx(np.abs(score - overlap).mean(), abs=1e-12)


def test_a_box_without_overlap_matches_no_object():
    """The higher-scored box lies elsewhere; the other one still finds the cat."""
    truth = DetectionTruth.of([("a", Instances([[0, 0, 10, 10]], [0]))], ["cat"])
    said = {"a": Prediction([[80, 0, 90, 10], [0, 0, 10, 9]], [0.9, 0.8], [0, 0])}
    assert locate(truth, Detections.of(said, truth), 0.0).overlap.tolist() == pytest.approx([0.0, 0.9])


def scores_of(truth, found, clean):
    tuned = Tuned(locate(truth, clean, 0.5), locate(truth, clean, 0.0))
    numbers = Objects(truth, found, tuned=tuned).scored(one(truth)).numbers
    return {name: float(values[0]) for name, values in numbers.items()}


def test_finds_the_threshold_that_keeps_precision():
    """Clean: both boxes are right. Corrupted: a wrong one scores 0.5, so precision needs more than that."""
    objects = [[0, 0, 10, 10], [50, 0, 60, 10]]
    truth = DetectionTruth.of([("a", Instances(objects, [0, 0]))], ["cat"])
    clean = Detections.of({"a": Prediction(objects, [0.9, 0.8], [0, 0])}, truth)
    said = Prediction([[0, 0, 10, 10], [80, 0, 90, 10], [50, 0, 60, 10]], [0.7, 0.5, 0.4], [0, 0, 0])
    before, after = (scores_of(truth, each, clean) for each in (clean, Detections.of({"a": said}, truth)))
    assert (before["precision"], before["safe threshold"], before["safe recall"]) == (1.0, 0.8, 1.0)
    assert after["precision"] == pytest.approx(2 / 3)
    assert (after["safe threshold"], after["safe recall"]) == (0.7, 0.5)
    lost = Detections.of({"a": Prediction([[80, 0, 90, 10]], [0.9], [0])}, truth)
    assert math.isnan(scores_of(truth, lost, clean)["safe threshold"])  # no threshold does


def test_thresholds_stay_those_of_clean_images():
    """Detections that fall below the clean threshold are dropped: LRP is 1, oLRP finds a lower threshold."""
    truth = DetectionTruth.of([("a", Instances([[0, 0, 10, 10]], [0]))], ["cat"])
    clean, dim = (
        Detections.of({"a": Prediction([[0, 0, 10, 10]], [score], [0])}, truth) for score in (0.9, 0.4)
    )
    found = scores_of(truth, dim, clean)
    assert (found["LRP"], found["oLRP"]) == (1.0, 0.0)
    assert math.isnan(found["LaECE0"])
    assert scores_of(truth, clean, clean)["LaECE0"] == pytest.approx(0.1)


def test_a_weight_equals_repeated_images(crowded):
    truth, found = crowded
    times = np.random.default_rng(0).integers(0, 3, len(truth.ids))
    weights = np.stack([np.ones(len(times)), times]).astype(np.uint8)
    clean = Detections(found.image, found.boxes, np.sqrt(found.scores), found.labels)
    cell = Objects(truth, found, tuned=Tuned(locate(truth, clean, 0.5), locate(truth, clean, 0.0)))
    scored = cell.scored(weights).numbers
    wide_truth, wide_found = repeated(truth, found, times)
    _, wide_clean = repeated(truth, clean, times)
    tuned = Tuned(locate(wide_truth, wide_clean, 0.5), locate(wide_truth, wide_clean, 0.0))
    wide = Objects(wide_truth, wide_found, tuned=tuned).scored(one(wide_truth)).numbers
    again = cell.repeated(times).scored(one(wide_truth)).numbers
    calibration = ("D-ECE", "LaECE0", "LaACE0", "precision", "safe threshold", "safe recall")
    for name in (*calibration, *(f"{which}{part}" for which in ("oLRP", "LRP") for part in PARTS)):
        assert scored[name][1] == pytest.approx(wide[name][0], abs=1e-12), name
        assert scored[name][1] == pytest.approx(again[name][0], abs=1e-12), name
