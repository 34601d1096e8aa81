"""A dataset made of image files and the labels some format gives them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from stormproof.core.errors import DatasetError
from stormproof.core.files import is_file
from stormproof.core.imagefile import AS_STORED, PixelRules, image_size, read_image
from stormproof.core.sample import Image, Instances, Ints, Sample, Truth


class Labels(Protocol):
    """What a format must know of each image; everything else is the same for all formats."""

    def truth(self, index: int) -> Truth: ...
    def size(self, index: int) -> tuple[int, int] | None:
        """Height and width, or None if only the image file tells."""
        ...


@dataclass(frozen=True)
class NoLabels:
    """Images without truth."""

    def truth(self, index: int) -> Truth:
        return Truth()

    def size(self, index: int) -> tuple[int, int] | None:
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class FileDataset:
    """Images on disk, decoded one at a time when asked for.

    `sources` are the annotation files; their bytes, the class names and the ids make the fingerprint.
    `variant` names the options that change the truth read from the same files. `category_ids` are the
    numbers by which the format's own files know the classes, for writing results in that format.
    """

    name: str
    root: Path
    ids: tuple[str, ...]
    images: tuple[Path, ...]
    labels: Labels = field(default_factory=NoLabels)
    sources: tuple[Path, ...] = ()
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()
    variant: str = ""
    rules: PixelRules = AS_STORED

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        truth, image = self.truth(index), self._image(index)
        return Sample(
            self.ids[index], image, truth, classes=self.classes, semantic_classes=self.semantic_classes
        )

    def truth(self, index: int) -> Truth:
        return self.labels.truth(range(len(self))[index])

    def every_object(self) -> tuple[Ints, Instances] | None:
        """The objects of all images at once, each with its image's number; None if that saves nothing."""
        every = getattr(self.labels, "every_object", None)
        return None if every is None else every()

    def size(self, index: int) -> tuple[int, int]:
        index = range(len(self))[index]
        return self.labels.size(index) or image_size(self.images[index], rules=self.rules)

    def _image(self, index: int) -> Image:
        path, record = self.images[index], f"image {self.ids[index]!r}"
        if not is_file(path):
            raise DatasetError(path, "no such image file; check the images folder.", record)
        image = read_image(path, rules=self.rules)
        stated, stored = self.labels.size(index), (image.shape[0], image.shape[1])
        if stated is not None and stated != stored:
            problem = f"the image is {stored} (height, width), its annotation says {stated}."
            raise DatasetError(path, problem, record)
        return image

    @cached_property
    def fingerprint(self) -> str:
        files = [[name, path.name] for name, path in zip(self.ids, self.images, strict=True)]
        identity: list[object] = [
            self.variant, self.classes, self.semantic_classes, self.category_ids, files
        ]  # fmt: skip
        if self.rules != AS_STORED:
            identity.append(self.rules.identity())
        return fingerprint_of(json.dumps(identity).encode(), self.sources)


def fingerprint_of(identity: bytes, sources: Iterable[Path]) -> str:
    """32 hexadecimal digits over `identity` and the names and bytes of the annotation files."""
    total = hashlib.blake2b(identity, digest_size=16)
    for path in sources:
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "blake2b").digest()
        except (OSError, ValueError) as error:  # a name that no file system takes
            raise DatasetError(path, f"cannot be read: {getattr(error, 'strerror', error)}.") from None
        total.update(os.fsencode(path.name) + b"\0" + content)
    return total.hexdigest()
