"""Detectors that output a table of boxes: the YOLO family, transformers with queries, torchvision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stormproof.models.candidates import Candidates
from stormproof.models.decoders.arrays import Array, centred, flat, grids, in_pixels, sigmoid, softmax
from stormproof.models.geometry import Size


def yolox(outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 32)) -> Candidates:
    """YOLOX: n×(5+classes) of centre and log size in strides, objectness, class probabilities."""
    rows = flat(outputs[0])
    cells, steps = grids(size, strides)
    middle, sides = (rows[:, :2] + cells) * steps, np.exp(rows[:, 2:4]) * steps
    return Candidates(centred(np.hstack([middle, sides])), rows[:, 4:5] * rows[:, 5:])


def yolov5(outputs: Sequence[Array], size: Size) -> Candidates:
    """YOLOv5, v6 and v7: n×(5+classes) decoded in pixels; the score is objectness times class score. With a
    second output of k×h×w prototypes, the last k columns are mask coefficients."""
    return _with_masks(flat(outputs[0]), outputs[1:], classes_from=5)


def yolov8(outputs: Sequence[Array], size: Size, *, classes: int | None = None) -> Candidates:
    """YOLOv8, v9 and v11: (4+classes)×n decoded in pixels, no objectness; masks as in YOLOv5. Rows after
    `classes` scores, such as the key points of a pose network, are left out."""
    columns = outputs[0] if classes is None else outputs[0][: 4 + classes]
    return _with_masks(columns.T, outputs[1:], classes_from=4)


def _with_masks(rows: Array, rest: Sequence[Array], classes_from: int) -> Candidates:
    prototypes = rest[0] if rest else None
    end = rows.shape[1] - (0 if prototypes is None else len(prototypes))
    scores = rows[:, classes_from:end]
    if classes_from == 5:
        scores = rows[:, 4:5] * scores
    coefficients = None if prototypes is None else rows[:, end:]
    return Candidates(centred(rows[:, :4]), scores, coefficients=coefficients, prototypes=prototypes)


def rows(outputs: Sequence[Array], size: Size, *, scale: float = 1.0) -> Candidates:
    """Finished detections, as of end-to-end YOLO (v10 and later): n×6 of x1 y1 x2 y2 in pixels, score, class;
    no suppression is needed. Further columns are coefficients for a second output of prototypes."""
    table = flat(outputs[0])
    masks = {"coefficients": table[:, 6:], "prototypes": outputs[1]} if len(outputs) > 1 else {}
    return Candidates(table[:, :4] * scale, table[:, 4], table[:, 5].round().astype(np.int64), **masks)


def detr(outputs: Sequence[Array], size: Size) -> Candidates:
    """DETR: queries×(classes+1) logits, the last class meaning no object, and centred boxes as fractions;
    each query predicts its most likely class."""
    likely = softmax(flat(outputs[0]))[:, :-1]
    corners = in_pixels(centred(flat(outputs[1], 4)), size)
    labels = likely.argmax(axis=1)
    return Candidates(corners, likely[np.arange(len(likely)), labels], labels)


def rtdetr(outputs: Sequence[Array], size: Size, *, logits: bool = True) -> Candidates:
    """RT-DETR, Deformable DETR, D-FINE: queries×classes of independent scores, centred boxes as fractions."""
    scores = flat(outputs[0])
    return Candidates(in_pixels(centred(flat(outputs[1], 4)), size), sigmoid(scores) if logits else scores)


def labelled(outputs: Sequence[Array], size: Size) -> Candidates:
    """Exports that end in labels, boxes x1 y1 x2 y2 in input pixels and scores (RT-DETR's own, D-FINE's)."""
    return Candidates(flat(outputs[1], 4), outputs[2].ravel(), outputs[0].ravel().astype(np.int64))


def torchvision(outputs: Sequence[Array], size: Size) -> Candidates:
    """torchvision's detectors: boxes in input pixels, labels, scores, optionally n×1×h×w masks."""
    corners, labels, scores = flat(outputs[0], 4), outputs[1].ravel(), outputs[2].ravel()
    masks = outputs[3].reshape(len(corners), *outputs[3].shape[-2:]) if len(outputs) > 3 else None
    return Candidates(corners, scores, labels.astype(np.int64), masks=masks)
