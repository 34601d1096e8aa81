"""Images of a report, made again from run and dataset: the same pixels that the model saw.

Nothing is stored with a run but predictions; the recipe, the seed and the image's id give the pixels back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from stormproof.core.condition import Condition
from stormproof.core.sample import Image, Prediction, Sample, Truth
from stormproof.core.text import plain
from stormproof.corruptions import apply
from stormproof.datasets.dataset import Dataset
from stormproof.models.classes import ClassMatch, match_classes
from stormproof.report.album import Album, outline, painted, ratio_of, shrunk
from stormproof.results.scores import Scores
from stormproof.results.store.parts import part_paths
from stormproof.results.store.schema import DETECTION, ROWS, SEMANTIC, prediction_of

Thing = dict[str, Any]
_LEAST, _MOST = 0.05, 40  # predictions below this score, or beyond this many, are not drawn


@dataclass(frozen=True, eq=False)
class Scene:
    """A dataset whose images can be made again under any condition of runs on it."""

    dataset: Dataset
    seed: int
    outlines: bool = False  # true objects by their masks, as the predictions are

    @cached_property
    def classes(self) -> list[str]:
        return [plain(name) for name in self.dataset.classes]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.dataset.ids)}

    def sample(self, image: str) -> Sample:
        return self.dataset[self._index[image]]

    def under(self, sample: Sample, condition: str) -> Sample:
        """The sample under a condition, as the engine made it."""
        return apply(
            sample,
            Condition.parse(condition),
            seed=self.seed,
            classes=self.dataset.classes,
            semantic_classes=self.dataset.semantic_classes,
        )

    def objects(self, truth: Truth, ratio: float) -> list[Thing]:
        """The true objects of an image, in the small image's pixels."""
        if truth.instances is None:
            return []
        masks = (truth.instances.masks if self.outlines else None) or [None] * len(truth.instances)
        return [
            {
                "box": _box(box, ratio),
                "name": self.classes[label],
                **({"outline": outline(mask, ratio)} if mask is not None else {}),
            }
            for box, label, mask, crowd in zip(
                truth.instances.boxes, truth.instances.labels, masks, truth.instances.crowd, strict=True
            )
            if not crowd
        ]


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """One run's predictions for a few images."""

    subject: Scores
    scene: Scene
    images: frozenset[str]

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Prediction]:
        assert self.subject.folder is not None
        parts = part_paths(self.subject.folder)
        columns = ["image", "condition", "height", "width", *DETECTION, *SEMANTIC]
        data = ds.dataset(parts, schema=ROWS)
        table = data.to_table(columns, filter=ds.field("image").isin([*self.images]))
        return {(row["image"], row["condition"]): prediction_of(row) for row in table.to_pylist()}

    @cached_property
    def _match(self) -> ClassMatch:
        assert self.subject.record is not None
        return match_classes(self.subject.record.model.classes, self.scene.dataset.classes)

    @cached_property
    def _maps(self) -> ClassMatch:
        assert self.subject.record is not None
        return match_classes(self.subject.record.model.semantic_classes, self.scene.dataset.semantic_classes)

    def objects(self, image: str, condition: str, ratio: float) -> list[Thing]:
        """Predicted objects, surest first, in the dataset's classes."""
        said = self._rows.get((image, condition))
        if said is None or not len(said):
            return []
        labels = np.asarray(self._match.labels, np.int64)[said.labels]
        order = np.argsort(-said.scores, kind="stable")[:_MOST]
        return [
            {
                "box": _box(said.boxes[i], ratio),
                "name": self.scene.classes[labels[i]],
                "score": round(float(said.scores[i]), 3),
                **({"outline": outline(said.masks[i], ratio)} if said.masks else {}),
            }
            for i in order.tolist()
            if said.scores[i] >= _LEAST and labels[i] >= 0
        ]

    def map(self, image: str, condition: str) -> Image | None:
        """The predicted label map in colours, if there is one."""
        said = self._rows.get((image, condition))
        if said is None or said.semantic is None:
            return None
        return painted(self._maps.apply(said).semantic, len(self.scene.dataset.semantic_classes))  # type: ignore[arg-type]


def _box(box: Iterable[float], ratio: float) -> list[float]:
    return [round(float(v) * ratio, 1) for v in box]


def levels_of(conditions: Sequence[str]) -> dict[str, list[str]]:
    """Conditions by what they are levels of, in order, as the slider walks through them."""
    found: dict[str, list[Condition]] = {}
    for condition in map(Condition.parse, conditions):
        if not condition.is_clean:
            name = condition.series if condition.severity is not None else str(condition.corruption)
            found.setdefault(name, []).append(condition)
    return {
        name: [str(c) for c in sorted(levels, key=lambda c: c.severity or 0)]
        for name, levels in found.items()
    }


def browser(
    scene: Scene,
    said: Sequence[RunPredictions],
    images: Sequence[str],
    conditions: Sequence[str],
    album: Album,
) -> dict[str, Any]:
    """The same images under every condition, with truth and every run's predictions."""
    kept = [entry for name in images if (entry := _entry(scene, said, name, conditions, album)) is not None]
    levels = levels_of(conditions)
    names = sorted({thing for entry in kept for thing in entry["classes"]})
    return {
        "runs": [one.subject.name for one in said],
        "classes": names,
        "corruptions": [{"name": name, "levels": texts} for name, texts in levels.items()],
        "images": kept,
    }


def _entry(
    scene: Scene, said: Sequence[RunPredictions], name: str, conditions: Sequence[str], album: Album
) -> dict[str, Any] | None:
    sample = scene.sample(name)
    ratio = ratio_of(sample.image)
    small = shrunk(sample.image)
    truth = scene.objects(sample.truth, ratio)
    cells: dict[str, Any] = {}
    for text in ("clean", *(t for t in conditions if t != "clean")):
        changed = sample if text == "clean" else scene.under(sample, text)
        key = album.add(shrunk(changed.image))
        if key is None:
            break
        cells[text] = {"webp": key, "said": [one.objects(name, text, ratio) for one in said]}
        if changed.truth is not sample.truth:
            cells[text]["truth"] = scene.objects(changed.truth, ratio)
        maps = [one.map(name, text) for one in said]
        if any(m is not None for m in maps):
            cells[text]["maps"] = [None if m is None else album.add(m, exact=True) for m in maps]
        album.charge(cells[text])
    if "clean" not in cells:
        return None
    entry = {
        "id": plain(name),
        "width": small.shape[1],
        "height": small.shape[0],
        "truth": truth,
        "cells": cells,
        "classes": sorted({thing["name"] for thing in truth}),
        "whole": len(cells) == len({"clean", *conditions}),
    }
    if sample.truth.semantic is not None:
        entry["map"] = album.add(
            painted(sample.truth.semantic.labels, len(scene.dataset.semantic_classes)), exact=True
        )
    return entry


def facts(notices: Sequence[str], album: Album, scenes: Mapping[str, Any]) -> dict[str, Any]:
    """What a page needs to show images."""
    return {
        "notices": list(notices),
        "webp": album.webp,
        "scenes": scenes,
        "browser": bool(scenes.get("browser")),
        "worst": bool(scenes.get("worst")),
    }
