"""Precomputed predictions: `results:detections.json`, or a folder with one file or folder per condition.

    results:detections.json              COCO results for the clean images
    results:folder                       clean.json, fog@3.json, …; or clean/ID.png, fog@3/ID.png, …
    results:folder (ID.png in it)        semantic maps for the clean images
    results:panoptic.json                COCO panoptic: a folder panoptic/ of PNGs lies beside it
    results:folder                       clean.json and clean/, fog@3.json and fog@3/, …: the same
    results:folder (Task1_CLASS.txt)     oriented boxes as DOTA's server takes them, or a folder by condition

No image file and no framework is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import (
    InvalidCondition,
    InvalidOption,
    InvalidPrediction,
    InvalidTruth,
    ModelError,
)
from stormproof.core.files import list_files, locate, read_json
from stormproof.core.imagefile import open_image
from stormproof.core.masks import mask_boxes, segmentation_mask
from stormproof.core.sample import RLE, Floats, Ints, Prediction, panoptic_map
from stormproof.datasets.annotations import expect_list, file_name, is_coco_box, is_number, require
from stormproof.datasets.coco import category_ids, read_categories
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.object_data import boxes_of, one_of_fields, read_data, row_forms
from stormproof.datasets.panoptic import map_category_ids, read_segments, segment_ids
from stormproof.models.classes import COCO_IDS, VOCABULARIES, resolve_classes
from stormproof.models.model import ADAPTERS, fingerprint
from stormproof.models.predictions import label_map
from stormproof.models.task1 import holds_task1, read_task1

_MAPS = frozenset({".png"})
_ALMOST_ONE = 1 + 1e-6  # as in a Prediction


@ADAPTERS.declare("results")
def open_results(
    main: str, *, classes: str | None = None, annotations: str | None = None
) -> Results | SemanticResults | PanopticResults:
    """Open a results file or folder.

    `annotations` is a COCO or COCO panoptic file whose categories the results use. `classes` is a vocabulary
    or text file: then category numbers count from 1 (coco80: COCO's own numbers), and values of semantic maps
    from 0. Without either, both are the dataset's.
    """
    path = locate(main, error=ModelError)
    name = path.stem if path.is_file() else path.name
    names = resolve_classes(classes, None) or ()
    files = {_condition(file): file for file in sorted(path.glob("*.json"))}
    tables = {CLEAN: path} if path.is_file() else files or _task1_folders(path)
    if tables:
        names, numbers = _categories(names, annotations)
        if all(file.is_file() and file.with_suffix("").is_dir() for file in tables.values()):
            return PanopticResults(name, tables, semantic_classes=names, numbers=numbers)
        return Results(name, tables, classes=names, numbers=numbers)
    folders = [entry for entry in sorted(path.iterdir()) if entry.is_dir() and list_files(entry, _MAPS)]
    named: dict[Condition, Path] = {}
    for entry in folders:
        with suppress(ModelError):  # a folder of something else
            named[_condition(entry)] = entry
    if not named and list_files(path, _MAPS):
        named = {CLEAN: path}
    if named:
        if annotations is not None:
            raise InvalidOption(
                f"annotations={annotations}: {path} holds label maps, whose values are class numbers, not "
                "category ids; name the classes with classes=FILE, one per line from 0."
            )
        return SemanticResults(name, named, semantic_classes=names)
    raise ModelError(f"{path} contains neither results such as clean.json nor maps such as clean/ID.png.")


def _task1_folders(path: Path) -> dict[Condition, Path]:
    """Folders of DOTA's results: the one named, for clean images, or those in it, named after conditions."""
    if holds_task1(path):
        return {CLEAN: path}
    return {_condition(entry): entry for entry in sorted(path.iterdir()) if holds_task1(entry)}


def _categories(names: tuple[str, ...], annotations: str | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The classes and their category numbers; none if they are the dataset's."""
    if annotations is not None:
        path = locate(annotations, error=ModelError)
        found = read_categories(read_json(path, error=ModelError), path)
        return tuple(found.values()), tuple(found)
    return names, COCO_IDS if names == VOCABULARIES["coco80"] else tuple(range(1, len(names) + 1))


def _condition(path: Path) -> Condition:
    text = unquote(path.name.removesuffix(".json"))  # `stormproof export` quotes a slash in a name
    try:
        return Condition.parse(text)
    except InvalidCondition as error:
        raise ModelError(f"{path} is not named after a condition, such as clean or fog@3: {error}") from None


@dataclass(frozen=True, eq=False)
class _Files:
    """A file, or a folder, for each condition."""

    name: str
    paths: Mapping[Condition, Path]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(self.paths)

    def path(self, condition: Condition) -> Path:
        if condition not in self.paths:
            known = ", ".join(map(str, self.paths))
            raise InvalidPrediction(f"{self.name} contains no predictions for {condition}; it has {known}.")
        return self.paths[condition]

    def __getstate__(self) -> dict[str, Any]:
        """Without the tables in memory: each process reads its own."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__ if name in self.__dict__}


@dataclass(frozen=True, eq=False)
class Results(_Files):
    """COCO results by condition. Until `bind` or `classes` says otherwise, labels are category numbers."""

    numbers: tuple[int, ...] = ()  # category_id of each label
    ids: frozenset[str] | None = None
    names: tuple[str, ...] = ()  # of these categories, for files that name them

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.paths.values(), {"classes": self.classes, "numbers": self.numbers})

    def bind(self, dataset: Dataset) -> Self:
        """Category numbers are the dataset's, unless classes were given; ids are checked against it."""
        ids = frozenset(dataset.ids)
        if self.classes:
            return replace(self, ids=ids, names=self.classes)
        return replace(self, numbers=category_ids(dataset), ids=ids, names=dataset.classes)

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        path = self.path(condition)
        if condition not in self._tables:
            self._tables[condition] = _read_table(path, self.numbers, self.ids, self.names)
        return self._tables[condition].prediction(image_id)

    @cached_property
    def _tables(self) -> dict[Condition, _Table]:
        """Each file is read once: a run asks for one image under every condition before the next image."""
        return {}


@dataclass(frozen=True, eq=False)
class SemanticResults(_Files):
    """Semantic maps as PNG files, by condition and image id.

    Their values index `semantic_classes`, or the dataset's if there are none.
    """

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.paths.values(), {"classes": self.semantic_classes})

    def bind(self, dataset: Dataset) -> Self:
        return self

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        folder = self.path(condition)
        path = folder / f"{image_id}.png"
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidPrediction(f"Image id {image_id!r} leads out of {folder}.")
        if not path.is_file():
            raise InvalidPrediction(
                f"{path} is missing: no semantic map for image {image_id!r} under {condition}."
            )
        with open_image(path) as image:
            plane = np.array(image)
        if plane.ndim != 2:
            raise InvalidPrediction(f"{path} must be a PNG of class numbers: palette, 8-bit or 16-bit grey.")
        return Prediction(semantic=label_map(plane, str(path)))


@dataclass(frozen=True, eq=False)
class PanopticResults(_Files):
    """COCO panoptic results by condition: a JSON file of segments, and a folder of PNGs of the same name.

    Category numbers are the dataset's, unless `numbers` are given.
    """

    numbers: tuple[int, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        files = [*self.paths.values(), *(path.with_suffix("") for path in self.paths.values())]
        return fingerprint(files, {"classes": self.semantic_classes, "numbers": self.numbers})

    def bind(self, dataset: Dataset) -> Self:
        return self if self.numbers else replace(self, numbers=map_category_ids(dataset))

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        path = self.path(condition)
        if condition not in self._rows:
            content = read_json(path, error=ModelError)
            rows = expect_list(content, "annotations", path)
            self._rows[condition] = {str(require(row, "image_id", path, "a result")): row for row in rows}
        if image_id not in self._rows[condition]:
            raise InvalidPrediction(f"{path} holds no panoptic map for image {image_id!r}.")
        row = self._rows[condition][image_id]
        labels = {number: label for label, number in enumerate(self.numbers)}
        known = read_segments(row, labels, path)
        file = path.with_suffix("") / file_name(row, path, f"image {image_id}")
        ids = segment_ids(file)
        unknown = sorted({*np.unique(ids).tolist()} - {*known})
        if unknown:
            raise InvalidPrediction(f"{file} has pixels of segment {unknown[0]}, which {path} does not list.")
        return Prediction(panoptic=panoptic_map(ids, {k: v for k, v in known.items() if k}))

    @cached_property
    def _rows(self) -> dict[Condition, dict[str, Any]]:
        return {}


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows of one COCO results file as columns; the rows of an image are adjacent, in the file's order.

    Seventy files of half a million boxes do not fit into most machines' memory, so the columns are
    memory-mapped unnamed files.
    """

    path: Path
    spans: Mapping[str, tuple[int, int]]  # first and end row of each image
    boxes: Floats  # x y width height, as stated
    scores: Floats
    labels: Ints
    masks: _Masks | None
    data: Mapping[str, Floats]  # as forms declare it (`core.forms`)

    def prediction(self, image: str) -> Prediction:
        """The prediction for an image; empty where the file does not name it."""
        if image not in self.spans:
            return Prediction()
        rows = slice(*self.spans[image])
        box, masks = np.array(self.boxes[rows]), None if self.masks is None else self.masks.of(rows)
        corners = np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])
        scores, labels = np.array(self.scores[rows]), np.array(self.labels[rows])
        data = {name: np.array(values[rows]) for name, values in self.data.items()}
        try:
            return Prediction(corners, scores, labels, masks, sides=box[:, 2:], data=data)
        except InvalidPrediction as error:
            raise ModelError(f"{self.path}, image {image!r}: {error}") from None


@dataclass(frozen=True, eq=False)
class _Masks:
    """Run lengths one after another; `ends` bounds those of each row."""

    runs: npt.NDArray[np.uint32]
    ends: Ints
    sizes: Ints

    @classmethod
    def pack(cls, masks: Sequence[RLE]) -> Self:
        ends = np.concatenate([[0], np.cumsum([len(mask.counts) for mask in masks])]).astype(np.int64)
        runs = np.concatenate([mask.counts for mask in masks]) if masks else np.zeros(0, np.uint32)
        return cls(_map_to_disk(runs), ends, np.array([mask.size for mask in masks], np.int64))

    def of(self, rows: slice) -> tuple[RLE, ...]:
        bounds = pairwise(self.ends[rows.start : rows.stop + 1].tolist())
        sized = zip(self.sizes[rows].tolist(), bounds, strict=True)
        return tuple(RLE((height, width), np.array(self.runs[a:b])) for (height, width), (a, b) in sized)


def _map_to_disk(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in an unnamed file, which disappears when they are no longer needed."""
    if not column.size:
        return column
    with TemporaryFile() as file:
        column.tofile(file)
        return np.memmap(file, column.dtype, "r", shape=column.shape)


def _read_table(
    path: Path, numbers: Sequence[int], ids: frozenset[str] | None, names: Sequence[str] = ()
) -> _Table:
    """Read and check a COCO results file.

    `numbers` are the category ids of the labels (none: category ids are the labels), `ids` the image ids.
    """
    if path.is_dir():
        rows: Any = read_task1(path, dict(zip(names, numbers, strict=True)))
    else:
        content = read_json(path, error=ModelError)
        rows = content.get("annotations") if isinstance(content, Mapping) else content
    if not isinstance(rows, list):
        raise ModelError(f"{path} is not COCO results: a list of {{image_id, category_id, bbox, score}}.")
    labels = {number: label for label, number in enumerate(numbers)}
    for i, row in enumerate(rows):
        problem = _problem(row, labels, ids)
        if problem:
            raise ModelError(f"{path}, result {i}: {problem}")
    images = [str(row["image_id"]) for row in rows]
    place = {image: k for k, image in enumerate(dict.fromkeys(images))}
    owners = np.array([place[image] for image in images], np.int64)
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(len(place) + 1))
    rows = [rows[i] for i in order.tolist()]
    masks, data = _read_masks(rows, path), read_data(rows, path)
    if (masks is not None or data) and not all("bbox" in row for row in rows):
        around = boxes_of(data) if masks is None else mask_boxes(masks)
        if around is None:
            raise ModelError(f"{path}: some results have no bbox, and their {', '.join(data)} show none.")
        boxes = np.hstack([around[:, :2], around[:, 2:] - around[:, :2]])
    else:
        boxes = np.array([row["bbox"] for row in rows], np.float64).reshape(-1, 4)
    found = [labels.get(row["category_id"], row["category_id"]) for row in rows]
    return _Table(
        path,
        {image: (int(starts[k]), int(starts[k + 1])) for image, k in place.items()},
        _map_to_disk(boxes),
        _map_to_disk(np.array([row["score"] for row in rows], np.float64)),
        _map_to_disk(np.array(found, np.int64)),
        None if masks is None else _Masks.pack(masks),
        {name: _map_to_disk(values) for name, values in data.items()},
    )


def _problem(row: object, labels: Mapping[Any, int], ids: frozenset[str] | None) -> str:
    """The first error in one result; empty if there is none."""
    if not isinstance(row, Mapping):
        return f"is {row!r:.60}, not an object."
    missing = [key for key in ("image_id", "category_id", "score") if key not in row]
    if missing or not ({"bbox", "segmentation"} & {*row} or row_forms([row])):
        return f"lacks {', '.join(missing) or f'bbox, segmentation or {one_of_fields()}'}."
    category, image, score, box = row["category_id"], row["image_id"], row["score"], row.get("bbox")
    if not is_number(category) or category != int(category) or abs(category) >= 1 << 31:
        return f"category_id {category!r:.60} is not a whole number."
    if labels and category not in labels:
        return f"category_id {category!r} is not one of the dataset's ({min(labels)} to {max(labels)})."
    if not isinstance(image, int | str) or len(str(image)) > 1000:
        return f"image_id {image!r:.60} is neither a whole number nor a string."
    if ids is not None and str(image) not in ids:
        return f"image_id {image!r} is not in the dataset."
    if not is_number(score) or not 0 <= score <= _ALMOST_ONE:
        return f"score {score!r:.60} must lie in [0, 1]."
    if "bbox" in row and not is_coco_box(box):
        return f"bbox {box!r:.80} must be x, y, width, height, finite, with width and height ≥ 0."
    return ""


def _read_masks(rows: Sequence[Mapping[str, Any]], path: Path) -> tuple[RLE, ...] | None:
    """The masks, if every row has one."""
    lacking = [row for row in rows if "segmentation" not in row or _is_outline(row)]
    if lacking or not rows:
        if not all("bbox" in row or row_forms([row]) for row in rows):
            image = lacking[0]["image_id"]
            raise ModelError(f"{path}, image {image!r}: some results have no bbox, others no segmentation.")
        return None
    masks = []
    for row in rows:
        try:
            masks.append(segmentation_mask(row["segmentation"], *_mask_size(row["segmentation"])))
        except InvalidTruth as error:
            raise ModelError(f"{path}, image {row['image_id']!r}: {error}") from None
    return tuple(masks)


def _is_outline(row: Mapping[str, Any]) -> bool:
    """Whether the segmentation is only the outline of the box, as `loadRes` of pycocotools adds it."""
    shape = row["segmentation"]
    if "bbox" not in row or not isinstance(shape, list) or len(shape) != 1 or not isinstance(shape[0], list):
        return False
    x, y, width, height = row["bbox"]
    corners = [x, y, x, y + height, x + width, y + height, x + width, y]
    return len(shape[0]) == 8 and all(map(is_number, shape[0])) and bool(np.allclose(shape[0], corners))


def _mask_size(segmentation: object) -> tuple[int, int]:
    size = segmentation.get("size") if isinstance(segmentation, Mapping) else None
    if isinstance(size, list) and [*map(type, size)] == [int, int] and 0 < min(size) <= max(size) < 1 << 20:
        return size[0], size[1]
    fix = "convert it with pycocotools.mask.frPyObjects and merge, which give run lengths"
    polygons = f", not polygons; {fix}" if isinstance(segmentation, list) else ""
    raise InvalidTruth(f"segmentation must be run lengths with a size, as in COCO results{polygons}.")
