"""Reads predictions in the forms that models return: dicts of arrays or tensors, a bare label map, or result
objects of supervision and Ultralytics, which are recognised by their attributes: neither package is imported.

The engine checks, for every model, that masks and maps have their image's size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth, first_few
from stormproof.core.forms import FORMS, Array, object_forms
from stormproof.core.masks import mask_boxes, segmentation_mask
from stormproof.core.object_arrays import box_shape_problem
from stormproof.core.prediction_batch import JoinedBoxes, join_boxes
from stormproof.core.sample import RLE, Prediction, panoptic_map
from stormproof.datasets.object_data import boxes_of

PREDICTION_KEYS = ("boxes", "scores", "labels", "masks", "semantic", "panoptic", "segments")
_BOXES_ONLY = {*PREDICTION_KEYS[:3]}
_EXPECTED = (
    f"a Prediction, a dict with some of {', '.join(PREDICTION_KEYS)}, an H×W array of classes, supervision's "
    "Detections or Ultralytics' Results"
)


def read_predictions(
    returned: object, sizes: Sequence[tuple[int, int]], name: str, classes: Sequence[str] = ()
) -> Sequence[Prediction]:
    """One prediction per image from the output of the model `name`; `sizes` are (height, width).

    `classes` are the model's, for labels that are names.
    """
    alone = isinstance(returned, Mapping | Prediction | str) or is_result(returned)
    if alone or not hasattr(returned, "__len__"):
        listed = f"return a list with {_EXPECTED} for each image."
        raise _unusable(name, f"{_type(returned)} for {len(sizes)} images; {listed}")
    items = list(returned)  # type: ignore[call-overload]
    if len(items) != len(sizes):
        raise _unusable(name, f"{len(items)} predictions for {len(sizes)} images; return one per image.")
    return _read_together(items) or [
        read_prediction(item, size, name, classes) for item, size in zip(items, sizes, strict=True)
    ]


def _read_together(items: Sequence[object]) -> JoinedBoxes | None:
    """Dicts of boxes, scores and labels, all at once; None if one holds anything else."""
    dicts = [item for item in items if type(item) is dict and item.keys() == _BOXES_ONLY]
    if len(dicts) < len(items):
        return None
    columns: list[list[Any]] = [[item[key] for item in dicts] for key in PREDICTION_KEYS[:3]]
    values = [value for column in columns for value in column]
    if any(type(value) is not np.ndarray for value in values):
        if any(np.ma.isMA(value) for value in values):
            return None
        try:
            columns = [[as_array(value) for value in column] for column in columns]
        except (TypeError, ValueError, OverflowError):  # of lists that are no arrays
            return None
    return join_boxes(*columns)


def read_prediction(
    item: object, size: tuple[int, int], name: str, classes: Sequence[str] = ()
) -> Prediction:
    """The prediction for one image of `size` (height, width)."""
    if isinstance(item, Prediction):
        return replace(item)  # a model may change the one it gave and give it again
    if is_result(item):
        item = _fields(item, name)
    if not isinstance(item, Mapping):
        plane = _numbers(item, name, "a prediction")
        if plane.ndim == 2:
            return Prediction(semantic=label_map(plane, name))
        raise _unusable(name, f"{_type(item)} for an image; return {_EXPECTED}.")
    raw = item.get("semantic")
    semantic = None if raw is None else label_map(_numbers(raw, name, "semantic"), name)
    masks = None if item.get("masks") is None else _masks(item["masks"], size, name)
    data = _object_arrays(item, name)
    boxes = _numbers(item["boxes"], name, "boxes") if "boxes" in item else _boxes(masks, data)
    if problem := box_shape_problem(boxes.shape):
        raise _unusable(name, f"boxes that {problem}")
    scores = _numbers(item.get("scores", ()), name, "scores")
    labels = _labels(item.get("labels", ()), classes, name)
    counts = {"boxes": boxes.size // 4, "scores": scores.size, "labels": labels.size}
    if len({*counts.values()}) > 1:
        raise _unusable(name, f"{counts}; every box needs a score and a label.")
    return Prediction(boxes, scores, labels, masks, semantic, panoptic=_panoptic(item, name), data=data)


def _object_arrays(item: Mapping[Any, Any], name: str) -> dict[str, Array]:
    """The further arrays of objects in a dict, under the names of their forms."""
    others = [key for key in item if key not in PREDICTION_KEYS]
    forms = {form.name: form for form in object_forms()} if others else {}
    named = {key: (form.name, make) for form in forms.values() for key, make in form.keys.items()}
    unknown = [key for key in others if key not in forms and key not in named]
    if unknown:
        raise _unusable(name, f"the keys {unknown}; known keys are {', '.join(PREDICTION_KEYS)}.")
    data: dict[str, Array] = {}
    for key in others:
        if key in forms:
            data[key] = _numbers(item[key], name, key)
        elif (made := named[key])[1] is not None and item[key] is not None:
            data[made[0]] = made[1](_numbers(item[key], name, key))
    return data


def _boxes(masks: tuple[RLE, ...] | None, data: Mapping[str, Array]) -> Array:
    """The boxes around masks, or around what further arrays show, for predictions without their own."""
    shown = {
        key: values
        for key, values in data.items()
        if values.size and values.ndim == 1 + len(FORMS[key].shape or ())
    }
    around = boxes_of(shown) if masks is None else None
    return mask_boxes(masks or ()) if around is None else around


def _labels(value: object, classes: Sequence[str], name: str) -> Array:
    """Labels as numbers; names of classes become their places in `classes`."""
    listed = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind in "UO" else value
    if not (isinstance(listed, list | tuple) and listed and all(isinstance(one, str) for one in listed)):
        return _numbers(value, name, "labels")
    if not classes:
        fix = f"set {name}.classes = [...] to the names in order, or return their places in that order"
        raise _unusable(name, f"the label {listed[0]!r:.60}, but names no classes; {fix}.")
    places = {one: place for place, one in enumerate(classes)}
    unknown = next((one for one in listed if one not in places), None)
    if unknown is not None:
        known = first_few(list(classes))
        raise _unusable(name, f"the label {unknown!r:.60}, which is not one of its classes: {known}.")
    return np.array([places[one] for one in listed], np.int64)


def _panoptic(item: Mapping[Any, Any], name: str) -> npt.NDArray[np.int32] | None:
    """The panoptic map of a dict: an H×W map of segment ids, and the label of each id under `segments`."""
    ids, segments = item.get("panoptic"), item.get("segments")
    if ids is None and segments is None:
        return None
    if ids is None or not isinstance(segments, Mapping):
        raise InvalidPrediction(
            f"{name} must return H×W segment ids as panoptic and a dict of their labels as segments."
        )
    plane = _numbers(ids, name, "panoptic")
    if plane.ndim != 2 or plane.dtype.kind not in "iu":
        raise _unusable(name, f"a panoptic map of {plane.dtype} and shape {plane.shape}; give H×W ids.")
    return panoptic_map(plane, {int(key): int(label) for key, label in segments.items()})


def is_result(item: object) -> bool:
    """Whether an object has the attributes of supervision's `Detections` or Ultralytics' `Results`."""
    return _is_detections(item) or (hasattr(item, "boxes") and hasattr(item, "masks"))


def _is_detections(item: object) -> bool:
    return all(hasattr(item, name) for name in ("xyxy", "confidence", "class_id"))


def _fields(item: Any, name: str) -> dict[str, Any]:
    """The fields of a result object under our keys."""
    if _is_detections(item):
        found = {"boxes": item.xyxy, "scores": item.confidence, "labels": item.class_id}
        lacking = [key for key, value in found.items() if value is None]
        if lacking:
            raise _unusable(name, f"Detections without {' and '.join(lacking)}.")
        masks = getattr(item, "mask", None)
        return found | _of_forms(item) | ({} if masks is None else {"masks": masks})
    if getattr(item, "semantic_mask", None) is not None:
        plane = as_array(item.semantic_mask.data)
        return {"semantic": plane.reshape(plane.shape[-2:])}
    boxes = item.boxes  # None where a form has them
    own = {} if boxes is None else {"boxes": boxes.xyxy, "scores": boxes.conf, "labels": boxes.cls}
    found = own | _of_forms(item)
    found["labels"] = as_array(found["labels"]).astype(np.int64)
    if item.masks is None:
        return found
    masks, size = as_array(item.masks.data), getattr(item, "orig_shape", None)
    if size is not None and masks.shape[1:] != tuple(size):
        sides = f"masks of {masks.shape[1]}×{masks.shape[2]} pixels for an image of {size[0]}×{size[1]}"
        raise _unusable(name, f"{sides}; call Ultralytics with retina_masks=True.")
    return {**found, "masks": masks}


def _of_forms(item: Any) -> dict[str, Any]:
    """What forms take from a result object: further arrays of objects."""
    taken = (form.of_result(item) for form in object_forms())
    return {key: as_array(value) for fields in taken for key, value in fields.items()}


def _masks(value: Any, size: tuple[int, int], name: str) -> tuple[RLE, ...]:
    try:
        return tuple(read_mask(mask, size) for mask in value)
    except InvalidTruth as error:
        raise _unusable(name, f"a mask that cannot be read: {error}") from None
    except TypeError:
        raise _unusable(name, f"{_type(value)} as masks; return one per box.") from None


def _numbers(value: object, name: str, what: str) -> Array:
    """An array of numbers; lists of uneven length, strings and masked numbers are refused."""
    if np.ma.is_masked(value):
        fix = "leave out the entries that are masked"
        raise _unusable(name, f"{what} with masked numbers, which have no value; {fix}.")
    try:
        values = as_array(value)
        if values.dtype.kind in "biuf":
            return values
    except (ValueError, TypeError, OverflowError):
        pass
    raise _unusable(name, f"{what} that cannot be read as numbers ({value!r:.60}).")


def as_array(value: object) -> Array:
    """A NumPy array from lists, arrays, and tensors on any device.

    NumPy has no bfloat16; its numbers become float32, which holds them all.
    """
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        value = value.float()  # type: ignore[attr-defined]
    for step in ("detach", "cpu", "numpy"):
        method = getattr(value, step, None)
        if callable(method):
            value = method()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array  # as JAX adds it to NumPy


def label_map(plane: Array, name: str) -> Array:
    """An H×W array of whole numbers as a semantic map."""
    if plane.ndim != 2 or plane.dtype.kind not in "biuf":
        raise _unusable(
            name, f"a semantic map of {plane.dtype} and shape {plane.shape}; expected H×W numbers."
        )
    if plane.size and (not np.isfinite(plane).all() or plane.min() < 0 or plane.max() > 65535):
        raise _unusable(name, f"a semantic map of {plane.min()} to {plane.max()}; classes are 0 to 65535.")
    if plane.dtype.kind == "f" and (plane != np.floor(plane)).any():
        raise _unusable(name, "a semantic map of fractions; take the arg-max over classes first.")
    return plane.astype(np.uint8 if plane.size == 0 or plane.max() < 256 else np.uint16)


def read_mask(mask: object, size: tuple[int, int]) -> RLE:
    """A mask from an H×W array (or 1×H×W, also of probabilities), from COCO run lengths, or from an RLE."""
    if isinstance(mask, RLE):
        return mask
    if isinstance(mask, Mapping):
        return segmentation_mask(mask, *size)
    plane = _numbers(mask, "The model", "a mask")
    plane = plane[0] if plane.ndim == 3 and len(plane) == 1 else plane
    if plane.ndim != 2:
        raise InvalidPrediction(f"A mask has shape {plane.shape}; it must be H×W.")
    if not np.isfinite(plane).all():
        raise InvalidPrediction("A mask contains NaN or infinity; its values must be 0 to 1.")
    return RLE.from_mask(plane > 0.5)


def _unusable(name: str, returned: str) -> InvalidPrediction:
    return InvalidPrediction(f"{name} returned {returned}")


def _type(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {tuple(shape)}" if shape is not None else "")
