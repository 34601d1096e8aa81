"""The images that cost a model most: how much more wrong each is under a condition than clean."""

from __future__ import annotations

import math
from typing import NamedTuple

from stormproof.results.scores import Scores


class ImageLoss(NamedTuple):
    """One image under one condition: its error there, and its error clean (NaN where the run lacks that).

    The error is 1 − AP, mask AP, mIoU or PQ of the image alone, or E (`image_measure` says which).
    """

    image: str
    condition: str
    error: float
    clean: float

    @property
    def rise(self) -> float:
        """How much more wrong the image is than clean; the error itself where the run lacks that."""
        return self.error if math.isnan(self.clean) else self.error - self.clean

    def __repr__(self) -> str:
        return f"<{self.image} under {self.condition}: error {self.error:.3f}, clean {self.clean:.3f}>"


def image_measure(scores: Scores) -> str:
    """What the error of an image is made of: AP, mask AP, mIoU or PQ, or E, which is an error itself."""
    if scores.metric == "E":
        return "E"
    return next((name for name in ("PQ", "mIoU", "mask AP") if name in scores.cells), "AP")


def worst_images(scores: Scores, count: int) -> list[ImageLoss]:
    """The cells whose error rises most from clean; among equals, the least visible change, then by name.

    The visibility of a change is the mean RMSE of its condition.
    """
    errors = scores.image_errors
    if errors is None:
        return []
    clean = errors.by_condition.get("clean")
    found = [
        ImageLoss(name, text, float(values[i]), math.nan if clean is None else float(clean[i]))
        for text, values in errors.by_condition.items()
        if text != "clean"
        for i, name in enumerate(errors.ids)
        if not math.isnan(values[i])
    ]

    def rank(loss: ImageLoss) -> tuple[float, float, str, str]:
        visible = scores.quality.get(loss.condition, {}).get("rmse", math.nan)
        return -loss.rise, math.inf if math.isnan(visible) else visible, loss.image, loss.condition

    return sorted(found, key=rank)[:count]
