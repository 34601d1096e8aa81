"""Which classes a run is scored over: those that model and dataset share, unless some are named.

A pedestrian detector on COCO would otherwise be averaged over 79 classes that it cannot say.
"""

from __future__ import annotations

from collections.abc import Sequence

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.models.classes import NO_CLASS, ClassMatch, match_classes

ALL = "all"
# Classes to score: some, in a list or separated by commas; "all"; None for those that both share.
Asked = Sequence[str] | str | None


def chosen_classes(model: Sequence[str], dataset: Sequence[str], asked: Asked) -> tuple[str, ...]:
    """The dataset's classes to score, in its order; of those asked for, the ones it has.

    >>> chosen_classes(["pedestrian"], ["car", "person"], None)
    ('person',)
    """
    if asked == ALL:
        return tuple(dataset)
    if asked is not None:
        return tuple(name for name in dataset if name in names(asked))
    met = {*match_classes(model, dataset).labels}
    return tuple(name for label, name in enumerate(dataset) if label in met)


def chosen_labels(dataset: Sequence[str], chosen: Sequence[str]) -> tuple[int, ...]:
    """The labels of the chosen classes."""
    return tuple(label for label, name in enumerate(dataset) if name in chosen)


def check_classes(asked: Asked, *known: Sequence[str]) -> None:
    """Refuse a class that the dataset does not have."""
    if asked is None or asked == ALL:
        return
    every = tuple(dict.fromkeys(name for classes in known for name in classes))
    for name in names(asked):
        if name not in every:
            raise UnknownName("class of the dataset", name, every, f"Classes: {', '.join(every)}.")
    if not names(asked):
        raise InvalidOption("--classes names none; give some, such as person,car, or all.")


def names(asked: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in (asked.split(",") if isinstance(asked, str) else asked) if name.strip()
    )


def narrowed(match: ClassMatch, chosen: Sequence[str]) -> ClassMatch:
    """The match with some of the dataset's classes; what the model says of others has no class."""
    place = {name: i for i, name in enumerate(chosen)}
    labels = (
        NO_CLASS if label == NO_CLASS else place.get(match.dataset[label], NO_CLASS) for label in match.labels
    )
    return ClassMatch(match.model, tuple(chosen), tuple(labels))
