"""KITTI object detection: `image_2`, `label_2` and `calib` folders of numbered files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate, read_text
from stormproof.core.sample import Instances, Truth
from stormproof.core.spec import opens
from stormproof.datasets.annotations import (
    are_corners,
    by_stem,
    list_images,
    listed,
    read_split,
    split_name,
    unknown_split,
)
from stormproof.datasets.filedataset import FileDataset

CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
DONT_CARE = "DontCare"

# KITTI grades occlusion: visible, partly, largely, unknown. The fractions are the middle of each grade.
OCCLUSION = {-1: np.nan, 0: 0.0, 1: 1 / 3, 2: 2 / 3, 3: np.nan}


@opens("kitti")
def open_kitti(main: str, *, split: str | None = None) -> FileDataset:
    """Open a KITTI object folder; `split` names a list in ImageSets, without it every image is read."""
    root = locate(main)
    root = root / "training" if (root / "training" / "label_2").is_dir() else root
    labels = by_stem(list_files(first_folder([root / "label_2", root / "labels"], "label files"), {".txt"}))
    ids = _ids(root, split) or tuple(sorted(labels))
    files = listed(ids, labels, root / "label_2" / "id.txt", split)
    if not ids:
        raise DatasetError(root / "label_2", "holds no label files.")
    directory = next((p for p in (root / "image_2", root / "images") if p.is_dir()), root / "image_2")
    images = by_stem(list_images(directory)) if directory.is_dir() else {}
    return FileDataset(
        name=split_name(root, split),
        root=root,
        ids=ids,
        images=tuple(images.get(name, directory / f"{name}.png") for name in ids),
        labels=KittiObjects(files),
        sources=files,
        classes=CLASSES,
    )


def _ids(root: Path, split: str | None) -> tuple[str, ...]:
    if split is None:
        return ()
    folders = (root / "ImageSets", root.parent / "ImageSets")
    listing = next((f / f"{split}.txt" for f in folders if (f / f"{split}.txt").is_file()), None)
    if listing is None:
        raise unknown_split(split, [f.stem for place in folders for f in place.glob("*.txt")], root)
    return read_split(listing)


@dataclass(frozen=True)
class KittiObjects:
    """One text file per image, one object per line."""

    files: tuple[Path, ...]

    def size(self, index: int) -> tuple[int, int] | None:
        return None

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        lines = enumerate(read_text(file).splitlines(), 1)
        rows = [row for i, line in lines if line.strip() for row in _rows(line, file, i)]
        return Truth(
            Instances(
                boxes=np.array([row.box for row in rows]).reshape(-1, 4),
                labels=np.array([row.label for row in rows], np.int64),
                ignore=np.array([row.ignore for row in rows], np.bool_),
                occlusion=np.array([row.occlusion for row in rows]),
                truncation=np.array([row.truncation for row in rows]),
            )
        )


@dataclass(frozen=True)
class _Row:
    label: int
    ignore: bool
    truncation: float
    occlusion: float
    box: tuple[float, float, float, float]


def _rows(line: str, file: Path, number: int) -> list[_Row]:
    """One line: type, truncation, occlusion, angle, box x1 y1 x2 y2, and 3-D fields that are not used.

    A DontCare region excuses detections of any class, so it becomes one ignored object of every class.
    """
    where, fields = f"line {number}", line.split()
    name = fields[0]
    if name not in (*CLASSES, DONT_CARE):
        problem = f"unknown type {name!r}; KITTI knows {', '.join(CLASSES)} and {DONT_CARE}."
        raise DatasetError(file, problem, where)
    try:
        truncation, occlusion, _, x1, y1, x2, y2 = map(float, fields[1:8])
    except ValueError:
        raise DatasetError(file, f"{line!r:.80} must be a type and at least 7 numbers.", where) from None
    if not are_corners((x1, y1, x2, y2)):
        problem = f"box x1, y1, x2, y2 = {(x1, y1, x2, y2)} must be finite, with x2 ≥ x1 and y2 ≥ y1."
        raise DatasetError(file, problem, where)
    if occlusion not in OCCLUSION:
        raise DatasetError(file, f"occlusion {occlusion:g} must be 0, 1, 2 or 3 (−1 for {DONT_CARE}).", where)
    labels = range(len(CLASSES)) if name == DONT_CARE else [CLASSES.index(name)]
    cut = truncation if truncation >= 0 else np.nan
    hidden = OCCLUSION[int(occlusion)]
    return [_Row(label, name == DONT_CARE, cut, hidden, (x1, y1, x2, y2)) for label in labels]
