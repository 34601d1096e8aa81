"""The boxes of a batch, checked and joined all at once, which takes a tenth of the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.object_arrays import ALMOST_ONE
from stormproof.core.sample import Prediction


class JoinedBoxes(NamedTuple):
    """The boxes of several images one after the other: copies of the model's, and valid."""

    counts: list[int]
    boxes: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    sides: npt.NDArray[np.float64]

    def split(self) -> Iterator[tuple[npt.NDArray[Any], ...]]:
        """Boxes, scores, labels and sides of each image."""
        end = 0
        for count in self.counts:
            start, end = end, end + count
            yield tuple(column[start:end] for column in self[1:])

    def predictions(self) -> list[Prediction]:
        put, made = object.__setattr__, []
        for columns in self.split():
            one = object.__new__(Prediction)
            for name, value in (*_NOTHING_MORE.items(), *zip(self._fields[1:], columns, strict=True)):
                put(one, name, value)
            made.append(one)
        return made


_FURTHER = {field.name for field in fields(Prediction)} - {*JoinedBoxes._fields}
_NOTHING_MORE: dict[str, Any] = {**dict.fromkeys(_FURTHER), "data": {}}


def join_boxes(
    boxes: Sequence[npt.NDArray[Any]], scores: Sequence[npt.NDArray[Any]], labels: Sequence[npt.NDArray[Any]]
) -> JoinedBoxes | None:
    """The boxes of several images; None if anything is unusual: predictions made one by one say what it is.

    >>> pair = join_boxes([np.zeros((1, 4))] * 2, [np.ones(1)] * 2, [np.array([3])] * 2)
    >>> [int(one.labels[0]) for one in pair.predictions()]
    [3, 3]
    """
    counts = [len(own) for own in scores]
    shapes = [((count, 4), (count,), (count,)) for count in counts]
    if [(a.shape, b.shape, c.shape) for a, b, c in zip(boxes, scores, labels, strict=True)] != shapes:
        return None
    try:  # nothing may be rounded
        corners = np.concatenate(boxes, dtype=np.float64, casting="safe")
        certain = np.concatenate(scores, dtype=np.float64, casting="safe")
        named = np.concatenate(labels, dtype=np.int64, casting="safe")
    except (TypeError, ValueError):
        return None
    sides = corners[:, 2:] - corners[:, :2]
    if not (np.isfinite(corners).all() and (sides >= 0).all()):
        return None
    if not ((certain >= 0) & (certain <= ALMOST_ONE)).all():
        return None
    return JoinedBoxes(counts, corners, np.minimum(certain, 1), named, sides)
