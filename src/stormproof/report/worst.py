"""Worst images: where a barely visible change costs most (*pezzementi*, Fig. 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.condition import Condition
from stormproof.metrics.quality import ssim
from stormproof.report.album import Album, ratio_of, shrunk
from stormproof.report.elements import Table
from stormproof.report.imagery import Said, Scene
from stormproof.report.subject import Subject
from stormproof.report.text import plain
from stormproof.results.images import ImageErrors

_LOOKED_AT = 48  # cells whose images are made again to measure how visible the change is
_LEAST_RISE = 0.2  # about one object lost in five
_LEAST_CHANGE = 0.005  # of 1 − SSIM: below it, pixels differ by less than rounding


class Loss(NamedTuple):
    """One image of one run that became worse under a condition."""

    run: int
    image: str
    condition: str
    rise: float
    similarity: float = math.nan

    @property
    def per_change(self) -> float:
        """Rise of the error per unit of visible change."""
        return self.rise / max(1 - self.similarity, _LEAST_CHANGE)


def hardest(subjects: Sequence[Subject], errors: Sequence[ImageErrors]) -> list[Loss]:
    """The cells worth a look: largest rise of error for how far the condition usually takes images."""
    found: list[tuple[float, Loss]] = []
    for run, (subject, held) in enumerate(zip(subjects, errors, strict=True)):
        if "clean" not in held.by_condition:
            continue
        for condition in held.by_condition:
            if condition == "clean":
                continue
            rise, size = held.rise(condition), _usual_size(subject, condition)
            order = np.argsort(-np.nan_to_num(rise, nan=-1.0), kind="stable")[:8].tolist()
            found += [
                (float(rise[i]) / size, Loss(run, held.ids[i], condition, float(rise[i])))
                for i in order
                if rise[i] >= _LEAST_RISE
            ]
    found.sort(key=lambda pair: (-pair[0], pair[1][:3]))
    return _varied([loss for _, loss in found], most=2)[:_LOOKED_AT]


def _usual_size(subject: Subject, condition: str) -> float:
    """How far a condition takes images: the mean RMSE where the run kept it, else its severity."""
    rmse = subject.quality.get(condition, {}).get("rmse", math.nan)
    return max(rmse, 1.0) if math.isfinite(rmse) else 10.0 * float(Condition.parse(condition).severity or 3)


def _varied(losses: Sequence[Loss], most: int) -> list[Loss]:
    """At most so many of one image of one run."""
    seen: dict[tuple[int, str], int] = {}
    kept = []
    for loss in losses:
        seen[loss.run, loss.image] = seen.get((loss.run, loss.image), 0) + 1
        if seen[loss.run, loss.image] <= most:
            kept.append(loss)
    return kept


def measured(losses: Sequence[Loss], scene: Scene) -> list[Loss]:
    """The losses with how similar the corrupted image is to the clean one, worst per visible change first."""
    found = []
    for loss in losses:
        sample = scene.sample(loss.image)
        changed = scene.under(sample, loss.condition)
        found.append(loss._replace(similarity=ssim(sample.image, changed.image)))
    return sorted(found, key=lambda loss: (-loss.per_change, loss[:3]))


def cards(
    losses: Sequence[Loss], said: Sequence[Said], scene: Scene, album: Album, count: int
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


def words(loss: Loss, subject: Subject) -> str:
    return (
        f"{plain(loss.image)} under {loss.condition}: the error of {subject.name} rises by "
        f"{100 * loss.rise:.0f} points at an SSIM of {loss.similarity:.3f} to the clean image."
    )


def _sure(things: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [thing for thing in things if thing["score"] >= 0.3][:12]


def table(losses: Sequence[Loss], subjects: Sequence[Subject]) -> Table:
    """Every cell that was looked at."""
    columns = ("image", "model", "condition", "rise of error (points)", "SSIM", "rise / (1 − SSIM)")
    rows = [
        (
            plain(loss.image),
            subjects[loss.run].name,
            loss.condition,
            100 * loss.rise,
            loss.similarity,
            loss.per_change,
        )
        for loss in losses
    ]
    return Table("worst", "Images by loss per visible change", columns, rows, digits=2)
