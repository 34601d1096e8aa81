"""Datasets made in Python: from a list of samples, or any object with the members of a dataset."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.sample import Sample, Truth
from stormproof.core.spec import OBJECT, local_object
from stormproof.datasets.dataset import Dataset


def open_object(main: str) -> Dataset:
    """A dataset that a Python program gave to `stormproof.run`, while that runs."""
    found: Dataset | None = local_object(main)
    if found is None:
        raise DatasetError(f"{OBJECT}:{main}", "was made in Python, in another process; give it again.")
    return found


@dataclass(frozen=True, eq=False)
class SampleDataset:
    """Samples in memory; their pixels and truth make the fingerprint."""

    name: str
    samples: tuple[Sample, ...]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        samples: Iterable[Sample],
        *,
        name: str = "samples",
        classes: Sequence[str] = (),
        semantic_classes: Sequence[str] = (),
    ) -> SampleDataset:
        """A dataset of samples; class names are those given, else those the first sample knows."""
        held = tuple(samples)
        for sample in held:
            if not isinstance(sample, Sample):
                raise InvalidOption(
                    f"A dataset holds samples, not {type(sample).__name__}; make Sample(id, image)."
                )
        first = held[0] if held else None
        known = tuple(classes) or (first.classes if first else ())
        known_maps = tuple(semantic_classes) or (first.semantic_classes if first else ())
        held = tuple(replace(s, classes=known, semantic_classes=known_maps) for s in held)
        twice = [name for name, count in Counter(s.id for s in held).items() if count > 1]
        if twice:
            raise InvalidOption(f"Two samples are called {twice[0]!r}; give each image one id.")
        return cls(name, held, known, known_maps)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(sample.id for sample in self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Sample:
        return self.samples[index]

    def truth(self, index: int) -> Truth:
        return self.samples[index].truth

    def size(self, index: int) -> tuple[int, int]:
        height, width = self.samples[index].image.shape[:2]
        return height, width

    @cached_property
    def fingerprint(self) -> str:
        total = hashlib.blake2b(json.dumps([self.classes, self.semantic_classes]).encode(), digest_size=16)
        for sample in self.samples:
            total.update(
                sample.id.encode() + b"\0" + repr(sample.image.shape).encode() + sample.image.tobytes()
            )
            objects, semantic = sample.truth.instances, sample.truth.semantic
            if objects is not None:
                for column in (objects.boxes, objects.labels, objects.crowd, objects.ignore):
                    total.update(column.tobytes())
                for mask in objects.masks or ():
                    total.update(mask.counts.tobytes())
            if semantic is not None:
                total.update(bytes([semantic.ignore & 255]) + semantic.labels.tobytes())
            if sample.context.depth is not None:
                total.update(sample.context.depth.tobytes())
        return total.hexdigest()
