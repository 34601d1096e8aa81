"""DOTA: a text file of oriented boxes per image, in folders `images` and `labelTxt`.

    imagesource:GoogleEarth
    gsd:0.146
    2753 2408 2861 2385 2888 2468 2805 2502 plane 0

A line is four corners, the class and whether the object is difficult, which excuses it, as VOC's does. The
writer stores the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stormproof.core.errors import DatasetError
from stormproof.core.files import locate, read_text
from stormproof.core.oriented import polygon_areas, rotated_corners, upright
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import class_names, list_images, unique_names
from stormproof.datasets.dataset import READERS, FileDataset, Labels
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer

CLASSES = (
    "plane", "baseball-diamond", "bridge", "ground-track-field", "small-vehicle", "large-vehicle", "ship",
    "tennis-court", "basketball-court", "storage-tank", "soccer-ball-field", "roundabout", "harbor",
    "swimming-pool", "helicopter",
)  # fmt: skip
_LABELS = ("labelTxt", "labelTxt-v1.0", "labelTxt-v1.5", "labelTxt-v2.0", "annfiles", "labels")


class DotaObject(NamedTuple):
    """One object."""

    corners: tuple[float, ...]
    name: str
    difficult: bool


@READERS.declare("dota")
def open_dota(main: str, *, split: str | None = None, labels: str | None = None) -> FileDataset:
    """Open a folder with `images` and `labelTxt`, or with such a folder for each `split`.

    `labels` names the folder of labels, if it has another name. Classes are DOTA's fifteen, followed by
    others that occur. An image without a label file has no truth, which is an error.
    """
    root = locate(main)
    root = root if split is None else root / split
    folder = root / "images"
    names = _LABELS if labels is None else (labels,)
    texts = next((root / name for name in names if (root / name).is_dir()), None)
    if not folder.is_dir() or texts is None:
        splits = sorted(images.parent.name for images in root.glob("*/images") if images.is_dir())
        fix = f"; add split={splits[0]}" if splits else ""
        raise DatasetError(root, f"must contain the folders images and {' or '.join(names[:2])}{fix}.")
    images = list_images(folder)
    rows = tuple(_read_rows(texts / f"{image.stem}.txt") for image in images)
    used = {row.name for objects in rows for row in objects}
    classes = class_names((*CLASSES, *sorted(used - {*CLASSES})), texts)
    return FileDataset(
        name=root.name,
        root=root,
        ids=unique_names((image.stem for image in images), root, "image id"),
        images=tuple(images),
        labels=OrientedObjects(rows, {name: label for label, name in enumerate(classes)}),
        sources=tuple(texts / f"{image.stem}.txt" for image in images),
        classes=classes,
    )


def _read_rows(text: Path) -> tuple[DotaObject, ...]:
    if not text.is_file():
        raise DatasetError(text, "is missing: every image needs a file of labels, empty if it shows nothing.")
    lines = enumerate(read_text(text).splitlines(), 1)
    return tuple(
        _row(line.split(), text, f"line {i}")
        for i, line in lines
        if line.strip() and not line.startswith(("imagesource", "gsd"))
    )


def _row(words: Sequence[str], text: Path, where: str) -> DotaObject:
    try:
        corners = tuple(map(float, words[:8]))
        difficult = int(words[9]) if len(words) > 9 else 0
        if len(words) < 9 or not all(map(isfinite, corners)) or difficult not in (0, 1, 2):
            raise ValueError
    except ValueError:
        problem = (
            f"{' '.join(words)!r:.80} must be eight coordinates, a class, and 1 if it is difficult, else 0."
        )
        raise DatasetError(text, problem, where) from None
    return DotaObject(corners, words[8], difficult > 0)


@dataclass(frozen=True)
class OrientedObjects(Labels):
    """The rows of each image."""

    rows: tuple[tuple[DotaObject, ...], ...]
    places: dict[str, int]

    def truth(self, index: int) -> Truth:
        rows = self.rows[index]
        corners = np.array([row.corners for row in rows]).reshape(-1, 4, 2)
        labels = np.array([self.places[row.name] for row in rows], np.int64)
        ignore = np.array([row.difficult for row in rows], np.bool_)
        area = polygon_areas(corners)
        return Truth(Instances(upright(corners), labels, ignore=ignore, area=area, data={"corners": corners}))


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image("images", name, sample.image)
    objects = sample.truth.objects
    boxes, names = objects.boxes, [name.replace(" ", "-") for name in destination.classes]
    sides = np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, objects.sides, np.zeros((len(boxes), 1))])
    corners = objects.data.get("corners", rotated_corners(sides))
    lines = [
        f"{' '.join(f'{value:.6f}' for value in corners[k].ravel())} "
        f"{names[int(objects.labels[k])]} {int(objects.crowd[k] or objects.ignore[k])}\n"
        for k in range(len(objects))
    ]
    destination.write_text("labelTxt", f"{name}.txt", "".join(lines))
    return path, {}


def _spec(destination: Destination) -> Spec:
    return Spec("dota", str(destination.root), {})


WRITERS.add("dota", Writer(_write, _spec), module=__name__)
