"""Oriented boxes as a form of truth and predictions: n×4×2 corners x, y in order around each box.

In the rows of COCO files and results, they are

"obb" or "rbox": [cx, cy, width, height, angle]  in radians, as hotcoco and Ultralytics write them
"poly": [x1, y1, …, x4, y4]                      the corners, as Ultralytics writes them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.forms import CocoFields, Form, Motion, YoloLines, form
from stormproof.core.oriented import polygon_areas, rotated_corners, upright
from stormproof.datasets.object_data import are_numbers

if TYPE_CHECKING:
    from stormproof.core.sample import Floats
    from stormproof.datasets.annotation_checks import Finding, Inspected
    from stormproof.metrics.oriented import Oriented

_LENGTHS = {"obb": 5, "rbox": 5, "poly": 8}


def _move(corners: Floats, motion: Motion) -> Floats:
    """Each corner goes with the pixels, beyond the border too: a turned box has no shape once it is cut."""
    moved: Floats = motion.points(corners)
    return moved


def _lines(corners: Floats) -> Iterator[Floats]:
    yield corners[[0, 1, 2, 3, 0]]


def _collect(reader: Any) -> Iterator[tuple[str, Oriented]]:
    from stormproof.metrics.oriented import Oriented  # late: a run needs no input of metrics

    for text, truth, found in reader.objects(forms=("corners",)):
        yield text, Oriented(truth, found, reader.rule)


def _row_problem(row: Mapping[str, Any], present: Sequence[str]) -> str:
    for name in present:
        values, length = row.get(name), _LENGTHS[name]
        if not (are_numbers(values) and len(values) == length):
            said = "has no" if values is None else f"{values!r:.60} is no"
            return f"{said} {name} of {length} finite numbers, but other rows have."
    return ""


def _read_rows(rows: Sequence[Mapping[str, Any]]) -> Floats:
    name = next(name for name in reversed(_LENGTHS) if name in rows[0])
    values = np.array([row[name] for row in rows], np.float64)
    return values.reshape(-1, 4, 2) if name == "poly" else rotated_corners(values)


def _of_result(result: Any) -> dict[str, Any]:
    """The boxes of Ultralytics' `obb`, whose `boxes` are empty; the corners of supervision's."""
    turned = getattr(result, "obb", None)
    if turned is not None:
        corners = turned.xyxyxyxy.reshape(-1, 4, 2)
        return {"boxes": turned.xyxy, "scores": turned.conf, "labels": turned.cls, "corners": corners}
    further = getattr(result, "data", None)
    corners = further.get("xyxyxyxy") if isinstance(further, dict) else None
    return {} if corners is None else {"corners": corners}


def _check_labels(seen: Inspected) -> Iterator[Finding]:
    """Oriented boxes without an area, or with corners out of order."""
    from stormproof.datasets.annotation_checks import report_marked

    corners = seen.data("corners")
    if corners is None:
        return
    sides = np.roll(corners, -1, axis=1) - corners
    after = np.roll(sides, -1, axis=1)
    turns = sides[..., 0] * after[..., 1] - sides[..., 1] * after[..., 0]
    crossed = (turns > 0).any(axis=1) & (turns < 0).any(axis=1)
    flat = (polygon_areas(corners) <= 0) & ~crossed
    if flat.any():
        yield report_marked(seen, flat, "oriented boxes have no area")
    if crossed.any():
        yield report_marked(
            seen, np.asarray(crossed), "oriented boxes have corners that are not in order around the box"
        )


CORNERS = form(
    Form(
        "corners", "oriented boxes", shape=(4, 2), move=_move, lines=_lines, boxes=upright,
        coco=CocoFields(
            tuple(_LENGTHS), _row_problem, _read_rows, lambda entry: {"poly": entry.ravel().tolist()}
        ),
        yolo=YoloLines(
            "oriented", boxed=False, problem=lambda stated: "", state=lambda corners: True,
            count=lambda stated: 8, places=lambda stated: np.ones(8, np.bool_),
            read=lambda values, stated: values.reshape(-1, 4, 2), write=lambda entry: entry,
            area=lambda boxes, corners: polygon_areas(corners),
        ),
        of_result=_of_result, check_labels=_check_labels, inputs=("oriented",), collect=_collect,
    ),
    __name__,
)  # fmt: skip
