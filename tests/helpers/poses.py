"""Sets of people with joints and of detected poses, and what pycocotools and hotcoco make of them."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np

from stormproof.core.joints import usual_sigmas
from stormproof.metrics.records import Detections, DetectionTruth

# Where COCO's joints are in the box of somebody who stands: x and y as shares of its sides.
STANDING = np.array([
    [.5, .08], [.53, .06], [.47, .06], [.57, .08], [.43, .08], [.7, .2], [.3, .2], [.8, .35], [.2, .35],
    [.85, .5], [.15, .5], [.62, .52], [.38, .52], [.63, .75], [.37, .75], [.64, .96], [.36, .96],
])  # fmt: skip


def pose_set(rng: Any, *, images: int, people: int, detections: int, joints: int = 17, classes: int = 1):
    """People as in photographs: small and large, half hidden, crowds, some without labelled joints."""
    image = np.sort(rng.integers(0, images, people))
    sides = np.exp(rng.normal(4.2, 0.9, (people, 1))).clip(6, 400) * rng.uniform(
        [0.3, 0.8], [0.7, 1.2], (people, 2)
    )
    low = rng.uniform(0, 400, (people, 2))
    shape = STANDING if joints == 17 else rng.random((joints, 2))
    points = np.zeros((people, joints, 3))
    points[..., :2] = (
        low[:, None] + shape * sides[:, None] + rng.normal(0, 0.03, (people, joints, 2)) * sides[:, None]
    ).round()
    points[..., 2] = rng.choice([0, 1, 2], (people, joints), p=[0.3, 0.2, 0.5])
    crowd = rng.random(people) < 0.06
    points[crowd | (rng.random(people) < 0.15)] = 0
    points[points[..., 2] == 0] = 0
    labels = rng.integers(0, classes, people)
    truth = DetectionTruth(
        tuple(map(str, range(images))), tuple(map(str, range(classes))), image,
        np.hstack([low, low + sides]), labels, crowd, np.zeros(people, bool),
        sides.prod(axis=1) * rng.uniform(0.4, 0.8, people), (None,) * people,
    )  # fmt: skip
    source = rng.integers(0, people, detections)
    spread = rng.choice([0.005, 0.02, 0.08, 0.3], detections)[:, None, None]
    guess = low[source][:, None] + shape * sides[source][:, None]
    known = points[source][..., 2:] > 0
    guess = np.where(known, points[source][..., :2], guess)
    guess = guess + rng.normal(0, 1, guess.shape) * spread * sides[source].max(axis=1)[:, None, None]
    found_points = np.concatenate([guess, rng.random((detections, joints, 1))], axis=2)
    boxes = np.hstack([guess.min(axis=1), guess.max(axis=1)])
    found = Detections(image[source], boxes, rng.random(detections).round(2), labels[source])
    sigmas = np.tile(usual_sigmas(joints), (people, 1))
    truth = replace(truth, data={"points": points, "sigmas": sigmas})
    return truth, replace(found, data={"points": found_points})


def _dataset(truth: DetectionTruth) -> dict[str, Any]:
    points = truth.data["points"]
    joints = points.shape[1]
    return {
        "info": {},
        "images": [{"id": i + 1, "height": 999, "width": 999} for i in range(len(truth.ids))],
        "categories": [
            {"id": i + 1, "name": name, "keypoints": [f"k{k}" for k in range(joints)], "skeleton": []}
            for i, name in enumerate(truth.classes)
        ],
        "annotations": [
            {
                "id": i + 1, "image_id": int(truth.image[i]) + 1, "category_id": int(truth.labels[i]) + 1,
                "bbox": [*map(float, truth.boxes[i, :2]), *map(float, truth.sides[i])],
                "area": float(truth.area[i]), "iscrowd": int(truth.excused[i]),
                "keypoints": points[i].ravel().tolist(), "num_keypoints": int((points[i, :, 2] > 0).sum()),
            }
            for i in range(len(truth))
        ],
    }  # fmt: skip


def _results(found: Detections) -> list[dict[str, Any]]:
    points = found.data["points"]
    return [
        {
            "image_id": int(found.image[i]) + 1, "category_id": int(found.labels[i]) + 1,
            "keypoints": points[i].ravel().tolist(), "score": float(found.scores[i]),
        }
        for i in range(len(found))
    ]  # fmt: skip


def ten_numbers(package: Any, evaluation: Any, truth, found) -> list[float]:
    """What `COCOeval` of pycocotools or hotcoco prints; NaN where it prints −1."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            index = package()
            index.dataset = _dataset(truth)
            index.createIndex()
        except AttributeError:  # hotcoco takes the content of a file at once
            index = package(_dataset(truth))
        run = evaluation(index, index.loadRes(_results(found)), "keypoints")
        sigmas = truth.data["sigmas"][0]
        if (sigmas != usual_sigmas(17)).any() if len(sigmas) == 17 else True:
            run.params.kpt_oks_sigmas = sigmas
        run.evaluate()
        run.accumulate()
        run.summarize()
    return [value if value > -1 else float("nan") for value in run.stats]
