"""AP of oriented boxes equals pycocotools with shapely's overlaps, and a slow reading of DOTA's devkit."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import hotcoco
import numpy as np
import pytest
from pycocotools.cocoeval import COCOeval

from helpers.coco_oracle import coco_evaluation, twelve
from helpers.rotated import rotated_rows
from stormproof.core.oriented import polygon_areas, rotated_corners, upright
from stormproof.metrics.coco import NUMBERS, coco_scored
from stormproof.metrics.oriented import Oriented, judge_corners, match_corners, score_corners
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.voc import voc_scored

shapely = pytest.importorskip("shapely")


def aerial_set(seed, *, images=12, objects=90, detections=400, classes=3):
    """Ships and cars from above, at any angle; some are difficult, some detections nearly fit."""
    rng = np.random.default_rng(seed)
    image = np.sort(rng.integers(0, images, objects))
    sides = np.exp(rng.normal(3.3, 0.9, (objects, 1))).clip(5, 300) * rng.uniform(
        [1, 0.2], [1, 1], (objects, 2)
    )
    rows = np.column_stack([rng.uniform(0, 250, (objects, 2)), sides, rng.uniform(-4, 4, objects)])
    corners = rotated_corners(rows)
    corners[::7] += rng.normal(0, 2, corners[::7].shape)  # drawn by hand: no rectangles
    boxes = upright(corners)
    truth = DetectionTruth(
        tuple(map(str, range(images))), tuple(map(str, range(classes))), image, boxes,
        rng.integers(0, classes, objects), np.zeros(objects, bool), rng.random(objects) < 0.1,
        polygon_areas(corners), (None,) * objects,
    )  # fmt: skip
    source = rng.integers(0, objects, detections)
    near = rng.choice([0.01, 0.06, 0.25], (detections, 1))
    moved = rows[source] + rng.normal(0, 1, (detections, 5)) * near * np.column_stack(
        [sides[source, :1].repeat(2, axis=1), sides[source], np.ones(detections)]
    )
    moved[:, 2:4] = np.abs(moved[:, 2:4]) + 0.5
    found_corners = rotated_corners(moved)
    found = Detections(
        image[source], upright(found_corners), rng.random(detections).round(2), truth.labels[source]
    )
    return replace(truth, data={"corners": corners}), replace(found, data={"corners": found_corners})


def shapely_overlaps(a, b):
    first, second = ([shapely.Polygon(each).convex_hull for each in corners] for corners in (a, b))
    return np.array([[x.intersection(y).area / x.union(y).area for y in second] for x in first])


@pytest.mark.parametrize("seed", range(2))
def test_coco_numbers_equal_pycocotools(seed, monkeypatch):
    truth, found = aerial_set(seed)
    truth = replace(truth, ignore=np.zeros(len(truth), bool))
    corners, found_corners = truth.data["corners"], found.data["corners"]

    def compute(self, image_id, category_id):
        rows, ids = self._dts[image_id, category_id], self._gts[image_id, category_id]
        order = np.argsort([-row["score"] for row in rows], kind="mergesort")[: self.params.maxDets[-1]]
        if not len(order) or not ids:
            return []
        return shapely_overlaps(
            found_corners[[rows[i]["id"] - 1 for i in order]], corners[[row["id"] - 1 for row in ids]]
        )

    monkeypatch.setattr(COCOeval, "computeIoU", compute)
    areas = polygon_areas(found_corners)
    square = Detections(
        found.image, np.column_stack([np.zeros((len(areas), 2)), areas, np.ones(len(areas))]), found.scores,
        found.labels,
    )  # fmt: skip  # only their area counts
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = twelve(coco_evaluation(truth, square, "bbox"))
    ours = coco_scored(match_corners(truth, found), np.ones((1, len(truth.ids)))).scores
    assert [ours[name] for name in NUMBERS] == pytest.approx([theirs[name] for name in NUMBERS], abs=1e-12)


def devkit_ap(truth, found, label, sampled):
    """DOTA's `voc_eval` of one class, one detection at a time."""
    corners, found_corners = truth.data["corners"], found.data["corners"]
    of_class = [i for i in np.argsort(-found.scores, kind="stable") if found.labels[i] == label]
    taken, hits, false = set(), [], []
    for i in of_class:
        rivals = np.flatnonzero((truth.image == found.image[i]) & (truth.labels == label))
        overlaps = (
            shapely_overlaps(found_corners[i : i + 1], corners[rivals])[0] if len(rivals) else np.zeros(0)
        )
        best = int(overlaps.argmax()) if len(overlaps) else -1
        if best < 0 or overlaps[best] <= 0.5:
            hits.append(0), false.append(1)
        elif not truth.ignore[rivals[best]]:
            new = rivals[best] not in taken
            taken.add(rivals[best])
            hits.append(int(new)), false.append(int(not new))
    recall = np.cumsum(hits) / ((truth.labels == label) & ~truth.ignore).sum()
    precision = np.cumsum(hits) / (np.cumsum(hits) + np.cumsum(false))
    if sampled:
        return sum(max(precision[recall >= level], default=0.0) for level in np.arange(0, 1.1, 0.1)) / 11
    steps = np.concatenate([[0.0], recall])
    return sum((steps[k + 1] - steps[k]) * precision[k:].max() for k in range(len(recall)))


@pytest.mark.parametrize("seed", range(2))
def test_voc_numbers_equal_the_devkit(seed):
    truth, found = aerial_set(seed)
    ours = voc_scored(judge_corners(truth, found), np.ones((1, len(truth.ids)))).scores
    for name, sampled in (("VOC07 AP50", True), ("VOC10 AP50", False)):
        each = [devkit_ap(truth, found, label, sampled) for label in range(3)]
        assert ours[name] == pytest.approx(np.mean(each), abs=1e-12)


def test_rectangles_equal_hotcoco():
    truth, found = aerial_set(3)
    truth = replace(truth, ignore=np.zeros(len(truth), bool))
    truth.data["corners"][:] = rotated_corners(rotated_rows(truth.data["corners"]))
    truth = replace(truth, area=polygon_areas(truth.data["corners"]))
    rows, seen = rotated_rows(truth.data["corners"]), rotated_rows(found.data["corners"])
    index = hotcoco.COCO(
        {
            "images": [{"id": i + 1, "height": 500, "width": 500} for i in range(len(truth.ids))],
            "categories": [{"id": i + 1, "name": name} for i, name in enumerate(truth.classes)],
            "annotations": [
                {
                    "id": i + 1, "image_id": int(truth.image[i]) + 1, "category_id": int(truth.labels[i]) + 1,
                    "bbox": [0, 0, 1, 1], "obb": rows[i].tolist(), "area": float(truth.area[i]), "iscrowd": 0,
                }
                for i in range(len(truth))
            ],
        }
    )  # fmt: skip
    results = [
        {
            "image_id": int(found.image[i]) + 1, "category_id": int(found.labels[i]) + 1,
            "score": float(found.scores[i]), "bbox": [0, 0, 1, 1], "obb": seen[i].tolist(),
        }
        for i in range(len(found))
    ]  # fmt: skip
    run = hotcoco.COCOeval(index, index.loadRes(results), "obb")
    run.evaluate()
    run.accumulate()
    with pytest.warns(UserWarning, match="oriented-box"):
        run.summarize()
    ours = score_corners(Oriented(truth, found), np.ones((1, len(truth.ids)))).scores
    assert [ours[f"oriented {name}"] for name in ("AP", "AP50", "AP75")] == pytest.approx(
        run.stats[:3], abs=1e-12
    )


def test_objects_are_found_by_their_corners_not_by_the_boxes_around_them():
    truth, found = aerial_set(0)
    judged = Oriented(truth, found)
    groups = [(truth.image == found.image[k]) & (truth.labels == found.labels[k]) for k in range(len(found))]
    best = np.full(len(truth), -1.0)
    taken = np.zeros(len(truth), bool)
    for k in np.argsort(-found.scores, kind="stable").tolist():
        among = np.flatnonzero(groups[k] & ~taken & ~truth.excused)
        if len(among):
            overlap = shapely_overlaps(found.data["corners"][[k]], truth.data["corners"][among])[0]
            if overlap.max() >= 0.5:
                taken[among[overlap.argmax()]] = True
                best[among[overlap.argmax()]] = found.scores[k]
    agree = np.mean(judged.located.found_at == best[~truth.excused])
    assert agree > 0.95  # shapely sees the hulls of the few that are not convex
    upright_boxes = replace(judged, truth=replace(truth, data={}), found=replace(found, data={}))
    assert (upright_boxes.located.found_at == -1).all()
