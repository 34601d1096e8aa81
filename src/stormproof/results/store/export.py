"""A run's predictions in the formats of others: COCO results, label map PNGs, COCO panoptic; one per
condition."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.files import make_folder, refuse_link, sweep_below, whole_file, write_text
from stormproof.core.forms import object_forms
from stormproof.core.imagefile import write_image
from stormproof.core.masks import compress
from stormproof.core.sample import SEGMENTS, Truth
from stormproof.corruptions import truth_under
from stormproof.corruptions.chain import moves_labels
from stormproof.datasets.coco import category_ids, image_id, write_truth
from stormproof.datasets.dataset import Dataset, identity_of, thing_classes
from stormproof.datasets.object_data import row_fields
from stormproof.datasets.panoptic import (
    map_category_ids,
    paint_segments,
    segment_records,
    segments_of,
    write_index,
)
from stormproof.models.classes import match_classes
from stormproof.results.store.schema import DETECTION, MAP_COLUMNS, prediction_of

if TYPE_CHECKING:
    from stormproof.results.run import Run

CLASSES = "classes.txt"
# An image's name, the segment id of each pixel, the class of each segment, and the ids of crowds.
Segmented = tuple[str, npt.NDArray[Any], dict[int, int], tuple[int, ...]]
_UNSAFE = re.compile(r"[%/]" if os.name == "posix" else r'[%/\\:*?"<>|]')


def folder_name(condition: str) -> str:
    """A condition as a file or folder name: unchanged, except for characters that file systems do not allow.

    >>> folder_name('fog@3[on="traffic light"]'), folder_name("frost@3[textures=my/frost]")
    ('fog@3[on="traffic light"]', 'frost@3[textures=my%2Ffrost]')
    """
    return _UNSAFE.sub(lambda match: quote(match[0], safe=""), condition)


def export_coco(run: Run, conditions: Sequence[str], destination: Path) -> list[Path]:
    """COCO results JSON, one file per condition: boxes as x, y, width, height, masks as compressed RLE.

    Categories are the dataset's; boxes of classes that it lacks are left out. For a dataset without classes,
    labels are written as the model gave them.
    """
    if run.has("semantic_runs") and not run.has_objects:
        raise InvalidOption(f"{run.folder} holds label maps and no objects; export it with --format png.")
    numbers: list[int] | None = None
    if run.dataset.classes:
        known = category_ids(run.dataset)
        match = match_classes(run.record.model.classes, run.dataset.classes)
        numbers = [known[label] if label >= 0 else -1 for label in match.labels]
    make_folder(destination)
    written = []
    for condition in conditions:
        path = destination / f"{folder_name(condition)}.json"
        with whole_file(path) as file:
            _write_list(file, _results(run, condition, numbers))
        written.append(path)
    return written


def export_png(run: Run, conditions: Sequence[str], destination: Path) -> list[Path]:
    """Label maps as 8-bit PNG, a folder per condition, in the model's classes, named in `classes.txt`."""
    if not run.has("semantic_runs"):
        raise InvalidOption(f"{run.folder} holds no label maps; export it with --format coco.")
    written = []
    for condition in conditions:
        folder = _folder_of(destination, condition)
        for row in _rows(run, condition, MAP_COLUMNS):
            if row["semantic_runs"] is None:
                raise InvalidOption(
                    f"{run.folder}: there is no label map of {row['image']} under {condition}."
                )
            labels = prediction_of(row).semantic
            assert labels is not None
            if labels.max() > 255:
                raise InvalidOption(
                    f"{run.folder}: a label map holds {labels.max()}; PNG export takes up to 255."
                )
            written.append(_write_map(folder, row["image"], labels.astype(np.uint8)))
    if classes := run.record.model.semantic_classes:
        write_text(destination / CLASSES, "".join(f"{name}\n" for name in classes))
    return written


def export_panoptic(run: Run, conditions: Sequence[str], destination: Path) -> list[Path]:
    """COCO panoptic: for each condition a JSON file of segments, and a folder of PNGs of the same name.

    Categories are the dataset's; segments of classes that it lacks are left out. A class of stuff has one
    segment.
    """
    if not run.has("panoptic_runs"):
        raise InvalidOption(f"{run.folder} holds no panoptic maps; export it with --format coco or png.")
    match = match_classes(run.record.model.semantic_classes, run.dataset.semantic_classes)
    things = _thing_labels(run.dataset)

    def predicted(condition: str) -> Iterator[Segmented]:
        for row in _rows(run, condition, MAP_COLUMNS):
            plane = match.apply(prediction_of(row)).panoptic
            if plane is None:
                raise InvalidOption(f"{run.folder}: {row['image']} has no panoptic map under {condition}.")
            plane = np.where(np.isin(plane // SEGMENTS - 1, [*things]), plane, plane // SEGMENTS * SEGMENTS)
            numbers, places = np.unique(plane, return_inverse=True)
            ids = np.where(numbers == 0, 0, np.arange(1, len(numbers) + 1))
            labels = {int(k): int(n) // SEGMENTS - 1 for k, n in zip(ids, numbers, strict=True) if k}
            yield row["image"], ids[places].reshape(plane.shape), labels, ()

    return [_write_panoptic(run, destination, text, predicted(text)) for text in conditions]


def export_panoptic_truth(run: Run, destination: Path) -> dict[str, Path]:
    """The panoptic truth of the images that were run: clean, and under each condition that moves it."""
    dataset, things = run.dataset, _thing_labels(run.dataset)

    def true(condition: Condition) -> Iterator[Segmented]:
        for index, truth in _truths_under(run, condition):
            yield dataset.ids[index], *segments_of(truth, things, dataset.ids[index])

    return {
        str(condition): _write_panoptic(run, destination, str(condition), true(condition))
        for condition in _moving(run)
    }


def _thing_labels(dataset: Dataset) -> set[int]:
    countable = thing_classes(dataset)
    return {label for label, name in enumerate(dataset.semantic_classes) if name in countable}


def _write_panoptic(run: Run, destination: Path, condition: str, images: Iterable[Segmented]) -> Path:
    """The PNGs and the JSON file of one condition."""
    folder = _folder_of(destination, condition)
    numbers, annotations = map_category_ids(run.dataset), []
    for name, ids, labels, crowds in images:
        _write_map(folder, name, paint_segments(ids))
        annotations.append({
            "image_id": image_id(name), "file_name": f"{name}.png",
            "segments_info": segment_records(ids, labels, numbers, crowds),
        })  # fmt: skip
    index = destination / f"{folder_name(condition)}.json"
    write_index(index, annotations, [], run.dataset, thing_classes(run.dataset))
    return index


def export_truth(run: Run, destination: Path) -> dict[str, Path]:
    """The truth of the images that were run as COCO annotations: a file for clean images, and one for each
    condition that moves objects. Ids are those that `export_coco` uses."""
    written = {}
    for condition in _moving(run):
        path = destination / f"{folder_name(str(condition))}.json"
        write_truth(path, run.dataset, run.readable, (truth for _, truth in _truths_under(run, condition)))
        written[str(condition)] = path
    return written


def _moving(run: Run) -> list[Condition]:
    """Clean, and the conditions of a run that move the truth."""
    return [Condition(), *filter(moves_labels, map(Condition.parse, run.record.conditions))]


def _truths_under(run: Run, condition: Condition) -> Iterator[tuple[int, Truth]]:
    """The truth of each image that was run, with its index."""
    dataset, seed = run.dataset, run.record.seed
    for k in run.readable:
        identity = identity_of(dataset, k)
        yield k, truth_under(dataset.truth(k), dataset.size(k), condition, seed=seed, image_id=identity)


def _folder_of(destination: Path, condition: str) -> Path:
    """The folder of a condition's maps, without what a killed export left there."""
    folder = make_folder(refuse_link(destination / folder_name(condition)))
    sweep_below(folder)
    return folder


def _write_map(folder: Path, image: str, plane: npt.NDArray[np.uint8]) -> Path:
    """Write an image's map; ids may name folders, as those of nested datasets do."""
    path = folder / f"{image}.png"
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidOption(f"The image id {image!r} leads out of {folder}; rename the image.")
    make_folder(path.parent)
    write_image(path, plane)
    return path


def _rows(run: Run, condition: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of one condition, part by part."""
    for path in run.parts:
        table = run.read(path, ("image", "condition", "height", "width", *columns))
        yield from table.filter(pc.equal(table["condition"], condition)).to_pylist()


def _results(run: Run, condition: str, numbers: Sequence[int] | None) -> Iterator[dict[str, Any]]:
    carried = [form.name for form in object_forms() if form.coco is not None and run.has(form.name)]
    for row in _rows(run, condition, (*DETECTION, *carried)):
        image, data = image_id(row["image"]), prediction_of(row).data if carried else {}
        masks = row["masks"] or [None] * len(row["boxes"])
        sides = row.get("sides") or [(x2 - x1, y2 - y1) for x1, y1, x2, y2 in row["boxes"]]
        for k, ((x, y, _, _), (width, height), score, label, counts) in enumerate(
            zip(row["boxes"], sides, row["scores"], row["labels"], masks, strict=True)
        ):
            category = label if numbers is None else numbers[label]
            if category < 0:
                continue  # a class the dataset does not have
            result = {"image_id": image, "category_id": category,
                      "bbox": [x, y, width, height], "score": score}  # fmt: skip
            if counts is not None:
                size = [row["height"], row["width"]]
                result["segmentation"] = {"size": size, "counts": compress(counts, size)}
            yield {**result, **row_fields(data, k)}


def _write_list(file: IO[bytes], entries: Iterator[dict[str, Any]]) -> None:
    """A JSON list, one entry per line, never whole in memory."""
    before = b"[\n"
    for entry in entries:
        file.write(before + json.dumps(entry).encode())
        before = b",\n"
    file.write(b"[]\n" if before == b"[\n" else b"\n]\n")
