"""Worst images: those whose error rises most, and how visible the change is (*pezzementi*, Fig. 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stormproof.core.table import Table
from stormproof.core.text import plain
from stormproof.metrics.quality import ssim
from stormproof.report.album import Album, ratio_of, shrunk
from stormproof.report.imagery import RunPredictions, Scene
from stormproof.results.scores import Scores
from stormproof.results.worst import worst_images

_LOOKED_AT = 24  # cells whose images are made again to measure how visible the change is
_LEAST_RISE = 0.2  # about one object lost in five


class Loss(NamedTuple):
    """One image of one run that became worse under a condition."""

    run: int
    image: str
    condition: str
    rise: float
    similarity: float = math.nan


def hardest(several: Sequence[Scores]) -> list[Loss]:
    """The worst images of every run, as `Run.worst` lists them, one condition each; worst first."""
    found = []
    for run, scores in enumerate(several):
        seen: set[str] = set()
        for loss in worst_images(scores, 40 * _LOOKED_AT):
            if loss.rise >= _LEAST_RISE and loss.image not in seen:
                seen.add(loss.image)
                found.append(Loss(run, loss.image, loss.condition, loss.rise))
    return sorted(found, key=lambda loss: (-loss.rise, loss[:3]))[:_LOOKED_AT]


def measured(losses: Sequence[Loss], scene: Scene) -> list[Loss]:
    """The losses with how similar the corrupted image is to the clean one."""
    found = []
    for loss in losses:
        sample = scene.sample(loss.image)
        changed = scene.under(sample, loss.condition)
        found.append(loss._replace(similarity=ssim(sample.image, changed.image)))
    return found


def cards(
    losses: Sequence[Loss], said: Sequence[RunPredictions], scene: Scene, album: Album, count: int
) -> list[dict[str, Any]]:
    """The worst images with truth and what the model said before and after; one condition per image."""
    made: list[dict[str, Any]] = []
    first: dict[str, Loss] = {}
    for loss in losses:
        first.setdefault(loss.image, loss)
    for loss in list(first.values())[:count]:
        sample = scene.sample(loss.image)
        changed = scene.under(sample, loss.condition)
        small = shrunk(sample.image)
        clean, corrupted = album.add(small), album.add(shrunk(changed.image))
        if clean is None or corrupted is None:
            break
        ratio, one = ratio_of(sample.image), said[loss.run]
        before, after = (_sure(one.objects(loss.image, text, ratio)) for text in ("clean", loss.condition))
        maps = {}
        for name, text in (("map_before", "clean"), ("map_after", loss.condition)):
            painting = one.map(loss.image, text)
            maps[name] = None if painting is None else album.add(painting, exact=True)
        made.append(
            {
                "image": plain(loss.image),
                "condition": loss.condition,
                "width": small.shape[1],
                "height": small.shape[0],
                "clean": clean,
                "corrupted": corrupted,
                "truth": scene.objects(changed.truth, ratio),
                "before": before,
                "after": after,
                **maps,
                "words": words(loss, one.subject),
            }
        )
    return made


def words(loss: Loss, subject: Scores) -> str:
    return (
        f"{plain(loss.image)} under {loss.condition}: the error of {subject.name} rises by "
        f"{100 * loss.rise:.0f} points at an SSIM of {loss.similarity:.3f} to the clean image."
    )


def _sure(things: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [thing for thing in things if thing["score"] >= 0.3][:12]


def table(losses: Sequence[Loss], subjects: Sequence[Scores]) -> Table:
    """Every cell that was looked at."""
    columns = ("image", "model", "condition", "rise of error (points)", "SSIM")
    rows = [
        (
            plain(loss.image),
            subjects[loss.run].name,
            loss.condition,
            100 * loss.rise,
            loss.similarity,
        )
        for loss in losses
    ]
    return Table("worst", "Images whose error rises most", columns, rows, digits=2)
