"""Networks of the YOLO family for oriented boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.forms import Size
from stormproof.core.oriented import rotated_corners, upright
from stormproof.models.candidates import Candidates
from stormproof.models.decoders import DECODERS, YOLO, YOLOV8, YOLOV10, OutputDecoder
from stormproof.models.decoding import Outputs, flat
from stormproof.models.guess import Graph, Shapes, metadata_classes


def _yolov8_obb(outputs: Outputs, size: Size) -> Candidates:
    """Oriented boxes of YOLOv8 and v11: (4+classes+1)×n, the last row the angle in radians."""
    rows = outputs[0].T
    corners = rotated_corners(np.column_stack([rows[:, :4], rows[:, -1]]))
    return Candidates(upright(corners), rows[:, 4:-1], polygons=corners, data={"corners": corners})


def _yolov10_obb(outputs: Outputs, size: Size) -> Candidates:
    """End-to-end oriented boxes: n×7 of centre and sides in pixels, score, class and angle in radians."""
    table = flat(outputs[0])
    corners = rotated_corners(np.column_stack([table[:, :4], table[:, 6]]))
    labels = table[:, 5].round().astype(np.int64)
    return Candidates(upright(corners), table[:, 4], labels, polygons=corners, data={"corners": corners})


def _oriented(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """Oriented boxes of the YOLO family, which its metadata names: the last row, or column, is the angle."""
    if graph.metadata.get("task") != "obb" or len(shapes) != 1 or len(shapes[0]) != 2:
        return {}
    finished = shapes[0][1] == 7 and shapes[0][0] != 5 + len(metadata_classes(graph.metadata))
    return {"decoder": "yolov10-obb" if finished else "yolov8-obb"}


for _name, _decoder in {
    "yolov8-obb": OutputDecoder(_yolov8_obb, ("columns",), YOLOV8, usual=YOLO, recognise=_oriented),
    "yolov10-obb": OutputDecoder(_yolov10_obb, ("rows",), YOLOV10, usual=YOLO),
}.items():
    DECODERS.add(_name, _decoder, module=__name__)
