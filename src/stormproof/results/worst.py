"""The error of each image, and the images that suffer most: those whose error rises most from clean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stormproof.core.sample import Floats
from stormproof.metrics.task import all_tasks

if TYPE_CHECKING:
    from stormproof.results.scores import Scores


@dataclass(frozen=True, eq=False)
class ImageErrors:
    """Errors by condition, one per image in the order of `ids`; NaN for an image without truth.

    The error of an image is 1 − the measure that the run is reported in, on that image alone: AP, mask AP if
    masks are scored, or mean IoU or PQ over the classes that it shows. If lower is better, as with *liu*'s E,
    the error is the measure itself.
    """

    ids: tuple[str, ...]
    by_condition: Mapping[str, Floats]

    def rise(self, condition: str) -> Floats:
        """How much higher each error is than on the clean image; the error itself if clean was not run."""
        rise: Floats = self.by_condition[condition] - self.by_condition.get("clean", 0.0)
        return rise


class ImageLoss(NamedTuple):
    """One image under one condition: its error there, and on the clean image (NaN if clean was not run).

    `image_measure` says which measure the error is made of.
    """

    image: str
    condition: str
    error: float
    clean: float

    @property
    def rise(self) -> float:
        """How much higher the error is than on the clean image; the error itself if clean was not run."""
        return self.error if math.isnan(self.clean) else self.error - self.clean

    def __repr__(self) -> str:
        return f"<{self.image} under {self.condition}: error {self.error:.3f}, clean {self.clean:.3f}>"


def image_measure(scores: Scores) -> str:
    """The measure that errors of images are made of: AP, mask AP, mIoU or PQ, or E, itself an error."""
    if scores.metric == "E":
        return "E"
    return next((task.headline for task in all_tasks() if task.headline in scores.per_condition), "AP")


def image_losses(errors: ImageErrors, condition: str) -> list[ImageLoss]:
    """Every image under one condition, in the order of the dataset; images without truth are left out."""
    clean, values = errors.by_condition.get("clean"), errors.by_condition[condition]
    return [
        ImageLoss(name, condition, float(values[i]), math.nan if clean is None else float(clean[i]))
        for i, name in enumerate(errors.ids)
        if not math.isnan(values[i])
    ]


def worst_images(scores: Scores, count: int) -> list[ImageLoss]:
    """The cells whose error rises most from clean.

    Among equals, the condition that changes images least (by mean RMSE) comes first, then the name decides.
    """
    errors = scores.image_errors
    if errors is None:
        return []
    losses = [loss for text in errors.by_condition if text != "clean" for loss in image_losses(errors, text)]

    def rank(loss: ImageLoss) -> tuple[float, float, str, str]:
        rmse = scores.detail("quality").get(loss.condition, {}).get("rmse", math.nan)
        return -loss.rise, math.inf if math.isnan(rmse) else rmse, loss.image, loss.condition

    return sorted(losses, key=rank)[:count]
