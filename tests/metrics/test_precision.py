"""Weighted average precision: ones are Scores, twos are copies, and pycocotools is the judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from metrics.crowds import crowded_set, repeated
from metrics.oracle import coco_evaluation, twelve
from metrics.scenes import scenes
from stormproof.metrics.coco import box_scores, mask_scores
from stormproof.metrics.cocomatching import match_boxes, match_masks
from stormproof.results.precision import coco_numbers, curves

NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl")


def weighted(matches, weights):
    numbers, by_class = coco_numbers(curves(matches), np.atleast_2d(weights))
    return {name: values[0] for name, values in numbers.items()}, by_class[0]


@settings(max_examples=150, deadline=None)
@given(scenes())
def test_weights_of_one_give_the_scores(scene):
    truth, found = scene
    ones = np.ones(len(truth.ids))
    for match, scores in ((match_boxes, box_scores), (match_masks, mask_scores)):
        numbers, by_class = weighted(match(truth, found), ones)
        expected = scores(truth, found)
        for name in NAMES:
            assert numbers[name] == pytest.approx(getattr(expected, name), abs=1e-12, nan_ok=True), name
        per_class = [expected.per_class[name]["AP"] for name in truth.classes]
        assert by_class == pytest.approx(per_class, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_weight_is_a_number_of_copies(seed):
    rng = np.random.default_rng(seed)
    truth, found = crowded_set(12, rng)
    matches = match_boxes(truth, found)
    doubled = np.ones(12, int)
    doubled[seed] = 2
    for times in (doubled, rng.poisson(1, 12)):
        expected = twelve(coco_evaluation(*repeated(truth, found, times), "bbox"))
        numbers, _ = weighted(matches, times)
        for name in NAMES:
            assert numbers[name] == pytest.approx(expected[name], abs=1e-12), (name, times)


def test_matches_of_some_images_are_weights_of_zero_and_one():
    truth, found = crowded_set(10, np.random.default_rng(9))
    matches = match_boxes(truth, found)
    chosen = np.array([1, 4, 7])
    mask = np.isin(np.arange(10), chosen).astype(int)
    few, by_class = weighted(matches.of_images(chosen), np.ones(3))
    many, their_classes = weighted(matches, mask)
    assert few == pytest.approx(many)
    assert by_class == pytest.approx(their_classes, nan_ok=True)
