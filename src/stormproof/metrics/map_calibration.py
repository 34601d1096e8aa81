"""Calibration of semantic maps: ECE and Brier score of a segmenter's confidence.

ECE (Guo et al. 2017) uses 15 bins of confidence, each including its upper end: the mean of |mean confidence −
share of right pixels|, weighted by pixels. The Brier score is that of the predicted class: the mean of
(confidence − right)², where right is 1 or 0. Both are over the labelled pixels of all images, in every fourth
row and column. A pixel predicted as a class that the dataset lacks is wrong.

A run stores sums by bin for each image, never a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.object_arrays import STRIDE
from stormproof.core.sample import Floats, Ints, SemanticMap
from stormproof.metrics.metric import (
    Calibrated,
    Measure,
    Scored,
    Weights,
    detail,
    metric,
    ratio,
    reliability_diagram,
    weighted_sums,
)
from stormproof.metrics.optimism import set_optimisms

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Maps

BINS = 15
_CALIBRATED: dict[str, Calibrated] = {
    "ECE": ((80, 50),),
    "Brier": ((80, 50),),
}
_POWER = 0.5  # of the number of images, with which the bias of absolute gaps falls
SUMS = 5  # in each bin: pixels, confidence, right pixels, confidence², confidence of the right pixels


def confidence_sums(
    truth: SemanticMap, predicted: npt.NDArray[Any], confidence: npt.NDArray[np.float32], labels: Ints
) -> Floats:
    """The sums of one image, BINS × SUMS flattened; `labels` maps the model's classes to the dataset's.

    >>> truth = SemanticMap(np.array([[1, 255]], np.uint8).repeat(4, axis=1))
    >>> predicted, confidence = np.ones((1, 8), np.uint8), np.full((1, 2), 0.5, np.float32)
    >>> sums = confidence_sums(truth, predicted, confidence, np.arange(2))
    >>> sums.reshape(BINS, SUMS)[7].tolist()
    [1.0, 0.5, 1.0, 0.25, 0.5]
    """
    true, guess = (plane[::STRIDE, ::STRIDE].astype(np.int64) for plane in (truth.labels, predicted))
    counted = true != truth.ignore
    sure = confidence[counted].astype(np.float64)
    right = (labels[guess[counted]] == true[counted]).astype(np.float64)
    bins = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
    columns = (np.ones(len(sure)), sure, right, sure**2, sure * right)
    sums = np.stack([np.bincount(bins, column, BINS) for column in columns], axis=1)
    return sums.ravel().astype(np.float64)


def reliability(sums: Floats, weights: Weights) -> Floats:
    """The sums over all images: replicates × BINS × SUMS."""
    return weighted_sums(weights, sums).reshape(-1, BINS, SUMS)


@detail("reliability", "confidences")
def _reliability(maps: Maps, weights: Weights) -> dict[str, Floats]:
    """Mean confidence, the share that is right, and the number of pixels, by bin of the confidence."""
    assert maps.confidences is not None
    number, scores, hits, *_ = np.moveaxis(reliability(maps.confidences, weights), 2, 0)
    return reliability_diagram(number, scores, hits)


@metric(
    "confidences",
    Measure("ECE", "expected calibration error of pixels", "calibration", higher=False),
    Measure("Brier", "Brier score of the predicted class of pixels", "calibration", higher=False),
    calibrated=_CALIBRATED,
)
def _calibration(maps: Maps, weights: Weights) -> Scored:
    assert maps.confidences is not None
    sums = reliability(maps.confidences, weights)
    pixels, sure, right, squares, both = (sums[..., k] for k in range(SUMS))
    whole = pixels.sum(axis=1)
    ece = ratio(np.abs(sure - right).sum(axis=1), whole)
    numbers = {"ECE": ece, "Brier": ratio((squares - 2 * both + right).sum(axis=1), whole)}
    return Scored(numbers, optimism=set_optimisms({"ECE": ece}, _POWER))
