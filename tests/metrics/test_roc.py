"""Detection-rate curves, fixed sensitivities and worst images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from helpers.object_sets import scenes
from stormproof.core.boxes import iou, shared
from stormproof.core.errors import InvalidOption, InvalidTruth
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import metrics_of
from stormproof.metrics.records import Detections, DetectionTruth, select
from stormproof.metrics.roc import REFERENCE_FPPI, People, roc, worst_people


def of(truth, answers):
    return People(truth, Detections.of(answers, truth))


def rates(people, clean):
    once = np.ones((1, len(people.truth.ids)))
    found, fppi = people.rates(once, clean.sensitivities(once))
    return found[0], fppi[0]


PERSON = [0.0, 0.0, 10.0, 20.0]
ELSEWHERE = [50.0, 50.0, 60.0, 70.0]


def people(count, **more):
    return DetectionTruth.of(
        [(f"{i:03}", Instances([PERSON], [0], **more)) for i in range(count)], ["person"]
    )


def answers(hits, false=()):
    """Image i is hit with score hits[i] (None: not at all); (i, score) in `false` are wrong detections."""
    said = {}
    for i, score in enumerate(hits):
        rows = ([(PERSON, score)] if score is not None else []) + [(ELSEWHERE, s) for k, s in false if k == i]
        said[f"{i:03}"] = Prediction(
            [box for box, _ in rows] or np.zeros((0, 4)), [s for _, s in rows], [0] * len(rows)
        )
    return said


def slow_curve(truth, found, level):
    """Detections above each distinct score, matched from scratch."""
    counted = [t for t in range(len(truth)) if not truth.crowd[t]]
    points = []
    for threshold in sorted(set(found.scores.tolist()), reverse=True):
        taken, hits, errors = set(), 0, 0
        for i in [i for i in np.argsort(-found.scores, kind="stable") if found.scores[i] >= threshold]:
            width, height = found.boxes[i, 2:] - found.boxes[i, :2]
            near = [
                t
                for t in range(len(truth))
                if truth.image[t] == found.image[i] and truth.labels[t] == found.labels[i]
            ]
            free = [
                (iou(found.boxes[i : i + 1], truth.boxes[t : t + 1])[0, 0], -t)
                for t in near
                if t in counted and t not in taken
            ]
            best = max(free, default=(0, 0))
            if best[0] >= level:
                taken.add(-best[1])
                hits += 1
            elif not any(
                (width * height > 0) and shared(found.boxes[i], truth.boxes[t]) >= level * width * height
                for t in near
                if truth.crowd[t]
            ):
                errors += 1
        points.append((threshold, hits / len(counted), errors / len(truth.ids)))
    return points


@settings(max_examples=80, deadline=None)
@given(scenes())
def test_curve_equals_matching_at_every_threshold(scene):
    truth, found = scene
    if truth.crowd.all():
        with pytest.raises(InvalidTruth, match="no object to find"):
            roc(truth, found)
        return
    curve = roc(truth, found, iou=0.3)
    points = np.stack([curve.thresholds, curve.detection_rate, curve.fppi], axis=1)
    assert points == pytest.approx(np.reshape(slow_curve(truth, found, 0.3), (-1, 3)))


def test_the_nine_reference_rates_have_equal_ratios():
    assert len(REFERENCE_FPPI) == 9
    assert REFERENCE_FPPI[0] == 1e-3
    assert REFERENCE_FPPI[-1] == 1e-1
    assert np.diff(np.log10(REFERENCE_FPPI)) == pytest.approx(0.25)


def test_adr_steps_down_to_the_last_point_within_the_rate():
    # 100 images; false positives at 0.8 (1st), 0.5 (2nd to 10th together), 0.2 (11th): FPPI .01, .10, .11
    truth = people(100)
    false = [(0, 0.8), *[(i, 0.5) for i in range(1, 10)], (20, 0.2)]
    clean = answers([0.9] * 40 + [0.6] * 30 + [0.3] * 20 + [0.1] * 10, false)
    # Below one in a hundred images only the forty strongest; from there on seventy; at one in ten ninety.
    expected = [0.4] * 4 + [0.7] * 4 + [0.9]
    found, fppi = rates(of(truth, clean), of(truth, clean))
    assert found[0].tolist() == pytest.approx(expected)
    assert found.mean() == pytest.approx(np.mean(expected))
    assert fppi[2].tolist() == pytest.approx([0.0] * 4 + [0.01] * 4 + [0.1])


@pytest.mark.parametrize(("height", "levels"), [(7, 1), (13, 4), (15, 5)])
def test_rates_are_computed_at_five_overlaps(height, levels):
    """A box with 7 of the person's 20 pixels has an IoU of 0.35, so it counts only at 0.3."""
    truth = people(10)
    part = Prediction([[0, 0, 10, height]], [0.9], [0])
    found, _ = rates(of(truth, dict.fromkeys(truth.ids, part)), of(truth, answers([0.9] * 10)))
    assert found.mean(axis=1).tolist() == [1] * levels + [0] * (5 - levels)


def test_sensitivities_stay_fixed_while_rates_and_false_positives_move():
    truth = people(100)
    clean = of(truth, answers([0.9] * 100, [(0, 0.8)]))
    worse = of(truth, answers([0.9] * 30 + [0.7] * 70, [(i, 0.95) for i in range(50)]))
    found, fppi = rates(worse, clean)
    assert found[0, 0] == pytest.approx(0.3)  # at 10⁻³ the threshold is .9
    assert fppi[0].tolist() == pytest.approx([0.5] * 9)  # far beyond every reference


def test_a_rate_that_no_threshold_reaches_has_no_sensitivity():
    truth = people(10)
    clean = answers([0.5] * 10, [(0, 0.9)])  # the strongest detection is false: FPPI 0.1 at once
    thresholds = of(truth, clean).sensitivities(np.ones((1, 10)))[0]
    assert np.isinf(thresholds[:, :-1]).all()
    assert (thresholds[:, -1] == 0.5).all()


def test_detections_in_ignored_regions_are_dropped():
    objects = Instances([PERSON, [40, 40, 100, 100]], [0, 0], ignore=[False, True])
    truth = DetectionTruth.of([("a", objects)], ["person"])
    curve = roc(truth, {"a": Prediction([ELSEWHERE, PERSON], [0.9, 0.8], [0, 0])})
    assert curve.thresholds.tolist() == [0.8]  # the other is not a point of the curve
    assert curve.fppi.tolist() == [0]
    assert curve.detection_rate.tolist() == [1]


def test_detections_in_ignored_regions_set_no_sensitivity():
    objects = Instances([PERSON, [40, 40, 100, 100]], [0, 0], ignore=[False, True])
    truth = DetectionTruth.of([("a", objects)], ["person"])
    clean = of(truth, {"a": Prediction([PERSON, ELSEWHERE], [0.9, 0.5], [0, 0])})
    assert (clean.sensitivities(np.ones((1, 1))) == 0.9).all()
    found, _ = rates(of(truth, {"a": Prediction([PERSON], [0.7], [0])}), clean)
    assert found.max() == 0


def test_worst_images_are_ranked_by_the_rise_of_the_required_rate():
    truth = people(100)
    false = [(i, 0.5 - i / 1000) for i in range(90)]
    clean = answers([0.9] * 100, false)
    after = [0.9] * 100
    after[7], after[3], after[5] = 0.0, None, 0.495
    worst = worst_people(of(truth, clean), of(truth, answers(after, false)), count=3)
    assert [row.id for row in worst] == ["003", "007", "005"]
    assert math.isinf(worst[0].orders)
    assert worst[1].before == 0.01  # below one false positive in the set nothing can be told apart
    assert worst[1].after == pytest.approx(0.9)
    assert worst[1].orders == pytest.approx(math.log10(90))
    assert worst[2].after == pytest.approx(0.06)
    with pytest.raises(InvalidOption, match="count is 0"):
        worst_people(of(truth, clean), of(truth, clean), count=0)


def test_worst_images_need_the_same_people():
    """A condition that moves labels may move a person out of the image."""
    truth = people(3)
    rest = select(truth, np.array([0, 2]))
    with pytest.raises(InvalidOption, match="it has 2 people, the clean images have 3"):
        worst_people(of(truth, answers([0.9] * 3)), of(rest, answers([0.9] * 3)))


def test_a_replicate_fixes_its_sensitivities_on_its_own_images():
    """Half of the images are scored as if there were no others, with rates and thresholds of their own."""
    truth = people(40)
    false = [(i, 0.95 - i / 50) for i in range(0, 40, 3)]
    clean = of(truth, answers([0.9 - i / 60 for i in range(40)], false))
    worse = of(truth, answers([0.9 - i / 60 if i % 4 else None for i in range(40)], false[::2]))
    half = np.arange(40) % 3 != 1
    weights = np.stack([np.ones(40), half]).astype(np.uint8)
    found, fppi = worse.rates(weights, clean.sensitivities(weights))
    chosen = np.flatnonzero(half)
    alone, false_alone = rates(worse.of_images(chosen), clean.of_images(chosen))
    assert found[1].tolist() == alone.tolist()
    assert fppi[1].tolist() == false_alone.tolist()
    assert found[1, 0, -1] == pytest.approx(2 / 27)  # of the people of that half; two are above its threshold
    assert found[1].mean() != found[0].mean()
    cell = Objects(worse.truth, worse.found, person=0, clean=clean)
    assert people_metric().score(cell, weights).numbers["ADR"].tolist() == found.mean(axis=(1, 2)).tolist()


def people_metric():
    return next(each for each in metrics_of("people") if "ADR" in {m.name for m in each.measures})


def test_detections_in_images_of_weight_zero_set_no_sensitivity():
    truth = people(3)
    clean = of(truth, answers([0.9, 0.8, 0.2]))
    weights = np.array([[1, 1, 0]])
    assert clean.sensitivities(weights).min() == 0.8
    alone = clean.of_images(np.array([0, 1]))
    assert np.array_equal(clean.sensitivities(weights), alone.sensitivities(np.ones((1, 2))))
