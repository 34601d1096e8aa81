"""Arrays with one entry per object: of the right kind and length, or an error that says what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth

Floats = npt.NDArray[np.float64]
_KINDS = {"i": "whole numbers", "f": "numbers", "b": "true or false"}


def whole(value: Any, dtype: Any) -> npt.NDArray[Any]:
    """An array of `dtype`; a number that is not one of that type's is an error, never cut or wrapped."""
    raw = np.asarray(value)
    if raw.dtype == dtype:
        return raw
    with np.errstate(invalid="ignore"):
        array = raw.astype(dtype, copy=False)
    if np.dtype(dtype).kind in "iu" and raw.dtype != array.dtype and not (raw == array).all():
        raise ValueError
    return array


Error = type[InvalidTruth] | type[InvalidPrediction]


def per_object(
    value: Any, count: int, dtype: Any, name: str, default: Any, error: Error = InvalidTruth
) -> npt.NDArray[Any]:
    """A per-object array of the right length, or `default` repeated."""
    try:
        array = np.full(count, default, dtype) if value is None else whole(value, dtype)
    except (ValueError, OverflowError, TypeError):
        raise error(f"{name} are {value!r:.80}; they must be {_KINDS[np.dtype(dtype).kind]}.") from None
    if array.shape != (count,):
        raise error(f"{name} must hold one value per object: {count} boxes, but shape {array.shape}.")
    return array


def boxes_of(value: Any, error: Error = InvalidTruth) -> Floats:
    try:
        boxes = np.asarray(value, dtype=np.float64).reshape(-1, 4)
    except (ValueError, OverflowError, TypeError):
        raise error(f"Boxes are {value!r:.80}; they must be n×4 numbers x1 y1 x2 y2.") from None
    if not (np.isfinite(boxes).all() and (boxes[:, 2:] >= boxes[:, :2]).all()):
        bad = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
        i = int(np.flatnonzero(bad)[0])
        raise error(
            f"Box {i} is {boxes[i].tolist()}; boxes are x1 y1 x2 y2, finite, with x2 ≥ x1 and y2 ≥ y1."
        )
    return boxes


def sides_of(value: Any, boxes: Floats, error: Error) -> Floats:
    """Widths and heights, n×2: as stated, else what the corners give."""
    if value is None:
        return boxes[:, 2:] - boxes[:, :2]
    sides = np.asarray(value, dtype=np.float64)
    if sides.shape != (len(boxes), 2) or not (np.isfinite(sides) & (sides >= 0)).all():
        raise error(
            f"{len(boxes)} boxes, but sides of shape {sides.shape}; give a width and height ≥ 0 each."
        )
    return sides
