"""Models whose scores can be told beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.core.sample import RLE, Image, Prediction

MODELS = Path(__file__)  # `f\"{MODELS}:NAME\"` is the spec of a model of this file


def contrast_boxes(images: Sequence[Image]) -> list[Prediction]:
    """Boxes of the size the scenes have, surer the more contrast there is."""
    found = []
    for image in images:
        rng = np.random.default_rng(int(image[8::16, 8::16].sum()))
        low = rng.integers(0, 20, (30, 2)).astype(float)
        scores = rng.random(30) * image.std() / 128
        labels = np.arange(30) % 2
        found.append(Prediction(np.concatenate([low, low + 20], axis=1), scores.clip(0, 1), labels))
    return found


def contrast_masks(images: Sequence[Image]) -> list[Prediction]:
    """The same with masks that fill the boxes."""
    found = []
    for image, said in zip(images, contrast_boxes(images), strict=True):
        masks = []
        for x1, y1, x2, y2 in said.boxes.astype(int):
            mask = np.zeros(image.shape[:2], bool)
            mask[y1:y2, x1:x2] = True
            masks.append(RLE.from_mask(mask))
        found.append(Prediction(said.boxes, said.scores, said.labels, tuple(masks)))
    return found


def some_masks(images: Sequence[Image]) -> list[Prediction]:
    """The same, but masks only on every other image."""
    said = zip(images, contrast_masks(images), strict=True)
    return [
        answer if int(image[0, 8, 0]) % 2 else Prediction(answer.boxes, answer.scores, answer.labels)
        for image, answer in said
    ]


def thresholds(images: Sequence[Image]) -> list[Prediction]:
    """Right on clean images of the street: the truth is the grey level in three steps."""
    return [Prediction(semantic=(image[..., 0] // 86).astype(np.uint8)) for image in images]


def other_names(images: Sequence[Image]) -> list[Prediction]:
    """The same in classes of its own: bright, ghost, dark, grey."""
    order = np.array([2, 3, 0], np.uint8)
    return [Prediction(semantic=order[image[..., 0] // 86]) for image in images]


other_names.semantic_classes = ("bright", "ghost", "dark", "grey")  # type: ignore[attr-defined]


def cat_boxes(images: Sequence[Image]) -> list[Prediction]:
    """The same boxes from a model that knows cats only."""
    return [Prediction(said.boxes, said.scores, np.zeros(30, np.int64)) for said in contrast_boxes(images)]


cat_boxes.classes = ("cat",)  # type: ignore[attr-defined]


def corner_boxes(images: Sequence[Image]) -> list[Prediction]:
    """One small box in the corner, which no object matches: a clean score of 0."""
    return [Prediction(np.array([[0.0, 0.0, 3.0, 3.0]]), np.array([0.5]), np.array([0])) for _ in images]


def three_classes(images: Sequence[Image]) -> list[Prediction]:
    """The same boxes of three classes."""
    return [Prediction(said.boxes, said.scores, np.arange(30) % 3) for said in contrast_boxes(images)]


def only_when_clean(images: Sequence[Image]) -> list[Prediction]:
    """Boxes all over where the objects of the scenes are, and none at all where contrast is low."""
    places = [(x, y) for x in range(0, 21, 4) for y in range(0, 21, 4)]
    corners = np.array([(x, y, x + 20, y + 20) for x, y in places], float)
    few, many = Prediction(), Prediction(corners, np.linspace(0.1, 0.9, 36), np.arange(36) % 2)
    return [many if image.std() > 40 else few for image in images]


def sure_boxes(images: Sequence[Image]) -> list[Prediction]:
    """The same boxes, sure of most of them."""
    found = []
    for image, said in zip(images, contrast_boxes(images), strict=True):
        rng = np.random.default_rng(int(image[4::16, 4::16].sum()))
        found.append(Prediction(said.boxes, 0.3 + 0.7 * rng.random(30), said.labels))
    return found


def named_boxes(images: Sequence[Image]) -> list[Prediction]:
    """The same boxes from a model that names what it finds."""
    return contrast_boxes(images)


named_boxes.classes = ("cat", "dog")  # type: ignore[attr-defined]


def nothing(images: Sequence[Image]) -> list[Prediction]:
    """Finds nothing, ever."""
    return [Prediction() for _ in images]


def wrong_place(images: Sequence[Image]) -> list[Prediction]:
    """Sure of a box where no object of the scenes is."""
    return [Prediction([[50, 40, 60, 47]], [0.9], [0]) for _ in images]


def few_boxes(images: Sequence[Image]) -> list[Prediction]:
    """Every third of the same boxes."""
    found = contrast_boxes(images)
    return [Prediction(said.boxes[::3], said.scores[::3], said.labels[::3]) for said in found]
