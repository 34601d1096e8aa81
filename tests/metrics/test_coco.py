"""COCO scores equal pycocotools; bad predictions are refused by name."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.coco_oracle import coco_evaluation, twelve
from helpers.object_sets import scenes
from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.sample import RLE, Instances, Prediction
from stormproof.datasets import read_dataset
from stormproof.metrics.coco import NUMBERS, box_numbers, coco_scored, image_precision, mask_numbers
from stormproof.metrics.cocomatching import match_boxes, match_masks
from stormproof.metrics.records import Detections, DetectionTruth, lay_out

REFERENCE = Path(__file__).parents[3] / "shared/data/metric_refs/cocoapi_val2014_100"
SCORED = {"bbox": box_numbers, "segm": mask_numbers}


def equal(ours: dict[str, float], theirs: dict[str, float]) -> None:
    assert ours == pytest.approx(theirs, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("kind", "ap"), [("bbox", 0.5045806987249628), ("segm", 0.3195452758576433)])
def test_reproduces_cocoapis_reference_results(coco_reference, kind, ap):
    truth, found = coco_reference[kind]
    scores = SCORED[kind](truth, found)
    assert scores["AP"] == pytest.approx(ap, abs=1e-12)
    run = coco_evaluation(truth, found, kind)
    equal(scores, twelve(run))
    matches = (match_boxes if kind == "bbox" else match_masks)(truth, found)
    by_class = coco_scored(matches, np.ones((1, len(truth.ids)))).per_class["AP"][0]
    for k in range(len(truth.classes)):
        precision = run.eval["precision"][:, :, k, 0, 2]
        expected = precision[precision > -1].mean() if (precision > -1).any() else np.nan
        assert by_class[k] == pytest.approx(expected, abs=1e-9, nan_ok=True)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenes())
def test_boxes_equal_pycocotools(scene):
    truth, found = scene
    equal(box_numbers(truth, found), twelve(coco_evaluation(truth, found, "bbox")))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenes())
def test_ap_of_an_image_equals_that_of_a_set_with_only_this_image(scene):
    truth, predictions = scene
    scores_alone(truth, lay_out(predictions, truth))


def test_ap_of_an_image_with_crowds_equals_that_of_a_set_with_only_this_image():
    rng = np.random.default_rng(1)
    truth, found = crowded_set(rng, images=40, truths=120, detections=1500, classes=2)
    scores_alone(replace(truth, crowd=rng.random(120) < 0.4), found)


def scores_alone(truth: DetectionTruth, found: Detections) -> None:
    """Compare the AP of every image with that of a set with no other image."""
    alone = []
    for i in range(len(truth.ids)):
        chosen = np.array([i])
        matches = match_boxes(truth.of_images(chosen), found.of_images(chosen))
        alone.append(float(coco_scored(matches, np.ones((1, 1))).numbers["AP"][0]))
    assert image_precision(match_boxes(truth, found)).tolist() == pytest.approx(alone, abs=1e-9, nan_ok=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenes())
def test_masks_equal_pycocotools(scene):
    truth, found = scene
    equal(mask_numbers(truth, found), twelve(coco_evaluation(truth, found, "segm")))


def test_many_random_boxes_equal_pycocotools():
    rng = np.random.default_rng(0)
    truth, found = crowded_set(rng, images=60, truths=500, detections=9000)
    equal(box_numbers(truth, found), twelve(coco_evaluation(truth, found, "bbox")))


def crowded_set(rng, *, images, truths, detections, classes=6):
    """More than a hundred detections of a class in some images, so that the caps take effect."""
    image = np.sort(rng.integers(0, images, truths))
    sides = np.exp(rng.normal(3.8, 1, (truths, 2))).clip(3, 300)
    low = rng.uniform(0, 300, (truths, 2))
    boxes = np.concatenate([low, low + sides], axis=1)
    labels = rng.integers(0, classes, truths)
    truth = DetectionTruth(
        tuple(map(str, range(images))),
        tuple(map(str, range(classes))),
        image,
        boxes,
        labels,
        rng.random(truths) < 0.05,
        np.zeros(truths, bool),
        sides.prod(axis=1),
        (None,) * truths,
    )
    source = (rng.random(detections) ** 3 * truths).astype(int)
    shifted = boxes[source] + rng.normal(0, 0.12, (detections, 4)) * np.tile(sides[source], (1, 2))
    shifted[:, 2:] = np.maximum(shifted[:, 2:], shifted[:, :2] + 1)
    found = Detections(
        image[source],
        shifted,
        rng.random(detections).round(2),
        np.where(rng.random(detections) < 0.8, labels[source], rng.integers(0, classes, detections)),
    )
    return truth, found


def one_truth(**more) -> DetectionTruth:
    return DetectionTruth.of(
        [("a.png", Instances([[0, 0, 40, 40]], [0], **more)), ("b.png", Instances(np.zeros((0, 4)), []))],
        ["cat", "dog"],
    )


def test_ties_follow_the_number_of_the_image_not_its_position_in_the_file():
    rng = np.random.default_rng(3)
    truth, found = crowded_set(rng, images=30, truths=200, detections=2000)
    found = replace(found, scores=found.scores.round(1))
    expected = twelve(coco_evaluation(truth, found, "bbox"))
    shuffle = rng.permutation(30)  # place in the file → number
    place = np.argsort(shuffle)
    moved = replace(truth, ids=tuple(str(10 * n) for n in shuffle), image=place[truth.image])
    equal(box_numbers(moved, replace(found, image=place[found.image])), expected)
    named = replace(moved, ids=tuple(f"image {n}" for n in shuffle))
    by_place = box_numbers(named, replace(found, image=place[found.image]))
    assert by_place["AP"] != pytest.approx(expected["AP"], abs=1e-9)


def test_reader_and_metric_reproduce_cocoapis_numbers(coco_reference):
    _, found = coco_reference["bbox"]
    dataset = read_dataset(f"coco:{REFERENCE / 'instances_val2014_100.json'}")
    truth = DetectionTruth.of(
        ((name, dataset.truth(i).instances) for i, name in enumerate(dataset.ids)), dataset.classes
    )
    numbers = np.argsort([int(name) for name in dataset.ids])
    boxes = box_numbers(truth, replace(found, image=numbers[found.image]))
    assert boxes["AP"] == pytest.approx(0.5045806987249628, abs=1e-9)
    found = coco_reference["segm"][1]
    masks = mask_numbers(truth, replace(found, image=numbers[found.image]))
    assert masks["AP"] == pytest.approx(0.3195452758576433, abs=1e-9)


def test_detections_on_an_ignored_object_do_not_count():
    said = {"a.png": Prediction([[0, 0, 40, 40]], [0.9], [0]), "b.png": Prediction()}
    scores = box_numbers(one_truth(ignore=[True]), said)
    assert all(np.isnan(value) for value in scores.values())


def test_class_without_truth_is_nan_and_left_out_of_the_mean():
    said = {"a.png": Prediction([[0, 0, 40, 40], [1, 1, 9, 9]], [0.9, 0.8], [0, 1]), "b.png": Prediction()}
    scores = box_numbers(one_truth(), said)
    assert scores["AP"] == pytest.approx(1)
    assert tuple(scores) == NUMBERS


def test_truth_can_be_sent_to_another_process():
    truth = one_truth()
    said = {"a.png": Prediction(), "b.png": Prediction()}
    box_numbers(truth, said)
    copy = pickle.loads(pickle.dumps(truth))
    assert copy.ids == truth.ids
    assert box_numbers(copy, said)["AP"] == 0.0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"a.png": Prediction(), "b.png": Prediction(), "c.jpg": Prediction()}, "'c.jpg'"),
        ({"a.png": Prediction()}, "No prediction for 1 of 2 images: 'b.png'"),
        (
            {"a.png": Prediction([[0, 0, 1, 1]], [0.5], [2]), "b.png": Prediction()},
            "'a.png', detection 0: label 2",
        ),
        ({"a.png": Prediction([[0, 0, 1, 1]], [0.5], [-1]), "b.png": Prediction()}, "label -1"),
    ],
)
def test_invalid_predictions_are_refused(said, words):
    with pytest.raises(InvalidPrediction, match=words):
        box_numbers(one_truth(), said)


def flat(image=(0, 1), boxes=((0, 0, 1, 1), (0, 0, 2, 2)), scores=(0.5, 0.5), labels=(0, 0), masks=()):
    return Detections(
        np.array(image), np.array(boxes, float), np.array(scores, float), np.array(labels), masks
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (flat(scores=(0.5, np.nan)), "'b.png', detection 0: score nan"),
        (flat(scores=(1.5, 0.5)), r"'a.png', detection 0: score 1.5; scores must lie in \[0, 1\]"),
        (flat(scores=(-0.1, 2.0)), "2 such detections"),
        (flat(boxes=((0, 0, 1, 1), (5, 0, 2, 2))), r"'b.png', detection 0: box \[5.0, 0.0, 2.0, 2.0\]"),
        (flat(boxes=((0, 0, np.inf, 1), (5, 0, 7, 2))), "'a.png', detection 0: box"),
        (flat(image=(1, 1), scores=(0.5, 7)), "'b.png', detection 1: score 7.0"),
        (flat(image=(0, 7)), "image number 7"),
        (flat(labels=(0,)), "2 boxes, but labels has shape"),
        (flat(boxes=((0, 0, 1, 1, 0.5), (0, 0, 2, 2, 0.5))), r"shape \(2, 5\); they must be n×4"),
        (flat(masks=(None,)), "1 masks"),
    ],
)
def test_invalid_flat_detections_are_refused(found, words):
    with pytest.raises(InvalidPrediction, match=words):
        box_numbers(one_truth(), found)


def test_missing_masks_and_masks_of_another_size_are_refused():
    mask = RLE.from_mask(np.ones((40, 40), bool))
    with pytest.raises(InvalidTruth, match=r"'a\.png': an object has no mask"):
        mask_numbers(one_truth(), {"a.png": Prediction(), "b.png": Prediction()})
    with pytest.raises(InvalidPrediction, match=r"'a\.png': a detection has no mask"):
        mask_numbers(
            one_truth(masks=(mask,)), {"a.png": Prediction([[0, 0, 9, 9]], [1], [0]), "b.png": Prediction()}
        )
    small = Prediction([[0, 0, 9, 9]], [1], [0], masks=(RLE.from_mask(np.ones((9, 9), bool)),))
    with pytest.raises(InvalidPrediction, match=r"size \(9, 9\)"):
        mask_numbers(one_truth(masks=(mask,)), {"a.png": small, "b.png": Prediction()})


def test_invalid_truths_are_refused():
    with pytest.raises(InvalidTruth, match="'a' is in the truth twice"):
        DetectionTruth.of([("a", Instances(np.zeros((0, 4)), []))] * 2, ["cat"])
    with pytest.raises(InvalidTruth, match="label 3, but there are 1 classes"):
        DetectionTruth.of([("a", Instances([[0, 0, 1, 1]], [3]))], ["cat"])
