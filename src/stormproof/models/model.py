"""What a model is to Stormproof: a callable from images to predictions, or predictions made beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

from stormproof.core.condition import Condition
from stormproof.core.sample import Image, Prediction
from stormproof.core.wrapper import Described
from stormproof.datasets.dataset import Dataset


@runtime_checkable
class Model(Described, Protocol):
    """Anything with these members; adapters make one from a framework's model or a bare function.

    Without class names, labels already index the dataset's classes. `fingerprint` is a hash of weights and
    settings: equal fingerprints mean equal predictions.
    """

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        """One prediction per image, in order."""
        ...


@runtime_checkable
class Precomputed(Described, Protocol):
    """Predictions that were made elsewhere and are looked up: no image file is ever opened.

    Tell it from a `Model` by `isinstance(model, Precomputed)`. Call `bind` once with the dataset, then
    `lookup` for every image id and condition; `conditions` says beforehand which ones are there.
    """

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that predictions exist for."""
        ...

    def bind(self, dataset: Dataset) -> Self:
        """The same predictions, read with this dataset's image ids and category numbers."""
        ...

    def lookup(self, image_id: str, condition: Condition) -> Prediction:
        """What was predicted for an image; an image without any detection has an empty prediction."""
        ...
