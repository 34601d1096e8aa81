"""Pose networks of the YOLO family: boxes of people, each with its key points."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from stormproof.core.forms import Array, Size
from stormproof.models.candidates import Candidates
from stormproof.models.decoders import DECODERS, YOLO, YOLOV8, YOLOV10, OutputDecoder
from stormproof.models.decoding import Outputs, Unreadable, corners_of_centred, flat
from stormproof.models.guess import Graph, Shapes, grid_cells, literal_list, metadata_classes


def _yolov8_pose(outputs: Outputs, size: Size, *, points: tuple[int, int] = (17, 3)) -> Candidates:
    """Pose networks of YOLOv8 and v11: as YOLOv8, then k×3 of x, y in pixels and visibility, or k×2."""
    rows = outputs[0].T
    end = rows.shape[1] - points[0] * points[1]
    return Candidates(
        corners_of_centred(rows[:, :4]), rows[:, 4:end], data={"points": _points(rows[:, end:], points)}
    )


def _yolov10_pose(outputs: Outputs, size: Size, *, points: tuple[int, int] = (17, 3)) -> Candidates:
    """End-to-end pose networks: n×6 of finished detections, then the points as in YOLOv8's."""
    table = flat(outputs[0])
    data = {"points": _points(table[:, 6:], points)}
    return Candidates(table[:, :4], table[:, 4], table[:, 5].round().astype(np.int64), data=data)


def _points(columns: Array, shape: tuple[int, int]) -> Array:
    """n×k×3 of x, y and confidence; points without one are certain."""
    if columns.shape[1] != shape[0] * shape[1] or shape[1] not in (2, 3):
        raise Unreadable(f"{columns.shape[1]} columns of points, but points: {list(shape)}")
    points = columns.reshape(len(columns), *shape)
    return points if shape[1] == 3 else np.concatenate([points, np.ones_like(points[..., :1])], axis=2)


def _pose(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """A pose network of the YOLO family: key points in its last columns."""
    if len(shapes) != 1 or len(shapes[0]) != 2:
        return {}
    long, wide = shapes[0]
    known, classes = metadata_classes(graph.metadata), len(metadata_classes(graph.metadata)) or 1
    people = {} if known else {"classes": ["person"]}
    shape = literal_list(graph.metadata.get("kpt_shape", "[17, 3]"), "kpt_shape")
    points = {"options": {"points": shape}, **people}
    if long == 4 + classes + prod(shape) and (known or wide == sum(grid_cells(size, (8, 16, 32)))):
        return {"decoder": "yolov8-pose", **points}
    if wide == 6 + prod(shape) and "kpt_shape" in graph.metadata:
        return {"decoder": "yolov10-pose", **points}
    return {}


_OPTIONS = {"points": "number of key points, and of values of each: 2 (x, y) or 3 (with visibility)"}
for _name, _decoder in {
    "yolov8-pose": OutputDecoder(
        _yolov8_pose, ("columns",), YOLOV8, usual=YOLO, recognise=_pose, options=_OPTIONS
    ),
    "yolov10-pose": OutputDecoder(_yolov10_pose, ("rows",), YOLOV10, usual=YOLO, options=_OPTIONS),
}.items():
    DECODERS.add(_name, _decoder, module=__name__)
