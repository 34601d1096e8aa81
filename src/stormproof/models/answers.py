"""Predictions from what models return: dicts of arrays or tensors, or a bare label map.

That masks and maps have their image's size is checked by the engine, for these models as for all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction
from stormproof.core.masks import mask_boxes, segmentation_mask
from stormproof.core.sample import RLE, Prediction

Array = npt.NDArray[Any]
_KEYS = ("boxes", "scores", "labels", "masks", "semantic")
_WANTED = f"a Prediction, a dict with some of {', '.join(_KEYS)}, or an H×W array of classes"


def read_answers(answers: object, sizes: Sequence[tuple[int, int]], name: str) -> list[Prediction]:
    """One prediction per image from whatever a model returned; `sizes` are (height, width)."""
    if isinstance(answers, Mapping | Prediction | str) or not hasattr(answers, "__len__"):
        raise InvalidPrediction(
            f"{name} returned {_type(answers)} for {len(sizes)} images; return a list: for each, {_WANTED}."
        )
    found = list(answers)  # type: ignore[call-overload]
    if len(found) != len(sizes):
        raise InvalidPrediction(
            f"{name} returned {len(found)} predictions for {len(sizes)} images; return one each."
        )
    return [_read_answer(answer, size, name) for answer, size in zip(found, sizes, strict=True)]


def _read_answer(answer: object, size: tuple[int, int], name: str) -> Prediction:
    try:
        return _prediction(answer, size, name)
    except InvalidPrediction:
        raise
    except (ValueError, TypeError, OverflowError) as error:  # lists of uneven length, strings for numbers …
        raise InvalidPrediction(f"{name} answered with something that cannot be read: {error}") from None


def _prediction(answer: object, size: tuple[int, int], name: str) -> Prediction:
    if isinstance(answer, Prediction):
        return answer
    if not isinstance(answer, Mapping):
        plane = as_array(answer)
        if plane.ndim == 2:
            return Prediction(semantic=label_map(plane, name))
        raise InvalidPrediction(f"{name} answered with {_type(answer)} for an image; answer with {_WANTED}.")
    unknown = [key for key in answer if key not in _KEYS]
    if unknown:
        raise InvalidPrediction(f"{name} answered with keys {unknown}; known are {', '.join(_KEYS)}.")
    raw_map = answer.get("semantic")
    semantic = None if raw_map is None else label_map(as_array(raw_map), name)
    raw = answer.get("masks")
    masks = None if raw is None else tuple(read_mask(mask, size) for mask in raw)
    boxes = as_array(answer["boxes"]).reshape(-1, 4) if "boxes" in answer else mask_boxes(masks or ())
    scores, labels = as_array(answer.get("scores", ())), as_array(answer.get("labels", ()))
    lengths = {"boxes": len(boxes), "scores": len(scores), "labels": len(labels)}
    if len({*lengths.values()}) > 1:
        raise InvalidPrediction(f"{name} gave {lengths}; every box needs a score and a label.")
    return Prediction(boxes, scores, labels, masks, semantic)


def as_array(value: object) -> Array:
    """A NumPy array from lists, arrays, and tensors on any device."""
    for step in ("detach", "cpu", "numpy"):
        method = getattr(value, step, None)
        if callable(method):
            value = method()
    return np.asarray(value)


def label_map(plane: Array, name: str) -> Array:
    """An H×W array of whole numbers as a semantic map."""
    if plane.ndim != 2 or plane.dtype.kind not in "biuf":
        raise InvalidPrediction(
            f"{name} gave a semantic map of {plane.dtype} and shape {plane.shape}; it must be H×W numbers."
        )
    if plane.size and (not np.isfinite(plane).all() or plane.min() < 0 or plane.max() > 65535):
        raise InvalidPrediction(
            f"{name} gave a semantic map of {plane.min()} to {plane.max()}; classes are 0 to 65535."
        )
    if plane.dtype.kind == "f" and (plane != np.floor(plane)).any():
        raise InvalidPrediction(
            f"{name} gave a semantic map of fractions; take the arg-max over classes first."
        )
    return plane.astype(np.uint8 if plane.size == 0 or plane.max() < 256 else np.uint16)


def read_mask(mask: object, size: tuple[int, int]) -> RLE:
    """A mask as H×W array (or 1×H×W, of probabilities too), as COCO run lengths, or as an RLE already."""
    if isinstance(mask, RLE):
        return mask
    if isinstance(mask, Mapping):
        return segmentation_mask(mask, *size)
    plane = as_array(mask)
    plane = plane[0] if plane.ndim == 3 and len(plane) == 1 else plane
    if plane.ndim != 2:
        raise InvalidPrediction(f"A mask has shape {plane.shape}; it must be H×W.")
    if plane.dtype.kind not in "biuf" or not np.isfinite(plane).all():
        raise InvalidPrediction(
            "A mask holds NaN, infinity or something that is no number; it must be 0 to 1."
        )
    return RLE.from_mask(plane > 0.5)


def _type(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {tuple(shape)}" if shape is not None else "")
