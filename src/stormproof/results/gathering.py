"""Detections of many conditions from one pass over a run's parts, in as little memory as they fit.

A part holds a few images under all conditions, so reading one condition decodes all of them. What networks
say is float32 and labels are small: kept as such, no bit is lost and half the space is saved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.results.store.parts import read_part
from stormproof.results.store.record import RunRecord

_HELD = 192 << 20  # bytes in memory, beyond which they go to a file
_WIDTHS = (1, 4, 1, 1, 2)  # numbers of each box in the columns of `Boxes`
_COLUMNS = ("index", "image", "condition", "boxes", "sides", "scores", "labels")


class Boxes(NamedTuple):
    """The boxes of a few images under one condition, by image; labels are the model's."""

    image: npt.NDArray[np.int32]
    boxes: Floats
    scores: Floats
    labels: npt.NDArray[Any]
    sides: Floats | None  # where a row states them


class Spool:
    """Boxes by condition: in memory while they are few, and in a temporary file from there on."""

    def __init__(self, held: int = _HELD) -> None:
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
        """What was added, once everything has been."""
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


def gathered(
    path: Path, record: RunRecord, conditions: Sequence[str], positions: dict[str, int], out: Collection[int]
) -> Iterator[tuple[str, Boxes]]:
    """What one part holds under some conditions."""
    table = read_part(path, record.key, _COLUMNS).combine_chunks()
    index = np.asarray(table["index"])
    place = _numbered(table["condition"], {text: i for i, text in enumerate(conditions)})
    where = np.where((index < record.images) & ~np.isin(index, list(out)), place, -1)
    owner = _numbered(table["image"], positions)
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
            part = Boxes(image, _small(corners), _small(scores[at]), _few(labels[at]), stated)
            yield conditions[where[one[0]]], part


def joined(parts: Sequence[Boxes]) -> tuple[Ints, Floats, Floats, Ints, Floats]:
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


def _numbered(column: pa.ChunkedArray, known: dict[str, int]) -> npt.NDArray[np.int32]:
    """Words as numbers; −1 for those that have none."""
    words = column.combine_chunks().dictionary_encode()
    found = np.array([known.get(word, -1) for word in words.dictionary.to_pylist()], np.int32)
    return found[np.asarray(words.indices)] if len(found) else found


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """What lists, or lists of lists, hold, one after the other."""
    return np.asarray(pc.list_flatten(column, recursive=True).combine_chunks())


def stated_sides(column: pa.ChunkedArray, boxes: Floats, lengths: Ints) -> Floats | None:
    """Widths and heights: stated where a row states them, else what its corners give; None if none does."""
    if column.null_count == len(column):
        return None
    sides = boxes[:, 2:] - boxes[:, :2]
    sides[np.repeat(np.asarray(column.is_valid().combine_chunks()), lengths)] = numbers(column).reshape(-1, 2)
    return sides


def _elements(starts: Ints, lengths: Ints) -> Ints:
    """The places of rows' elements in flat columns, row after row.

    >>> _elements(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    places: Ints = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return places


def _small(values: Floats) -> npt.NDArray[Any]:
    """The same numbers as float32, where not a bit is lost."""
    return values.astype(np.float32) if _is_small(values.ravel()) else values


@kernel
def _is_small(values: Any) -> Any:
    for i in range(len(values)):  # noqa: SIM110  a kernel has no all()
        if np.float64(np.float32(values[i])) != values[i]:
            return False
    return True


def _few(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same labels in one byte each, where they fit."""
    return labels.astype(np.uint8) if labels.size and 0 <= labels.min() <= labels.max() < 256 else labels
