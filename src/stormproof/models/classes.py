"""Which class of a model is which class of a dataset: by name, with a table of names that mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Bools, Ints, Prediction
from stormproof.models.vocabulary import ALIASES, NOTHING, normalised

NO_CLASS = -1
NO_PIXEL = 255  # what a semantic map holds where the model saw a class that the dataset does not have


@dataclass(frozen=True, slots=True)
class ClassMatch:
    """Model classes and the dataset classes they stand for.

    `labels[i]` is the dataset's label for the model's label i, or −1. `unmatched_model` are the model's
    classes that the dataset lacks: what it says about them is dropped. `unmatched_dataset` are the
    dataset's classes that the model cannot say: it misses every one of those objects.
    """

    model: tuple[str, ...]
    dataset: tuple[str, ...]
    labels: tuple[int, ...]

    @property
    def pairs(self) -> tuple[tuple[str, int], ...]:
        """The model's names, each with the dataset's label."""
        return tuple(zip(self.model, self.labels, strict=True))

    @property
    def unmatched_model(self) -> tuple[str, ...]:
        return tuple(name for name, label in self.pairs if label == NO_CLASS and not is_nothing(name))

    @property
    def unmatched_dataset(self) -> tuple[str, ...]:
        met = {*self.labels}
        return tuple(name for i, name in enumerate(self.dataset) if i not in met and not is_nothing(name))

    def apply(self, prediction: Prediction) -> Prediction:
        """A prediction in the model's labels as one in the dataset's; objects of unmatched classes go."""
        labels, kept = self._objects(prediction.labels)
        masks = prediction.masks
        if masks is not None:
            masks = tuple(mask for mask, keep in zip(masks, kept, strict=True) if keep)
        semantic = prediction.semantic
        if semantic is not None:
            semantic = self._lookup(semantic.dtype.type)[semantic]
        return Prediction(
            prediction.boxes[kept],
            prediction.scores[kept],
            labels[kept],
            masks,
            semantic,
            prediction.sides[kept],
        )

    def _objects(self, labels: Ints) -> tuple[Ints, Bools]:
        beyond = labels[(labels < 0) | (labels >= len(self.labels))]
        if beyond.size:
            raise InvalidOption(f"The model gave label {beyond[0]}, but names {len(self.labels)} classes.")
        mapped = np.asarray(self.labels, np.int64)[labels] if len(labels) else labels
        return mapped, mapped != NO_CLASS

    def _lookup(self, kind: type[np.generic]) -> npt.NDArray[Any]:
        table: npt.NDArray[Any] = np.full(256 if kind is np.uint8 else 65536, NO_PIXEL, kind)
        known = np.asarray(self.labels[: len(table)])
        table[: len(known)] = np.where(known == NO_CLASS, NO_PIXEL, known)
        return table


def match_classes(
    model: Sequence[str], dataset: Sequence[str], names: Mapping[str, str] | None = None
) -> ClassMatch:
    """Pair classes by name: the same name first, then a name that means the same.

    Case, spaces, hyphens and underscores make no difference. An empty `model` says that its labels are the
    dataset's own. `names` (model's name → dataset's name) overrides everything else, so that several
    of the model's classes can be one of the dataset's.

    >>> match = match_classes(["background", "tvmonitor", "sofa"], ["couch", "tv", "bed"])
    >>> match.labels, match.unmatched_dataset
    ((-1, 1, 0), ('bed',))
    """
    if not model:
        return ClassMatch(tuple(dataset), tuple(dataset), tuple(range(len(dataset))))
    said = _said(names or {}, model, dataset)
    exact = {normalised(name): i for i, name in reversed([*enumerate(dataset)])}
    meaning = {canonical(name): i for i, name in reversed([*enumerate(dataset)])}
    labels = []
    for name in model:
        key = normalised(name)
        found = said.get(key, exact.get(key, meaning.get(canonical(name), NO_CLASS)))
        labels.append(NO_CLASS if name.strip() == "" else found)
    return ClassMatch(tuple(model), tuple(dataset), tuple(labels))


def _said(names: Mapping[str, str], model: Sequence[str], dataset: Sequence[str]) -> dict[str, int]:
    ours = {normalised(name): i for i, name in enumerate(dataset)}
    theirs = {normalised(name) for name in model}
    found = {}
    for left, right in names.items():
        if normalised(left) not in theirs:
            raise UnknownName("class of the model", left, model)
        if normalised(right) not in ours:
            raise UnknownName("class of the dataset", right, dataset)
        found[normalised(left)] = ours[normalised(right)]
    return found


_MEANING = {normalised(name): normalised(group[0]) for group in ALIASES for name in group}


def canonical(name: str) -> str:
    """The first of the names that mean the same; words may be run together, as in VOC."""
    key = normalised(name)
    return _MEANING.get(key, _MEANING.get(key.replace(" ", ""), key))


def is_nothing(name: str) -> bool:
    return normalised(name) in NOTHING


def class_table(match: ClassMatch, title: str = "Classes") -> Table:
    """What matched under another name and what did not match at all, for printing with rich."""
    table = Table("model", "dataset", "", title=title, title_justify="left")
    same = 0
    for name, label in match.pairs:
        if label == NO_CLASS:
            continue
        if normalised(name) == normalised(match.dataset[label]):
            same += 1
        else:
            table.add_row(Text(name), Text(match.dataset[label]), "same thing")
    for name in match.unmatched_dataset:
        table.add_row("–", Text(name), Text("the model does not know it: always missed", "yellow"))
    for name in match.unmatched_model:
        table.add_row(Text(name), "–", Text("not in the dataset: dropped", "dim"))
    table.caption = f"Same name on both sides: {same}."
    return table
