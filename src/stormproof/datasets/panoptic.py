"""COCO panoptic: a JSON file of segments and one PNG per image whose colours are segment ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import DatasetError
from stormproof.core.files import folder, locate, read_json
from stormproof.core.imagefile import image_size, read_image
from stormproof.core.sample import Truth
from stormproof.core.spec import opens
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
from stormproof.datasets.coco import image_folder, read_categories
from stormproof.datasets.dataset import FileDataset

VOID = 0  # the segment id of unlabelled pixels


@opens("panoptic")
def open_panoptic(main: str, *, images: str | None = None, masks: str | None = None) -> FileDataset:
    """Open `panoptic_*.json` as semantic maps; `masks` is the folder of its PNGs, beside it by default."""
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
    raise_all([error for i, row in enumerate(annotations) for error in _unknown_image(row, i, records, path)])
    directory = image_folder(path, images)
    maps = folder(locate(masks, path.parent) if masks else path.with_suffix(""), "panoptic PNGs")
    files = tuple(maps / file_name(row, path, f"image {row['image_id']}") for row in annotations)
    owners = [records[row["image_id"]] for row in annotations]
    label = {category: i for i, category in enumerate(categories)}
    return FileDataset(
        name=path.stem,
        root=path.parent,
        ids=unique_names((str(owner["id"]) for owner in owners), path, "annotated image"),
        images=tuple(directory / file_name(owner, path, f"image {owner['id']}") for owner in owners),
        labels=PanopticSegments(path, files, tuple(_segments(row, label, path) for row in annotations)),
        sources=(path, *files),
        semantic_classes=class_names(categories.values(), path),
    )


def _unknown_image(row: object, i: int, records: Mapping[Any, object], path: Path) -> Iterator[DatasetError]:
    number = identifier(row, "image_id", path, f"annotation number {i}")
    if number not in records:
        yield DatasetError(path, f"image_id {number!r} is not among the file's images.", f"annotation {i}")


def _segments(row: Mapping[str, Any], label: Mapping[int, int], path: Path) -> dict[int, int]:
    """The class index of each segment id of an image."""
    where = f"image {row['image_id']}"
    found = {VOID: IGNORE}
    for segment in expect_list(row, "segments_info", f"{path}, {where}"):
        number, category = (identifier(segment, key, path, where) for key in ("id", "category_id"))
        if not isinstance(number, int) or not isinstance(category, int):
            raise DatasetError(path, f"segment {number!r:.60}: ids must be whole numbers.", where)
        if category not in label:
            raise DatasetError(path, f"segment {number} has an unknown category_id {category!r}.", where)
        if number in found:
            raise DatasetError(path, f"segment id {number} occurs twice.", where)
        found[number] = label[category]
    return found


@dataclass(frozen=True, eq=False)
class PanopticSegments:
    """The class of each segment of each PNG."""

    path: Path
    files: tuple[Path, ...]
    segments: tuple[Mapping[int, int], ...]

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
        return Truth(semantic=semantic, panoptic=numbers)


def segment_ids(file: Path) -> npt.NDArray[np.int32]:
    """The segment id of each pixel: red + 256 green + 65,536 blue."""
    colours = read_image(file).astype(np.int32)
    if colours.ndim != 3:
        raise DatasetError(file, "is grey; a panoptic PNG stores segment ids as RGB colours.")
    return colours[..., 0] + 256 * colours[..., 1] + 65536 * colours[..., 2]
