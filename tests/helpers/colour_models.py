"""Detectors of coloured rectangles: red ones are people, blue ones dogs. They fail as colours fade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.core.sample import Image, Prediction

MODELS = Path(__file__)  # `f\"{MODELS}:NAME\"` is the spec of a model of this file


def _found(image: Image, least: float, doubt: float) -> Prediction:
    """The extent of what is redder, and of what is bluer, than grey; and a guess beside it, less sure."""
    red, blue = image[..., 0].astype(float), image[..., 2].astype(float)
    boxes, scores, labels = [], [], []
    for label, colour in enumerate((red - blue, blue - red)):
        rows, columns = np.nonzero(colour > least)
        if not len(rows):
            continue
        x1, x2 = np.quantile(columns, (0.02, 0.98))
        y1, y2 = np.quantile(rows, (0.02, 0.98))
        sure = float(np.clip(colour[colour > least].mean() / 200, 0, 1))
        boxes += [[x1, y1, x2 + 1, y2 + 1], [x1 / 2, y1 / 2, x1 / 2 + 12, y1 / 2 + 12]]
        scores += [sure, doubt * (0.5 + int(image.sum()) % 97 / 194)]
        labels += [label, label if int(image[0].sum()) % 3 else 1 - label]
    return Prediction(np.array(boxes).reshape(-1, 4), np.array(scores), np.array(labels, np.int64))


def keen(images: Sequence[Image]) -> list[Prediction]:
    return [_found(image, 40, 0.6) for image in images]


def calm(images: Sequence[Image]) -> list[Prediction]:
    return [_found(image, 80, 0.3) for image in images]


def wary(images: Sequence[Image]) -> list[Prediction]:
    return [_found(image, 60, 0.9) for image in images]


for _model in (keen, calm, wary):
    _model.classes = ("person", "dog")  # type: ignore[attr-defined]
