"""The YOLO family: a row per grid cell or anchor, with a box, class scores and perhaps mask coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.models.candidates import Candidates
from stormproof.models.decoders.arrays import Array, centred, flat, grids
from stormproof.models.geometry import Size


def yolox(outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 32)) -> Candidates:
    """YOLOX: n×(5+classes) of centre and log size in strides, objectness, class probabilities."""
    rows = flat(outputs[0])
    cells, steps = grids(size, strides)
    middle, sides = (rows[:, :2] + cells) * steps, np.exp(rows[:, 2:4]) * steps
    return Candidates(centred(np.hstack([middle, sides])), rows[:, 4:5] * rows[:, 5:])


def yolov5(outputs: Sequence[Array], size: Size) -> Candidates:
    """YOLOv5, v6 and v7: n×(5+classes) decoded in pixels, objectness times class score; with a second
    output of k×h×w prototypes the last k columns are mask coefficients."""
    return _with_masks(flat(outputs[0]), outputs[1:], classes_from=5)


def yolov8(outputs: Sequence[Array], size: Size) -> Candidates:
    """YOLOv8, v9 and v11: (4+classes)×n decoded in pixels, no objectness; masks as in YOLOv5."""
    return _with_masks(outputs[0].T, outputs[1:], classes_from=4)


def _with_masks(rows: Array, rest: Sequence[Array], classes_from: int) -> Candidates:
    prototypes = rest[0] if rest else None
    end = rows.shape[1] - (0 if prototypes is None else len(prototypes))
    scores = rows[:, classes_from:end]
    if classes_from == 5:
        scores = rows[:, 4:5] * scores
    coefficients = None if prototypes is None else rows[:, end:]
    return Candidates(centred(rows[:, :4]), scores, coefficients=coefficients, prototypes=prototypes)


def rows(outputs: Sequence[Array], size: Size) -> Candidates:
    """End-to-end YOLO (v10 and later): n×6 of x1 y1 x2 y2 in pixels, score, class; nothing to suppress.
    Further columns are coefficients of a second output of prototypes."""
    table = flat(outputs[0])
    masks = {"coefficients": table[:, 6:], "prototypes": outputs[1]} if len(outputs) > 1 else {}
    return Candidates(table[:, :4], table[:, 4], table[:, 5].round().astype(np.int64), **masks)
