"""Encode: from a prediction to a checked row, with what its forms derive from it and the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidPrediction
from stormproof.core.forms import MODEL_MS, Comparison, forms_of
from stormproof.core.prediction_batch import JoinedBoxes, join_boxes
from stormproof.core.sample import Ints, Prediction
from stormproof.engine.failures import Failure
from stormproof.engine.pair import Pair
from stormproof.engine.stages import Answer, AnsweredBatch, PreparedCell
from stormproof.engine.work import Work
from stormproof.models.classes import match_classes
from stormproof.results.store.schema import Row, RowBlock, RowHead

_COLUMNS = ("boxes", "scores", "labels")


class Encoder:
    """Makes rows. A prediction that cannot be scored is a failure of the model."""

    def __init__(self, work: Work, pair: Pair) -> None:
        model, dataset = pair.model, pair.dataset
        self._recipe, self._timed = cache(work.record.recipe_version), work.config.timed
        self._classes = len(model.classes or dataset.classes)
        self._semantic_classes = len(model.semantic_classes or dataset.semantic_classes)
        self._side = max(len(dataset.semantic_classes), self._semantic_classes)
        names = dataset.semantic_classes  # the dataset's label of each class of the model's maps
        self._labels: Ints = np.asarray(
            match_classes(model.semantic_classes or names, names).labels, np.int64
        )

    def __call__(self, answers: Iterable[Answer | Failure]) -> RowBlock | Iterator[Row | Failure]:
        """The rows of a batch, in order. Boxes are checked together; a row with maps is made when it is
        asked for, because a packed noisy label map is larger than the map."""
        recipe = self._recipe
        counted: dict[str, Any] = {}
        if isinstance(answers, AnsweredBatch) and self._timed:
            if answers.seconds is not None:
                counted[MODEL_MS] = [1000 * answers.seconds]
        elif isinstance(answers, AnsweredBatch):
            boxes = check_together(answers.returned, self._classes)
            if boxes is not None:
                heads = [
                    RowHead(index, name, condition, recipe(condition), size, content, change())
                    for index, name, condition, _, size, _, content, change in answers.cells
                ]
                return RowBlock(heads, boxes)
        return (one if isinstance(one, Failure) else self.one(*one, counted) for one in answers)

    def one(
        self, cell: PreparedCell, returned: object, counted: Mapping[str, Any] | None = None
    ) -> Row | Failure:
        """The row of a cell, whatever was predicted for it; with what was counted beside it, by column."""
        try:
            checked = check_prediction(returned, cell.size, self._classes, self._semantic_classes)
            return Row.of(
                cell.index, cell.id, cell.condition, self._recipe(cell.condition), cell.size, checked,
                {**self._derived(cell, checked), **(counted or {})}, cell.content, cell.change(),
            )  # fmt: skip
        except Exception as error:
            return Failure.of(error, cell.index, cell.id, cell.condition, "model")

    def _derived(self, cell: PreparedCell, prediction: Prediction) -> dict[str, Any]:
        """What forms count while the truth is at hand, by column."""
        compared = [form for form in forms_of(prediction) if form.derive is not None]
        if not compared:
            return {}
        truth = cell.truth()
        both = Comparison(cell.id, truth, prediction, self._side, self._labels)
        derived: dict[str, Any] = {}
        for form in compared:
            if form.derive is not None and form.is_in(truth):
                derived |= form.derive(both)
        return derived


def check_together(returned: Sequence[object], classes: int) -> JoinedBoxes | None:
    """The boxes of a batch, checked as `check_prediction` does; None if each needs a look of its own:
    they hold more than boxes, or something is wrong."""
    joined = returned if isinstance(returned, JoinedBoxes) else None
    if joined is None:
        held = [one for one in returned if isinstance(one, Prediction)]
        more = any(one.forms or one.masks is not None or one.confidence is not None for one in held)
        if not held or len(held) < len(returned) or more:
            return None
        joined = join_boxes(*([getattr(one, name) for one in held] for name in _COLUMNS))
        if joined is None or not np.array_equal(np.concatenate([one.sides for one in held]), joined.sides):
            return None
    labels = joined.labels
    in_range = not classes or not len(labels) or 0 <= labels.min() <= labels.max() < classes
    return joined if in_range else None


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
