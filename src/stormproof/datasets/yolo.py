"""YOLO: a `data.yaml`, and one text file of boxes or polygons per image, in fractions of its size.

The writer stores polygons if objects have masks, else boxes. It leaves out excused objects, since the
format cannot mark them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from stormproof.core.errors import DatasetError
from stormproof.core.files import expand, locate, read_lines, read_text, read_yaml
from stormproof.core.imagefile import AS_STORED, PixelRules, image_size
from stormproof.core.masks import polygon_mask
from stormproof.core.sample import RLE, Instances, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import class_names, list_images, unique_names, unknown_split
from stormproof.datasets.dataset import READERS, FileDataset, Labels
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer, objects_of

Row = tuple[int, tuple[float, ...]]  # a class and its numbers: 4 for a box, 6 or more for a polygon


@READERS.declare("yolo")
def open_yolo(main: str, *, split: str = "val") -> FileDataset:
    """Open a `data.yaml`; labels are in a `labels` folder that mirrors `images`.

    An image without a label file has no objects, by YOLO's convention.
    """
    path = locate(main)
    path = path / "data.yaml" if path.is_dir() else path
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise DatasetError(path, "must contain 'names' and the splits 'train', 'val' or 'test'.")
    classes = _classes(read_yaml(path, as_text=True).get("names"), path)
    root = _root(path, content.get("path"))
    images = _images(content, split, root, path)
    texts = tuple(label_file(image) for image in images)
    rows = tuple(_read_rows(text, len(classes)) if text.is_file() else () for text in texts)
    polygons = _is_segmentation(rows, texts)
    return FileDataset(
        name=f"{path.parent.name if path.stem == 'data' else path.stem}-{split}",
        root=root,
        ids=unique_names((image.stem for image in images), path, "image id"),
        images=images,
        labels=YoloObjects(images, rows, polygons),
        sources=(path, *(text for text in texts if text.is_file())),
        classes=classes,
    )


def _classes(names: Any, path: Path) -> tuple[str, ...]:
    if isinstance(names, dict):
        if {*names} != {str(number) for number in range(len(names))}:
            raise DatasetError(path, f"class numbers must run 0, 1, 2 …, not {', '.join(names)}.", "names")
        names = [names[str(number)] for number in range(len(names))]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DatasetError(path, f"names is {names!r:.80}; it must list the class names.", "names")
    return class_names(names, path)


def _root(path: Path, stated: object) -> Path:
    """The folder that splits are relative to: as stated if it exists, else the folder of the YAML file."""
    if not stated:
        return path.parent
    given = expand(str(stated))
    candidates = [given] if given.is_absolute() else [path.parent / given, given]
    return next((place for place in candidates if place.is_dir()), path.parent)


def _images(content: dict[str, Any], split: str, root: Path, path: Path) -> tuple[Path, ...]:
    stated = content.get(split)
    if not stated:
        raise unknown_split(split, (key for key in ("train", "val", "test") if content.get(key)), path)
    places = stated if isinstance(stated, list) else [stated]
    found = [image for place in places for image in _images_at(str(place), root, path)]
    if not found:
        raise DatasetError(path, f"no images at {stated!r}, relative to {root}.", split)
    return tuple(found)


def _images_at(place: str, root: Path, path: Path) -> list[Path]:
    """The images of a folder, or those that a text file lists."""
    # Exports often contain ../train/images although the folder is beside the YAML file.
    options = [expand(root / place), expand(root / place.removeprefix("../"))]
    where = next((option for option in options if option.exists()), None)
    if where is None:
        raise DatasetError(path, f"{place!r} is not below {root}; correct 'path' or the split.")
    if where.is_dir():
        return list_images(where)
    return [expand(root / line) for line in read_lines(where)]  # absolute paths are kept


def label_file(image: Path) -> Path:
    """The label file of an image: the last `images` in its path becomes `labels`; otherwise it is beside it.

    >>> label_file(Path("set/images/val/a.jpg")).as_posix()
    'set/labels/val/a.txt'
    """
    parts = list(image.with_suffix(".txt").parts)
    for i in reversed(range(len(parts) - 1)):
        if parts[i] == "images":
            parts[i] = "labels"
            break
    return Path(*parts)


def _read_rows(text: Path, classes: int) -> tuple[Row, ...]:
    lines = enumerate(read_text(text).splitlines(), 1)
    return tuple(_row(line, classes, text, f"line {i}") for i, line in lines if line.strip())


def _row(line: str, classes: int, text: Path, where: str) -> Row:
    try:
        number, *values = map(float, line.split())
    except ValueError:
        raise DatasetError(text, f"{line!r:.80} must be a class number and coordinates.", where) from None
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        problem = f"{len(values)} coordinates are neither a box (4) nor a polygon (6 or more, even)."
        raise DatasetError(text, problem, where)
    if number not in range(classes):
        raise DatasetError(
            text, f"class {number:g} is not among the {classes} names (0 to {classes - 1}).", where
        )
    if not all(isfinite(v) and -0.01 <= v <= 1.01 for v in values):
        raise DatasetError(text, f"{line!r:.80}: coordinates must be fractions from 0 to 1.", where)
    if len(values) == 4 and min(values[2:]) < 0:
        raise DatasetError(text, f"{line!r:.80}: width and height must be ≥ 0.", where)
    return int(number), tuple(values)


def _is_segmentation(rows: Sequence[tuple[Row, ...]], texts: Sequence[Path]) -> bool:
    """Whether the set contains polygons; boxes among them are an error, since they have no masks."""
    first: bool | None = None
    for file_rows, text in zip(rows, texts, strict=True):
        for i, (_, values) in enumerate(file_rows):
            polygon = len(values) > 4
            if first is None:
                first = polygon
            if polygon != first:
                problem = "this set mixes boxes and polygons; give every object a polygon, or none."
                raise DatasetError(text, problem, f"object {i}")
    return bool(first)


@dataclass(frozen=True)
class YoloObjects(Labels):
    """The rows of each image's text file; coordinates are scaled by the image's size."""

    images: tuple[Path, ...]
    rows: tuple[tuple[Row, ...], ...]
    polygons: bool
    rules: PixelRules = AS_STORED

    def truth(self, index: int) -> Truth:
        rows = self.rows[index]
        labels = np.array([label for label, _ in rows], np.int64)
        if not rows:
            return Truth(Instances(np.zeros((0, 4)), labels, () if self.polygons else None))
        height, width = image_size(self.images[index], rules=self.rules)
        if not self.polygons:
            boxes = np.array([values for _, values in rows]) * [width, height, width, height]
            corners = np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])
            return Truth(Instances(corners, labels))
        rings = [np.array(values).reshape(-1, 2) * [width, height] for _, values in rows]
        corners = np.array([[*ring.min(axis=0), *ring.max(axis=0)] for ring in rings])
        masks = tuple(polygon_mask([ring.ravel()], height, width) for ring in rings)
        return Truth(Instances(corners, labels, masks))


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image(f"images/{destination.split}", name, sample.image)
    height, width = sample.image.shape[:2]
    objects, lines = objects_of(sample), []
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        if objects.crowd[k] or objects.ignore[k]:
            continue
        values = [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]
        if objects.masks is not None:
            ring = np.array(_outline(objects.masks[k]) or (x1, y1, x2, y1, x2, y2, x1, y2)).reshape(-1, 2)
            values = (ring / (width, height)).ravel().tolist()
        lines.append(f"{int(objects.labels[k])} {' '.join(f'{min(max(v, 0), 1):.9f}' for v in values)}\n")
    destination.write_text(f"labels/{destination.split}", f"{name}.txt", "".join(lines))
    return path, {}


def _outline(mask: RLE) -> list[float]:
    """The largest outline of a mask, through the centres of its pixels, as x, y pairs."""
    found, _ = cv2.findContours(mask.to_mask().astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    largest = max(found, key=cv2.contourArea, default=np.zeros((0, 1, 2)))
    return (largest.reshape(-1, 2) + 0.5).ravel().tolist() if len(largest) >= 3 else []


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    split, names = destination.split, dict(enumerate(destination.classes))
    content = {"path": ".", split: f"images/{split}", "names": names}
    destination.write_text(".", "data.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _spec(destination: Destination) -> Spec:
    return Spec("yolo", f"{destination.root}/data.yaml", {"split": destination.split})


WRITERS.add("yolo", Writer(_write, _spec, finish=_finish), module=__name__)
