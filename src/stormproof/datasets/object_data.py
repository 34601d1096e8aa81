"""Arrays of objects (`core.forms`), such as key points and oriented boxes, in the rows of COCO files and
results.

Which fields hold one is declared by its form. Forms are looked up only if rows have fields that COCO lacks,
since that imports every metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from stormproof.core.errors import DatasetError
from stormproof.core.forms import FORMS, CocoFields, Form, object_forms
from stormproof.core.sample import Floats
from stormproof.datasets.annotations import is_number, raise_all

_OWN = {"id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "score"}


def row_forms(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Form, CocoFields]]:
    """The forms that rows may hold: those of whose fields one has a value in some row."""
    further = {name for row in rows for name in row.keys() - _OWN if row[name]}
    if not further:
        return []
    known = ((form, form.coco) for form in object_forms() if form.coco is not None)
    return [(form, fields) for form, fields in known if further.intersection(fields.names)]


def one_of_fields() -> str:
    """The fields of all forms, for messages."""
    return ", ".join(name for form in object_forms() if form.coco for name in form.coco.names)


def read_data(rows: Sequence[Mapping[str, Any]], path: Path) -> dict[str, Floats]:
    """The arrays of objects that rows hold, by the name of their form."""
    held = row_forms(rows)
    raise_all([error for _, fields in held for error in _problems(rows, fields, path)])
    return {form.name: fields.read(rows) for form, fields in held}


def _problems(rows: Sequence[Mapping[str, Any]], fields: CocoFields, path: Path) -> Iterator[DatasetError]:
    present = [name for name in fields.names if any(name in row for row in rows)]
    for i, row in enumerate(rows):
        problem = fields.problem(row, present)
        if problem:
            yield DatasetError(path, problem, f"annotation {row['id']}" if "id" in row else f"result {i}")


def truth_data(data: Mapping[str, Floats], options: Mapping[str, Any]) -> dict[str, Floats]:
    """The arrays, and those that true objects have beside them; `options` are a reader's."""
    further = (FORMS[name].with_truth(values, options) for name, values in data.items())
    return dict(data) | {name: values for each in further for name, values in each.items()}


def boxes_of(data: Mapping[str, Floats]) -> Floats | None:
    """The boxes x1 y1 x2 y2 around the objects, for rows that state none; None if no array shows them."""
    around = ((FORMS[name].boxes, values) for name, values in data.items())
    return next((boxes(values) for boxes, values in around if boxes is not None), None)


def row_fields(data: Mapping[str, Floats], k: int) -> dict[str, Any]:
    """What the row of object k holds beside its box."""
    written = ((FORMS[name].coco, values[k]) for name, values in data.items())
    return {name: value for fields, entry in written if fields for name, value in fields.write(entry).items()}


def category_fields(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What categories state about the arrays of their objects."""
    stated = (fields.categories(rows) for _, fields in row_forms(rows))
    return {name: value for each in stated for name, value in each.items()}


def are_numbers(value: Any) -> TypeGuard[Sequence[float]]:
    """Whether a field holds a list of finite numbers."""
    return isinstance(value, list | tuple) and all(map(is_number, value))
