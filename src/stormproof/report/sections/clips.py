"""Clips: are detections steady? Flicker, fragments and jitter of objects over frames, and a filmstrip:
consecutive frames of one clip, clean and corrupted, with objects found and missed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from stormproof.core.randomness import Frame
from stormproof.core.sample import Image, as_rgb
from stormproof.core.table import Entry, Table
from stormproof.core.text import plain
from stormproof.metrics.fates import confident, is_same
from stormproof.metrics.metric import measures
from stormproof.report.elements import Axis, Datum, Figure, Kind, Section
from stormproof.report.imagery import Album, RunPredictions
from stormproof.report.sections import Scope, limits, per_cent, section, unit
from stormproof.report.sentences import under
from stormproof.results.calibrated import footnote
from stormproof.results.scores import Scores

MEASURES = ("flicker", "fragments", "jitter", "centre error", "shape error", "found")
_TEXT = (
    "Flicker is how often an object that is there in two consecutive frames is found in one and missed in "
    "the other. Fragments are interruptions of a found object, per track. Jitter is how far a box shifts "
    "against its object from one frame to the next, in sides of the box. Centre and shape error are the "
    "deviations of a track's boxes (Zhang & Wang 2016). A model that finds nothing does not flicker: read "
    "flicker beside the share of objects found. Thresholds are those that are best on the clean frames; "
    "intervals are for new clips."
)
FRAMES = 6  # side by side
ROWS = 4  # conditions below each other, clean included
WIDTH = 250  # of a frame, in pixels
FOUND, MISSED = (120, 200, 255), (255, 140, 0)  # light blue and orange, distinct to colour-blind readers too
_GAP = 4


@section(place=60)
def stability(scope: Scope) -> Section | None:
    """How steady detections are under every condition."""
    runs = [run for run in scope.runs if "flicker" in run.per_condition]
    if not runs:
        return None
    columns = ("run", "condition", *(unit(name) for name in MEASURES))
    rows = [row for run in runs for row in _rows(run)]
    table = Table("clips", "Stability over clips", columns, rows, digits=2)
    return Section("clips", "Are detections steady?", _TEXT, (_flicker(runs),), (table,), short="Clips")


def _rows(run: Scores) -> list[tuple[Entry, ...]]:
    return [
        (run.name, text, *(per_cent(name, run.per_condition[name].get(text, math.nan)) for name in MEASURES))
        for text in run.per_condition["flicker"]
    ]


def _flicker(runs: list[Scores]) -> Figure:
    rows: list[Datum] = []
    for run in runs:
        sure = run.intervals("flicker") if run.replicates is not None else {}
        for text, value in run.per_condition["flicker"].items():
            row = {"x": text, "y": per_cent("flicker", value), "series": run.name}
            rows.append(row | limits(sure.get(text), measures()["flicker"].scale))
    doubts = dict.fromkeys(footnote(run, ["flicker"]) for run in runs)
    note = " ".join(filter(None, [f"Flicker: {measures()['flicker'].words}.", *doubts]))
    return Figure(
        "flicker", "Flicker of detections", Kind.BARS, Axis("condition", names=True),
        Axis("flicker (%)", zero=True), rows, series="model", note=note, by_run=True,
    )  # fmt: skip


def filmstrip(run: RunPredictions, frames: Mapping[str, Frame], album: Album) -> dict[str, Any] | None:
    """The frames in which detections come and go most, as one picture per condition."""
    conditions = _conditions(run)
    if not conditions:
        return None
    images = liveliest(run, frames, conditions)
    rows = []
    for text in ("clean", *conditions):
        strip, counts = row(run, images, text)
        picture = album.pack(strip)
        if picture is None:
            break
        rows.append({"condition": text, "under": under(text), "webp": picture, "found": counts})
    if not rows:
        return None
    first, last = frames[images[0]], frames[images[-1]]
    return {
        "clip": plain(first.sequence), "from": first.time, "to": last.time, "run": run.scores.name,
        "rows": rows,
    }  # fmt: skip


def _conditions(run: RunPredictions) -> list[str]:
    """The conditions under which detections flicker most."""
    flicker = run.scores.per_condition.get("flicker", {})
    known = {text: value for text, value in flicker.items() if text != "clean" and np.isfinite(value)}
    most = sorted(known, key=lambda text: -known[text])[: ROWS - 1]
    return [text for text in known if text in most]


def liveliest(run: RunPredictions, frames: Mapping[str, Frame], conditions: Sequence[str]) -> Sequence[str]:
    """The consecutive frames between which the number of confident detections changes most."""
    clips: dict[str, list[str]] = {}
    for name, frame in sorted(frames.items(), key=lambda pair: pair[1].time):
        clips.setdefault(frame.sequence, []).append(name)
    best: float = -1.0
    chosen: Sequence[str] = ()
    for names in clips.values():
        changes = np.array([_changes(run, names, text) for text in conditions]).sum(axis=0)
        for start in range(max(len(names) - FRAMES, 0) + 1):
            total = float(changes[start : start + FRAMES - 1].sum())
            if total > best:
                best, chosen = total, names[start : start + FRAMES]
    return chosen


def _changes(run: RunPredictions, images: Sequence[str], condition: str) -> list[int]:
    """How many detections each frame gains or loses against the one before, by class."""
    seen = [
        Counter(thing["name"] for thing in confident(run.objects(image, condition, 1.0))) for image in images
    ]
    return [((after - before) + (before - after)).total() for before, after in pairwise(seen)]


def row(run: RunPredictions, images: Sequence[str], condition: str) -> tuple[Image, list[str]]:
    """The frames under a condition side by side, and how many objects are found in each."""
    tiles, words = [], []
    for image in images:
        sample = run.scene.sample(image)
        sample = sample if condition == "clean" else run.scene.under(sample, condition)
        scale = WIDTH / sample.image.shape[1]
        height = max(1, round(sample.image.shape[0] * scale))
        pixels = cv2.resize(as_rgb(sample.image), (WIDTH, height), interpolation=cv2.INTER_AREA)
        tile = np.asarray(pixels, np.uint8)
        seen = confident(run.objects(image, condition, scale))
        objects = run.scene.objects(sample.truth, scale, counted=True)
        found = [any(is_same(thing, other) for other in seen) for thing in objects]
        for thing, there in zip(objects, found, strict=True):
            _draw(tile, thing["box"], found=there)
        tiles += [tile, np.full((height, _GAP, 3), 255, np.uint8)]
        words.append(f"{sum(found)} of {len(found)}")
    return np.hstack(tiles[:-1]), words


def _draw(tile: Image, box: Sequence[float], *, found: bool) -> None:
    """A solid frame around what is found, a crossed one around what is missed."""
    (x1, y1), (x2, y2) = ((round(box[k]), round(box[k + 1])) for k in (0, 2))
    cv2.rectangle(tile, (x1, y1), (x2, y2), FOUND if found else MISSED, 1)
    if not found:
        cv2.line(tile, (x1, y1), (x2, y2), MISSED, 1, cv2.LINE_AA)
