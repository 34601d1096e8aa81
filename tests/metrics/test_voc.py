"""VOC AP50 equals a slow reading of the devkit's rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from helpers.object_sets import scenes
from stormproof.core.boxes import iou
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.inputs import Objects
from stormproof.metrics.records import DetectionTruth
from stormproof.metrics.voc import voc_numbers


def devkit(truth, found, k, sampled):
    """One class, one detection at a time, as the devkit's text describes it."""
    taken, hits, false = set(), [], []
    chosen = [i for i in np.argsort(-found.scores, kind="stable") if found.labels[i] == k]
    for i in chosen:
        rivals = [t for t in range(len(truth)) if truth.image[t] == found.image[i] and truth.labels[t] == k]
        overlaps = [iou(found.boxes[i : i + 1], truth.boxes[t : t + 1])[0, 0] for t in rivals]
        best = int(np.argmax(overlaps)) if rivals else None
        if best is None or overlaps[best] < 0.5:
            hits.append(0)
            false.append(1)
        elif truth.crowd[rivals[best]] or truth.ignore[rivals[best]]:
            continue
        else:
            new = rivals[best] not in taken
            taken.add(rivals[best])
            hits.append(int(new))
            false.append(int(not new))
    positives = sum(1 for t in range(len(truth)) if truth.labels[t] == k and not truth.crowd[t])
    if not positives:
        return np.nan
    recall = np.cumsum(hits) / positives
    precision = np.cumsum(hits) / np.maximum(np.cumsum(hits) + np.cumsum(false), 1)
    if sampled:
        return sum(max(precision[recall >= level], default=0.0) for level in np.linspace(0, 1, 11)) / 11
    area, before = 0.0, 0.0
    for i, level in enumerate(recall):
        area += (level - before) * max(precision[i:])
        before = level
    return area


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_equals_the_devkit_rule(scene):
    truth, found = scene
    scored = Objects(truth, found).scored(np.ones((1, len(truth.ids))))
    for name, sampled in (("VOC07 AP50", True), ("VOC10 AP50", False)):
        expected = [devkit(truth, found, k, sampled) for k in range(len(truth.classes))]
        assert scored.parts[name][0].tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
        present = [value for value in expected if not np.isnan(value)]
        mean = np.mean(present) if present else np.nan
        assert scored.numbers[name][0] == pytest.approx(mean, abs=1e-12, nan_ok=True)


def test_difficult_objects_are_neither_counted_nor_penalised():
    objects = Instances([[0, 0, 10, 10], [50, 0, 60, 10]], [0, 0], ignore=[False, True])
    truth = DetectionTruth.of([("a", objects)], ["cat"])
    said = Prediction([[50, 0, 60, 10], [50, 0, 60, 10], [0, 0, 10, 10]], [0.9, 0.8, 0.7], [0, 0, 0])
    assert voc_numbers(truth, {"a": said})["VOC10 AP50"] == 1.0


def test_a_second_hit_is_false_even_if_another_truth_is_free():
    # Both detections overlap the first truth most; VOC does not let the second look further.
    truth = DetectionTruth.of([("a", Instances([[0, 0, 10, 10], [3, 0, 13, 10]], [0, 0]))], ["cat"])
    said = Prediction([[0, 0, 10, 10], [1, 0, 11, 10]], [0.9, 0.8], [0, 0])
    assert voc_numbers(truth, {"a": said})["VOC10 AP50"] == 0.5


def test_both_rules_by_hand_on_a_known_curve():
    """Hits at ranks 1, 3 and 4 of four objects: precision 1, 2/3, 3/4 at recall 1/4, 2/4, 3/4."""
    boxes = [[20.0 * k, 0, 20 * k + 9, 9] for k in range(4)]
    truth = DetectionTruth.of([("a", Instances(boxes, [0] * 4))], ["cat"])
    said = Prediction([boxes[0], [900, 0, 909, 9], boxes[1], boxes[2]], [0.9, 0.8, 0.7, 0.6], [0] * 4)
    found = voc_numbers(truth, {"a": said})
    assert found["VOC10 AP50"] == pytest.approx(0.25 + 0.5 * 0.75)
    assert found["VOC07 AP50"] == pytest.approx((3 * 1 + 5 * 0.75) / 11)
