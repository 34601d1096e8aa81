"""Encode: from a prediction to a checked row, with what its forms derive from it and the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidPrediction
from stormproof.core.forms import Comparison, forms_of
from stormproof.core.sample import Ints, Prediction, Truth
from stormproof.engine.failures import Failure
from stormproof.engine.pair import Pair
from stormproof.engine.stages import PreparedCell
from stormproof.engine.work import Work
from stormproof.metrics.quality import Change
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
        compared = Comparison(name, truth, prediction, self._side, self._labels)
        derived: dict[str, Any] = {}
        for form in forms_of(prediction):
            if form.derive is not None and form.is_in(truth):
                derived |= form.derive(compared)
        return Row.of(
            index, name, condition, self._recipe(condition), size, prediction, derived, content, change
        )


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
    for form in forms_of(found):
        if form.check is not None:
            form.check(found.value(form.attribute), size, semantic_classes)
    return found
