"""COCO panoptic: a JSON file of segments and one PNG per image whose colours are segment ids.

Cityscapes' own panoptic files have the same form. So have a model's predictions, without areas.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError, InvalidTruth
from stormproof.core.files import folder, locate, read_json, write_text
from stormproof.core.imagefile import image_size, read_image
from stormproof.core.masks import mask_boxes, masks_by_id
from stormproof.core.sample import Image, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    IGNORE,
    class_names,
    expect_list,
    file_name,
    identifier,
    raise_all,
    semantic_map,
    unique_names,
)
from stormproof.datasets.coco import image_folder, image_id, read_categories
from stormproof.datasets.dataset import READERS, Dataset, FileDataset, abilities
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer, drops_objects, lacks_maps

VOID = 0  # the segment id of unlabelled pixels


@READERS.declare("panoptic")
def open_panoptic(main: str, *, images: str | None = None, masks: str | None = None) -> FileDataset:
    """Open `panoptic_*.json` as semantic and panoptic maps; `masks` is the folder of its PNGs, beside it by
    default. Categories with `isthing` 1 are things; without that word all are stuff."""
    path = locate(main)
    content = read_json(path)
    categories = read_categories(content, path)
    if len(categories) >= IGNORE:
        raise DatasetError(
            path, f"has {len(categories)} categories; a semantic map holds at most {IGNORE - 1}."
        )
    records = {
        identifier(r, "id", path, f"image number {i}"): r
        for i, r in enumerate(expect_list(content, "images", path))
    }
    annotations = expect_list(content, "annotations", path)
    owned = [identifier(row, "image_id", path, f"annotation number {i}") for i, row in enumerate(annotations)]
    unknown = "image_id {!r} is not among the file's images."
    raise_all([DatasetError(path, unknown.format(number), f"annotation {i}")
               for i, number in enumerate(owned) if number not in records])  # fmt: skip
    directory = image_folder(path, images)
    maps = folder(locate(masks, path.parent) if masks else path.with_suffix(""), "panoptic PNGs")
    files = tuple(maps / file_name(row, path, f"image {row['image_id']}") for row in annotations)
    owners = [records[number] for number in owned]
    label = {category: i for i, category in enumerate(categories)}
    return FileDataset(
        name=path.stem,
        root=path.parent,
        ids=unique_names((str(owner["id"]) for owner in owners), path, "annotated image"),
        images=tuple(_image(directory, file_name(owner, path, f"image {owner['id']}")) for owner in owners),
        labels=PanopticSegments(
            path, files, tuple(read_segments(row, label, path) for row in annotations),
            tuple(tuple(s["id"] for s in row["segments_info"] if s.get("iscrowd")) for row in annotations),
        ),
        sources=(path, *files),
        semantic_classes=class_names(categories.values(), path),
        category_ids=tuple(categories),
        things=tuple(categories[c["id"]] for c in content["categories"] if c.get("isthing")),
    )  # fmt: skip


def _image(directory: Path, name: Path) -> Path:
    """An image's file; Cityscapes' panoptic files name one beside the annotations that does not exist."""
    frame, middle, rest = str(name).partition("_gtFine_leftImg8bit")
    return directory / frame.partition("_")[0] / f"{frame}_leftImg8bit{rest}" if middle else directory / name


def read_segments(row: Mapping[str, Any], label: Mapping[int, int], path: Path) -> dict[int, int]:
    """The class index of each segment id of an image."""
    where = f"image {row['image_id']}"
    classes = {VOID: IGNORE}
    for segment in expect_list(row, "segments_info", f"{path}, {where}"):
        number, category = (identifier(segment, key, path, where) for key in ("id", "category_id"))
        if not isinstance(number, int) or not isinstance(category, int):
            raise DatasetError(path, f"segment {number!r:.60}: ids must be whole numbers.", where)
        if category not in label:
            raise DatasetError(path, f"segment {number} has an unknown category_id {category!r}.", where)
        if number in classes:
            raise DatasetError(path, f"segment id {number} occurs twice.", where)
        classes[number] = label[category]
    return classes


@dataclass(frozen=True, eq=False)
class PanopticSegments:
    """The class of each segment of each PNG."""

    path: Path
    files: tuple[Path, ...]
    segments: tuple[Mapping[int, int], ...]
    crowds: tuple[tuple[int, ...], ...]

    def size(self, index: int) -> tuple[int, int] | None:
        return image_size(self.files[index])

    def truth(self, index: int) -> Truth:
        numbers = segment_ids(self.files[index])
        missing = sorted(self.segments[index].keys() - {VOID} - set(np.unique(numbers).tolist()))
        if missing:
            raise DatasetError(
                self.files[index], f"has no pixels for the segments {missing[:10]} that {self.path} lists."
            )
        semantic = semantic_map(numbers, self.segments[index], self.files[index])
        return Truth(semantic=semantic, panoptic=numbers, crowds=self.crowds[index])


def segment_ids(file: Path) -> npt.NDArray[np.int32]:
    """The segment id of each pixel: red + 256 green + 65,536 blue."""
    colours = read_image(file).astype(np.int32)
    if colours.ndim != 3:
        raise DatasetError(file, "is grey; a panoptic PNG stores segment ids as RGB colours.")
    return colours[..., 0] + 256 * colours[..., 1] + 65536 * colours[..., 2]


def paint_segments(ids: npt.NDArray[Any]) -> Image:
    """Segment ids as the colours that `segment_ids` reads."""
    if ids.size and not 0 <= ids.min() <= ids.max() < 1 << 24:
        raise InvalidTruth(f"Segment ids {ids.min()} to {ids.max()} do not fit a PNG; it holds 0 to 2²⁴ − 1.")
    return np.stack([(ids >> shift) & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8)


def map_category_ids(described: Dataset | Destination) -> tuple[int, ...]:
    """The number of each semantic class in panoptic files: the dataset's own if it numbers semantic classes,
    else 1, 2, 3 …"""
    own = abilities(described).category_ids
    count = len(described.semantic_classes)
    return own if not described.classes and len(own) == count else tuple(range(1, count + 1))


def segments_of(
    truth: Truth, things: Collection[int], name: str
) -> tuple[npt.NDArray[Any], dict[int, int], tuple[int, ...]]:
    """The segment id of each pixel, the class of each segment, and the ids of crowds.

    `things` are the classes with countable objects; any other class has one segment. The crowds of a class
    are also joined into one segment: panopticapi allows no more.
    """
    if truth.panoptic is None or truth.semantic is None:
        raise InvalidTruth(f"{name} has no panoptic map, so it cannot be written as panoptic.")
    ids = np.where(truth.semantic.labels == truth.semantic.ignore, VOID, truth.panoptic)
    known, first, places = np.unique(ids, return_index=True, return_inverse=True)
    classes = np.ravel(truth.semantic.labels)[first].tolist()
    labels: dict[int, int] = {}
    stuff: dict[int, int] = {}  # the segment of each class
    crowds: dict[int, int] = {}
    for k, (value, label) in enumerate(zip(known.tolist(), classes, strict=True)):
        if value != VOID:
            one = crowds if value in truth.crowds else None
            one = one if label in things else stuff
            known[k] = value if one is None else one.setdefault(label, value)
            labels[int(known[k])] = label
    return known[places].reshape(ids.shape), labels, tuple(crowds.values())


def segment_records(
    ids: npt.NDArray[Any], labels: Mapping[int, int], numbers: Sequence[int], crowds: Sequence[int] = ()
) -> list[Record]:
    """The segments for the JSON file: id, category, area, box and whether each is a crowd."""
    records = []
    for value, mask in masks_by_id(ids).items():
        if value in labels:
            x1, y1, x2, y2 = mask_boxes([mask])[0].tolist()
            records.append({
                "id": value, "category_id": numbers[labels[value]], "area": mask.area,
                "bbox": [x1, y1, x2 - x1, y2 - y1], "iscrowd": int(value in crowds),
            })  # fmt: skip
    return records


def write_index(
    path: Path, annotations: Sequence[Record], images: Sequence[Record], described: Dataset | Destination,
    things: Sequence[str],
) -> None:  # fmt: skip
    """The JSON file beside the PNGs."""
    names = zip(map_category_ids(described), described.semantic_classes, strict=True)
    categories = [{"id": n, "name": name, "isthing": int(name in things)} for n, name in names]
    content = {"images": [*images], "annotations": [*annotations], "categories": categories}
    write_text(path, json.dumps(content, ensure_ascii=False) + "\n")


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image(destination.split, name, sample.image)
    things = destination.things or destination.classes
    countable = {k for k, name in enumerate(destination.semantic_classes) if name in things}
    ids, labels, crowds = segments_of(sample.truth, countable, sample.id)
    destination.write_map(f"annotations/panoptic_{destination.split}", name, paint_segments(ids))
    segments = segment_records(ids, labels, map_category_ids(destination), crowds)
    size = {"height": ids.shape[0], "width": ids.shape[1]}
    return path, {"id": sample.id, "file_name": path.name, **size, "png": f"{name}.png", "segments": segments}


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    images, annotations = [], []
    for record in records:
        number, size = image_id(record["id"]), {key: record[key] for key in ("height", "width")}
        images.append({"id": number, "file_name": record["file_name"], **size})
        annotations.append(
            {"image_id": number, "file_name": record["png"], "segments_info": record["segments"]}
        )
    path = destination.path("annotations", f"panoptic_{destination.split}.json")
    write_index(path, annotations, images, destination, destination.things or destination.classes)


def _spec(destination: Destination) -> Spec:
    root, split = destination.root, destination.split
    return Spec("panoptic", f"{root}/annotations/panoptic_{split}.json", {"images": f"{root}/{split}"})


WRITERS.add("panoptic", Writer(_write, _spec, lacks_maps, drops_objects, _finish), module=__name__)
