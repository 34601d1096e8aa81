"""The predictions of a batch, made together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.object_arrays import ALMOST_ONE
from stormproof.core.sample import Prediction

_NOTHING_MORE: tuple[tuple[str, Any], ...] = (
    *((name, None) for name in ("masks", "semantic", "confidence", "panoptic")),
    ("data", {}),
)


def make_predictions(
    boxes: Sequence[npt.NDArray[Any]], scores: Sequence[npt.NDArray[Any]], labels: Sequence[npt.NDArray[Any]]
) -> list[Prediction] | None:
    """The predictions of several images, checked and copied all at once, which takes a tenth of the time.

    None if anything is unusual: made one by one, the predictions say what it is.

    >>> pair = make_predictions([np.zeros((1, 4))] * 2, [np.ones(1)] * 2, [np.array([3])] * 2)
    >>> [int(one.labels[0]) for one in pair or ()]
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
    certain, put, end, made = np.minimum(certain, 1), object.__setattr__, 0, []
    for count in counts:
        rows, one = slice(end, end := end + count), object.__new__(Prediction)
        for name, value in _NOTHING_MORE:
            put(one, name, value)
        columns = (("boxes", corners), ("scores", certain), ("labels", named), ("sides", sides))
        for name, column in columns:
            put(one, name, column[rows])
        made.append(one)
    return made
