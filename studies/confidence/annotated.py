"""Simulated key points, and objects of images that were searched for some classes only, as LVIS' are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from false_passes import World

from stormproof.core.federated import Federated
from stormproof.core.joints import COCO_SIGMAS
from stormproof.metrics.inputs import Objects
from stormproof.metrics.keypoints import Posed
from stormproof.metrics.records import Detections, DetectionTruth

LABELLED, SEARCHED, PARTLY = 0.8, 0.2, 0.2


def posed(
    world: World, truth: DetectionTruth, found: dict[str, Detections], rng: np.random.Generator
) -> dict[str, Posed]:
    """The same objects and detections with seventeen points each, four fifths of which are labelled.

    A detection's points are off by half of the σ of their joints, more in looser boxes, and one joint in
    sixteen is somewhere else in the box. Those of a false alarm are anywhere in its box.
    """
    joints = len(COCO_SIGMAS)
    size = (truth.boxes[:, 2:] - truth.boxes[:, :2])[:, None]
    points = np.ones((len(truth), joints, 3))
    points[..., :2] = truth.boxes[:, None, :2] + rng.random((len(truth), joints, 2)) * size
    points[..., 2] = 2 * (rng.random((len(truth), joints)) < LABELLED)
    data = {"points": points, "sigmas": np.tile(COCO_SIGMAS, (len(truth), 1))}
    truth = replace(truth, data=data)
    return {text: Posed(truth, _with_points(truth, each, rng)) for text, each in found.items()}


def _with_points(truth: DetectionTruth, found: Detections, rng: np.random.Generator) -> Detections:
    """Points of detections: near those of the object that the box is on, if it is on one."""
    count, joints = len(found), len(COCO_SIGMAS)
    low, size = found.boxes[:, None, :2], (found.boxes[:, 2:] - found.boxes[:, :2])[:, None]
    points = np.ones((count, joints, 3))
    points[..., :2] = low + rng.random((count, joints, 2)) * size
    start = np.searchsorted(truth.image, np.arange(len(truth.ids) + 1))
    for k in range(count):
        here = slice(start[found.image[k]], start[found.image[k] + 1])
        apart = np.abs(truth.boxes[here, 0] - found.boxes[k, 0])
        if not len(apart) or apart.min() > size[k, 0, 0]:
            continue  # a false alarm
        of = here.start + int(apart.argmin())
        loose = apart.min() / size[k, 0, 0]
        scale = (0.2 + 1.2 * loose) * 2 * COCO_SIGMAS * np.sqrt(size[k].prod())
        near = truth.data["points"][of, :, :2] + rng.normal(0, 1, (joints, 2)) * scale[:, None]
        right = rng.random(joints) > 1 / 16
        points[k, right, :2] = near[right]
    return replace(found, data={"points": points})


def federated(world: World, cells: dict[str, Objects], rng: np.random.Generator) -> dict[str, Objects]:
    """The same objects in images that were searched for what they show, and for a fifth of the other classes.

    The third of the classes with the fewest objects are rare, the next third common.
    """
    images, classes = len(world.hardness), world.classes
    searched = rng.random((images, classes)) < SEARCHED
    searched[world.image, world.label] = True
    exhaustive = rng.random((images, classes)) > PARTLY
    order = np.argsort(np.argsort(world.often, kind="stable"))
    letters: Any = tuple("rcf"[min(2, 3 * int(place) // classes)] for place in order)
    known = Federated(searched, exhaustive, letters)
    truth = replace(next(iter(cells.values())).truth, federated=known)
    return {text: Objects(truth, cell.found) for text, cell in cells.items()}
