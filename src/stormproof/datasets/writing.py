"""Shared by all writers: the destination, and the two steps in which samples become files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from stormproof.core import extensions
from stormproof.core.errors import InvalidTruth
from stormproof.core.files import make_folder, whole_file
from stormproof.core.imagefile import write_image
from stormproof.core.registry import Registry
from stormproof.core.sample import Image, Sample
from stormproof.core.spec import Spec

Record = dict[str, Any]  # what `finish` needs to know about one image, as JSON values


@dataclass(frozen=True, slots=True)
class Destination:
    """A dataset to be written: its folder, how its images are stored, and the names of its classes."""

    root: Path
    split: str = "val"
    suffix: str = ".png"  # of images: .png keeps every pixel, .jpg is smaller
    quality: int = 95  # of JPEG
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()
    things: tuple[str, ...] = ()  # semantic classes with countable objects, if not `classes`

    def path(self, folder: str, name: str) -> Path:
        """A path below the root; its folder is made if it does not exist."""
        return make_folder(self.root / folder) / name

    def write_image(self, folder: str, name: str, image: Image) -> Path:
        path = self.path(folder, name + self.suffix)
        write_image(path, image, quality=self.quality)
        return path

    def write_map(
        self, folder: str, name: str, values: npt.NDArray[Any], palette: Sequence[int] = ()
    ) -> None:
        """Write 8- or 16-bit numbers as PNG, with colours for the values if a palette is given."""
        image = PIL.Image.fromarray(values)
        if len(palette):
            image.putpalette(bytes(palette))
        with whole_file(self.path(folder, f"{name}.png"), durable=False) as file:
            image.save(file, format="PNG")

    def write_text(self, folder: str, name: str, text: str) -> None:
        with whole_file(self.path(folder, name), durable=False) as file:
            file.write(text.encode())


def no_index(destination: Destination, records: Sequence[Record]) -> None:
    """`finish` for formats without a file about all images."""


def lacks_objects(destination: Destination) -> str:
    return "" if destination.classes else "the dataset has no boxes"


def lacks_maps(destination: Destination) -> str:
    return "" if destination.semantic_classes else "the dataset has no semantic maps"


def drops_maps(destination: Destination) -> str:
    return "label maps" if destination.semantic_classes else ""


def drops_objects(destination: Destination) -> str:
    return "objects" if destination.classes else ""


@dataclass(frozen=True, slots=True)
class Writer:
    """How a format stores a dataset.

    `write` stores one sample, in any process, and returns the image's path and a record of it; `finish`
    writes the files about all images, given their records. `spec` opens the result. `lacks` says why a
    dataset cannot be stored in this format, `drops` which truth would be lost; both are empty if there is no
    problem.
    """

    write: Callable[[Destination, str, Sample], tuple[Path, Record]]
    spec: Callable[[Destination], Spec]
    lacks: Callable[[Destination], str] = lacks_objects
    drops: Callable[[Destination], str] = drops_maps
    finish: Callable[[Destination, Sequence[Record]], None] = no_index


WRITERS: Registry[Writer] = Registry(extensions.WRITERS, "stormproof.datasets")


def semantic_labels(sample: Sample, void: int) -> npt.NDArray[np.uint8]:
    """The semantic map, with `void` for pixels without truth."""
    semantic = sample.truth.semantic
    if semantic is None:
        raise InvalidTruth(f"{sample.id} has no label map, which this format needs.")
    return np.where(semantic.labels == semantic.ignore, void, semantic.labels).astype(np.uint8)
