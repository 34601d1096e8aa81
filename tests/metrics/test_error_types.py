"""Error types against tidecv, and by hand."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import numpy as np
import pytest

from helpers.coco_oracle import compressed, xywh
from helpers.object_sets import mask_of
from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.sample import Instances, Prediction
from stormproof.metrics.error_types import SPECIAL, TYPES, box_error_types, mask_error_types
from stormproof.metrics.metric import measures
from stormproof.metrics.records import Detections, DetectionTruth

SIDE = 64
# tidecv 1.0.1 on `street(3)`, in points of AP50
TIDECV = {
    "box": {
        "Cls": 0.1916, "Loc": 37.2138, "Both": 3.4612, "Dupe": 0.2061, "Bkg": 0.8848, "Miss": 3.5496,
        "FP": 24.0122, "FN": 19.7704,
    },
    "mask": {
        "Cls": 0.1916, "Loc": 35.9585, "Both": 3.1019, "Dupe": 0.1786, "Bkg": 1.0243, "Miss": 3.5004,
        "FP": 23.9946, "FN": 18.4289,
    },
}  # fmt: skip


def street(seed: int, images: int = 12, classes: int = 3, most: int = 9):
    """Images with a few objects and many detections near them: every type occurs, no two scores are equal."""
    rng = np.random.default_rng(seed)
    owners = np.sort(rng.integers(0, images - 1, 4 * images))  # the last image has no object
    corner = rng.uniform(0, SIDE - 24, (len(owners), 2)).round()
    boxes = np.concatenate([corner, corner + rng.integers(6, 24, (len(owners), 2))], axis=1)
    labels = rng.integers(0, classes, len(owners))
    crowd = rng.random(len(owners)) < 0.1
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    masks = tuple(mask_of(box, SIDE) for box in boxes)
    truth = DetectionTruth(
        tuple(map(str, range(images))), tuple("wxyz"[:classes]), owners, boxes, labels, crowd,
        np.zeros(len(owners), bool), area, masks,
    )  # fmt: skip
    near = rng.integers(0, len(owners), most * images)
    said = (boxes[near] + rng.normal(0, 4, (len(near), 4))).clip(0, SIDE).round()
    said[:, 2:] = np.maximum(said[:, 2:], said[:, :2] + 2)
    image = np.where(rng.random(len(near)) < 0.85, owners[near], rng.integers(0, images, len(near)))
    order = np.argsort(image, kind="stable")
    names = np.where(rng.random(len(near)) < 0.7, labels[near], rng.integers(0, classes, len(near)))
    scores = rng.permutation(np.arange(1, len(near) + 1)) / (len(near) + 1)
    masks = tuple(mask_of(box, SIDE) for box in said[order])
    return truth, Detections(image[order], said[order], scores[order], names[order], masks)


def tidecv_errors(truth: DetectionTruth, found: Detections, kind: str):
    """tidecv's gains in points and counts of errors that no crowd excuses."""
    tidecv = pytest.importorskip("tidecv")
    gt, said = tidecv.Data("truth"), tidecv.Data("found")
    for i in range(len(truth.ids)):
        gt.add_image(i, str(i))
    for i in range(len(truth)):
        add = gt.add_ignore_region if truth.excused[i] else gt.add_ground_truth
        add(int(truth.image[i]), int(truth.labels[i]), xywh(truth.boxes[i]), compressed(truth.masks[i]))
    for i in range(len(found)):
        said.add_detection(
            int(found.image[i]), int(found.labels[i]), float(found.scores[i]), xywh(found.boxes[i]),
            compressed(found.masks[i]),
        )  # fmt: skip
    tide = tidecv.TIDE(mode=tidecv.TIDE.BOX if kind == "box" else tidecv.TIDE.MASK)
    with contextlib.redirect_stdout(io.StringIO()):
        run = tide.evaluate(gt, said)
        every = tide.get_all_errors()
    main, special = every["main"]["found"], every["special"]["found"]
    counts = {
        kind.short_name: sum(not hasattr(e, "pred") or e.pred["used"] is not None for e in errors)
        for kind, errors in run.error_dict.items()
    }
    return {**main, "FP": special["FalsePos"], "FN": special["FalseNeg"]}, counts


def gains(truth, found, kind):
    typed = (box_error_types if kind == "box" else mask_error_types)(truth, found)
    return {name: 100 * value for name, value in costs(typed, len(truth.ids)).items()}, typed.counts


def costs(typed, images):
    numbers = typed.scored(np.ones((1, images))).numbers
    return {name: float(numbers[f"dAP {name}"][0]) for name in (*TYPES, *SPECIAL)}


@pytest.mark.parametrize("kind", ["box", "mask"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_tidecv(seed, kind):
    truth, found = street(seed, most=9 if seed else 150)  # 150: more than the 100 of an image that count
    theirs, counts = tidecv_errors(truth, found, kind)
    ours, mine = gains(truth, found, kind)
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert {name: mine[name] for name in TYPES} == counts


@pytest.mark.parametrize("kind", TIDECV)
def test_reproduces_numbers_of_tidecv(kind):
    ours, _ = gains(*street(3), kind)
    assert {name: round(value, 4) for name, value in ours.items()} == TIDECV[kind]


CAT, DOG = 0, 1


def judged(objects, said):
    """Objects and detections of one image, as (box, label) and (box, score, label)."""
    instances = Instances([o[0] for o in objects], [o[1] for o in objects])
    truth = DetectionTruth.of([("a", instances)], ["cat", "dog"])
    boxes, scores, labels = zip(*said, strict=True)
    return box_error_types(truth, {"a": Prediction(list(boxes), list(scores), list(labels))})


def nonzero(found):
    return {name: value for name, value in found.items() if abs(value) > 1e-12}


def gain(typed):
    return nonzero({name: round(value, 4) for name, value in costs(typed, 1).items()})


HERE, THERE = [0, 0, 10, 10], [30, 0, 40, 10]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ((HERE, 0.9, DOG), "Cls"),
        (([0, 0, 10, 4], 0.9, CAT), "Loc"),
        (([0, 0, 10, 5], 0.9, CAT), None),  # IoU 0.5 is enough
        (([0, 0, 10, 1], 0.9, CAT), "Loc"),  # and 0.1 is enough to be about an object
        (([0, 0, 10, 4], 0.9, DOG), "Both"),
        (([0, 0, 10, 1], 0.9, DOG), "Bkg"),
        (([50, 0, 60, 10], 0.9, CAT), "Bkg"),
    ],
)
def test_a_single_detection_has_the_expected_error_type(said, kind):
    counts = nonzero(judged([(HERE, CAT)], [said]).counts)
    found = {} if kind is None else {kind: 1, "FP": 1, "FN": 1}
    if kind in ("Both", "Bkg"):  # nothing that could be repaired is about the cat
        found["Miss"] = 1
    assert counts == found


def test_gains_of_repairs_by_hand():
    """Two cats: one found, one badly placed. The repair makes both right."""
    typed = judged([(HERE, CAT), (THERE, CAT)], [(HERE, 0.9, CAT), ([30, 0, 40, 4], 0.8, CAT)])
    assert nonzero(typed.counts) == {"Loc": 1, "FP": 1, "FN": 1}
    # AP50 is 51 of 101 points; with Loc repaired 1; with FN repaired 1; FP leave it at 51 points.
    assert gain(typed) == {"Loc": round(50 / 101, 4), "FN": round(50 / 101, 4)}


def test_only_the_best_repair_of_an_object_counts():
    typed = judged([(HERE, CAT)], [([0, 0, 10, 4], 0.9, CAT), (HERE, 0.8, DOG), ([0, 0, 10, 3], 0.7, CAT)])
    assert nonzero(typed.counts) == {"Cls": 1, "Loc": 2, "FP": 3, "FN": 1}
    assert gain(typed)["Loc"] == 1.0  # the others about it are dropped
    assert "Cls" not in gain(typed)


def test_duplicates_and_background_cost_precision():
    """One cat of two is found, after a background box: precision 1/2 at recall 1/2."""
    typed = judged([(HERE, CAT), (THERE, CAT)], [([50, 0, 60, 10], 0.9, CAT), (HERE, 0.8, CAT)])
    assert gain(typed) == {
        "Bkg": round(51 / 101 / 2, 4), "Miss": round(0.5 - 51 / 202, 4), "FP": round(51 / 202, 4),
        "FN": round(0.5 - 51 / 202, 4),
    }  # fmt: skip


def test_a_class_without_remaining_objects_is_left_out():
    """The dog is missed. After the repair, dogs without a detection are left out of the mean, which is then
    the cat's 1; a dog detected elsewhere is wrong, so the AP of dogs stays 0."""
    objects = [(HERE, CAT), (THERE, DOG)]
    assert gain(judged(objects, [(HERE, 0.9, CAT)])) == {"Miss": 0.5, "FN": 0.5}
    assert gain(judged(objects, [(HERE, 0.9, CAT), ([50, 0, 60, 10], 0.8, DOG)])) == {}


def test_masks_are_checked():
    truth, found = street(0)
    with pytest.raises(InvalidPrediction, match="a detection has no mask"):
        mask_error_types(truth, replace(found, masks=()))
    with pytest.raises(InvalidTruth, match="an object has no mask"):
        mask_error_types(replace(truth, masks=(None,) * len(truth)), found)


def test_shares_add_up_and_are_declared():
    truth, found = street(1)
    numbers = box_error_types(truth, found).scored(np.ones((1, 12))).numbers
    assert sum(numbers[f"{name} share"][0] for name in TYPES) == pytest.approx(1)
    assert {*numbers} <= {*measures()}
    assert all(measures()[f"mask {name}"].section == "errors" for name in numbers)
