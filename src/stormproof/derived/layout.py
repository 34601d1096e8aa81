"""Layouts of public datasets, written from samples: COCO, YOLO, VOC, Cityscapes, CamVid, plain images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from stormproof.files import make_folder
from stormproof.imagefile import write_image
from stormproof.sample import Image, Sample
from stormproof.spec import Spec

Record = dict[str, Any]  # what a layout's `finish` must know of an image; goes through JSON


@dataclass(frozen=True, slots=True)
class Target:
    """Where a dataset is written, and the names it has for things."""

    root: Path
    split: str
    suffix: str  # .png keeps every pixel
    quality: int  # of JPEG
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()

    def image(self, folder: str, name: str, image: Image) -> Path:
        path = self.file(folder, name + self.suffix)
        write_image(path, image, quality=self.quality)
        return path

    def numbers(self, folder: str, name: str, values: npt.NDArray[Any]) -> Path:
        """A map of 8- or 16-bit numbers as PNG."""
        path = self.file(folder, f"{name}.png")
        PIL.Image.fromarray(values).save(path)
        return path

    def file(self, folder: str, name: str) -> Path:
        """A path below the root, whose folder exists from now on."""
        return make_folder(self.root / folder) / name


@dataclass(frozen=True, slots=True)
class Layout:
    """`write` puts one sample on disk, in any process; `finish` adds what concerns all of them."""

    name: str
    write: Callable[[Target, str, Sample], tuple[Path, Record]]
    finish: Callable[[Target, Sequence[Record]], None]
    spec: Callable[[Target], Spec]  # how Stormproof opens the result
    lacks: Callable[[Target], str]  # why a dataset cannot be written so; "" if it can


def nothing(target: Target, records: Sequence[Record]) -> None:
    """For layouts without a file about all images."""


def no_objects(target: Target) -> str:
    return "" if target.classes else "the dataset has no boxes"


def semantic_labels(sample: Sample, void: int) -> npt.NDArray[np.uint8]:
    """The semantic map with `void` where there is no truth."""
    assert sample.truth.semantic is not None
    labels = sample.truth.semantic.labels
    return np.where(labels == sample.truth.semantic.ignore, void, labels).astype(np.uint8)
