"""Semantic segmentation: confusion matrices, which add up over images.

Rows are true classes, columns predicted ones. Pixels whose true label is the ignore value do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.forms import Column, Comparison, Form, form, map_of_runs, run_lengths
from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints, SemanticMap
from stormproof.metrics.map_calibration import confidence_sums
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, mean_of_known, metric, ratio
from stormproof.metrics.task import Task, task

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Maps, RunReader

_CALIBRATED: dict[str, Calibrated] = {
    "mIoU": ((80, 100),),
    "pixel accuracy": ((80, 50),),
}

LabelMap = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def iou_of(counts: npt.NDArray[Any]) -> Floats:
    """IoU by class of confusion matrices (… × true × predicted)."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    iou: Floats = ratio(hits, counts.sum(axis=-2) + counts.sum(axis=-1) - hits)
    return iou


def true_iou(counts: npt.NDArray[Any]) -> Floats:
    """IoU by class of confusion matrices; NaN for a class without a true pixel, even if it is predicted.

    A mean over predicted classes as well would be over more classes the more a model is confused.
    """
    iou: Floats = np.where(counts.sum(axis=-1) > 0, iou_of(counts), np.nan)
    return iou


@metric(
    "maps",
    Measure("mIoU", "mean intersection over union of the classes in the truth", section="maps"),
    Measure("mIoU any", "the same, a class that is only predicted counting 0", section="maps"),
    Measure("pixel accuracy", "fraction of pixels whose class is right", section="maps", share=True),
    calibrated=_CALIBRATED,
)
def _maps(maps: Maps, weights: Weights) -> Scored:
    """A pixel predicted as a class that the dataset lacks is wrong."""
    counts = maps.counts(weights)
    iou, of_any = (kind(counts)[:, list(maps.kept)] for kind in (true_iou, iou_of))
    right = ratio(np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2)))
    numbers = {"mIoU": mean_of_known(iou), "mIoU any": mean_of_known(of_any), "pixel accuracy": right}
    return Scored(numbers, {"IoU": iou}, {"mIoU": iou, "mIoU any": of_any})


def image_errors(maps: Maps) -> Floats:
    """1 − mean IoU of each image over the scored classes that it shows; NaN if it shows none."""
    from scipy import sparse  # imported late: `stormproof run` starts faster without it

    side = len(maps.classes) + 1
    cells = np.arange(side * side)
    truth, predicted = (
        (maps.confusions @ sparse.csr_array((np.ones(len(cells)), (cells, of)))).toarray()
        for of in np.divmod(cells, side)
    )
    hits = maps.confusions[:, :: side + 1].toarray()
    iou = np.where(truth > 0, ratio(hits, truth + predicted - hits), np.nan)
    return 1 - mean_of_known(iou[:, list(maps.kept)])


def _shows_class(maps: Maps) -> Bools:
    """Images × scored classes: whether the truth has a pixel of the class."""
    side = len(maps.classes) + 1
    image, at = maps.confusions.nonzero()
    shown = np.zeros((maps.confusions.shape[0], side), np.bool_)
    shown[image, at // side] = True
    return shown[:, list(maps.kept)]


SEMANTIC = ("semantic_values", "semantic_runs")
CONFUSION = ("confusion_truth", "confusion_predicted", "confusion_pixels")
CONFIDENCES = "confidences"


def check_map(plane: LabelMap, size: tuple[int, int], classes: int) -> None:
    """Refuse a predicted map that does not fit its image or the classes."""
    if plane.dtype not in (np.uint8, np.uint16) or plane.shape != size:
        raise InvalidPrediction(f"the label map is {plane.dtype} {plane.shape}, not uint8 or uint16 {size}")
    top = int(plane.max())
    if classes and top >= classes:
        raise InvalidPrediction(f"the label map holds {top}, but there are {classes} classes")


def _derive(cell: Comparison) -> dict[str, Any]:
    """The confusion of an image, and the sums of its confidences if the model reports them."""
    truth, predicted = cell.truth.semantic, cell.prediction.semantic
    assert truth is not None
    assert predicted is not None
    counts = count_pixels(truth, predicted, classes=cell.classes, name=cell.name)
    true, guessed = np.nonzero(counts)
    values: dict[str, Any] = dict(zip(CONFUSION, (true, guessed, counts[true, guessed]), strict=True))
    if cell.prediction.confidence is not None:
        values[CONFIDENCES] = confidence_sums(truth, predicted, cell.prediction.confidence, cell.labels)
    return values


def _collect(reader: RunReader) -> Iterator[tuple[str, Maps]]:
    from stormproof.metrics.inputs import Maps  # late: a run needs no input of metrics

    counts = zip(reader.pixel_counts(CONFUSION), reader.by_image(CONFIDENCES), strict=True)
    for (text, (true, predicted, pixels), image), (_, sums) in counts:
        yield text, Maps.of(
            image, true, reader.map_labels[predicted], pixels, images=reader.images,
            classes=reader.map_classes, kept=reader.scored_maps, confidences=sums,
        )  # fmt: skip


LABEL_MAPS = form(
    Form(
        "semantic", "label maps", of_objects=False,
        columns=(
            Column(SEMANTIC[0], "uint16", holds="class"),
            Column(SEMANTIC[1], "uint32", bulky=True, holds="runs"),
        ),
        pack=run_lengths, unpack=lambda row: map_of_runs(row, SEMANTIC, np.uint16), check=check_map,
        derived=(
            Column(CONFUSION[0], "int32", holds="true class"), Column(CONFUSION[1], "int32", holds="class"),
            Column(CONFUSION[2], "int64", holds="pixels"), Column(CONFIDENCES, later=True),
        ),
        derive=_derive, paint=lambda labels: (labels, 255),
        inputs=("maps", "confidences"), collect=_collect, scored_by=CONFUSION[2],
    ),
    __name__,
)  # fmt: skip
task(
    Task(
        "semantic segmentation", 20, LABEL_MAPS, headline="mIoU", per_class="IoU", section="maps",
        fits=lambda given: "maps" in given.kinds, image_errors=image_errors, shown=_shows_class,
    ),
    __name__,
)  # fmt: skip


def count_pixels(true: SemanticMap, predicted: LabelMap, *, classes: int, name: str = "image") -> Ints:
    """The pixels of an image by true and predicted class; `name` is its name in error messages.

    >>> truth = SemanticMap(np.array([[0, 1], [1, 255]], np.uint8))
    >>> counts = count_pixels(truth, np.array([[0, 1], [0, 0]], np.uint8), classes=2)
    >>> counts.tolist(), iou_of(counts).tolist()
    ([[1, 0], [1, 1]], [0.5, 0.5])
    """
    truth, ignore = true.labels, true.ignore
    if predicted.shape != truth.shape:
        raise InvalidPrediction(
            f"{name}: the predicted map is {predicted.shape}, the truth {truth.shape}; resize with nearest "
            "neighbour first."
        )
    if predicted.dtype not in (np.uint8, np.uint16):
        raise InvalidPrediction(f"{name}: the predicted map is {predicted.dtype}, not uint8 or uint16.")
    # An extra row and column collect values out of range, and an extra row ignored pixels, so that the kernel
    # needs no branch.
    table = np.full(65536, classes, np.uint16)
    table[:classes] = np.arange(classes)
    skip = table.copy()
    if 0 <= ignore < table.size:
        skip[ignore] = classes + 1
    wide = np.zeros((classes + 2, classes + 2), np.int64)
    _tally(np.ascontiguousarray(truth).ravel(), np.ascontiguousarray(predicted).ravel(), skip, table, wide)
    if wide[classes].any():
        value = int(truth[(skip[truth] == classes)][0])
        raise InvalidTruth(
            f"{name}: the truth contains class {value}, but there are {classes} classes, and {ignore} is "
            "the ignore value."
        )
    if wide[:classes, classes].any():
        value = int(predicted[(table[predicted] == classes) & (skip[truth] < classes)][0])
        raise InvalidPrediction(
            f"{name}: the prediction contains class {value}, but there are {classes} classes."
        )
    return wide[:classes, :classes].copy()


@kernel
def _tally(truth: Any, predicted: Any, rows: Any, columns: Any, counts: Any) -> None:
    # Neighbouring pixels are mostly equal, and incrementing the same count twice in a row stalls the
    # processor; four matrices, used in turn, keep the additions independent.
    side = counts.shape[0]
    lanes = np.zeros((4, side * side), np.uint32)
    whole = truth.size - truth.size % 4
    for i in range(0, whole, 4):
        for k in range(4):
            at = np.int64(rows[truth[i + k]]) * side + np.int64(columns[predicted[i + k]])
            lanes[k, at] += np.uint32(1)
    for i in range(whole, truth.size):
        lanes[0, np.int64(rows[truth[i]]) * side + np.int64(columns[predicted[i]])] += np.uint32(1)
    for r in range(side):
        for c in range(side):
            for k in range(4):
                counts[r, c] += np.int64(lanes[k, r * side + c])
