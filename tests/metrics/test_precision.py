"""Weighted average precision: ones give the scores, twos equal copies, as pycocotools confirms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from helpers.coco_oracle import coco_evaluation, twelve
from helpers.crowds import crowded_set, repeated
from helpers.object_sets import scenes
from stormproof.core.sample import Instances
from stormproof.metrics.coco import box_numbers, coco_scored, mask_numbers
from stormproof.metrics.cocomatching import match_boxes, match_masks
from stormproof.metrics.inputs import Objects
from stormproof.metrics.records import Detections, DetectionTruth


def equal_scores(one, other, within=0.0):
    """Compare the numbers and values by class under the first row of weights."""
    for mine, theirs in ((one.numbers, other.numbers), (one.per_class, other.per_class)):
        for name in mine:
            assert mine[name][0] == pytest.approx(theirs[name][0], abs=within, rel=0, nan_ok=True), name


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(scenes())
def test_weights_of_one_give_the_scores_beside_any_other_rows(scene):
    truth, found = scene
    rows = np.ones((11, len(truth.ids)))  # more than are added up side by side
    rows[::2] = np.arange(len(truth.ids))
    for match, numbers in ((match_boxes, box_numbers), (match_masks, mask_numbers)):
        scored = coco_scored(match(truth, found), rows)
        for name, value in numbers(truth, found).items():
            assert scored.numbers[name][1::2] == pytest.approx(np.full(5, value), abs=1e-12, nan_ok=True), (
                name
            )
        assert np.array_equal(scored.per_class["AP"][1], scored.per_class["AP"][9], equal_nan=True)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(scenes())
def test_the_score_itself_does_not_depend_on_its_replicates(scene):
    """Scores with and without intervals are equal to the last bit."""
    truth, found = scene
    images = len(truth.ids)
    drawn = np.random.default_rng(len(found)).poisson(1, (40, images)).astype(np.uint8)
    weights = np.concatenate([np.ones((1, images), np.uint8), drawn])
    cell = Objects(truth, found, person=0, scored_masks=True)
    cell = Objects(truth, found, person=0, scored_masks=True, clean=cell.people)
    equal_scores(cell.scored(weights[:1]), cell.scored(weights))


@pytest.mark.parametrize("seed", range(4))
def test_the_score_of_a_dense_set_does_not_depend_on_its_replicates(seed):
    rng = np.random.default_rng(seed)
    truth, found = crowded_set(37, rng)
    weights = np.concatenate([np.ones((1, 37)), rng.poisson(1, (19, 37))]).astype(np.uint8)
    cell = Objects(truth, found)
    equal_scores(cell.scored(weights[:1]), cell.scored(weights))


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_equals_copies_of_an_image(seed):
    rng = np.random.default_rng(seed)
    truth, found = crowded_set(12, rng)
    matches = match_boxes(truth, found)
    doubled = np.ones(12, int)
    doubled[seed] = 2
    for times in (doubled, rng.poisson(1, 12)):
        expected = twelve(coco_evaluation(*repeated(truth, found, times), "bbox"))
        numbers = coco_scored(matches, times[None].astype(float)).scores
        for name, value in expected.items():
            assert numbers[name] == pytest.approx(value, abs=1e-12), (name, times)


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_equals_copies_of_an_image_in_every_metric(seed):
    """Metrics of boxes and people: VOC AP, object errors, flaws and detection rates equal those of copies."""
    rng = np.random.default_rng(seed)
    truth, found = crowded_set(12, rng)
    times = rng.poisson(1.5, 12)
    cell = Objects(truth, found, person=0)
    cell = Objects(truth, found, person=0, clean=cell.people)
    wide_truth, wide_found = repeated(truth, found, times)
    wide = Objects(wide_truth, wide_found, person=0)
    wide = Objects(wide_truth, wide_found, person=0, clean=wide.people)
    once = np.ones((1, len(wide_truth.ids)))
    weighed, copied = cell.scored(times[None].astype(float)), wide.scored(once)
    again = cell.repeated(times).scored(once)
    assert {"AP", "AR1", "VOC07 AP50", "E", "flaws PMD", "images MD", "ADR", "FPPI", "dAP Loc"} <= {
        *weighed.numbers
    }
    equal_scores(weighed, copied, 1e-12)
    equal_scores(again, copied, 1e-12)


@settings(max_examples=40, deadline=None)
@given(scenes())
def test_scoring_some_images_equals_weights_of_zero_and_one(scene):
    truth, found = scene
    cell = Objects(truth, found)
    chosen = np.arange(0, len(truth.ids), 2)
    mask = np.isin(np.arange(len(truth.ids)), chosen).astype(float)
    equal_scores(cell.of_images(chosen).scored(np.ones((1, len(chosen)))), cell.scored(mask[None]), 1e-12)


def test_images_of_weight_zero_neither_set_nor_hide_a_threshold():
    """Of two boxes with equal scores, the second is in an image of weight 0; so is the last box of all."""
    objects = Instances([[0, 0, 20, 20]], [0])
    truth = DetectionTruth.of([("a", objects), ("b", objects)], ["thing"])
    right, aside = [0, 0, 20, 20], [30, 30, 40, 40]
    found = Detections(
        np.array([0, 1, 1]), np.array([right, aside, right], float), np.array([0.8, 0.8, 0.6]),
        np.zeros(3, np.int64),
    )  # fmt: skip
    numbers = Objects(truth, found).scored(np.array([[1.0, 0.0]])).numbers
    alone = Objects(truth, found).of_images(np.array([0])).scored(np.ones((1, 1))).numbers
    for name in ("oLRP", "oLRP FN", "safe threshold", "safe recall"):
        assert numbers[name] == pytest.approx(alone[name]), name
    assert numbers["oLRP"][0] == 0
    assert numbers["safe threshold"][0] == 0.8
