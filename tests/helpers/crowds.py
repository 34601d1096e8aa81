"""Sets with many detections per image, and the same sets with images repeated."""

from __future__ import annotations

import numpy as np

from stormproof.metrics.records import Detections, DetectionTruth


def crowded_set(images: int, rng: np.random.Generator) -> tuple[DetectionTruth, Detections]:
    """Objects of all sizes and detections around them; no two detections have the same score."""
    objects, said = 12 * images, 40 * images
    image = np.sort(rng.integers(0, images, objects))
    sides = np.exp(rng.normal(3.8, 1, (objects, 2))).clip(4, 300)
    low = rng.uniform(0, 400, (objects, 2))
    labels = rng.integers(0, 5, objects)
    truth = DetectionTruth(
        tuple(f"{i + 1}" for i in range(images)), tuple("abcde"), image,
        np.concatenate([low, low + sides], axis=1), labels, rng.random(objects) < 0.05,
        np.zeros(objects, bool), sides.prod(axis=1) * 0.8, (None,) * objects,
    )  # fmt: skip
    source = np.sort(rng.integers(0, objects, said))
    boxes = truth.boxes[source] + rng.normal(0, 0.08, (said, 4)) * np.tile(sides[source], (1, 2))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    wrong = rng.random(said) < 0.3
    called = np.where(wrong, rng.integers(0, 5, said), labels[source])
    return truth, Detections(image[source], boxes, rng.permutation(said) / said, called)


def repeated(
    truth: DetectionTruth, found: Detections, times: np.ndarray
) -> tuple[DetectionTruth, Detections]:
    """The set with each image repeated the given number of times; copies follow their image."""
    copies = np.repeat(np.arange(len(times)), times)

    def rows(image):
        return [np.flatnonzero(image == i) for i in copies]

    own, said = rows(truth.image), rows(found.image)
    t, d = np.concatenate(own).astype(int), np.concatenate(said).astype(int)
    wide = DetectionTruth(
        tuple(f"{i + 1}" for i in range(len(copies))), truth.classes,
        np.repeat(np.arange(len(copies)), [len(row) for row in own]), truth.boxes[t], truth.labels[t],
        truth.crowd[t], truth.ignore[t], truth.area[t], (None,) * len(t),
    )  # fmt: skip
    place = np.repeat(np.arange(len(copies)), [len(row) for row in said])
    return wide, Detections(place, found.boxes[d], found.scores[d], found.labels[d])
