"""Images of a report, recreated from run and dataset: the same pixels that the model saw.

A run folder stores predictions only: the recipe, the seed and the image's id give the pixels back. The page
holds small copies as WebP, each once, within a budget of bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.condition import Condition
from stormproof.core.sample import RLE, Image, Instances, Prediction, Sample, Truth, as_rgb
from stormproof.core.text import plain
from stormproof.corruptions import apply
from stormproof.datasets.dataset import Dataset
from stormproof.models.classes import ClassMatch, match_classes
from stormproof.report.sections import all_levels
from stormproof.results.rows import predictions
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.tools.drawing import painted_map, strokes

Thing = dict[str, Any]
_LEAST, _MOST = 0.05, 40  # predictions below this score, or beyond this many, are not drawn
SIDE = 480  # the longer side of an image on the page, in pixels,
_BROWSED = 400  # and of those that are shown under every condition
_QUALITY = 62
_ELEMENT = 60  # bytes around an image in the page
_PACKED = 0.4  # the size of JSON after gzip and base64, relative to before


class Album:
    """The images of a page; once the budget is spent, nothing more goes in."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.spent = 0
        self.webp: dict[str, str] = {}

    def add(self, image: Image, *, exact: bool = False) -> str | None:
        """The key of an image, or none if it does not fit any more; `exact` keeps every pixel's value."""
        packed = self.pack(image, exact=exact)
        if packed is None:
            return None
        key = str(len(self.webp))
        self.webp[key] = packed
        return key

    def pack(self, image: Image, *, exact: bool = False) -> str | None:
        """The same as WebP in base64, for a page that holds it where it is shown."""
        quality = 101 if exact else _QUALITY  # above 100 is lossless
        packed = base64.b64encode(encode(image, ".webp", cv2.IMWRITE_WEBP_QUALITY, quality)).decode()
        if self.spent + len(packed) + _ELEMENT > self.budget:
            return None
        self.spent += len(packed) + _ELEMENT
        return packed

    def charge(self, content: object) -> None:
        """Count what the page holds beside the images: boxes and names."""
        self.spent += int(_PACKED * len(json.dumps(content, ensure_ascii=False)))


def encode(image: Image, suffix: str, *parameters: int) -> bytes:
    """An image, perhaps with an alpha channel, as a file; `parameters` are those of OpenCV."""
    rgb = image if image.ndim == 3 and image.shape[2] == 4 else as_rgb(image)
    code = cv2.COLOR_RGBA2BGRA if rgb.shape[2] == 4 else cv2.COLOR_RGB2BGR
    return cv2.imencode(suffix, cv2.cvtColor(rgb, code), parameters)[1].tobytes()


def ratio_of(image: npt.NDArray[Any], side: int = SIDE) -> float:
    """Pixels of the page per pixel of the image."""
    return min(1.0, side / int(max(image.shape[:2])))


def shrunk(image: Image, side: int = SIDE) -> Image:
    """The image as large as it is on the page."""
    if ratio_of(image, side) == 1:
        return image
    return np.asarray(cv2.resize(image, _small(image, side), interpolation=cv2.INTER_AREA), np.uint8)


def _small(image: npt.NDArray[Any], side: int = SIDE) -> tuple[int, int]:
    """Width and height on the page."""
    (height, width), ratio = image.shape[:2], ratio_of(image, side)
    return max(1, round(width * ratio)), max(1, round(height * ratio))


def outline(mask: RLE, ratio: float) -> str:
    """The outline of a mask as the path of an SVG, in the small image's pixels."""
    pixels = mask.to_mask().astype(np.uint8)
    contours, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    paths = []
    for contour in contours:
        points = cv2.approxPolyDP(contour.astype(np.float32) * ratio, 0.8, True).reshape(-1, 2)
        if len(points) > 2:
            paths.append("M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points) + "Z")
    return "".join(paths)


def outline_object(
    holder: Instances | Prediction, entry: int, ratio: float, *, masks: bool = True
) -> dict[str, str]:
    """What is drawn of an object instead of its box: its mask, and the lines of whatever else it carries."""
    path = outline(holder.masks[entry], ratio) if masks and holder.masks else None
    lines = ["M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line * ratio) for line in strokes(holder, entry)]
    return {} if path is None and not lines else {"outline": (path or "") + "".join(lines)}


def paint_map(labels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], classes: int) -> Image:
    """A label map in colours that differ in hue and brightness; pixels without a class are clear."""
    small = cv2.resize(labels, _small(labels), interpolation=cv2.INTER_NEAREST)
    colours = class_colours(classes)
    known = small < classes
    rgba = np.zeros((*small.shape, 4), np.uint8)
    rgba[known, :3] = colours[small[known]]
    rgba[known, 3] = 255
    return rgba


def class_colours(classes: int) -> npt.NDArray[Any]:
    """The colour of each class in a painted map, red, green, blue."""
    hue = (np.arange(max(classes, 1)) * 67) % 180  # far apart for neighbours
    value = 130 + (np.arange(max(classes, 1)) * 53) % 126
    table = np.stack([hue, np.full_like(hue, 200), value], axis=1).astype(np.uint8)[None]
    colours: npt.NDArray[Any] = cv2.cvtColor(table, cv2.COLOR_HSV2RGB)[0]
    return colours


@dataclass(frozen=True, eq=False)
class Imagery:
    """A dataset whose images can be recreated under any condition of the runs on it."""

    dataset: Dataset
    seed: int
    outlines: bool = False  # true objects by their masks, as the predictions are

    @cached_property
    def classes(self) -> list[str]:
        return [plain(name) for name in self.dataset.classes]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.dataset.ids)}

    @cached_property
    def _read(self) -> Callable[[int], Sample]:
        return lru_cache(maxsize=8)(self.dataset.__getitem__)

    def sample(self, image: str) -> Sample:
        """A clean image; the last few are kept, since a page shows the same ones under many conditions."""
        return self._read(self._index[image])

    def under(self, sample: Sample, condition: str) -> Sample:
        """The sample under a condition, as the engine made it."""
        return apply(
            sample,
            Condition.parse(condition),
            seed=self.seed,
            classes=self.dataset.classes,
            semantic_classes=self.dataset.semantic_classes,
        )

    def objects(self, truth: Truth, ratio: float, *, counted: bool = False) -> list[Thing]:
        """The true objects of an image, in the small image's pixels; `counted` leaves out ignored ones."""
        if truth.instances is None:
            return []
        objects = truth.instances
        shown = ~(objects.crowd | objects.ignore) if counted else ~objects.crowd
        return [
            {
                "box": _box(objects.boxes[i], ratio),
                "name": self.classes[objects.labels[i]],
                **outline_object(objects, i, ratio, masks=self.outlines),
            }
            for i in np.flatnonzero(shown).tolist()
        ]


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """One run's predictions for a few images."""

    scores: Scores
    scene: Imagery
    images: frozenset[str]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Prediction]:
        assert self.scores.folder is not None
        return predictions(Run(self.scores.folder), self.images)

    @cached_property
    def _match(self) -> ClassMatch:
        assert self.scores.record is not None
        return match_classes(self.scores.record.model.classes, self.scene.dataset.classes)

    @cached_property
    def _maps(self) -> ClassMatch:
        assert self.scores.record is not None
        return match_classes(self.scores.record.model.semantic_classes, self.scene.dataset.semantic_classes)

    def objects(self, image: str, condition: str, ratio: float) -> list[Thing]:
        """Predicted objects, most confident first, in the dataset's classes."""
        prediction = self._rows.get((image, condition))
        if prediction is None or not len(prediction):
            return []
        labels = np.asarray(self._match.labels, np.int64)[prediction.labels]
        order = np.argsort(-prediction.scores, kind="stable")[:_MOST]
        return [
            {
                "box": _box(prediction.boxes[i], ratio),
                "name": self.scene.classes[labels[i]],
                "score": round(float(prediction.scores[i]), 3),
                **outline_object(prediction, i, ratio),
            }
            for i in order.tolist()
            if prediction.scores[i] >= _LEAST and labels[i] >= 0
        ]

    def map(self, image: str, condition: str) -> Image | None:
        """The predicted panoptic or semantic map in colours, if there is one."""
        prediction = self._rows.get((image, condition))
        if prediction is None:
            return None
        prediction = self._match.apply(prediction, maps=self._maps)
        drawn = painted_map(prediction)
        return None if drawn is None else paint_map(drawn[0], len(self.scene.dataset.semantic_classes))


def _box(box: Iterable[float], ratio: float) -> list[float]:
    return [round(float(v) * ratio, 1) for v in box]


def browser(
    scene: Imagery,
    runs: Sequence[RunPredictions],
    images: Sequence[str],
    conditions: Sequence[str],
    album: Album,
) -> dict[str, Any]:
    """The same images under every condition, with truth and every run's predictions.

    While there is room, each image gets the middle severity of every corruption, then the strongest, the
    weakest and the others: a page that cannot hold everything shows something of all.
    """
    entries = {name: _entry(scene, name) for name in images}
    for text in _telling_first(conditions):
        for name, entry in entries.items():
            cell = _cell(scene, runs, name, text, album) if text == "clean" or entry["cells"] else None
            if cell is not None:
                entry["cells"][text] = cell
    kept = [entry for entry in entries.values() if entry["cells"]]
    for entry in kept:
        entry["whole"] = len(entry["cells"]) == len({"clean", *conditions})
        if (labels := entry.pop("labels")) is not None:
            entry["map"] = album.add(paint_map(labels, len(scene.dataset.semantic_classes)), exact=True)
    held = {text for entry in kept for text in entry["cells"]}
    levels = all_levels(c for c in map(Condition.parse, conditions) if not c.is_clean and str(c) in held)
    return {
        "runs": [run.scores.name for run in runs],
        "classes": sorted({name for entry in kept for name in entry["classes"]}),
        "corruptions": [{"name": name, "levels": [*map(str, row)]} for name, row in levels.items()],
        "images": kept,
    }


def _telling_first(conditions: Iterable[str]) -> list[str]:
    """Clean, then by corruption the middle severity, the strongest, the weakest and those between.

    >>> _telling_first(["fog@1", "fog@2", "fog@3", "fog@4", "fog@5", "snow@2"])
    ['clean', 'fog@3', 'snow@2', 'fog@5', 'fog@1', 'fog@2', 'fog@4']
    """
    rounds: dict[str, int] = {}
    for levels in all_levels(c for c in map(Condition.parse, conditions) if not c.is_clean).values():
        texts = [str(level) for level in levels]
        first = dict.fromkeys((texts[len(texts) // 2], texts[-1], texts[0], *texts))
        rounds |= {text: min(place, 3) for place, text in enumerate(first)}
    return ["clean", *sorted(rounds, key=lambda text: rounds[text])]


def _entry(scene: Imagery, name: str) -> dict[str, Any]:
    """An image without its cells."""
    sample = scene.sample(name)
    width, height = _small(sample.image, _BROWSED)
    truth = scene.objects(sample.truth, ratio_of(sample.image, _BROWSED))
    semantic = sample.truth.semantic
    return {
        "id": plain(name),
        "width": width,
        "height": height,
        "truth": truth,
        "cells": {},
        "classes": sorted({thing["name"] for thing in truth}),
        "labels": None if semantic is None else semantic.labels,
    }


def _cell(
    scene: Imagery, runs: Sequence[RunPredictions], name: str, text: str, album: Album
) -> dict[str, Any] | None:
    """An image under a condition; none if the album is full."""
    sample = scene.sample(name)
    changed = sample if text == "clean" else scene.under(sample, text)
    key, ratio = album.add(shrunk(changed.image, _BROWSED)), ratio_of(sample.image, _BROWSED)
    if key is None:
        return None
    cell: dict[str, Any] = {"webp": key, "found": [run.objects(name, text, ratio) for run in runs]}
    if changed.truth is not sample.truth:
        cell["truth"] = scene.objects(changed.truth, ratio)
    maps = [run.map(name, text) for run in runs]
    if any(m is not None for m in maps):
        cell["maps"] = [None if m is None else album.add(m, exact=True) for m in maps]
    album.charge(cell)
    return cell
