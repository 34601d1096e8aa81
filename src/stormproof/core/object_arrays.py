"""Checks of the arrays that truth and predictions are made of; an error says what is wrong and the fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.forms import FORMS, find_object_form

Floats = npt.NDArray[np.float64]
Error = type[InvalidTruth] | type[InvalidPrediction]
_KINDS = {"i": "whole numbers", "f": "numbers", "b": "true or false"}
ALMOST_ONE = 1 + 1e-6  # the single-precision sigmoid of some runtimes slightly exceeds 1
STRIDE = 4  # rows and columns from one pixel whose confidence is kept to the next


def thin_confidence(value: Any, semantic: npt.NDArray[Any] | None) -> npt.NDArray[np.float32]:
    """Probabilities of every fourth row and column of a semantic map."""
    if semantic is None:
        raise InvalidPrediction("confidence is about the pixels of a semantic map; give both.")
    thin = np.asarray(value, np.float32)
    if thin.shape == semantic.shape:
        thin = thin[::STRIDE, ::STRIDE].copy()
    if thin.shape != semantic[::STRIDE, ::STRIDE].shape:
        raise InvalidPrediction(f"confidence is {thin.shape}, the semantic map {semantic.shape}.")
    if not ((thin >= 0) & (thin <= ALMOST_ONE)).all():
        raise InvalidPrediction(f"confidence lies within {thin.min()} to {thin.max()}; give 0 to 1.")
    return np.minimum(thin, 1)


def exact(value: Any, dtype: Any) -> npt.NDArray[Any]:
    """Convert to an array of `dtype`; a value that would change raises ValueError instead."""
    raw = np.asarray(value)
    if raw.dtype == dtype:
        return raw
    with np.errstate(invalid="ignore"):
        array = raw.astype(dtype, copy=False)
    if np.dtype(dtype).kind in "iu" and raw.dtype != array.dtype and not (raw == array).all():
        raise ValueError
    return array


def per_object(
    value: Any, count: int, dtype: Any, name: str, default: Any, error: Error = InvalidTruth
) -> npt.NDArray[Any]:
    """An array with one value per object; `default` repeated if no value is given."""
    try:
        array = np.full(count, default, dtype) if value is None else exact(value, dtype)
    except (ValueError, OverflowError, TypeError):
        raise error(f"{name} are {value!r:.80}; they must be {_KINDS[np.dtype(dtype).kind]}.") from None
    if array.shape != (count,):
        raise error(f"{name} must hold one value per object: {count} boxes, but shape {array.shape}.")
    return array


def object_data(value: Mapping[str, Any], count: int, error: Error) -> dict[str, Floats]:
    """Copies of the arrays of `count` objects, each of the shape that its form declares."""
    arrays: dict[str, Floats] = {}
    for name, given in value.items():
        declared = find_object_form(name)
        if declared is None or declared.shape is None:
            FORMS.find(name)  # names the nearest
            raise error(f"{name!r} is not an array of objects: give it as {name}=, not within data.")
        array, shape = np.array(given, np.float64), (count, *declared.shape)
        if not count and not array.size:
            array = array.reshape([max(side, 0) for side in shape])
        fits = array.ndim == len(shape) and all(b in (-1, a) for a, b in zip(array.shape, shape, strict=True))
        if not fits:
            needed = "×".join("n" if side == -1 else str(side) for side in shape)
            raise error(
                f"{name} have shape {array.shape}; give {needed}, one entry for each of {count} boxes."
            )
        arrays[name] = array
    return arrays


def box_shape_problem(shape: tuple[int, ...]) -> str:
    """What is wrong with the shape of boxes; empty if they are n×4, one box, or none.

    Numbers of another shape could be arranged as n×4 as well, but would be other boxes.

    >>> box_shape_problem((4, 7))
    'have shape (4, 7); they must be n×4 numbers x1 y1 x2 y2: transpose them (boxes.T).'
    """
    if 0 in shape or shape == (4,) or (len(shape) == 2 and shape[1] == 4):
        return ""
    fix = "transpose them (boxes.T)" if len(shape) == 2 and shape[0] == 4 else "give one row for each box"
    return f"have shape {shape}; they must be n×4 numbers x1 y1 x2 y2: {fix}."


def checked_boxes(value: Any, error: Error = InvalidTruth) -> Floats:
    """Boxes as an n×4 array, checked; four numbers alone are one box."""
    try:
        boxes = np.asarray(value, dtype=np.float64)
    except (ValueError, OverflowError, TypeError):
        raise error(f"Boxes are {value!r:.80}; they must be n×4 numbers x1 y1 x2 y2.") from None
    if problem := box_shape_problem(boxes.shape):
        raise error(f"Boxes {problem}")
    boxes = boxes.reshape(-1, 4)
    if not (np.isfinite(boxes).all() and (boxes[:, 2:] >= boxes[:, :2]).all()):
        bad = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
        i = int(np.flatnonzero(bad)[0])
        raise error(
            f"Box {i} is {boxes[i].tolist()}; boxes are x1 y1 x2 y2, finite, with x2 ≥ x1 and y2 ≥ y1."
        )
    return boxes


def checked_sides(value: Any, boxes: Floats, error: Error) -> Floats:
    """Widths and heights, n×2: as given, else computed from the corners."""
    if value is None:
        return boxes[:, 2:] - boxes[:, :2]
    sides = np.asarray(value, dtype=np.float64)
    if sides.shape != (len(boxes), 2) or not (np.isfinite(sides) & (sides >= 0)).all():
        raise error(
            f"{len(boxes)} boxes, but sides of shape {sides.shape}; give each box a width and height ≥ 0."
        )
    return sides


_SAME_SIDES = 1e-6  # of the largest coordinate: more than rounding can lose


def require_same_sides(boxes: Floats, sides: Floats) -> None:
    """Refuse sides that are not those of the boxes, as when boxes were changed in a finished prediction."""
    corners, reach = boxes[:, 2:] - boxes[:, :2], 1 + np.abs(boxes).max(axis=1, initial=0)
    wrong = np.flatnonzero((np.abs(sides - corners) > _SAME_SIDES * reach[:, None]).any(axis=1))
    if len(wrong):
        box, own = boxes[wrong[0]].tolist(), sides[wrong[0]].tolist()
        fix = "make a new object instead of changing one"
        raise InvalidPrediction(f"Box {wrong[0]} is {box}, but its sides are {own}; {fix}.")
