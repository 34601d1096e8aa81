"""Predictions made elsewhere: `results:detections.json`, or a folder with one file or folder per condition.

    results:detections.json              COCO results for the clean images
    results:folder                       clean.json, fog@3.json, …; or clean/ID.png, fog@3/ID.png, …
    results:folder (ID.png in it)        semantic maps for the clean images

No image file is needed, and no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import numpy as np

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidCondition, InvalidPrediction, ModelError
from stormproof.core.files import list_files, locate, read_json
from stormproof.core.imagefile import opened
from stormproof.core.sample import Prediction
from stormproof.core.spec import opens
from stormproof.datasets.coco import category_ids, read_categories
from stormproof.datasets.dataset import Dataset
from stormproof.models.answers import label_map
from stormproof.models.fingerprint import fingerprint
from stormproof.models.resulttable import ResultTable, read_table
from stormproof.models.vocabulary import COCO_IDS, VOCABULARIES, resolve_classes

_MAPS = frozenset({".png"})


@dataclass(frozen=True, eq=False)
class Results:
    """COCO results by condition. Until `bind` or `classes` says otherwise, labels are category numbers."""

    name: str
    files: Mapping[Condition, Path]
    classes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # category_id of each label
    ids: frozenset[str] | None = None

    semantic_classes: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self.files)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.files.values(), {"classes": self.classes, "numbers": self.numbers})

    def bind(self, dataset: Dataset) -> Self:
        """Category numbers are the dataset's own, unless classes were given; ids are checked against it."""
        if self.classes:
            return replace(self, ids=frozenset(dataset.ids))
        return replace(self, numbers=category_ids(dataset), ids=frozenset(dataset.ids))

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        path = _of(condition, self.files, self.name)
        if condition not in self._tables:
            self._tables[condition] = read_table(path, self.numbers, self.ids)
        return self._tables[condition].prediction(image_id)

    @cached_property
    def _tables(self) -> dict[Condition, ResultTable]:
        """Each file is read once: a run asks for one image under every condition before the next image."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__ if name in self.__dict__}


@dataclass(frozen=True, eq=False)
class SemanticResults:
    """Semantic maps as PNG files, by condition and image id; values index `semantic_classes`, or where
    there are none, the dataset's."""

    name: str
    folders: Mapping[Condition, Path]
    semantic_classes: tuple[str, ...] = ()

    classes: tuple[str, ...] = field(default=())

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self.folders)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.folders.values(), {"classes": self.semantic_classes})

    def bind(self, dataset: Dataset) -> Self:
        return self

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        folder = _of(condition, self.folders, self.name)
        path = folder / f"{image_id}.png"
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidPrediction(f"Image id {image_id!r} leads out of {folder}.")
        if not path.is_file():
            raise InvalidPrediction(
                f"{path} is missing: no semantic map for image {image_id!r} under {condition}."
            )
        with opened(path) as image:
            plane = np.array(image)
        if plane.ndim != 2:
            raise InvalidPrediction(f"{path} must be a PNG of class numbers: palette, 8-bit or 16-bit grey.")
        return Prediction(semantic=label_map(plane, str(path)))


@opens("results")
def open_results(
    main: str, *, classes: str | None = None, annotations: str | None = None
) -> Results | SemanticResults:
    """Open a results file or folder.

    `annotations` is a COCO file whose categories the results use; `classes` a vocabulary or text file: then
    category numbers count from 1 (COCO's own for coco80), and values of semantic maps from 0. Without
    either, both are the dataset's.
    """
    path = locate(main, error=ModelError)
    name = path.stem if path.is_file() else path.name
    names = resolve_classes(classes, None) or ()
    if path.is_file():
        return _with_classes(Results(name, {CLEAN: path}), names, annotations)
    tables = {_condition(file): file for file in sorted(path.glob("*.json"))}
    if tables:
        return _with_classes(Results(name, tables), names, annotations)
    inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir() and list_files(entry, _MAPS)]
    named = {_condition(entry): entry for entry in inner if _is_condition(entry.name)}
    if named:
        return SemanticResults(name, named, names)
    if list_files(path, _MAPS):
        return SemanticResults(name, {CLEAN: path}, names)
    raise ModelError(f"{path} holds neither results such as clean.json nor maps such as clean/ID.png.")


def _with_classes(results: Results, names: tuple[str, ...], annotations: str | None) -> Results:
    if annotations is not None:
        path = locate(annotations, error=ModelError)
        found = read_categories(read_json(path, error=ModelError), path)
        return replace(results, classes=tuple(found.values()), numbers=tuple(found))
    if not names:
        return results
    numbers = COCO_IDS if names == VOCABULARIES["coco80"] else tuple(range(1, len(names) + 1))
    return replace(results, classes=names, numbers=numbers)


def _is_condition(text: str) -> bool:
    try:
        Condition.parse(unquote(text))
    except InvalidCondition:
        return False
    return True


def _condition(path: Path) -> Condition:
    text = unquote(path.name.removesuffix(".json"))  # as `stormproof export` writes a slash in a name
    try:
        return Condition.parse(text)
    except InvalidCondition as error:
        raise ModelError(f"{path} is not named after a condition, such as clean or fog@3: {error}") from None


def _of(condition: Condition, found: Mapping[Condition, Path], name: str) -> Path:
    if condition not in found:
        there = ", ".join(map(str, found))
        raise InvalidPrediction(f"{name} holds no predictions for {condition}; it has {there}.")
    return found[condition]
