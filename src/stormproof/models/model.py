"""What a model is to Stormproof: a callable from images to predictions, with a name and its classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from stormproof.sample import Image, Prediction


@runtime_checkable
class Model(Protocol):
    """Anything with these members; adapters make one out of a framework's model or a bare function.

    `classes` name the labels of its boxes, `semantic_classes` the values of its semantic maps; an empty
    tuple means that labels already index the dataset's classes. `fingerprint` is a hash of weights and
    settings: equal fingerprints mean equal predictions.
    """

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def semantic_classes(self) -> tuple[str, ...]: ...
    @property
    def fingerprint(self) -> str: ...

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        """One prediction per image, in order."""
        ...
