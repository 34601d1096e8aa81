"""Worst images: those whose error rises most, and how visible the change is (*pezzementi*, Fig. 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stormproof.core.table import Table
from stormproof.core.text import plain
from stormproof.metrics.quality import ssim
from stormproof.report.imagery import Album, RunPredictions, Scene, ratio_of, shrunk
from stormproof.results.scores import Scores
from stormproof.results.worst import ImageLoss, worst_images

LISTED = 24  # lines of the table
SHOWN = 12  # images with their predictions
_SURE, _MOST = 0.3, 12  # predictions below this score, or beyond this many, are not drawn


class Loss(NamedTuple):
    """One image that a run loses under a condition, and the image's SSIM to the clean one."""

    scores: Scores
    loss: ImageLoss
    similarity: float

    @property
    def words(self) -> str:
        name, condition = plain(self.loss.image), self.loss.condition
        return (
            f"{name} under {condition}: the error of {self.scores.name} rises from "
            f"{100 * self.loss.clean:.0f} to {100 * self.loss.error:.0f} %, at an SSIM of "
            f"{self.similarity:.3f} to the clean image."
        )


Losses = Sequence[tuple[Scores, ImageLoss]]


def worst_first(several: Sequence[Scores]) -> Losses:
    """Every image under every condition in the order of `Run.worst`, of all runs together."""
    found = [(scores, loss) for scores in several for loss in worst_images(scores, _cells(scores))]
    return sorted(found, key=lambda pair: -_rise(pair[1]))


def each_image_once(losses: Losses) -> Losses:
    """The first of each image, as long as its error rises at all."""
    first: dict[str, tuple[Scores, ImageLoss]] = {}
    for scores, loss in losses:
        if _rise(loss) > 0:
            first.setdefault(loss.image, (scores, loss))
    return [*first.values()]


def _cells(scores: Scores) -> int:
    errors = scores.image_errors
    return 0 if errors is None else len(errors.ids) * len(errors.by_condition)


def _rise(loss: ImageLoss) -> float:
    return loss.error if math.isnan(loss.clean) else loss.rise


def measured(losses: Losses, scene: Scene) -> list[Loss]:
    """The losses with how similar the corrupted image is to the clean one."""
    found = []
    for scores, loss in losses:
        sample = scene.sample(loss.image)
        similarity = ssim(sample.image, scene.under(sample, loss.condition).image)
        found.append(Loss(scores, loss, similarity))
    return found


def cards(
    losses: Sequence[Loss], runs: Sequence[RunPredictions], scene: Scene, album: Album
) -> list[dict[str, Any]]:
    """The images, clean and corrupted, with truth and the model's predictions for both."""
    by_name = {run.scores.name: run for run in runs}
    made: list[dict[str, Any]] = []
    for each in losses:
        image, condition = each.loss.image, each.loss.condition
        sample = scene.sample(image)
        changed = scene.under(sample, condition)
        small = shrunk(sample.image)
        clean, corrupted = album.add(small), album.add(shrunk(changed.image))
        if clean is None or corrupted is None:
            break
        ratio, run = ratio_of(sample.image), by_name[each.scores.name]
        before, after = (_confident(run.objects(image, text, ratio)) for text in ("clean", condition))
        maps = {}
        for name, text in (("map_before", "clean"), ("map_after", condition)):
            painting = run.map(image, text)
            maps[name] = None if painting is None else album.add(painting, exact=True)
        made.append(
            {
                "image": plain(image),
                "condition": condition,
                "width": small.shape[1],
                "height": small.shape[0],
                "clean": clean,
                "corrupted": corrupted,
                "truth": scene.objects(changed.truth, ratio),
                "before": before,
                "after": after,
                **maps,
                "words": each.words,
            }
        )
    return made


def _confident(things: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [thing for thing in things if thing["score"] >= _SURE][:_MOST]


def table(losses: Sequence[Loss]) -> Table:
    """The list of `Run.worst`, with how visible each change is."""
    columns = ("image", "model", "condition", "error clean (%)", "error (%)", "rise (points)", "SSIM")
    rows = [
        (
            plain(each.loss.image),
            each.scores.name,
            each.loss.condition,
            100 * each.loss.clean,
            100 * each.loss.error,
            100 * each.loss.rise,
            each.similarity,
        )
        for each in losses
    ]
    note = (
        "The error of an image is the mean error of its objects, or 1 − mean IoU of a label map. Among "
        "equals, the condition that changes pixels least comes first."
    )
    return Table("worst", "Images whose error rises most", columns, rows, digits=2, note=note)
