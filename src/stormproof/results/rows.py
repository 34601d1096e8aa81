"""Reads a run's rows into flat arrays without using more memory for a larger grid.

A part holds a few images under all conditions, so reading one condition decodes all of them. Boxes are
therefore read in one pass over the parts and kept by condition: in memory, in the smallest type that loses no
bit, and beyond a limit in a temporary file. Everything else is read for as many conditions at a time as fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.errors import StoreError
from stormproof.core.forms import FORMS
from stormproof.core.sample import RLE, Floats, Ints, Prediction
from stormproof.metrics.quality import ImageChange
from stormproof.metrics.records import Detections
from stormproof.models.classes import ClassMatch
from stormproof.results.store.parts import encode_strings, open_part
from stormproof.results.store.schema import (
    DETECTION,
    MAP_COLUMNS,
    ROWS,
    arrow_type,
    columns_of,
    prediction_of,
)
from stormproof.results.store.values import problem_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.dataset as ds

    from stormproof.results.run import Run

_BUDGET = 256 << 20  # bytes of part files read at a time; about ten times as much in memory
_IN_MEMORY = 192 << 20  # bytes of boxes in memory, beyond which they go to a file
_WIDTHS = (1, 4, 1, 1, 2)  # numbers of each box in the columns of `Boxes`
_COLUMNS = ("index", "image", "condition", "boxes", "sides", "scores", "labels")


def by_condition(
    run: Run, conditions: Sequence[str], columns: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each condition, sorted by image; read for as many conditions at once as fit."""
    import pyarrow.dataset as ds  # late: it takes half a second

    data = _all_parts(run, columns)
    left_out = list(run.unreadable)
    size = sum(path.stat().st_size for path in run.parts) / max(1, len(run.conditions))
    at_once = max(1, int(_BUDGET / max(size, 1)))
    for start in range(0, len(conditions), at_once):
        group = list(conditions[start : start + at_once])
        chosen = ds.field("condition").isin(group) & (ds.field("index") < run.record.images)
        if left_out:
            chosen &= ~ds.field("index").isin(left_out)
        table = _read(run, data, columns, chosen).sort_by("index")
        for text in group:
            yield text, table.filter(pc.equal(table["condition"], text)).combine_chunks()


def _all_parts(run: Run, columns: Sequence[str]) -> ds.Dataset:
    """All parts as one table, with the further columns among those named."""
    import pyarrow.dataset as ds

    for path in run.parts:
        open_part(path, run.record.key)  # refuses a damaged one, which a dataset would read
    further = [pa.field(c.name, arrow_type(c)) for c in columns_of(columns) if c.name not in ROWS.names]
    return ds.dataset(run.parts, schema=pa.schema([*ROWS, *further]))


def _read(run: Run, data: ds.Dataset, columns: Sequence[str], chosen: ds.Expression) -> pa.Table:
    """Columns of the chosen rows; a value that this run cannot have written is an error."""
    wanted = ["index", "image", "condition", "height", "width", *columns]
    table = data.to_table(columns=wanted, filter=chosen)
    if problem_of(table, run.record.known_classes):
        for path in run.parts:
            run.read(path, wanted)  # raises an error that names the part
    return table


def predictions(run: Run, images: Iterable[str]) -> dict[tuple[str, str], Prediction]:
    """What the model predicted for some images under every condition, in the model's own labels."""
    import pyarrow.dataset as ds

    columns = (*DETECTION, *MAP_COLUMNS, *run.further)
    table = _read(run, _all_parts(run, columns), columns, ds.field("image").isin([*images]))
    return {(row["image"], row["condition"]): prediction_of(row) for row in table.to_pylist()}


def detections(
    run: Run, conditions: Sequence[str], match: ClassMatch, positions: dict[str, int], *,
    masks: bool, forms: Sequence[str] = (),
) -> Iterator[tuple[str, Detections]]:  # fmt: skip
    """The detections of each condition in the dataset's labels; classes that the dataset lacks get the label
    after its last. `forms` are the arrays of objects that come along."""
    if masks or forms:
        for text, table in by_condition(run, conditions, (*DETECTION, *forms)):
            read = _whole(table, match, positions, masks=masks)
            yield text, replace(read, data={name: _array_of(table, name, read) for name in forms})
        return
    buffer = DetectionBuffer()
    for part in run.map_parts(lambda path: [*_boxes_of(path, run, conditions, positions)]):
        for text, boxes in part:
            buffer.add(text, boxes)
    for text in conditions:
        image, corners, scores, labels, sides = join_parts(list(buffer.take(text)))
        yield text, Detections(image, corners, scores, _map_labels(labels, match), sides=sides)


def read_counts(
    run: Run, conditions: Sequence[str], columns: tuple[str, str, str]
) -> Iterator[tuple[str, tuple[Ints, Ints, Ints], Ints]]:
    """The pixel counts of each condition: true label, predicted label and pixels of each entry, and the place
    of its image among the readable ones."""
    for text, table in by_condition(run, conditions, columns):
        truth, predicted, pixels = (numbers(table[name]).astype(np.int64) for name in columns)
        lengths = pc.fill_null(pc.list_value_length(table[columns[0]]), 0).combine_chunks()
        places = np.searchsorted(run.readable, np.asarray(table["index"]))
        yield text, (truth, predicted, pixels), np.repeat(places, np.asarray(lengths))


def by_image(run: Run, conditions: Sequence[str], column: str) -> Iterator[tuple[str, Floats | None]]:
    """Images × the numbers of a column, condition by condition: zeros for an image without any, None if no
    image has any. All lists of the column have the same length."""
    if not run.has(column):
        yield from ((text, None) for text in conditions)
        return
    for text, table in by_condition(run, conditions, (column,)):
        there = np.asarray(table[column].is_valid())
        if not there.any():
            yield text, None
            continue
        values = numbers(table[column]).reshape(int(there.sum()), -1)
        table_of_images = np.zeros((len(run.readable), values.shape[1]))
        places = np.searchsorted(run.readable, np.asarray(table["index"]))
        table_of_images[places[there]] = values
        yield text, table_of_images


def changes(run: Run, conditions: Sequence[str]) -> dict[str, dict[str, float]]:
    """The mean RMSE and SNR of each condition, over the images that have finite ones."""
    if not run.has(ImageChange._fields[0]):
        return {}
    columns = ("index", "condition", *ImageChange._fields)
    table = pa.concat_tables(run.map_parts(lambda path: run.read(path, columns)))
    index = np.asarray(table["index"])
    left_out = np.isin(index, list(run.unreadable))
    table = table.filter(pa.array((index < run.record.images) & ~left_out))
    rows = {text: table.filter(pc.equal(table["condition"], text)) for text in conditions}
    return {
        text: {name: _finite_mean(held[name]) for name in ImageChange._fields} for text, held in rows.items()
    }


def _finite_mean(column: pa.ChunkedArray) -> float:
    values = np.asarray(column.combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False))
    finite = values[np.isfinite(values)]
    return math.fsum(finite.tolist()) / len(finite) if finite.size else math.nan


def _whole(table: pa.Table, match: ClassMatch, positions: dict[str, int], *, masks: bool) -> Detections:
    """The detections of a condition, whose rows were read at once."""
    owners = np.array([positions[name] for name in table["image"].to_pylist()], np.int64)
    lengths = np.asarray(pc.list_value_length(table["scores"]).combine_chunks()).astype(np.int64)
    boxes = numbers(table["boxes"]).reshape(-1, 4)
    return Detections(
        np.repeat(owners, lengths),
        boxes,
        numbers(table["scores"]),
        _map_labels(numbers(table["labels"]).astype(np.int64), match),
        tuple(_masks(table)) if masks else (),
        stated_sides(table["sides"], boxes, lengths),  # type: ignore[arg-type]  # None: what corners give
    )


def _array_of(table: pa.Table, name: str, detections: Detections) -> Floats:
    """An array of objects: an entry for each detection, NaN where its row has none."""
    declared = FORMS.find(name)
    assert declared.shape is not None
    lengths = np.asarray(pc.list_value_length(table["scores"]).combine_chunks()).astype(np.int64)
    there = np.repeat(np.asarray(table[name].is_valid().combine_chunks()), lengths)
    values = numbers(table[name]).astype(np.float64)
    if not there.any():
        return np.full((len(detections), *(max(side, 0) for side in declared.shape)), np.nan)
    entries = values.reshape(int(there.sum()), *declared.shape)
    array = np.full((len(detections), *entries.shape[1:]), np.nan)
    array[there] = entries
    return array


def _map_labels(labels: Ints, match: ClassMatch) -> Ints:
    """The model's labels converted to the dataset's."""
    known = np.asarray(match.labels, np.int64)
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(known):
        raise StoreError(
            f"A stored label is out of range: there are {len(known)} classes; 'stormproof verify' says where."
        )
    mapped = known[labels] if len(labels) else labels
    return np.where(mapped < 0, len(match.dataset), mapped)


def _masks(table: pa.Table) -> Iterator[RLE]:
    """A mask per object; an empty one where the model returned boxes without masks."""
    sizes = zip(table["height"].to_pylist(), table["width"].to_pylist(), strict=True)
    for size, row, scores in zip(sizes, table["masks"], table["scores"], strict=True):
        if not row.is_valid:
            yield from [RLE(size, np.array([size[0] * size[1]], np.uint32))] * len(scores)
            continue
        for counts in row.values:
            yield RLE(size, np.asarray(counts.values))


class Boxes(NamedTuple):
    """The boxes of a few images under one condition, by image; labels are the model's."""

    image: npt.NDArray[np.int32]
    boxes: Floats
    scores: Floats
    labels: npt.NDArray[Any]
    sides: Floats | None  # None if no row states them


class DetectionBuffer:
    """Boxes by condition: in memory up to a limit, beyond it in a temporary file."""

    def __init__(self, held: int = _IN_MEMORY) -> None:
        self._left, self._file = held, TemporaryFile()  # noqa: SIM115  it goes with this object
        self._parts: dict[str, list[Boxes | tuple[int, int, list[np.dtype[Any] | None]]]] = {}

    def add(self, condition: str, part: Boxes) -> None:
        kept = self._parts.setdefault(condition, [])
        self._left -= sum(column.nbytes for column in part if column is not None)
        if self._left >= 0:
            kept.append(part)
            return
        kinds = [None if column is None else column.dtype for column in part]
        kept.append((self._file.tell(), len(part.image), kinds))
        for column in part:
            if column is not None:
                self._file.write(np.ascontiguousarray(column).data)

    def take(self, condition: str) -> Iterator[Boxes]:
        """The boxes of a condition, once all have been added."""
        for part in self._parts.pop(condition, []):
            yield part if isinstance(part, Boxes) else self._read(*part)

    def _read(self, start: int, count: int, kinds: list[np.dtype[Any] | None]) -> Boxes:
        self._file.seek(start)
        columns: list[npt.NDArray[Any] | None] = []
        for kind, width in zip(kinds, _WIDTHS, strict=True):
            if kind is None:
                columns.append(None)
                continue
            values = np.frombuffer(self._file.read(count * width * kind.itemsize), kind)
            columns.append(values.reshape(-1, width) if width > 1 else values)
        return Boxes(*columns)  # type: ignore[arg-type]


def _boxes_of(
    path: Path, run: Run, conditions: Sequence[str], positions: dict[str, int]
) -> Iterator[tuple[str, Boxes]]:
    """The boxes of one part under some conditions."""
    table = run.read(path, _COLUMNS).combine_chunks()
    index = np.asarray(table["index"])
    place = _codes_of(table["condition"], {text: i for i, text in enumerate(conditions)})
    where = np.where((index < run.record.images) & ~np.isin(index, list(run.unreadable)), place, -1)
    owner = _codes_of(table["image"], positions)
    lengths = np.asarray(pc.list_value_length(table["scores"]).combine_chunks()).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    boxes = numbers(table["boxes"]).reshape(-1, 4)
    scores, labels = numbers(table["scores"]), numbers(table["labels"])
    sides = stated_sides(table["sides"], boxes, lengths)
    rows = np.argsort(where, kind="stable")
    rows = rows[where[rows] >= 0]
    for one in np.split(rows, np.flatnonzero(np.diff(where[rows])) + 1):
        if one.size:
            at = _elements(starts[one], lengths[one])
            image = np.repeat(owner[one], lengths[one])
            stated = None if sides is None else np.take(sides, at, axis=0)
            corners = np.take(boxes, at, axis=0)  # a fraction of what boxes[at] takes
            part = Boxes(image, _as_float32(corners), _as_float32(scores[at]), _as_bytes(labels[at]), stated)
            yield conditions[where[one[0]]], part


def join_parts(parts: Sequence[Boxes]) -> tuple[Ints, Floats, Floats, Ints, Floats]:
    """All parts of a condition: image, boxes, scores, labels, sides."""
    boxes = np.concatenate([np.zeros((0, 4)), *(part.boxes for part in parts)])
    sides = boxes[:, 2:] - boxes[:, :2]
    ends = np.cumsum([0, *(len(part.image) for part in parts)])
    for part, first, last in zip(parts, ends, ends[1:], strict=False):
        if part.sides is not None:
            sides[first:last] = part.sides
    return (
        np.concatenate([np.zeros(0, np.int64), *(part.image for part in parts)]), boxes,
        np.concatenate([np.zeros(0), *(part.scores for part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(part.labels for part in parts)]), sides,
    )  # fmt: skip


def _codes_of(column: pa.ChunkedArray, known: dict[str, int]) -> npt.NDArray[np.int32]:
    """Strings as numbers; −1 for unknown ones."""
    words, codes = encode_strings(column)
    places = np.array([known.get(word, -1) for word in words], np.int32)
    return places[codes] if len(places) else places


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The elements of lists, or of lists of lists, one after the other."""
    return np.asarray(pc.list_flatten(column, recursive=True).combine_chunks())


def stated_sides(column: pa.ChunkedArray, boxes: Floats, lengths: Ints) -> Floats | None:
    """Widths and heights: as a row states them, else from its corners; None if no row states them."""
    if column.null_count == len(column):
        return None
    sides = boxes[:, 2:] - boxes[:, :2]
    sides[np.repeat(np.asarray(column.is_valid().combine_chunks()), lengths)] = numbers(column).reshape(-1, 2)
    return sides


def _elements(starts: Ints, lengths: Ints) -> Ints:
    """The positions of the elements of some rows in a flat column, row after row.

    >>> _elements(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    places: Ints = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return places


def _as_float32(values: Floats) -> npt.NDArray[Any]:
    """The numbers as float32 if no bit is lost."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return small if np.array_equal(small, values) else values


def _as_bytes(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels in one byte each, if they fit."""
    return labels.astype(np.uint8) if labels.size and 0 <= labels.min() <= labels.max() < 256 else labels
