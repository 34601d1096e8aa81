"""Whether a segmenter's confidence can be trusted: ECE and Brier score of semantic maps.

ECE (Guo et al. 2017) is over 15 bins of confidence, each closed above: the mean of |mean confidence − share
of pixels that are right|, weighted by pixels. The Brier score is that of the predicted class, the mean of
(confidence − right)², where right is 1 or 0. Both are of all pixels together that have a true class, every
fourth row and column. A pixel of a class that the dataset lacks is never right.

What a run keeps of an image are sums by bin, never a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.sample import STRIDE, Floats, Ints, SemanticMap
from stormproof.metrics.metric import Measure, Scored, Weights, metric, ratio, weighted_sums

if TYPE_CHECKING:
    from stormproof.metrics.cells import Maps

BINS = 15
SUMS = 5  # of a bin: pixels, confidence, right, confidence², confidence of those that are right


def confidence_sums(
    truth: SemanticMap, predicted: npt.NDArray[Any], confidence: npt.NDArray[np.float32], labels: Ints
) -> Floats:
    """The sums of one image, BINS × SUMS in a row; `labels` are the dataset's of the model's classes.

    >>> truth = SemanticMap(np.array([[1, 255]], np.uint8).repeat(4, axis=1))
    >>> said, sure = np.ones((1, 8), np.uint8), np.full((1, 2), 0.5, np.float32)
    >>> sums = confidence_sums(truth, said, sure, np.arange(2))
    >>> sums.reshape(BINS, SUMS)[7].tolist()
    [1.0, 0.5, 1.0, 0.25, 0.5]
    """
    true, said = (plane[::STRIDE, ::STRIDE].astype(np.int64) for plane in (truth.labels, predicted))
    counted = true != truth.ignore
    sure = confidence[counted].astype(np.float64)
    right = (labels[said[counted]] == true[counted]).astype(np.float64)
    place = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
    columns = (np.ones(len(sure)), sure, right, sure**2, sure * right)
    sums = np.stack([np.bincount(place, each, BINS) for each in columns], axis=1)
    return sums.ravel().astype(np.float64)


def reliability(sums: Floats, weights: Weights) -> Floats:
    """By replicate, bin and sum: pixels, confidence, right, confidence², confidence of the right."""
    return weighted_sums(weights, sums).reshape(-1, BINS, SUMS)


@metric(
    "confidences",
    Measure("ECE", "expected calibration error of pixels", "calibration", higher=False),
    Measure("Brier", "Brier score of the predicted class of pixels", "calibration", higher=False),
)
def _calibration(maps: Maps, weights: Weights) -> Scored:
    assert maps.confidences is not None
    found = reliability(maps.confidences, weights)
    pixels, sure, right, squares, both = (found[..., k] for k in range(SUMS))
    whole = pixels.sum(axis=1)
    return Scored(
        {
            "ECE": ratio(np.abs(sure - right).sum(axis=1), whole),
            "Brier": ratio((squares - 2 * both + right).sum(axis=1), whole),
        }
    )
