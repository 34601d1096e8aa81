"""Datasets and models as a notebook holds them: opened from a spec, or made in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stormproof import datasets, models
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Image, Prediction, Sample, Truth
from stormproof.core.wrapper import Wrapper
from stormproof.datasets.dataset import Dataset, SampleDataset
from stormproof.models.function import function_model
from stormproof.models.model import Model, Precomputed


@dataclass(frozen=True, repr=False, eq=False)
class OpenedDataset(Wrapper):
    """A dataset, or the first `limit` images of one. `spec` is None for one made in Python.

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
        """A sample by position or by id; it knows its class names."""
        at = self._at(index) if isinstance(index, str) else range(len(self))[index]
        sample = self.whole[at]
        return replace(sample, classes=self.classes, semantic_classes=self.semantic_classes)

    def __iter__(self) -> Iterator[Sample]:
        return (self[i] for i in range(len(self)))

    def truth(self, index: int) -> Truth:
        return self.whole.truth(range(len(self))[index])

    def size(self, index: int) -> tuple[int, int]:
        return self.whole.size(range(len(self))[index])

    def _at(self, name: str) -> int:
        for index, known in enumerate(self.ids):
            if known == name:
                return index
        raise InvalidOption(f"{self.name} has no image {name!r}; its first is {self.ids[0]!r}.")

    def __repr__(self) -> str:
        of = f" of {len(self.whole)}" if len(self) < len(self.whole) else ""
        kinds = [f"{len(self.classes)} classes"] if self.classes else []
        kinds += [f"{len(self.semantic_classes)} semantic classes"] if self.semantic_classes else []
        return f"<dataset {self.name}: {', '.join([f'{len(self)}{of} images', *kinds])}>"


@dataclass(frozen=True, repr=False, eq=False)
class OpenedModel(Wrapper):
    """A model; call it with images. `spec` is None for one made in Python."""

    spec: str | None
    model: Model | Precomputed

    @property
    def _inner(self) -> Model | Precomputed:
        return self.model

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        """One prediction per image, in the model's own labels."""
        if isinstance(self.model, Precomputed):
            raise InvalidOption(f"{self.name} holds predictions made beforehand; there is nothing to call.")
        return self.model(images)

    def __repr__(self) -> str:
        count = len(self.classes or self.semantic_classes)
        return f"<model {self.name}: {f'{count} classes' if count else 'classes of the dataset'}>"


def open_dataset(
    source: str | Dataset | Iterable[Sample], *, limit: int | None = None, classes: Sequence[str] = ()
) -> OpenedDataset:
    """A dataset from a spec such as 'coco:val.json,images=val', from samples, or from a dataset object.

    `limit` keeps the first so many images. `classes` names the labels of samples made in Python.

    >>> open_dataset("world:val,size=64x40", limit=3)
    <dataset world-val-64x40: 3 of 200 images, 7 classes, 12 semantic classes>
    """
    if limit is not None and limit < 1:
        raise InvalidOption(f"limit={limit}: it must be at least 1.")
    if isinstance(source, OpenedDataset):
        return source if limit is None else replace(source, limit=min(limit, len(source)))
    if isinstance(source, str):
        return OpenedDataset(source, datasets.open_dataset(source), limit)
    if not datasets.lacking(source):
        return OpenedDataset(None, source, limit)  # type: ignore[arg-type]
    if isinstance(source, Iterable) or hasattr(source, "__getitem__"):
        return OpenedDataset(None, SampleDataset.of(source, classes=classes), limit)  # type: ignore[arg-type]
    members = ", ".join(datasets.lacking(source))
    fix = "give a spec such as 'coco:val.json,images=val', or a list of samples"
    raise InvalidOption(f"{type(source).__name__} is no dataset: it lacks {members}; {fix}.")


def open_model(
    source: str | Model | Callable[[Sequence[Image]], Any],
    *,
    classes: Sequence[str] = (),
    name: str | None = None,
) -> OpenedModel:
    """A model from a spec such as 'onnx:mine.onnx', or any callable from images to predictions.

    A callable takes a list of H×W×3 RGB images and returns for each a `Prediction`, a dict with boxes,
    scores, labels and perhaps masks (N×H×W), or an H×W map of classes. `classes` names its labels; without
    them they are the dataset's own.
    """
    if isinstance(source, OpenedModel):
        return source
    if isinstance(source, str):
        if classes or name:
            raise InvalidOption("classes= and name= are for functions; a spec has options, or a card.")
        return OpenedModel(source, models.open_model(source))
    if isinstance(source, Model | Precomputed) and not classes and name is None:
        return OpenedModel(None, source)
    return OpenedModel(None, function_model(source, name=name, classes=classes))
