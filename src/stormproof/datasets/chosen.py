"""Some images of a dataset, by a list of ids that `stormproof explore` or an annotation tool wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stormproof.core.errors import DatasetError
from stormproof.core.files import locate, read_bytes
from stormproof.core.identity import to_json
from stormproof.core.sample import Sample, Truth
from stormproof.core.wrapper import Wrapper
from stormproof.datasets.dataset import Dataset, Source, abilities, fingerprint_of
from stormproof.datasets.image_files import require_listed


def with_chosen(dataset: Dataset, *, only: str | None = None) -> Dataset:
    """The images of a dataset that a file lists, in the dataset's order; `only` has an id on every line."""
    if only is None:
        return dataset
    path = locate(only, abilities(dataset).root)
    wanted = {*read_ids(path, dataset.ids)}
    if not wanted:
        raise DatasetError(path, "lists no image; write an image's id on every line.")
    require_listed(dataset, wanted, path)
    return ChosenImages(dataset, tuple(k for k, name in enumerate(dataset.ids) if name in wanted))


def read_ids(path: Path, known: Iterable[str]) -> list[str]:
    """The ids that a file lists, one on every line; one that has a line break in it is written as JSON."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise DatasetError(path, "is not text in UTF-8; write an image's id on every line.") from None
    ids = {*known}
    return [_id(line.removesuffix("\r"), ids) for line in lines if line.strip()]


def _id(line: str, known: set[str]) -> str:
    if line in known:
        return line
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    return told if isinstance(told, str) else line.strip()


@dataclass(frozen=True, eq=False)
class ChosenImages(Wrapper):
    """Some images of a dataset, or all; `kept` are their indices."""

    dataset: Dataset
    kept: Sequence[int]

    @property
    def _inner(self) -> Dataset:
        return self.dataset

    @cached_property
    def ids(self) -> Sequence[str]:
        return [self.dataset.ids[index] for index in self.kept] if self.is_subset else self.dataset.ids

    @property
    def is_subset(self) -> bool:
        return len(self.kept) < len(self.dataset)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(to_json([self.dataset.fingerprint, list(self.ids)]).encode(), ())

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> Sample:
        return self.dataset[self.kept[index]]

    def truth(self, index: int) -> Truth:
        return self.dataset.truth(self.kept[index])

    def size(self, index: int) -> tuple[int, int]:
        return self.dataset.size(self.kept[index])

    def image_source(self, index: int) -> Source | None:
        return abilities(self.dataset).image_source(self.kept[index])

    def context_files(self, index: int) -> tuple[Path, ...]:
        """The files behind a sample's context, whose content belongs to the sample's."""
        files = abilities(self.dataset).context_files
        return () if files is None else files(self.kept[index])
