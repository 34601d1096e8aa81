"""Decoders: pure functions from a network's outputs for one image to candidates in input pixels.

`decoders` lists them. First the arithmetic that several share, then detectors that output a table of boxes
(YOLO, DETR, torchvision), offsets from anchors (SSD, EfficientDet, BlazeFace) or distances from each cell of
a feature map (NanoDet, SCRFD, CenterNet), then maps of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np

from stormproof.core.errors import CardChange
from stormproof.core.forms import Array, Size
from stormproof.models.candidates import Candidates, option_missing

Outputs = Sequence[Array]  # of one image: without a batch axis
_YXYX = [1, 0, 3, 2]


class Unreadable(ValueError):
    """Raised by a decoder, in its own words, for outputs that do not fit it."""


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^−x), without overflow for large negative x.

    >>> sigmoid(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    half: Array = 0.5 * (1.0 + np.tanh(0.5 * x))
    return half


def _probabilities(scores: Array, logits: bool) -> Array:
    return sigmoid(scores) if logits else scores


def softmax(x: Array) -> Array:
    """e^x over its sum along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    share: Array = raised / raised.sum(axis=-1, keepdims=True)
    return share


def corners_of_centred(boxes: Array) -> Array:
    """Boxes x y w h around their centre as x1 y1 x2 y2.

    >>> corners_of_centred(np.array([[5.0, 5.0, 4.0, 2.0]])).tolist()
    [[3.0, 4.0, 7.0, 6.0]]
    """
    middle, half = boxes[..., :2], np.abs(boxes[..., 2:4]) / 2
    return np.concatenate([middle - half, middle + half], axis=-1)


def in_pixels(boxes: Array, size: Size) -> Array:
    """Boxes x1 y1 x2 y2 as fractions of the input, converted to its pixels."""
    height, width = size
    scaled: Array = boxes * np.array([width, height, width, height], boxes.dtype)
    return scaled


def grid(size: Size, stride: int) -> Array:
    """Column and row of every cell of a feature map, row by row: n×2."""
    height, width = -(-size[0] // stride), -(-size[1] // stride)
    rows, columns = np.mgrid[:height, :width]
    return np.stack([columns.ravel(), rows.ravel()], axis=1).astype(np.float32)


def grids(size: Size, strides: Sequence[int]) -> tuple[Array, Array]:
    """The cells of several feature maps one after another, and the stride of each cell (n×1)."""
    cells = [grid(size, stride) for stride in strides]
    steps = np.repeat(np.asarray(strides, np.float32), [len(level) for level in cells])
    return np.concatenate(cells), steps[:, None]


def flat(output: Array, columns: int | None = None) -> Array:
    """An output of one image as n×columns, whatever axes of length one it has.

    >>> flat(np.zeros((1917, 1, 4)), 4).shape
    (1917, 4)
    """
    return output.reshape(-1, output.shape[-1] if columns is None else columns)


def yolox(outputs: Outputs, size: Size, *, strides: tuple[int, ...] = (8, 16, 32)) -> Candidates:
    """YOLOX: n×(5+classes) of centre and log size in strides, objectness, class probabilities."""
    rows = flat(outputs[0])
    cells, steps = grids(size, strides)
    middle, sides = (rows[:, :2] + cells) * steps, np.exp(rows[:, 2:4]) * steps
    return Candidates(corners_of_centred(np.hstack([middle, sides])), rows[:, 4:5] * rows[:, 5:])


def yolov5(outputs: Outputs, size: Size) -> Candidates:
    """YOLOv5, v6 and v7: n×(5+classes) decoded in pixels; the score is objectness times class score. With a
    second output of k×h×w prototypes, the last k columns are mask coefficients."""
    return _with_masks(flat(outputs[0]), outputs[1:], classes_from=5)


def yolov8(outputs: Outputs, size: Size, *, classes: int | None = None) -> Candidates:
    """YOLOv8, v9 and v11: (4+classes)×n decoded in pixels, no objectness; masks as in YOLOv5. Rows after
    `classes` scores are left out."""
    columns = outputs[0] if classes is None else outputs[0][: 4 + classes]
    return _with_masks(columns.T, outputs[1:], classes_from=4)


def _with_masks(rows: Array, rest: Sequence[Array], classes_from: int) -> Candidates:
    prototypes = rest[0] if rest else None
    end = rows.shape[1] - (0 if prototypes is None else len(prototypes))
    scores = rows[:, classes_from:end]
    if classes_from == 5:
        scores = rows[:, 4:5] * scores
    coefficients = None if prototypes is None else rows[:, end:]
    return Candidates(
        corners_of_centred(rows[:, :4]), scores, coefficients=coefficients, prototypes=prototypes
    )


def yolov10(outputs: Outputs, size: Size, *, scale: float = 1.0) -> Candidates:
    """Finished detections, as of end-to-end YOLO (v10 and later): n×6 of x1 y1 x2 y2 in pixels, score, class;
    no suppression is needed. Further columns are coefficients for a second output of prototypes."""
    table = flat(outputs[0])
    coefficients, prototypes = (table[:, 6:], outputs[1]) if len(outputs) > 1 else (None, None)
    labels = table[:, 5].round().astype(np.int64)
    return Candidates(
        table[:, :4] * scale, table[:, 4], labels, coefficients=coefficients, prototypes=prototypes
    )


def detr(outputs: Outputs, size: Size) -> Candidates:
    """DETR: queries×(classes+1) logits, the last class meaning no object, and centred boxes as fractions;
    each query predicts its most likely class."""
    likely = softmax(flat(outputs[0]))[:, :-1]
    corners = in_pixels(corners_of_centred(flat(outputs[1], 4)), size)
    labels = likely.argmax(axis=1)
    return Candidates(corners, likely[np.arange(len(likely)), labels], labels)


def rtdetr(outputs: Outputs, size: Size, *, logits: bool = True) -> Candidates:
    """RT-DETR, Deformable DETR, D-FINE: queries×classes of independent scores, centred boxes as fractions."""
    corners = in_pixels(corners_of_centred(flat(outputs[1], 4)), size)
    return Candidates(corners, _probabilities(flat(outputs[0]), logits))


def labelled(outputs: Outputs, size: Size) -> Candidates:
    """Exports that end in labels, boxes x1 y1 x2 y2 in input pixels and scores (RT-DETR's own, D-FINE's)."""
    return Candidates(flat(outputs[1], 4), outputs[2].ravel(), outputs[0].ravel().astype(np.int64))


def torchvision(outputs: Outputs, size: Size) -> Candidates:
    """torchvision's detectors: boxes in input pixels, labels, scores, optionally n×1×h×w masks."""
    corners, labels, scores = flat(outputs[0], 4), outputs[1].ravel(), outputs[2].ravel()
    masks = outputs[3].reshape(len(corners), *outputs[3].shape[-2:]) if len(outputs) > 3 else None
    return Candidates(corners, scores, labels.astype(np.int64), masks=masks)


def postprocessed(outputs: Outputs, size: Size) -> Candidates:
    """TensorFlow's detection post-process: boxes y1 x1 y2 x2 as fractions, classes, scores, count."""
    boxes, labels, scores = flat(outputs[0], 4), outputs[1].ravel(), outputs[2].ravel()
    count = round(float(outputs[3].ravel()[0])) if len(outputs) > 3 else len(scores)
    boxes = in_pixels(boxes[:count, _YXYX], size)
    return Candidates(boxes, scores[:count], labels[:count].round().astype(np.int64))


def ssd(outputs: Outputs, size: Size, *, logits: bool = False, background: bool = False) -> Candidates:
    """SSD with decoded boxes (y1 x1 y2 x2 as fractions) and n×classes scores.

    With `background`, the first column of scores means no object and is left out.
    """
    corners, scores = flat(outputs[0], 4)[:, _YXYX], flat(outputs[1])
    turned = np.any(corners[:, 2:] < corners[:, :2], axis=1)
    if turned.sum() > 0.1 * len(turned):  # decoded boxes have positive sides by construction
        raise CardChange(
            f"{turned.sum()} of {len(turned)} boxes have negative sides: these are offsets from anchors, not "
            "boxes; set decoder: ssd-raw in the card.",
            {"decoder": "ssd-raw"},
        )
    scores = scores[:, 1:] if background else scores
    return Candidates(in_pixels(corners, size), _probabilities(scores, logits))


def ssd_raw(
    outputs: Outputs,
    size: Size,
    *,
    logits: bool = True,
    background: bool = False,
    layers: int = 6,
    scales: tuple[float, float] = (0.2, 0.95),
) -> Candidates:
    """SSD's raw heads, as in TensorFlow's and MediaPipe's networks: n×4 of dy dx log h log w relative to
    anchors, times 10 10 5 5, and n×classes scores. `background` is as in `ssd`."""
    offsets, scores = flat(outputs[0], 4) / (10, 10, 5, 5), flat(outputs[1])
    anchors = ssd_anchors(size, layers, scales)
    if len(anchors) != len(offsets):
        raise Unreadable(f"{len(offsets)} rows for {len(anchors)} anchors of {layers} layers")
    scores = scores[:, 1:] if background else scores
    return Candidates(in_pixels(_from_anchors(anchors, offsets), size), _probabilities(scores, logits))


def _from_anchors(anchors: Array, offsets: Array) -> Array:
    """Boxes from n×4 of dy dx log h log w relative to anchors."""
    middle = anchors[:, :2] + anchors[:, 2:] * offsets[:, [1, 0]]
    sides = anchors[:, 2:] * np.exp(offsets[:, [3, 2]])
    return corners_of_centred(np.hstack([middle, sides]))


def ssd_anchors(size: Size, layers: int, scales: tuple[float, float]) -> Array:
    """Anchors of TensorFlow's SSD (liu2016, section 2.2) as centre x, y and sides, fractions of the input.

    Layers halve from a stride of 16 on; the first has three small anchors per cell, the others six.

    >>> len(ssd_anchors((300, 300), 6, (0.2, 0.95)))
    1917
    """
    low, high = scales
    steps = [low + (high - low) * i / (layers - 1) for i in range(layers)] + [1.0]
    kinds = [[(0.1, 1.0), (low, 2.0), (low, 0.5)]]
    for step, following in pairwise(steps[1:]):
        kinds.append([(step, ratio) for ratio in (1.0, 2.0, 0.5, 3.0, 1 / 3)])
        kinds[-1].append(((step * following) ** 0.5, 1.0))
    found = []
    for layer, shapes in enumerate(kinds):
        cells = grid(size, 16 * 2**layer)
        middle = np.repeat((cells + 0.5) / (cells.max(axis=0) + 1), len(shapes), axis=0)
        sides = np.array([[scale * ratio**0.5, scale / ratio**0.5] for scale, ratio in shapes])
        found.append(np.hstack([middle, np.tile(sides, (len(cells), 1))]))
    return np.concatenate(found).astype(np.float32)


def plain_boxes(outputs: Outputs, size: Size, *, logits: bool = False, fractions: bool = False) -> Candidates:
    """Any n×4 boxes x1 y1 x2 y2, in input pixels or fractions, and n×classes scores."""
    corners, scores = flat(outputs[0], 4), flat(outputs[1])
    if not fractions and len(corners) > 9 and np.abs(corners).max() < 4:
        raise option_missing(
            f"All {len(corners)} boxes lie within {corners.min():.2g} to {corners.max():.2g}: they are "
            "fractions of the image, not pixels",
            fractions=True,
        )
    placed = in_pixels(corners, size) if fractions else corners
    return Candidates(placed, _probabilities(scores, logits))


def efficientdet_rows(outputs: Outputs, size: Size) -> Candidates:
    """EfficientDet (automl): n×7 of image number, y1 x1 y2 x2 in pixels, score, class."""
    table = flat(outputs[0], 7)
    return Candidates(table[:, [2, 1, 4, 3]], table[:, 5], table[:, 6].round().astype(np.int64))


def efficientdet(
    outputs: Outputs,
    size: Size,
    *,
    logits: bool = False,
    strides: tuple[int, ...] = (8, 16, 32, 64, 128),
    anchor_scale: float = 4.0,
) -> Candidates:
    """EfficientDet's raw heads: n×4 of dy dx log h log w relative to anchors, and n×classes scores."""
    offsets, scores = flat(outputs[0], 4), flat(outputs[1])
    anchors = efficientdet_anchors(size, strides, anchor_scale)
    return Candidates(_from_anchors(anchors, offsets), _probabilities(scores, logits))


def blazeface(
    outputs: Outputs, size: Size, *, strides: tuple[int, ...] = (8, 16, 16, 16), each: int = 2
) -> Candidates:
    """BlazeFace and MediaPipe's other detectors: a row of a box around an anchor's centre in input pixels and
    of key points, which are ignored, and a logit. Layers of one stride share their cells, `each` anchors
    per layer."""
    rows, scores = flat(outputs[0]), sigmoid(np.clip(flat(outputs[1]), -100, 100))
    layers = {stride: each * strides.count(stride) for stride in strides}
    centres = [np.repeat((grid(size, s) + 0.5) * s, count, axis=0) for s, count in layers.items()]
    anchors = np.concatenate(centres)
    if len(anchors) != len(rows):
        raise Unreadable(f"{len(rows)} rows for {len(anchors)} anchors of strides {strides}, {each} each")
    return Candidates(corners_of_centred(np.hstack([rows[:, :2] + anchors, rows[:, 2:4]])), scores)


def efficientdet_anchors(size: Size, strides: Sequence[int], anchor_scale: float) -> Array:
    """Nine anchors per cell (three sizes by three shapes), as centre x, y and sides: n×4."""
    shapes = [(1.0, 1.0), (1.4, 0.7), (0.7, 1.4)]  # width and height at aspect ratios 1, 2 and 1/2
    scales = [2 ** (octave / 3) for octave in range(3)]
    kinds = np.array([[w * s, h * s] for s in scales for w, h in shapes], np.float32) * anchor_scale
    cells, steps = grids(size, strides)
    middle = np.repeat((cells + 0.5) * steps, len(kinds), axis=0)
    sides = (steps[:, None] * kinds[None]).reshape(-1, 2)
    return np.hstack([middle, sides])


def nanodet(outputs: Outputs, size: Size, *, strides: tuple[int, ...] = (8, 16, 32)) -> Candidates:
    """NanoDet: class probabilities and distances, 4×bins, of every level; cell centres lie at
    (i + ½)·stride − ½."""
    return _from_levels(outputs, size, strides, shift=-0.5)


def picodet(outputs: Outputs, size: Size, *, strides: tuple[int, ...] = (8, 16, 32, 64)) -> Candidates:
    """PicoDet: outputs as NanoDet's, with four levels; cell centres lie at (i + ½)·stride."""
    return _from_levels(outputs, size, strides, shift=0.0)


def _from_levels(outputs: Outputs, size: Size, strides: tuple[int, ...], *, shift: float) -> Candidates:
    """Levels are distinguished by their length, so outputs may come classes first or level by level."""
    levels = [flat(output) for output in outputs]
    pairs = [[level for level in levels if len(level) == len(grid(size, stride))] for stride in strides]
    if any(len(pair) != 2 for pair in pairs):
        raise Unreadable(f"it needs two outputs for each of the strides {strides}")
    scores, distances = (np.concatenate([pair[k] for pair in pairs]) for k in range(2))
    cells, steps = grids(size, strides)
    return Candidates(_from_distances((cells + 0.5) * steps + shift, distances, steps), scores)


def nanodet_plus(
    outputs: Outputs, size: Size, *, classes: int = 80, strides: tuple[int, ...] = (8, 16, 32, 64)
) -> Candidates:
    """NanoDet-Plus: one n×(classes + 4×bins) table; cells are anchored at their corner i·stride."""
    rows = flat(outputs[0])
    cells, steps = grids(size, strides)
    return Candidates(_from_distances(cells * steps, rows[:, classes:], steps), rows[:, :classes])


def scrfd(
    outputs: Outputs, size: Size, *, strides: tuple[int, ...] = (8, 16, 32), each: int = 2
) -> Candidates:
    """SCRFD: n×1 scores, n×4 distances left, up, right, down in strides, and n×10 key points (ignored) of
    every level, distinguished by their shape; `each` rows per cell, anchored at its corner."""
    tables = {output.shape: output for output in map(flat, outputs)}
    scores, boxes = [], []
    for stride in strides:
        middle = np.repeat(grid(size, stride) * stride, each, axis=0)
        wanted = [(len(middle), width) for width in (1, 4)]
        if any(shape not in tables for shape in wanted):
            raise Unreadable(f"it needs outputs {wanted} for stride {stride}")
        distance = tables[wanted[1]] * stride
        scores.append(tables[wanted[0]])
        boxes.append(np.hstack([middle - distance[:, :2], middle + distance[:, 2:]]))
    return Candidates(np.concatenate(boxes), np.concatenate(scores))


def _from_distances(middle: Array, bins: Array, steps: Array) -> Array:
    """Boxes from distances left, up, right, down in strides, each the expectation over bins."""
    shares = softmax(bins.reshape(len(bins), 4, -1))
    distance = shares @ np.arange(shares.shape[-1], dtype=np.float32) * steps
    return np.hstack([middle - distance[:, :2], middle + distance[:, 2:]])


def fastestdet(outputs: Outputs, size: Size) -> Candidates:
    """FastestDet: (5+classes)×h×w of objectness, tanh offsets, sigmoid sides and class probabilities.

    The score is objectness^0.6 · class^0.4, as in its authors' code.
    """
    output = outputs[0]
    channels, height, width = output.shape
    rows = output.reshape(channels, -1).T
    y, x = np.divmod(np.arange(height * width), width)
    cells = np.stack([x, y], axis=1)
    middle = (np.tanh(rows[:, 1:3]) + cells) / (width, height) * (size[1], size[0])
    sides = sigmoid(rows[:, 3:5]) * (size[1], size[0])
    scores = np.clip(rows[:, :1], 0, 1) ** 0.6 * np.clip(rows[:, 5:], 0, 1) ** 0.4
    return Candidates(corners_of_centred(np.hstack([middle, sides])), scores)


def centernet(outputs: Outputs, size: Size, *, logits: bool = True, peaks: int = 100) -> Candidates:
    """CenterNet: classes×h×w heat map, 2×h×w sides and 2×h×w offsets, in cells; the peaks are objects.

    A cell is a peak if no neighbour is hotter; this replaces suppression.
    """
    if outputs[1].shape[0] != 2:  # h×w×planes, as in exports from TensorFlow
        outputs = [output.transpose(2, 0, 1) for output in outputs]
    heat = _probabilities(outputs[0], logits)
    around = np.stack([cv2.dilate(plane.astype(np.float32), np.ones((3, 3), np.uint8)) for plane in heat])
    peak = np.where(heat.astype(np.float32) >= around, heat, 0).ravel()
    best = np.argsort(-peak, kind="stable")[:peaks]
    labels, y, x = np.unravel_index(best, heat.shape)
    sides = outputs[1][:, y, x].T
    offset = outputs[2][:, y, x].T if len(outputs) > 2 else 0.5
    step = np.array([size[1] / heat.shape[2], size[0] / heat.shape[1]])
    rows = np.hstack([(np.stack([x, y], axis=1) + offset) * step, sides * step])
    return Candidates(corners_of_centred(rows), peak[best], labels.astype(np.int64))


def score_planes(
    outputs: Outputs, size: Size, *, channels_last: bool = False, probabilities: bool = False
) -> Array:
    """Scores c×h×w (or h×w×c), at any resolution; they are resized before the best class is taken.

    A single plane separates foreground from background: above 0, or above ½ if it holds `probabilities`.
    """
    scores = outputs[0].transpose(2, 0, 1) if channels_last else outputs[0]
    if len(scores) > 1:
        return scores
    if probabilities:
        return scores - 0.5
    if scores.min() >= 0 and scores.max() <= 1:
        raise option_missing(
            "The single plane of scores lies within 0 to 1, so it holds probabilities", probabilities=True
        )
    return scores


def class_map(outputs: Outputs, size: Size) -> Array:
    """A map h×w (or with an axis of length one) of class numbers."""
    plane = outputs[0]
    return plane.reshape([side for side in plane.shape if side != 1] if plane.ndim > 2 else plane.shape)
