"""Encode: from a prediction to a checked row, with the agreement of its maps and the true ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import SEGMENTS, Ints, Prediction, Truth, make_predictions
from stormproof.engine.failures import Failure
from stormproof.engine.pair import Pair
from stormproof.engine.stages import Answer, PreparedCell
from stormproof.engine.work import Work
from stormproof.metrics.map_calibration import confidence_sums
from stormproof.metrics.panoptic import overlaps
from stormproof.metrics.quality import Change
from stormproof.metrics.semantic import Confusion
from stormproof.models.classes import match_classes
from stormproof.results.store.schema import Row

_COLUMNS = ("boxes", "scores", "labels")


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

    def __call__(self, answers: Iterable[Answer | Failure]) -> Iterator[Row | Failure]:
        """The rows of a batch, in order. Boxes are checked together; a row with maps is made when it is
        asked for, because a packed noisy label map is larger than the map."""
        if isinstance(answers, list) and (together := check_together(answers, self._classes)) is not None:
            for (cell, _), checked in zip(answers, together, strict=True):
                yield self._row_of(cell, checked)
            return
        for answer in answers:
            yield answer if isinstance(answer, Failure) else self._one(*answer)

    def _one(self, cell: PreparedCell, returned: object) -> Row | Failure:
        try:
            checked = check_prediction(returned, cell.size, self._classes, self._semantic_classes)
            return self._row_of(cell, checked)
        except Exception as error:
            return Failure.of(error, cell.index, cell.id, cell.condition, "model")

    def _row_of(self, cell: PreparedCell, checked: Prediction) -> Row:
        return self._row(
            cell.index, cell.id, cell.condition, cell.size, checked, cell.truth, cell.content, cell.change()
        )

    def look_up(
        self, index: int, name: str, condition: Condition, size: tuple[int, int], returned: object,
        truth: Callable[[], Truth],
    ) -> Row:  # fmt: skip
        """The row of a precomputed prediction."""
        checked = check_prediction(returned, size, self._classes, self._semantic_classes)
        return self._row(index, name, condition, size, checked, truth)

    def _row(
        self, index: int, name: str, condition: Condition, size: tuple[int, int], prediction: Prediction,
        truth_under: Callable[[], Truth], content: str | None = None, change: Change | None = None,
    ) -> Row:  # fmt: skip
        confusion = confidences = overlap = None
        has_map = prediction.semantic is not None or prediction.panoptic is not None
        truth = truth_under() if has_map else Truth()
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


def check_together(answers: Sequence[Answer], classes: int) -> list[Prediction] | None:
    """The predictions of a batch, checked as `check_prediction` does; None if each needs a look of its own:
    they hold more than boxes, or something is wrong."""
    given = [returned for _, returned in answers]
    held = [one for one in given if isinstance(one, Prediction) and not _has_more(one)]
    if not held or len(held) < len(given):
        return None
    checked = make_predictions(*([getattr(one, name) for one in held] for name in _COLUMNS))
    if checked is None:
        return None
    stated, sides = (np.concatenate([one.sides for one in some]) for some in (held, checked))
    if not np.array_equal(stated, sides):
        return None
    labels = np.concatenate([one.labels for one in checked])
    in_range = not classes or not len(labels) or 0 <= labels.min() <= labels.max() < classes
    return checked if in_range else None


def _has_more(found: Prediction) -> bool:
    return any(getattr(found, name) is not None for name in ("masks", "semantic", "panoptic", "confidence"))


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
