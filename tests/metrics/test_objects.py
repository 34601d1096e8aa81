"""Object errors and flaw symptoms, case by case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stormproof.core.boxes import enclosing_overlap, iou, shared, union
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.object_error import ClassMatching, MatchingRule, Symptom, object_errors
from stormproof.metrics.records import DetectionTruth

BOX, FAR = [0, 0, 10, 10], [50, 50, 60, 60]
SHIFTED = [0, 0, 10, 6]  # IoU 0.6 with BOX
LOOSE = [0, 0, 10, 4]  # IoU 0.4


def judge(truths, said, *, rule=None, **more):
    truth = DetectionTruth.of([("a", Instances(truths, [0] * len(truths), **more))], ["cat", "dog"])
    return object_errors(truth, {"a": said}, rule=rule)


@pytest.mark.parametrize(
    ("box", "label", "error", "symptom"),
    [
        (BOX, 0, 0.0, Symptom.CORRECT),
        (SHIFTED, 0, 0.4, Symptom.CORRECT),
        (SHIFTED, 1, 0.4, Symptom.CBWO),
        (LOOSE, 0, 0.6, Symptom.WBCO),
        (LOOSE, 1, 0.6, Symptom.WBWO),
        ([0, 0, 10, 5], 0, 0.5, Symptom.WBCO),  # correct only if the error is below one half
        (FAR, 0, 1.0, Symptom.MD),
    ],
)
def test_judges_each_symptom(box, label, error, symptom):
    judged = judge([BOX], Prediction([box], [0.9], [label]))
    assert judged.error == pytest.approx(error)
    assert judged.symptoms == (symptom,)


def test_distinguishes_partly_from_wholly_missed_images():
    partly = judge([BOX, FAR], Prediction([BOX], [0.9], [0]))
    assert partly.symptoms == (Symptom.CORRECT, Symptom.PMD)
    assert partly.error == 0.5
    wholly = judge([BOX, FAR], Prediction())
    assert wholly.symptoms == (Symptom.MD, Symptom.MD)


def test_predictions_of_the_objects_class_are_preferred():
    said = Prediction([LOOSE, BOX], [0.99, 0.41], [0, 1])
    assert judge([BOX], said).symptoms == (Symptom.WBCO,)
    assert judge([BOX], said, rule=MatchingRule(classes=ClassMatching.ANY)).symptoms == (Symptom.CBWO,)
    alone = Prediction([BOX], [0.9], [1])
    assert judge([BOX], alone).symptoms == (Symptom.CBWO,)
    assert judge([BOX], alone, rule=MatchingRule(classes=ClassMatching.OWN)).symptoms == (Symptom.MD,)


def test_predictions_below_the_minimum_score_are_ignored():
    said = Prediction([BOX], [0.39], [0])
    assert judge([BOX], said).symptoms == (Symptom.MD,)
    assert judge([BOX], said, rule=MatchingRule(min_score=0.39)).symptoms == (Symptom.CORRECT,)


def test_a_box_of_another_class_must_overlap_enough():
    touching = [0, 0, 10, 0.9]  # IoU 0.09
    assert judge([BOX], Prediction([touching], [0.9], [1])).symptoms == (Symptom.MD,)
    assert judge([BOX], Prediction([touching], [0.9], [0])).symptoms == (Symptom.WBCO,)
    lax = MatchingRule(min_overlap=0)
    assert judge([BOX], Prediction([touching], [0.9], [1]), rule=lax).symptoms == (Symptom.WBWO,)


def test_options_of_a_rule_out_of_range_are_refused():
    with pytest.raises(InvalidOption, match=r"min_score is 1\.5"):
        MatchingRule(min_score=1.5)


def test_shares_of_objects_and_of_images_by_hand():
    truth = DetectionTruth.of(
        [("a", Instances([BOX, FAR], [0, 0])), ("b", Instances([BOX], [1])), ("c", Instances([BOX], [0]))],
        ["cat", "dog"],
    )
    said = {"a": Prediction([BOX], [0.9], [0]), "b": Prediction(), "c": Prediction([LOOSE], [0.9], [0])}
    judged = object_errors(truth, said)
    # By hand: a is right and misses one of two, b misses all of one, c has a loose box of the right class.
    found = {name: values[0] for name, values in judged.scored(np.ones((1, 3))).numbers.items()}
    shares = {Symptom.CBWO: 0, Symptom.WBCO: 0.25, Symptom.WBWO: 0, Symptom.PMD: 0.25, Symptom.MD: 0.25}
    assert {flaw: found[f"flaws {flaw}"] for flaw in shares} == shares
    assert found["images PMD"] == found["images MD"] == pytest.approx(1 / 3)
    assert judged.error == pytest.approx((0.5 + 1 + 0.6) / 3)


def test_at_equal_overlap_the_objects_class_is_preferred():
    said = Prediction([BOX, BOX], [0.9, 0.5], [1, 0])
    assert judge([BOX], said, rule=MatchingRule(classes=ClassMatching.ANY)).symptoms == (Symptom.CORRECT,)


def test_a_prediction_may_match_twice_unless_one_to_one():
    twins = [BOX, [0, 0, 10, 9]]
    said = Prediction([BOX], [0.9], [0])
    assert judge(twins, said).errors.tolist() == pytest.approx([0, 0.1])
    assert judge(twins, said, rule=MatchingRule(one_to_one=True)).errors.tolist() == [0, 1]


def test_one_to_one_the_best_pair_comes_first():
    said = Prediction([BOX, LOOSE], [0.9, 0.9], [0, 0])
    rule = MatchingRule(one_to_one=True)
    assert judge([[0, 0, 10, 9], BOX], said, rule=rule).errors.tolist() == pytest.approx([1 - 4 / 9, 0])


def test_crowds_and_ignored_truths_do_not_count():
    judged = judge([BOX, FAR], Prediction([BOX], [0.9], [0]), crowd=[False, True])
    assert judged.error == 0
    assert len(judged.errors) == 1


def test_mean_is_over_images_not_objects_and_skips_empty_images():
    nothing = Instances(np.zeros((0, 4)), [])
    truth = DetectionTruth.of(
        [("a", Instances([BOX] * 3, [0, 1, 1])), ("none", nothing), ("b", Instances([FAR], [1]))],
        ["cat", "dog"],
    )
    judged = object_errors(
        truth, {"a": Prediction([BOX], [1], [0]), "none": Prediction([BOX], [1], [0]), "b": Prediction()}
    )
    assert judged.per_image.tolist() == pytest.approx([0.0, math.nan, 1.0], nan_ok=True)
    assert judged.error == 0.5
    scored = judged.scored(np.array([[1, 1, 1], [2, 0, 1]]))
    assert scored.per_class["E"][0].tolist() == [0.0, pytest.approx(1 / 3)]
    assert scored.numbers["E"].tolist() == [0.5, pytest.approx(1 / 3)]  # a counts twice
    assert scored.numbers["flaws CBWO"].tolist() == [0.5, pytest.approx(4 / 7)]
    assert scored.numbers["images MD"].tolist() == [0.5, pytest.approx(1 / 3)]


def test_printed_formula_measures_against_the_enclosing_box():
    judged = judge(
        [[0, 0, 2, 2]], Prediction([[1, 1, 3, 3]], [1], [0]), rule=MatchingRule(overlap=enclosing_overlap)
    )
    assert judged.error == pytest.approx(1 - 1 / 9)


def test_overlaps_by_hand():
    a, b = np.array([[0.0, 0, 4, 4]]), np.array([[2.0, 2, 6, 6], [8, 8, 9, 9], [1, 1, 1, 1]])
    assert iou(a, b).tolist() == [[pytest.approx(4 / 28), 0, 0]]
    assert [(shared(a[0], box), union(a[0], box)) for box in b] == [(4, 28), (0, 17), (0, 16)]
    assert enclosing_overlap(a, b).tolist() == [[pytest.approx(4 / 36), 0, 0]]
    assert iou(np.zeros((1, 4)), np.zeros((1, 4))).tolist() == [[0]]
