"""What became of objects and predictions: right, wrong in which way, kept, lost or new.

Everything is computed by `metrics.error_types` and `metrics.lrp`; here it is put beside the boxes, for one
image or for all images of a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.boxes import iou
from stormproof.core.forms import FORMS
from stormproof.core.sample import Floats, Instances, Ints, Prediction, Truth
from stormproof.core.text import plain
from stormproof.corruptions import geometry
from stormproof.metrics.error_types import TYPES, ErrorTypes, box_error_types
from stormproof.metrics.inputs import MetricInput, Objects
from stormproof.metrics.lrp import TAU, locate
from stormproof.metrics.precision import MAX_DETECTIONS
from stormproof.metrics.records import Detections, DetectionTruth, select
from stormproof.metrics.task import task_of
from stormproof.report.imagery import outline_object
from stormproof.results.run import Run
from stormproof.results.scoring import iter_inputs
from stormproof.results.truths import chosen_classes

# The error types of `metrics.error_types`, as the page calls them.
WORDS = {
    "Cls": "confused", "Loc": "misplaced", "Both": "confused and misplaced", "Dupe": "doubled",
    "Bkg": "background", "Miss": "missed",
}  # fmt: skip
RIGHT, EXCUSED = "right", "excused"
THRESHOLDS = np.arange(101) / 100  # of scores, at which predictions are counted
_NOTHING = Instances(np.zeros((0, 4)), np.zeros(0, np.int64))
Thing = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The classes of a dataset, and those of them that a model is judged by."""

    classes: tuple[str, ...]
    judged: tuple[str, ...]

    @classmethod
    def of(cls, model: Sequence[str], dataset: Sequence[str]) -> Vocabulary:
        """The classes that model and dataset share; all of the dataset's for a model without names."""
        shared = chosen_classes(model, dataset, None) if model else tuple(dataset)
        return cls(tuple(dataset), shared)

    def counts(self, labels: Ints) -> Any:
        """Whether each label is of a class that the model is judged by."""
        known = np.array([name in self.judged for name in (*self.classes, "")], np.bool_)  # −1: no class
        return known[labels]


def true_objects(truth: Truth, vocabulary: Vocabulary, *, outlines: bool) -> list[Thing]:
    """The objects of an image in its own pixels; those that are not counted say so."""
    objects = truth.instances or _NOTHING
    counted = vocabulary.counts(objects.labels) & ~objects.crowd & ~objects.ignore
    return [
        {
            "id": str(objects.ids[i]),
            "box": _box(objects.boxes[i]),
            "name": plain(vocabulary.classes[objects.labels[i]]),
            "counted": bool(counted[i]),
            **outline_object(objects, i, 1.0, masks=outlines),
        }
        for i in range(len(objects))
    ]


def carried(truth: Truth) -> list[str]:
    """What objects have beside boxes and masks, such as joints: it is drawn, but boxes are matched."""
    held = {} if truth.instances is None else truth.instances.data
    return [FORMS[name].words for name in held if FORMS[name].lines is not None]


def predicted_objects(
    prediction: Prediction, truth: Truth, vocabulary: Vocabulary, *, before: Prediction | None
) -> tuple[list[Thing], dict[str, float]]:
    """The predictions of an image, each with its verdict, and the score at which each object was found.

    A verdict holds at any score threshold: a detection is judged before those of lower scores. `was` is the
    score of the surest clean prediction of the same class at the same place, 0 if there was none: at a
    threshold above it, a wrong prediction is new.
    """
    kept = np.flatnonzero(vocabulary.counts(prediction.labels))
    kept = kept[np.argsort(-prediction.scores[kept], kind="stable")][:MAX_DETECTIONS]
    objects = truth.instances or _NOTHING
    scored = np.flatnonzero(vocabulary.counts(objects.labels))
    layout = DetectionTruth.of([("", geometry.select(objects, scored))], vocabulary.classes)
    boxes = Detections(
        np.zeros(len(kept), np.int64), prediction.boxes[kept], prediction.scores[kept],
        prediction.labels[kept], sides=prediction.sides[kept],
    )  # fmt: skip
    types = box_error_types(layout, boxes)
    assert np.array_equal(types.scores, boxes.scores), "an image's verdicts are by falling score"
    was = _scores_before(boxes, before)
    things = [
        {
            "box": _box(boxes.boxes[i]),
            "name": plain(vocabulary.classes[boxes.labels[i]]),
            "score": float(boxes.scores[i]),
            "verdict": _verdict(types, i),
            "was": float(was[i]),
            **outline_object(prediction, int(kept[i]), 1.0),
        }
        for i in range(len(kept))
    ]
    located = locate(layout, boxes, TAU)
    counting = scored[~layout.excused]
    ids = [str(name) for name in objects.ids[counting]]
    return things, dict(zip(ids, located.found_at.tolist(), strict=True))


def _verdict(types: ErrorTypes, i: int) -> str:
    if types.excused[i]:
        return EXCUSED
    return RIGHT if types.kinds[i] == 0 else WORDS[TYPES[types.kinds[i] - 1]]


def _scores_before(boxes: Detections, before: Prediction | None) -> Floats:
    if before is None or not len(before) or not len(boxes):
        return np.zeros(len(boxes))
    same = (iou(boxes.boxes, before.boxes) >= TAU) & (boxes.labels[:, None] == before.labels)
    surest: Floats = np.where(same, before.scores, 0.0).max(axis=1)
    return surest


def _box(box: Floats) -> list[float]:
    return [round(float(value), 2) for value in box]


# All images of a condition


@dataclass(frozen=True, eq=False)
class JudgedCondition:
    """A condition of a run: what metrics take, and for objects how their detections are judged."""

    metric_input: MetricInput
    ids: tuple[str, ...]

    @property
    def objects(self) -> Objects | None:
        return self.metric_input if isinstance(self.metric_input, Objects) else None

    def shown(self, name: str) -> Any:
        """Whether each image shows a class."""
        names = [plain(one) for one in self.metric_input.scored_names]
        table = task_of(self.metric_input).shown(self.metric_input)
        return table[:, names.index(name)] if name in names else np.zeros(len(self.ids), np.bool_)

    def error_types(self, score: float) -> ErrorTypes | None:
        """The errors of the detections scored `score` or more."""
        if self.objects is None:
            return None
        return box_error_types(self.objects.truth, _sure(self.objects.named_boxes, score))


def judge_conditions(run: Run, conditions: Sequence[str]) -> dict[str, JudgedCondition]:
    """The cells of some conditions, in the task that the run is reported in."""
    first: dict[str, JudgedCondition] = {}
    for text, metric_input in iter_inputs(run, None, conditions):
        if text not in first or task_of(metric_input).rank < task_of(first[text].metric_input).rank:
            first[text] = JudgedCondition(metric_input, run.ids)
    return first


def tallies(judged: JudgedCondition) -> dict[str, Any] | None:
    """How many predictions are right and wrong at each of `THRESHOLDS`, and how many objects there are: of
    every class, and of each."""
    types = None if judged.objects is None else judged.error_types(0.0)
    if types is None:
        return None
    names = [plain(name) for name in judged.metric_input.scored_names]
    right, wrong = ~types.excused & (types.kinds == 0), ~types.excused & (types.kinds != 0)

    def tally(objects: Any, detections: Any) -> dict[str, Any]:
        return {
            "objects": int(objects.sum()),
            "right": _at_least(types.scores[right & detections]),
            "wrong": _at_least(types.scores[wrong & detections]),
        }

    labels = {name: (types.truth_labels == k, types.labels == k) for k, name in enumerate(names)}
    every = tally(np.ones(len(types.truth_labels), np.bool_), np.ones(len(types.labels), np.bool_))
    by_class = {name: tally(*chosen) for name, chosen in labels.items()}
    return {"every": every, "by_class": by_class, "images": len(judged.ids)}


def _at_least(scores: Floats) -> list[int]:
    """How many scores reach each threshold."""
    return [int(count) for count in len(scores) - np.searchsorted(np.sort(scores), THRESHOLDS - 1e-9)]


def per_image(judged: JudgedCondition, clean: JudgedCondition | None, score: float) -> dict[str, Ints]:
    """By image: errors of each type, and objects lost and new since the clean image, at a score threshold.

    Objects are only counted as lost or new where the truth did not move.
    """
    types = judged.error_types(score)
    if types is None:
        return {}
    held = types.per_image()
    columns = {WORDS[name]: held[name] for name in TYPES if name != "Both"}
    before = None if clean is None else clean.error_types(score)
    if before is None or not np.array_equal(before.truth_image, types.truth_image):
        return columns
    lost = before.found & ~types.found
    columns["lost"] = np.bincount(types.truth_image[lost], minlength=types.images)
    if judged.objects is not None and clean is not None and clean.objects is not None:
        columns["new"] = _new(judged.objects, clean.objects, score, types.images)
    return columns


def _new(objects: Objects, clean: Objects, score: float, images: int) -> Ints:
    """Predictions where nothing is, nor was predicted when clean, by image."""
    now, then, truth = _sure(objects.named_boxes, score), _sure(clean.named_boxes, score), objects.truth
    counts = np.zeros(images, np.int64)
    rows = zip(*(_by_image(each, images) for each in (now, then, truth)), strict=True)
    for image, (found, before, there) in enumerate(rows):
        if len(found):
            boxes = np.concatenate([then.boxes[before], truth.boxes[there]])
            labels = np.concatenate([then.labels[before], truth.labels[there]])
            same = (iou(now.boxes[found], boxes) >= TAU) & (now.labels[found][:, None] == labels)
            counts[image] = (~same.any(axis=1)).sum()
    return counts


def _sure(boxes: Detections, score: float) -> Detections:
    return select(boxes, np.flatnonzero(boxes.scores >= score))


def _by_image(entries: Detections | DetectionTruth, images: int) -> list[Ints]:
    order = np.argsort(entries.image, kind="stable")
    return np.split(order, np.searchsorted(entries.image[order], np.arange(1, images)))
