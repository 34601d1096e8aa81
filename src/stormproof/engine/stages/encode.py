"""Encode: from a prediction to a checked row, with the agreement of its maps and the true ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import SEGMENTS, Ints, Prediction, Truth
from stormproof.engine.failures import Failure
from stormproof.engine.pair import Pair
from stormproof.engine.stages import PreparedCell
from stormproof.engine.work import Work
from stormproof.metrics.map_calibration import confidence_sums
from stormproof.metrics.panoptic import overlaps
from stormproof.metrics.quality import Change
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import match_classes
from stormproof.results.store.schema import Row


class Encoder:
    """Makes rows. A prediction that cannot be scored is a failure of the model."""

    def __init__(self, work: Work, pair: Pair) -> None:
        model, dataset = pair.model, pair.dataset
        self._recipe = work.recipe
        self._classes = len(model.classes or dataset.classes)
        self._semantic_classes = len(model.semantic_classes or dataset.semantic_classes)
        self._side = max(len(dataset.semantic_classes), self._semantic_classes)
        names = dataset.semantic_classes  # the dataset's label of each class of the model's maps
        self._labels: Ints = np.asarray(
            match_classes(model.semantic_classes or names, names).labels, np.int64
        )

    def __call__(self, cell: PreparedCell, returned: object) -> Row | Failure:
        try:
            return self.row(
                cell.index,
                cell.id,
                cell.condition,
                cell.size,
                returned,
                cell.truth,
                cell.content,
                cell.change(),
            )
        except Exception as error:
            return Failure.of(error, cell.index, cell.id, cell.condition, "model")

    def row(
        self, index: int, name: str, condition: Condition, size: tuple[int, int], returned: object,
        truth: Truth, content: str | None = None, change: Change | None = None,
    ) -> Row:  # fmt: skip
        prediction = check_prediction(returned, size, self._classes, self._semantic_classes)
        confusion = confidences = overlap = None
        if prediction.semantic is not None and truth.semantic is not None:
            confusion = Confusion.of(truth.semantic, prediction.semantic, classes=self._side, name=name)
            if prediction.confidence is not None:
                confidences = confidence_sums(
                    truth.semantic, prediction.semantic, prediction.confidence, self._labels
                )
        if prediction.panoptic is not None and truth.panoptic is not None and truth.semantic is not None:
            overlap = overlaps(truth, prediction.panoptic, name=name)
        return Row.of(
            index, name, condition, self._recipe(condition), size, prediction, confusion, content, change,
            confidences, overlap,
        )  # fmt: skip


def check_prediction(found: object, size: tuple[int, int], classes: int, semantic_classes: int) -> Prediction:
    """Refuse what cannot be scored: other types, labels without a class, masks and maps of another size."""
    if not isinstance(found, Prediction):
        raise InvalidPrediction(f"the model returned a {type(found).__name__}, not a Prediction")
    found = replace(found)  # checked again: the model may have changed it since it was made
    if classes and len(found) and not 0 <= found.labels.min() <= found.labels.max() < classes:
        bad = found.labels[(found.labels < 0) | (found.labels >= classes)][0]
        fix = "name the model's own with classes=, such as coco91 for COCO's own numbers"
        raise InvalidPrediction(f"label {bad}, but there are {classes} classes (0 to {classes - 1}); {fix}")
    for mask in found.masks or ():
        if mask.size != size:
            raise InvalidPrediction(f"a mask has size {mask.size}, the image {size} (height, width)")
    if found.semantic is not None:
        if found.semantic.dtype not in (np.uint8, np.uint16) or found.semantic.shape != size:
            raise InvalidPrediction(
                f"the label map is {found.semantic.dtype} {found.semantic.shape}, not uint8 or uint16 {size}"
            )
        top = int(found.semantic.max())
        if semantic_classes and top >= semantic_classes:
            raise InvalidPrediction(f"the label map holds {top}, but there are {semantic_classes} classes")
    if found.panoptic is not None:
        _check_panoptic(found.panoptic, size, semantic_classes)
    return found


def _check_panoptic(found: npt.NDArray[np.int32], size: tuple[int, int], classes: int) -> None:
    if found.dtype != np.int32 or found.shape != size:
        raise InvalidPrediction(f"the panoptic map is {found.dtype} {found.shape}, not int32 {size}")
    bad = (found != 0) & (found < SEGMENTS)
    if bad.any():
        raise InvalidPrediction(f"the panoptic map holds {found[bad][0]}; make it with panoptic_map")
    top = int(found.max()) // SEGMENTS - 1
    if classes and top >= classes:
        raise InvalidPrediction(f"the panoptic map holds class {top}, but there are {classes} classes")
