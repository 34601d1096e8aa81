"""A filmstrip: consecutive frames of one clip, clean and corrupted, with objects found and missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cv2
import numpy as np

from stormproof.core.randomness import Frame
from stormproof.core.sample import Image, as_rgb
from stormproof.core.text import plain
from stormproof.report.imagery import Album, RunPredictions
from stormproof.report.sentences import under
from stormproof.report.worst import confident, is_same

FRAMES = 6  # side by side
ROWS = 4  # conditions below each other, clean included
WIDTH = 250  # of a frame, in pixels
FOUND, MISSED = (120, 200, 255), (255, 140, 0)  # light blue and orange, distinct to colour-blind readers too
_GAP = 4


@dataclass(frozen=True, slots=True)
class Clip:
    """The frames that are shown: their ids in order of time."""

    sequence: str
    images: tuple[str, ...]

    @classmethod
    def liveliest(cls, run: RunPredictions, frames: Mapping[str, Frame], conditions: Sequence[str]) -> Clip:
        """The frames between which the number of confident detections changes most under corruption."""
        members: dict[str, list[str]] = {}
        for name, frame in sorted(frames.items(), key=lambda pair: pair[1].time):
            members.setdefault(frame.sequence, []).append(name)
        best, found = -1.0, cls("", ())
        for sequence, names in members.items():
            seen = [[_kinds(run, name, text) for name in names] for text in conditions]
            changes = np.array([_changes(each) for each in seen]).sum(axis=0)
            for start in range(max(len(names) - FRAMES, 0) + 1):
                total = float(changes[start : start + FRAMES - 1].sum())
                if total > best:
                    best, found = total, cls(sequence, tuple(names[start : start + FRAMES]))
        return found


def filmstrip(run: RunPredictions, frames: Mapping[str, Frame], album: Album) -> dict[str, Any] | None:
    """The frames in which detections come and go most, as one picture per condition."""
    conditions = _conditions(run)
    if not conditions:
        return None
    clip = Clip.liveliest(run, frames, conditions)
    rows = []
    for text in ("clean", *conditions):
        strip, found = row(run, clip, text)
        key = album.add(strip)
        if key is None:
            break
        picture = album.webp.pop(key)  # the page holds it where it is shown, and not among the others
        rows.append({"condition": text, "under": under(text), "webp": picture, "found": found})
    if not rows:
        return None
    first, last = (frames[image].time for image in (clip.images[0], clip.images[-1]))
    return {"clip": plain(clip.sequence), "from": first, "to": last, "run": run.scores.name, "rows": rows}


def _conditions(run: RunPredictions) -> list[str]:
    """The conditions under which detections flicker most."""
    flicker = run.scores.cells.get("flicker", {})
    known = {text: value for text, value in flicker.items() if text != "clean" and np.isfinite(value)}
    most = sorted(known, key=lambda text: -known[text])[: ROWS - 1]
    return [text for text in known if text in most]


def _kinds(run: RunPredictions, image: str, condition: str) -> Counter[str]:
    return Counter(thing["name"] for thing in confident(run.objects(image, condition, 1.0)))


def _changes(kinds: Sequence[Counter[str]]) -> list[int]:
    """How many detections each frame gains or loses against the one before, by class."""
    pairs = pairwise(kinds)
    return [((after - before) + (before - after)).total() for before, after in pairs]


def row(run: RunPredictions, clip: Clip, condition: str) -> tuple[Image, list[str]]:
    """The frames under a condition side by side, and how many objects are found in each."""
    tiles, words = [], []
    for image in clip.images:
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
