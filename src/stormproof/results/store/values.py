"""Check that the values of a part are ones that a run could have written, so that readers can rely on them.

A seal shows that a file is as it was written, not who wrote it. These checks take one pass over columns that
are already in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stormproof.core.forms import MODEL_MS
from stormproof.core.imagefile import MAX_PIXELS
from stormproof.core.kernels import kernel
from stormproof.core.sample import SEGMENTS, Ints
from stormproof.metrics.map_calibration import BINS, SUMS
from stormproof.results.store.schema import MAP_FORMS, OF_MAPS, ROWS

_LARGEST_SIDE = 1 << 20
_EQUALLY_LONG = (  # columns whose lists have one entry for each object, run or cell; the first is never null
    ("boxes", "sides", "scores", "labels", "masks"),
    *(tuple(column.name for column in columns if column.holds)
      for each in MAP_FORMS for columns in (each.columns, each.derived)),
)  # fmt: skip


class Classes(NamedTuple):
    """How many classes the labels of a column may name; None: any."""

    objects: int | None = None
    maps: int | None = None
    true_maps: int | None = None


ANY = Classes()


def problem_of(table: pa.Table, classes: Classes = ANY) -> str:
    """The first problem in some columns of rows; empty if there is none."""
    held = {name: table[name].combine_chunks() for name in table.column_names}
    return (
        _sizes(held)
        or _null_inside(held)
        or _unequal_lengths(held)
        or _objects(held)
        or _labels(held, classes)
        or _areas(held)
    )


def _sizes(held: dict[str, pa.Array]) -> str:
    for name in ("index", "recipe"):
        if name in held and len(held[name]) and pc.min(held[name]).as_py() < 0:
            return f"its {name} is negative"
    sides = [np.asarray(held[name]).astype(np.int64) for name in ("height", "width") if name in held]
    if any(len(side) and not 0 < side.min() <= side.max() <= _LARGEST_SIDE for side in sides):
        return "the size of an image is out of range"
    if len(sides) == 2 and len(sides[0]) and (sides[0] * sides[1]).max() > MAX_PIXELS:
        return "the size of an image is out of range"
    return ""


def _null_inside(held: dict[str, pa.Array]) -> str:
    for name, column in held.items():
        inner = column
        while pa.types.is_list(inner.type) or pa.types.is_fixed_size_list(inner.type):
            inner = pc.list_flatten(inner)
            if inner.null_count:
                return f"a list of {name} lacks a value"
    return ""


def _unequal_lengths(held: dict[str, pa.Array]) -> str:
    """Columns that belong together but differ in length."""
    objects, *others = _EQUALLY_LONG
    further = [name for name, column in held.items() if name not in ROWS.names and _is_nested(column.type)]
    for names in ((*objects, *further), *others):
        there = [name for name in names if name in held]
        lengths = [pc.list_value_length(held[name]) for name in there]
        for name, length in zip(there[1:], lengths[1:], strict=True):
            optional = name in ("sides", "masks", *further)
            first = lengths[0] if optional else pc.fill_null(lengths[0], -1)
            same = pc.equal(first, length if optional else pc.fill_null(length, -1))
            if pc.all(same).as_py() is False:
                return f"{there[0]} and {name} differ in number"
    return ""


def _is_nested(kind: pa.DataType) -> bool:
    """Whether a column of a form has a list for each object."""
    return bool(pa.types.is_list(kind) and pa.types.is_list(kind.value_type))


def _objects(held: dict[str, pa.Array]) -> str:
    if "boxes" in held:
        boxes = _flat(held["boxes"]).reshape(-1, 4)
        if not _are_boxes(boxes):
            return "a box has a negative side" if np.isfinite(boxes).all() else "a box is not finite"
    if "sides" in held and not _is_within(_flat(held["sides"]), 0, np.finfo(np.float64).max):
        return "the side of a box is negative or not finite"
    if "confidences" in held:
        sums = _flat(held["confidences"])
        lengths = pc.unique(pc.list_value_length(held["confidences"]).drop_null()).to_pylist()
        if not _is_within(sums, 0, MAX_PIXELS) or lengths not in ([], [BINS * SUMS]):
            return "the sums of confidences are out of range"
    if MODEL_MS in held:
        times, lengths = _flat(held[MODEL_MS]), pc.unique(pc.list_value_length(held[MODEL_MS]).drop_null())
        if not _is_within(times, 0, np.finfo(np.float64).max) or lengths.to_pylist() not in ([], [1]):
            return "the time of an image is out of range"
    if "scores" in held and not _is_within(_flat(held["scores"]), 0, 1):
        return "a score does not lie in [0, 1]"
    return ""


@kernel
def _are_boxes(boxes: Any) -> Any:
    """Whether all corners are finite and in order, in one pass over the largest column."""
    for i in range(len(boxes)):
        x1, y1, x2, y2 = boxes[i]
        if not (-np.inf < x1 <= x2 < np.inf and -np.inf < y1 <= y2 < np.inf):
            return False
    return True


def _labels(held: dict[str, pa.Array], classes: Classes) -> str:
    limits = {"labels": classes.objects}
    limits |= {each.name: classes.maps for each in OF_MAPS if each.holds == "class"}
    limits |= {each.name: classes.true_maps for each in OF_MAPS if each.holds == "true class"}
    for name, count in limits.items():
        if name in held and not _is_within(_flat(held[name]), 0, (count or 1 << 31) - 1):
            many = f" (there are {count} classes)" if count else ""
            return f"a label is out of range{many}"
    checked = ("segment", "true segment", "pixels")
    for column in (column for column in OF_MAPS if column.name in held and column.holds in checked):
        values = _flat(held[column.name])
        if column.holds == "segment" and not _are_segments(values, classes.maps):
            return "the class of a segment is out of range"
        if column.holds == "true segment" and not _are_segments(np.abs(values), classes.true_maps):  # crowds
            return "the class of a segment is out of range"
        if column.holds == "pixels" and not _is_within(values, 0, MAX_PIXELS):
            return "a number of pixels is out of range"
    return ""


def _are_segments(values: npt.NDArray[np.float64], classes: int | None) -> bool:
    """Whether these are numbers of segments, or 0: none."""
    real = values[values != 0]
    return _is_within(real, SEGMENTS, (SEGMENTS // 2 if classes is None else classes + 1) * SEGMENTS - 1)


def _areas(held: dict[str, pa.Array]) -> str:
    """Run lengths that do not add up to their image."""
    if "height" not in held or "width" not in held:
        return ""
    pixels = np.asarray(held["height"]).astype(np.int64) * np.asarray(held["width"]).astype(np.int64)
    for name in (column.name for column in OF_MAPS if column.holds == "runs"):
        there = np.asarray(held[name].is_valid()) if name in held else np.zeros(0, np.bool_)
        if there.any() and not np.array_equal(_sums(held[name])[there], pixels[there]):
            return "a label map has another size than its image"
    if "masks" in held:
        each = np.repeat(pixels, np.asarray(pc.fill_null(pc.list_value_length(held["masks"]), 0)))
        if not np.array_equal(_sums(pc.list_flatten(held["masks"])), each):
            return "a mask and its image differ in size"
    return ""


def _sums(lists: pa.Array) -> Ints:
    """The sum of each list; 0 for a null."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(np.asarray(pc.list_flatten(lists)).astype(np.int64))])
    stops = np.cumsum(lengths)
    sums: Ints = ends[stops] - ends[stops - lengths]
    return sums


def _flat(column: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(pc.list_flatten(column, recursive=True))


def _is_within(values: npt.NDArray[np.float64], low: float, high: float) -> bool:
    """Whether all values lie in a range; NaN lies in none."""
    return not len(values) or bool(values.min() >= low and values.max() <= high)
