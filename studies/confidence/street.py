"""The first test scenes of the built-in street, each rendered once per process."""

from __future__ import annotations

from functools import lru_cache

from stormproof.core.sample import Sample, Truth
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset

SCENES = 120
NAME = f"world:test,count={SCENES},size=768x480"


class Kept:
    """A dataset that keeps what it has once given."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.name, self.ids, self.fingerprint = dataset.name, dataset.ids, dataset.fingerprint
        self.classes, self.semantic_classes = dataset.classes, dataset.semantic_classes
        self._sample = lru_cache(maxsize=None)(dataset.__getitem__)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Sample:
        return self._sample(index)

    def truth(self, index: int) -> Truth:
        return self._sample(index).truth

    def size(self, index: int) -> tuple[int, int]:
        return self._dataset.size(index)


street = Kept(read_dataset(NAME))
