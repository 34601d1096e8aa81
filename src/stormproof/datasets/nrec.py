"""The NREC Agricultural Person-Detection Dataset: people in orchards, boxes as VOC XML.

    ROOT/SPLIT/collected/ImagesPositiveNegative/*.png
    ROOT/SPLIT/collected/AnnotationsPositiveNegative/*.xml

The layout is that of the benchmark's public evaluation (nrecAgPersonEval). Right-hand images and
calibrations are attached as for any dataset, with right=FOLDER and calib=FOLDER.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stormproof.core.errors import DatasetError
from stormproof.core.files import folder, list_files, locate
from stormproof.core.sample import Instances, Truth
from stormproof.core.spec import opens
from stormproof.datasets.annotations import by_stem, list_images, unknown_split
from stormproof.datasets.filedataset import FileDataset
from stormproof.datasets.voc import VocBoxes

IMAGES, ANNOTATIONS = "ImagesPositiveNegative", "AnnotationsPositiveNegative"
CLASSES = ("person",)
PARTS = ("person-part", "person_part", "personpart")  # heavily occluded: excuses detections, is not demanded


@opens("nrec")
def open_nrec(main: str, *, split: str = "test") -> FileDataset:
    """People of one split: train, val or test. Parts of people are ignored regions, as in the benchmark.

    An image without a file of labels shows nobody.
    """
    root = locate(main)
    place = root / split / "collected"
    if not place.is_dir():
        known = [path.name for path in sorted(root.iterdir()) if (path / "collected").is_dir()]
        raise unknown_split(split, known, root)
    images = by_stem(list_images(folder(place / IMAGES, "images")))
    if not images:
        raise DatasetError(place / IMAGES, "holds no images.")
    labels = by_stem(list_files(folder(place / ANNOTATIONS, "XML annotations"), {".xml"}))
    ids = tuple(sorted(images))
    return FileDataset(
        name=f"nrec-{split}",
        root=root,
        ids=ids,
        images=tuple(images[name] for name in ids),
        labels=NrecBoxes(tuple(labels.get(name) for name in ids)),
        sources=tuple(labels[name] for name in ids if name in labels),
        classes=CLASSES,
    )


@dataclass(frozen=True)
class NrecBoxes:
    """One XML file per image that shows people."""

    files: tuple[Path | None, ...]

    def size(self, index: int) -> tuple[int, int] | None:
        file = self.files[index]
        return None if file is None else VocBoxes((file,), CLASSES).size(0)

    def truth(self, index: int) -> Truth:
        file = self.files[index]
        if file is None:
            return Truth(Instances(np.zeros((0, 4)), np.zeros(0, np.int64)))
        found = VocBoxes((file,), (*CLASSES, *PARTS)).truth(0).instances
        assert found is not None
        part = found.labels >= len(CLASSES)
        return Truth(replace(found, labels=np.where(part, 0, found.labels), ignore=found.ignore | part))
