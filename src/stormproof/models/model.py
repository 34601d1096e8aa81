"""What a model is: a callable from images to predictions, or a table of precomputed predictions.

Its identity is its fingerprint: a hash of the bytes of its files and of its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from stormproof.core import extensions
from stormproof.core.condition import Condition
from stormproof.core.errors import ModelError
from stormproof.core.files import locate, open_regular
from stormproof.core.identity import blake2b, file_digest, sorted_json
from stormproof.core.registry import Registry
from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.core.wrapper import Described
from stormproof.datasets.dataset import Dataset

ADAPTERS: Registry[Callable[..., Any]] = Registry(
    extensions.MODELS, "stormproof.models", order=lambda opener: opener.__module__
)
# Increase it whenever a decoder or a way of resizing changes its results: every fingerprint changes with it.
GENERATION = 3


@runtime_checkable
class Model(Described, Protocol):
    """Anything with these members; adapters make one from a framework's model or a plain function.

    A model without class names predicts labels that index the dataset's classes. `fingerprint` is a hash of
    weights and settings: equal fingerprints mean equal predictions.
    """

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        """One prediction per image, in order."""


@runtime_checkable
class Precomputed(Described, Protocol):
    """Predictions that were made elsewhere and are looked up: no image file is ever opened.

    `isinstance(model, Precomputed)` distinguishes it from a `Model`. Call `bind` once with the dataset, then
    `lookup` for every image id and condition.
    """

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that predictions exist for."""

    def bind(self, dataset: Dataset) -> Self:
        """The same predictions, read with this dataset's image ids and category numbers."""

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        """The prediction for an image; it is empty where nothing was detected."""


@runtime_checkable
class Unbound(Protocol):
    """A model that must know the dataset: precomputed predictions, or a zero-shot detector."""

    def bind(self, dataset: Dataset) -> Model | Precomputed: ...


@dataclass(frozen=True, eq=False)
class PerImage:
    """A model that predicts one image at a time, whatever framework is behind it.

    `predict` takes one H×W×3 RGB image. `files` and `settings` make the fingerprint. Images are not batched,
    because most frameworks pad an image to the largest of its batch, and then its prediction depends on its
    neighbours.
    """

    name: str
    predict: Callable[[Image], Prediction]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        names = {"classes": self.classes, "semantic_classes": self.semantic_classes}
        return fingerprint(self.files, {**self.settings, **names})

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        return [self.predict(as_rgb(image)) for image in images]


@dataclass(frozen=True, eq=False)
class PerBatch(PerImage):
    """A model that is given all images of a call, and decides which of them are run together."""

    predict: Callable[[Sequence[Image]], Sequence[Prediction]]  # type: ignore[assignment]
    takes_tensors: bool = False  # whether images may be tensors on a device

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        return self.predict([as_rgb(image) if isinstance(image, np.ndarray) else image for image in images])


def bgr(image: Image) -> Image:
    """The image with its channels reversed, as OpenCV and the frameworks built on it expect it."""
    return np.ascontiguousarray(image[..., ::-1])


def model_file(text: str, purpose: str) -> Path:
    """The file `text`, which must exist; if it does not, the error suggests the nearest name."""
    path = locate(text, error=ModelError)
    if not path.is_file():
        raise ModelError(f"{path} is not a regular file; {purpose} is expected there.")
    return path


def fingerprint(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """32 hexadecimal digits over the contents of files (or whole folders) and JSON-able settings.

    >>> fingerprint([], {"score": 0.1}) == fingerprint([], {"score": 0.2})
    False
    """
    total = blake2b(digest_size=16)
    total.update(sorted_json([GENERATION, settings]).encode())
    for path in files:
        inside = sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path]
        for file in inside:
            try:
                status = file.stat()
                content = _digest(file.resolve(), status.st_mtime_ns, status.st_size)
            except OSError as error:
                raise ModelError(f"{file} cannot be read: {error.strerror}; check the path.") from None
            total.update(file.name.encode() + b"\0" + content)
    return total.hexdigest()


@lru_cache(maxsize=4096)  # an unchanged file is read once per process
def _digest(path: Path, modified: int, size: int) -> bytes:
    with open_regular(path, error=ModelError) as file:
        return file_digest(file, blake2b).digest()
