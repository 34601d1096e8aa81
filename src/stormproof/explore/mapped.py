"""Label maps put beside their truth: wrong pixels and IoU, of every class and of each, in an image or a cell.

Everything is counted by `metrics.semantic`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.sample import Ints, Prediction, Truth
from stormproof.core.text import plain
from stormproof.explore.judged import Vocabulary
from stormproof.metrics.inputs import Maps
from stormproof.metrics.metric import mean_of_known
from stormproof.metrics.semantic import count_pixels, true_iou
from stormproof.report.imagery import class_colours

Pixels = dict[str, Any]


def pixels_of_image(prediction: Prediction, truth: Truth, vocabulary: Vocabulary) -> Pixels | None:
    """How a predicted map differs from the true one; None unless there are both."""
    if prediction.semantic is None or truth.semantic is None:
        return None
    classes = len(vocabulary.classes)
    # A class that the dataset lacks is one above its last, and wrong.
    predicted = np.minimum(prediction.semantic, classes).astype(np.uint16)
    return _counted(count_pixels(truth.semantic, predicted, classes=classes + 1), vocabulary)


def pixels_of_cell(maps: Maps) -> Pixels:
    """The same over all images of a condition."""
    counts = maps.counts(np.ones((1, maps.confusions.shape[0])))[0]
    return _counted(counts, Vocabulary(maps.classes, maps.scored_names))


def _counted(counts: Any, vocabulary: Vocabulary) -> Pixels:
    true, predicted, right = counts.sum(axis=1), counts.sum(axis=0), np.diagonal(counts)
    iou = true_iou(counts)
    labels = [k for k, name in enumerate(vocabulary.classes) if name in vocabulary.judged]
    return {
        "pixels": int(true.sum()),
        "wrong": int(true.sum() - right.sum()),
        "iou": float(mean_of_known(iou[labels])),
        "classes": {
            plain(vocabulary.classes[k]): {
                "pixels": int(true[k]),
                "wrong": int(true[k] + predicted[k] - 2 * right[k]),
                "iou": float(iou[k]),
            }
            for k in labels
            if true[k] or predicted[k]
        },
    }


def colours(classes: tuple[str, ...]) -> dict[str, str]:
    """The colour of each class in a painted map."""
    table: Ints = class_colours(len(classes))
    return {plain(name): "#" + bytes(table[k].tolist()).hex() for k, name in enumerate(classes)}
