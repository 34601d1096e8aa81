"""Worst images: those whose error rises most, and how visible the change is (*pezzementi*, Fig. 6)."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.sample import Truth
from stormproof.core.table import Table
from stormproof.core.text import plain
from stormproof.corruptions.geometry import select
from stormproof.metrics.fates import confident, find_fates
from stormproof.metrics.metric import measures
from stormproof.metrics.quality import ssim
from stormproof.report.imagery import Album, Imagery, RunPredictions, ratio_of, shrunk
from stormproof.report.sections import printed_difference
from stormproof.report.sentences import under
from stormproof.results.scores import Scores
from stormproof.results.worst import ImageLoss, image_measure, worst_images

LISTED = 24  # lines of the table
SHOWN = 12  # images with their predictions
_DIGITS = 2  # of the table's numbers


class Loss(NamedTuple):
    """One image that a run loses under a condition, and the image's SSIM to the clean one."""

    scores: Scores
    loss: ImageLoss
    similarity: float

    @property
    def words(self) -> str:
        measure = measures()[image_measure(self.scores)]
        unit = f" {measure.unit}" if measure.unit else ""
        before, after = (
            measure.scale * (1 - error if measure.higher else error)
            for error in (self.loss.clean, self.loss.error)
        )
        moved = f"{'falls' if measure.higher else 'rises'} from {before:.0f} to {after:.0f}{unit}"
        if math.isnan(before):  # the run lacks the clean image
            moved = f"is {after:.0f}{unit}"
        return (
            f"The {measure.name} of this image alone {moved} (SSIM to the clean image {self.similarity:.2f})."
        )


Losses = Sequence[tuple[Scores, ImageLoss]]


def worst_first(several: Sequence[Scores]) -> Losses:
    """Every image under every condition in the order of `Run.worst`, of all runs together."""
    losses = [(scores, loss) for scores in several for loss in worst_images(scores, sys.maxsize)]
    return sorted(losses, key=lambda pair: -pair[1].rise)


def each_image_once(losses: Losses) -> Losses:
    """The first of each image, as long as its error rises at all."""
    first: dict[str, tuple[Scores, ImageLoss]] = {}
    for scores, loss in losses:
        if loss.rise > 0:
            first.setdefault(loss.image, (scores, loss))
    return [*first.values()]


def telling(losses: Losses) -> Losses:
    """Every image once, as long as its error rises; the worst of each corruption come first, so that the
    first few show different failures."""
    images: set[str] = set()
    corruptions: set[str] = set()
    first = []
    for scores, loss in losses:
        corruption = Condition.parse(loss.condition).series
        if loss.rise > 0 and loss.image not in images and corruption not in corruptions:
            first.append((scores, loss))
            images.add(loss.image)
            corruptions.add(corruption)
    return [*first, *(pair for pair in each_image_once(losses) if pair[1].image not in images)]


def measure_losses(losses: Losses, scene: Imagery) -> list[Loss]:
    """The losses with how similar the corrupted image is to the clean one."""
    measured = []
    for scores, loss in losses:
        sample = scene.sample(loss.image)
        measured.append(Loss(scores, loss, ssim(sample.image, scene.under(sample, loss.condition).image)))
    return measured


def cards(
    losses: Sequence[Loss], runs: Sequence[RunPredictions], scene: Imagery, album: Album
) -> list[dict[str, Any]]:
    """Images that show a failure, clean and corrupted, with truth and the model's predictions for both."""
    by_name = {run.scores.name: run for run in runs}
    made: list[dict[str, Any]] = []
    for each in losses:
        image, condition = each.loss.image, each.loss.condition
        sample = scene.sample(image)
        changed = scene.under(sample, condition)
        ratio, run = ratio_of(sample.image), by_name[each.scores.name]
        before, after = (confident(run.objects(image, text, ratio)) for text in ("clean", condition))
        objects, were = (
            scene.objects(truth, ratio) if "AP" in each.scores else []  # a model of label maps finds none
            for truth in (changed.truth, _before_moving(sample.truth, changed.truth))
        )
        fates = find_fates(objects, before, after, clean=were)
        if objects and not fates.new and "lost" not in fates.words:
            continue  # only scores or places change: no failure that a picture shows
        small = shrunk(sample.image)
        clean, corrupted = album.add(small), album.add(shrunk(changed.image))
        if clean is None or corrupted is None:
            break
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
                "under": f"{each.scores.name}: {under(condition)}" if len(runs) > 1 else under(condition),
                "objects": [{**one, "fate": fate} for one, fate in zip(objects, fates.words, strict=True)],
                "new": fates.new,
                "before": before,
                "after": [one for one in after if one not in fates.new],
                "counts": fates.summary,
                **maps,
                "words": each.words,
            }
        )  # fmt: skip
    return made


def _before_moving(clean: Truth, moved: Truth) -> Truth:
    """The clean truth without the objects that left the image when a corruption moved the labels."""
    if moved.instances is clean.instances or clean.instances is None or moved.instances is None:
        return clean
    kept = np.flatnonzero(np.isin(clean.instances.ids, moved.instances.ids))
    return replace(clean, instances=select(clean.instances, kept))


def table(losses: Sequence[Loss]) -> Table:
    """The list of `Run.worst`, with how visible each change is."""
    measure = measures()[image_measure(losses[0].scores) if losses else "AP"]
    percent, points = (" (%)", " (points)") if measure.fraction else ("", "")
    columns = (
        "image",
        "model",
        "condition",
        f"error clean{percent}",
        f"error{percent}",
        f"rise{points}",
        "SSIM",
    )
    rows = []
    for each in losses:
        clean, error = (measure.scale * value for value in (each.loss.clean, each.loss.error))
        rise = printed_difference(error, 0.0 if math.isnan(clean) else clean, _DIGITS)
        named = (plain(each.loss.image), each.scores.name, each.loss.condition)
        rows.append((*named, clean, error, rise, each.similarity))
    what = f"1 − {measure.name}" if measure.higher else measure.name
    note = (
        f"The error of an image is {what} of that image alone; lower is better. Among equals, the condition "
        "that changes pixels least comes first."
    )
    return Table("worst", "Images whose error rises most", columns, rows, digits=_DIGITS, note=note)
