"""A dataset opened from Python: from a spec, a list of samples, or any object that is a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Sample, Truth
from stormproof.core.wrapper import Wrapper
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset, SampleDataset, missing_members


@dataclass(frozen=True, repr=False, eq=False)
class OpenedDataset(Wrapper):
    """A dataset, or its first `limit` images. `spec` is None for a dataset made in Python.

    Its fingerprint is the whole dataset's: a run over its first images can be continued over all of them.
    """

    spec: str | None
    whole: Dataset
    limit: int | None = None

    @property
    def _inner(self) -> Dataset:
        return self.whole

    @property
    def ids(self) -> Sequence[str]:
        return self.whole.ids[: len(self)]

    def __len__(self) -> int:
        return min(len(self.whole), self.limit or len(self.whole))

    def __getitem__(self, index: int | str) -> Sample:
        """A sample by position or by id; it carries the class names."""
        if isinstance(index, str):
            if index not in self.ids:
                shown = f"its first image is {self.ids[0]!r}" if len(self) else "it has no images"
                raise InvalidOption(f"{self.name} has no image {index!r}; {shown}.")
            index = self.ids.index(index)
        if isinstance(index, slice):
            raise InvalidOption("A dataset has no slices; open it with limit=N, or pick samples one by one.")
        sample = self.whole[range(len(self))[index]]
        return replace(sample, classes=self.classes, semantic_classes=self.semantic_classes)

    def __iter__(self) -> Iterator[Sample]:
        return (self[i] for i in range(len(self)))

    def truth(self, index: int) -> Truth:
        return self.whole.truth(range(len(self))[index])

    def size(self, index: int) -> tuple[int, int]:
        return self.whole.size(range(len(self))[index])

    def __repr__(self) -> str:
        of = f"{len(self)} of " if len(self) < len(self.whole) else ""
        images = f"{of}{counted(len(self.whole), 'image')}"
        kinds = [counted(len(self.classes), "class")] if self.classes else []
        kinds += [counted(len(self.semantic_classes), "semantic class")] if self.semantic_classes else []
        return f"<dataset {self.name}: {', '.join([images, *kinds])}>"


def open_dataset(
    source: str | Dataset | Iterable[Sample], *, limit: int | None = None, classes: Sequence[str] = ()
) -> OpenedDataset:
    """Open a dataset from a spec such as 'coco:val.json,images=val', from samples, or from a dataset object.

    `limit` keeps only the first images. `classes` names the labels of samples made in Python.

    >>> open_dataset("world:val,size=64x40", limit=3)
    <dataset world-val-64x40: 3 of 200 images, 7 classes, 12 semantic classes>
    """
    if limit is not None and limit < 1:
        raise InvalidOption(f"limit={limit}: it must be at least 1.")
    if isinstance(source, OpenedDataset):
        return source if limit is None else replace(source, limit=min(limit, len(source)))
    if isinstance(source, str):
        return OpenedDataset(source, read_dataset(source), limit)
    if not missing_members(source):
        return OpenedDataset(None, source, limit)  # type: ignore[arg-type]
    if isinstance(source, Iterable) or hasattr(source, "__getitem__"):
        return OpenedDataset(None, SampleDataset.of(source, classes=classes), limit)  # type: ignore[arg-type]
    members = ", ".join(missing_members(source))
    fix = "give a spec such as 'coco:val.json,images=val', or a list of samples"
    raise InvalidOption(f"{type(source).__name__} is not a dataset: it has no {members}; {fix}.")
