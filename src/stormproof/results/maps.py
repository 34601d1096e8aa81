"""mIoU and pixel accuracy of weighted images, from one confusion matrix per image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from stormproof.core.sample import Floats, Ints
from stormproof.results.precision import mean_of_known, ratio


def image_confusions(
    image: Ints, truth: Ints, predicted: Ints, pixels: Ints, *, images: int, classes: int
) -> sparse.csr_array:
    """Images × (true class, predicted class): pixels. A predicted class of −1 has no name in the dataset."""
    side = classes + 1
    cell = truth * side + np.where(predicted < 0, classes, predicted)
    return sparse.csr_array((pixels.astype(np.float64), (image, cell)), shape=(images, side * side))


def map_numbers(
    confusions: sparse.csr_array, weights: npt.NDArray[Any], classes: int, kept: Sequence[int]
) -> tuple[dict[str, Floats], Floats]:
    """mIoU and pixel accuracy by replicate; and IoU by replicate and class, of the labels `kept`."""
    side = classes + 1
    counts = (confusions.T @ weights.T.astype(np.float64)).T.reshape(-1, side, side)
    hits = np.diagonal(counts, axis1=1, axis2=2)
    union = counts.sum(axis=1) + counts.sum(axis=2) - hits
    iou = ratio(hits, union)[:, list(kept)]
    right = ratio(hits.sum(axis=1), counts.sum(axis=(1, 2)))
    return {"mIoU": mean_of_known(iou), "pixel accuracy": right}, iou
