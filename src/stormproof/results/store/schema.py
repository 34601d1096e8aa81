"""The schema of a row: one image under one condition, with the model's prediction.

Lists keep an image without detections visible: it has a row with empty lists, while a cell that was
never run has no row at all. Labels and label maps are the model's own; names are matched when scoring.
Nothing in a row depends on when, where or in what order it was computed.

Boxes stand in every row. Maps and what is counted from them have the columns that their forms declare
(`core.forms`). A form that is not among those of `ROWS` adds its columns behind them, in the parts that have
a value for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.condition import Condition
from stormproof.core.forms import FORMS, Column, forms_of
from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.core.sample import MAPS, RLE, Floats, Ints, Prediction
from stormproof.metrics.quality import ImageChange

VERSION = 2
BOXES = pa.list_(pa.list_(pa.float64(), 4))
SIDES = pa.list_(pa.list_(pa.float64(), 2))
MASKS = Column("masks", "uint32", per_object=True, bulky=True)  # COCO run lengths down the columns


def arrow_type(column: Column) -> pa.DataType:
    """How a column is stored."""
    numbers = pa.list_(pa.type_for_alias(column.dtype))
    return pa.list_(numbers) if column.per_object else numbers


def _fields(columns: Iterable[Column]) -> list[pa.Field]:
    return [pa.field(column.name, arrow_type(column)) for column in columns]


MAP_FORMS = tuple(FORMS.find(name) for name in reversed(MAPS))
OF_MAPS = tuple(column for each in MAP_FORMS for column in (*each.columns, *each.derived))
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
        *_fields([MASKS]),  # null: none given
        *_fields(column for column in OF_MAPS if not column.later),
        pa.field("content", pa.string()),  # size and digest of the image as read
        pa.field("sides", SIDES),  # widths and heights as a results file states them; null: x2 − x1, y2 − y1
        pa.field("rmse", pa.float64()),  # against the clean image; null where the pixels were not available
        pa.field("snr", pa.float64()),
        *_fields(column for column in OF_MAPS if column.later),
    ]
)
KEY = ("index", "condition")
Cell = tuple[int, str]  # the values of KEY: image index, condition
DETECTION = ("boxes", "sides", "scores", "labels", MASKS.name)
MAP_COLUMNS = tuple(column.name for each in MAP_FORMS for column in each.columns)
_OF_FORMS = (MASKS, *OF_MAPS)
LIST_COLUMNS = ("boxes", "sides", "scores", "labels", *(column.name for column in _OF_FORMS))
# One column of each group that may be null throughout a run.
OPTIONAL = (MASKS.name, "rmse", *(c.name for c in OF_MAPS if c.holds in ("", "runs", "pixels")))
# Columns that parts of the same version may lack.
LATER = tuple(column.name for column in OF_MAPS if column.later)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The prediction for one cell, packed until it is written: maps as their runs."""

    index: int
    image: str
    condition: Condition
    recipe: int
    size: tuple[int, int]
    boxes: Floats
    sides: Floats | None  # if they differ from the boxes'
    scores: Floats
    labels: Ints
    columns: Mapping[str, Any] = field(default_factory=dict)  # values of forms, by column
    content: str | None = None
    change: ImageChange | None = None

    @classmethod
    def of(
        cls, index: int, image: str, condition: Condition, recipe: int, size: tuple[int, int],
        prediction: Prediction, derived: Mapping[str, Any] | None = None, content: str | None = None,
        change: ImageChange | None = None,
    ) -> Row:  # fmt: skip
        """The row of a prediction, whose arrays are copies of the model's. `derived` is what was counted
        while its truth was at hand."""
        columns: dict[str, Any] = {**(derived or {})}
        if prediction.masks is not None:
            columns[MASKS.name] = [mask.counts for mask in prediction.masks]
        for each in forms_of(prediction):
            value = prediction.value(each.name)
            if each.pack is not None and value is not None:
                columns |= dict(zip((c.name for c in each.columns), each.pack(value), strict=True))
            elif each.shape is not None:
                columns[each.name] = [entry.ravel() for entry in value]
        return cls(
            index, image, condition, recipe, size, prediction.boxes, _stated_sides(prediction),
            prediction.scores, prediction.labels, columns, content, change,
        )  # fmt: skip

    @property
    def cell(self) -> Cell:
        return self.index, str(self.condition)

    @property
    def elements(self) -> int:
        """How many boxes and runs it holds."""
        if not self.columns:
            return len(self.boxes)
        bulky = [column for column in columns_of(self.columns) if column.bulky]
        lengths = (
            sum(map(len, held)) if column.per_object else len(held)
            for column in bulky
            if (held := self.columns[column.name]) is not None
        )
        return len(self.boxes) + sum(lengths)


class RowHead(NamedTuple):
    """What a row holds beside its prediction."""

    index: int  # type: ignore[assignment]  # tuples have a method of this name
    image: str
    condition: Condition
    recipe: int
    size: tuple[int, int]
    content: str | None
    change: ImageChange | None

    @property
    def cell(self) -> Cell:
        return self.index, str(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Rows of boxes alone, which stay joined until they are written."""

    heads: Sequence[RowHead]
    boxes: JoinedBoxes

    @classmethod
    def in_order(cls, blocks: Sequence[RowBlock]) -> RowBlock:
        """The rows of several blocks, sorted by cell."""
        heads, boxes = [head for one in blocks for head in one.heads], [one.boxes for one in blocks]
        order = sorted(range(len(heads)), key=[head.cell for head in heads].__getitem__)
        return cls([heads[i] for i in order], JoinedBoxes.of(boxes).take(np.array(order, np.int64)))

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Row]:
        for head, (boxes, scores, labels, _) in zip(self.heads, self.boxes.split(), strict=True):
            yield Row(*head[:5], boxes, None, scores, labels, {}, *head[5:])

    def part(self, start: int, stop: int) -> RowBlock:
        """Some adjacent rows."""
        return RowBlock(self.heads[start:stop], self.boxes.part(start, stop))


def columns_of(names: Iterable[str]) -> list[Column]:
    """The columns of forms among those named; of further ones, those that are declared now."""
    known = {column.name: column for column in _OF_FORMS}
    if any(name not in known and name not in ROWS.names for name in names):
        known |= {c.name: c for each in FORMS.values() for c in (*each.columns, *each.derived)}
    return [known[name] for name in names if name in known]


def elements(table: pa.Table) -> int:
    """How many boxes and runs the rows of a table hold."""
    bulky = [column for column in columns_of(table.column_names) if column.bulky]
    lists = (pc.list_flatten(table[column.name], recursive=column.per_object) for column in bulky)
    return len(pc.list_flatten(table["boxes"])) + sum(map(len, lists))


def table_of(given: Sequence[Row] | RowBlock) -> pa.Table:
    """Rows as columns of the schema, in the order given; then those of further forms."""
    rows: Sequence[Any] = given.heads if isinstance(given, RowBlock) else given
    columns: dict[str, Any] = {
        "index": [row.index for row in rows],
        "image": [row.image for row in rows],
        "condition": [str(row.condition) for row in rows],
        "corruption": [row.condition.corruption for row in rows],
        "severity": [row.condition.whole_severity for row in rows],
        "recipe": [row.recipe for row in rows],
        "height": [row.size[0] for row in rows],
        "width": [row.size[1] for row in rows],
        "content": [row.content for row in rows],
    }
    for k, name in enumerate(ImageChange._fields):
        columns[name] = [None if row.change is None else row.change[k] for row in rows]
    if isinstance(given, RowBlock):
        joined, offsets = given.boxes, _offsets(given.boxes.counts)
        corners = pa.FixedSizeListArray.from_arrays(pa.array(joined.boxes.ravel()), type=BOXES.value_type)
        lists = (corners, pa.array(joined.scores), pa.array(joined.labels.astype(np.int32)))
        columns |= {
            name: pa.ListArray.from_arrays(offsets, values, type=ROWS.field(name).type)
            for name, values in zip(("boxes", "scores", "labels"), lists, strict=True)
        }
        columns["sides"], rows = pa.nulls(len(rows), SIDES), ()
    else:
        columns |= {
            "boxes": _boxes([row.boxes for row in rows], BOXES),
            "sides": _boxes([row.sides for row in rows], SIDES),
            "scores": _lists([row.scores for row in rows], pa.float64()),
            "labels": _lists([row.labels for row in rows], pa.int32()),
        }
    carrying = rows if any(row.columns for row in rows) else ()
    further = columns_of(sorted({name for row in carrying for name in row.columns} - {*ROWS.names}))
    for column in (*_OF_FORMS, *further):
        kind = pa.type_for_alias(column.dtype)
        held = [row.columns.get(column.name) for row in carrying]
        if not carrying:
            columns[column.name] = pa.nulls(len(given), arrow_type(column))
        else:
            columns[column.name] = _nest(held, kind) if column.per_object else _lists(held, kind)
    return pa.table(columns, schema=pa.schema([*ROWS, *_fields(further)]))


def prediction_of(row: Mapping[str, Any]) -> Prediction:
    """The prediction of a row, as `Table.to_pylist` gives it; columns that were not read stay empty."""
    size, masks = (row["height"], row["width"]), row.get(MASKS.name)
    maps = {
        each.name: each.unpack(row)
        for each in MAP_FORMS
        if each.unpack is not None and row.get(each.columns[0].name) is not None
    }
    further = [name for name, held in row.items() if name not in ROWS.names and held is not None]
    boxes = np.array(row.get("boxes") or [], np.float64).reshape(-1, 4)
    shapes = {name: FORMS[name].shape for name in further if name in FORMS}
    return Prediction(
        boxes=boxes,
        scores=np.array(row.get("scores") or [], np.float64),
        labels=np.array(row.get("labels") or [], np.int64),
        masks=None if masks is None else tuple(RLE(size, np.array(m, np.uint32)) for m in masks),
        sides=row.get("sides"),  # type: ignore[arg-type]
        data={
            name: np.array(row[name], np.float64).reshape(len(boxes), *shape if len(boxes) else ())
            for name, shape in shapes.items()
            if shape is not None
        },
        **maps,
    )


def _offsets(lengths: Any) -> pa.Array:
    """Where each list begins, and where the last one ends."""
    return pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def _lists(parts: Sequence[npt.NDArray[Any] | None], kind: pa.DataType) -> pa.ListArray:
    """One list per row from arrays; None is null, which is not an empty list."""
    offsets = _offsets([0 if p is None else len(p) for p in parts])
    given = [p for p in parts if p is not None and len(p)]
    flat = np.concatenate(given) if given else np.zeros(0, np.int64)
    nulls = pa.array([p is None for p in parts]) if any(p is None for p in parts) else None
    values = pa.array(flat.astype(kind.to_pandas_dtype(), copy=False))
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(kind), mask=nulls)


def _stated_sides(prediction: Prediction) -> Floats | None:
    """The widths and heights of a prediction, if they differ from its corners in the last bit."""
    given = prediction.boxes[:, 2:] - prediction.boxes[:, :2]
    return None if np.array_equal(given, prediction.sides) else prediction.sides


def _boxes(parts: Sequence[npt.NDArray[Any] | None], kind: pa.DataType) -> pa.ListArray:
    offsets = _offsets([0 if p is None else len(p) for p in parts])
    numbers = pa.array(np.concatenate([np.zeros(0), *(p.ravel() for p in parts if p is not None)]))
    fixed = pa.FixedSizeListArray.from_arrays(numbers, type=kind.value_type)
    nulls = pa.array([p is None for p in parts]) if any(p is None for p in parts) else None
    return pa.ListArray.from_arrays(offsets, fixed, type=kind, mask=nulls)


def _nest(parts: Sequence[Sequence[npt.NDArray[Any]] | None], kind: pa.DataType) -> pa.ListArray:
    """One list of lists per row; None is null."""
    inner = [each for part in parts for each in part or ()]
    offsets = _offsets([len(part or ()) for part in parts])
    nulls = pa.array([part is None for part in parts], pa.bool_())
    lists = _lists(inner, kind)
    return pa.ListArray.from_arrays(offsets, lists, type=pa.list_(lists.type), mask=nulls)
