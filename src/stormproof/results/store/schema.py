"""The schema of a row: one image under one condition, with the model's prediction.

Lists keep an image without detections visible: it has a row with empty lists, while a cell that was
never run has no row at all. Labels and label maps are the model's own; names are matched when scoring.
Nothing in a row depends on when, where or in what order it was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.condition import Condition
from stormproof.core.sample import RLE, Floats, Ints, Prediction
from stormproof.metrics.panoptic import Overlaps
from stormproof.metrics.quality import Change
from stormproof.metrics.semantic import Confusion

Labels = npt.NDArray[np.uint8 | np.uint16 | np.int32]
Runs = npt.NDArray[np.uint32]

VERSION = 2
BOXES = pa.list_(pa.list_(pa.float64(), 4))
SIDES = pa.list_(pa.list_(pa.float64(), 2))
RUNS = pa.list_(pa.uint32())
ROWS = pa.schema(
    [
        pa.field("index", pa.int32(), nullable=False),  # position in the dataset
        pa.field("image", pa.string(), nullable=False),  # the image's id
        pa.field("condition", pa.string(), nullable=False),
        pa.field("corruption", pa.string()),  # null when clean
        pa.field("severity", pa.int8()),  # null when clean, given by parameters, or between two
        pa.field("recipe", pa.int16(), nullable=False),  # the corruption's version; 0 when clean
        pa.field("height", pa.int32(), nullable=False),
        pa.field("width", pa.int32(), nullable=False),
        pa.field("boxes", BOXES, nullable=False),  # x1 y1 x2 y2 in pixels
        pa.field("scores", pa.list_(pa.float64()), nullable=False),
        pa.field("labels", pa.list_(pa.int32()), nullable=False),
        pa.field("masks", pa.list_(RUNS)),  # COCO run lengths down the columns; null: none given
        pa.field("semantic_values", pa.list_(pa.uint16())),  # the label map's runs along its rows
        pa.field("semantic_runs", RUNS),
        pa.field("confusion_truth", pa.list_(pa.int32())),  # pixels by true and predicted class, where
        pa.field("confusion_predicted", pa.list_(pa.int32())),  # there are any; null: no truth
        pa.field("confusion_pixels", pa.list_(pa.int64())),
        pa.field("content", pa.string()),  # size and digest of the image as read
        pa.field("sides", SIDES),  # widths and heights as a results file states them; null: x2 − x1, y2 − y1
        pa.field("rmse", pa.float64()),  # against the clean image; null where the pixels were not available
        pa.field("snr", pa.float64()),
        pa.field("confidences", pa.list_(pa.float64())),  # sums by bin, of pixels; null: none
        pa.field("panoptic_values", pa.list_(pa.int32())),  # the panoptic map's runs along its rows
        pa.field("panoptic_runs", RUNS),
        pa.field("overlap_truth", pa.list_(pa.int32())),  # pixels by true and predicted segment, as
        pa.field("overlap_predicted", pa.list_(pa.int32())),  # metrics.panoptic.overlaps counts them;
        pa.field("overlap_pixels", pa.list_(pa.int64())),  # null: no truth
    ]
)
KEY = ("index", "condition")
Cell = tuple[int, str]  # the values of KEY: image index, condition
DETECTION = ("boxes", "sides", "scores", "labels", "masks")
SEMANTIC = ("semantic_values", "semantic_runs")
CONFIDENCES = "confidences"
CONFUSION = ("confusion_truth", "confusion_predicted", "confusion_pixels")
PANOPTIC = ("panoptic_values", "panoptic_runs")
OVERLAP = ("overlap_truth", "overlap_predicted", "overlap_pixels")
# One column of each group that may be null throughout a run.
OPTIONAL = (
    "masks", "semantic_runs", "confusion_pixels", "rmse", CONFIDENCES, "panoptic_runs", "overlap_pixels",
)  # fmt: skip
LATER = (CONFIDENCES, *PANOPTIC, *OVERLAP)  # columns that parts of the same version may lack


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The prediction for one cell, packed until it is written: a label map as its runs."""

    index: int
    image: str
    condition: Condition
    recipe: int
    size: tuple[int, int]
    boxes: Floats
    sides: Floats | None  # if they differ from the boxes'
    scores: Floats
    labels: Ints
    masks: tuple[RLE, ...] | None
    semantic: tuple[Labels, Runs] | None
    confusion: tuple[Ints, Ints, Ints] | None
    panoptic: tuple[Labels, Runs] | None = None
    overlap: Overlaps | None = None
    content: str | None = None
    change: Change | None = None
    confidences: Floats | None = None

    @classmethod
    def of(
        cls, index: int, image: str, condition: Condition, recipe: int, size: tuple[int, int],
        prediction: Prediction, confusion: Confusion | None = None, content: str | None = None,
        change: Change | None = None, confidences: Floats | None = None, overlap: Overlaps | None = None,
    ) -> Row:  # fmt: skip
        """The row of a prediction, whose arrays are copies of the model's."""
        return cls(
            index, image, condition, recipe, size,
            prediction.boxes, _stated_sides(prediction), prediction.scores, prediction.labels,
            prediction.masks,
            semantic=None if prediction.semantic is None else run_lengths(prediction.semantic),
            confusion=None if confusion is None else _sparse(confusion.counts),
            panoptic=None if prediction.panoptic is None else run_lengths(prediction.panoptic),
            overlap=overlap,
            content=content,
            change=change,
            confidences=confidences,
        )  # fmt: skip

    @property
    def cell(self) -> Cell:
        return self.index, str(self.condition)

    @property
    def elements(self) -> int:
        """How many boxes and runs it holds."""
        runs = sum(len(held[1]) for held in (self.semantic, self.panoptic) if held is not None)
        return len(self.boxes) + runs + sum(len(mask.counts) for mask in self.masks or ())


def elements(table: pa.Table) -> int:
    """How many boxes and runs the rows of a table hold."""
    lists = ("boxes", "semantic_runs", "panoptic_runs", "masks")
    return sum(len(pc.list_flatten(table[name], recursive=name == "masks")) for name in lists)


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as columns of the schema, in the order given."""
    columns: dict[str, Any] = {
        "index": [row.index for row in rows],
        "image": [row.image for row in rows],
        "condition": [str(row.condition) for row in rows],
        "corruption": [row.condition.corruption for row in rows],
        "severity": [row.condition.whole_severity for row in rows],
        "recipe": [row.recipe for row in rows],
        "height": [row.size[0] for row in rows],
        "width": [row.size[1] for row in rows],
        "boxes": _boxes([row.boxes for row in rows], BOXES),
        "sides": _boxes([row.sides for row in rows], SIDES),
        "scores": _lists([row.scores for row in rows], pa.float64()),
        "labels": _lists([row.labels for row in rows], pa.int32()),
        "masks": _masks([row.masks for row in rows]),
        "content": [row.content for row in rows],
        CONFIDENCES: _lists([row.confidences for row in rows], pa.float64()),
    }
    groups: tuple[tuple[tuple[str, ...], list[Any]], ...] = (
        (SEMANTIC, [row.semantic for row in rows]),
        (CONFUSION, [row.confusion for row in rows]),
        (PANOPTIC, [row.panoptic for row in rows]),
        (OVERLAP, [row.overlap for row in rows]),
    )
    for names, held in groups:
        for k, name in enumerate(names):
            kind = ROWS.field(name).type.value_type
            columns[name] = _lists([None if each is None else each[k] for each in held], kind)
    for k, name in enumerate(Change._fields):
        columns[name] = [None if row.change is None else row.change[k] for row in rows]
    return pa.table(columns, schema=ROWS)


def prediction_of(row: dict[str, Any]) -> Prediction:
    """The prediction of a row, as `Table.to_pylist` gives it; columns that were not read stay empty."""
    size = (row["height"], row["width"])
    masks = row.get("masks")
    values, segments = row.get("semantic_values"), row.get("panoptic_values")
    return Prediction(
        boxes=np.array(row.get("boxes") or [], np.float64).reshape(-1, 4),
        scores=np.array(row.get("scores") or [], np.float64),
        labels=np.array(row.get("labels") or [], np.int64),
        masks=None if masks is None else tuple(RLE(size, np.array(m, np.uint32)) for m in masks),
        semantic=None if values is None else label_map(values, row["semantic_runs"], size),
        sides=row.get("sides"),  # type: ignore[arg-type]
        panoptic=None if segments is None else segment_map(segments, row["panoptic_runs"], size),
    )


def run_lengths(labels: Labels) -> tuple[Labels, Runs]:
    """The values and lengths of the runs along a label map's rows.

    >>> values, runs = run_lengths(np.array([[3, 3], [3, 7]], np.uint8))
    >>> values.tolist(), runs.tolist()
    ([3, 7], [3, 1])
    """
    flat = np.ravel(labels)
    starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
    return flat[starts], np.diff(starts, append=flat.size).astype(np.uint32)


def label_map(values: Sequence[int], runs: Sequence[int], size: tuple[int, int]) -> npt.NDArray[np.uint16]:
    """The label map that has these runs."""
    return np.repeat(np.array(values, np.uint16), runs).reshape(size)


def segment_map(values: Sequence[int], runs: Sequence[int], size: tuple[int, int]) -> npt.NDArray[np.int32]:
    """The panoptic map that has these runs."""
    return np.repeat(np.array(values, np.int32), runs).reshape(size)


def _sparse(counts: Ints) -> tuple[Ints, Ints, Ints]:
    truth, predicted = np.nonzero(counts)
    return truth, predicted, counts[truth, predicted]


def _lists(parts: Sequence[npt.NDArray[Any] | None], kind: pa.DataType) -> pa.ListArray:
    """One list per row from arrays; None is null, which is not an empty list."""
    offsets = np.concatenate(([0], np.cumsum([0 if p is None else len(p) for p in parts]))).astype(np.int32)
    given = [p for p in parts if p is not None and len(p)]
    flat = np.concatenate(given) if given else np.zeros(0, np.int64)
    nulls = pa.array([p is None for p in parts]) if any(p is None for p in parts) else None
    values = pa.array(flat.astype(kind.to_pandas_dtype(), copy=False))
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(kind), mask=nulls)


def _stated_sides(prediction: Prediction) -> Floats | None:
    """The widths and heights of a prediction, if they differ from its corners in the last bit."""
    given = prediction.boxes[:, 2:] - prediction.boxes[:, :2]
    return None if np.array_equal(given, prediction.sides) else prediction.sides


def _boxes(parts: Sequence[npt.NDArray[Any] | None], kind: pa.DataType) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum([0 if p is None else len(p) for p in parts]))).astype(np.int32)
    numbers = pa.array(np.concatenate([np.zeros(0), *(p.ravel() for p in parts if p is not None)]))
    fixed = pa.FixedSizeListArray.from_arrays(numbers, type=kind.value_type)
    nulls = pa.array([p is None for p in parts]) if any(p is None for p in parts) else None
    return pa.ListArray.from_arrays(pa.array(offsets), fixed, type=kind, mask=nulls)


def _masks(parts: Sequence[tuple[RLE, ...] | None]) -> pa.ListArray:
    counts = [mask.counts for masks in parts for mask in masks or ()]
    offsets = np.concatenate(([0], np.cumsum([len(masks or ()) for masks in parts]))).astype(np.int32)
    nulls = pa.array([masks is None for masks in parts], pa.bool_())
    return pa.ListArray.from_arrays(
        pa.array(offsets), _lists(counts, pa.uint32()), type=pa.list_(RUNS), mask=nulls
    )
