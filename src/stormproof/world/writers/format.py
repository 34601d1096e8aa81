"""What a writer is: a way to put one scene on disk, and what to add when all are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import PIL.Image

from stormproof.core.files import make_folder
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Image
from stormproof.world.samples import Rendered


@dataclass(frozen=True, slots=True)
class Job:
    """Where and how scenes are written."""

    root: Path
    split: str
    suffix: str = ".png"  # of images: .png keeps every pixel, .jpg is smaller
    quality: int = 95  # of JPEG

    def image(self, folder: str, name: str, image: Image) -> Path:
        """Write an image below the root."""
        path = self.file(folder, name + self.suffix)
        write_image(path, image, quality=self.quality)
        return path

    def file(self, folder: str, name: str) -> Path:
        """The path of a file below the root, whose folder exists from now on."""
        return make_folder(self.root / folder) / name

    def numbers(self, folder: str, name: str, values: npt.NDArray[Any], palette: Sequence[int] = ()) -> None:
        """Write a map of 8- or 16-bit numbers as PNG, with colours for its values where given."""
        image = PIL.Image.fromarray(values)
        if len(palette):
            image.putpalette(bytes(palette))
        image.save(self.file(folder, name + ".png"))


Record = dict[str, Any]  # what `finish` must know of an image; goes through JSON


@dataclass(frozen=True, slots=True)
class Format:
    """`scene` writes one scene, in any process, and returns what `finish` needs to know of it."""

    scene: Callable[[Job, int, Rendered], Record]
    finish: Callable[[Job, Sequence[Record]], None]
