"""SSD, EfficientDet and BlazeFace: boxes from anchors, raw or decoded, with or without suppression inside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.models.candidates import Candidates
from stormproof.models.decoders.arrays import (
    Array,
    Unreadable,
    centred,
    flat,
    grid,
    grids,
    in_pixels,
    sigmoid,
)
from stormproof.models.geometry import Size

_YXYX = [1, 0, 3, 2]


def postprocessed(outputs: Sequence[Array], size: Size) -> Candidates:
    """TensorFlow's detection post-process: boxes y1 x1 y2 x2 as fractions, classes, scores, count."""
    boxes, labels, scores = flat(outputs[0], 4), outputs[1].ravel(), outputs[2].ravel()
    count = round(float(outputs[3].ravel()[0])) if len(outputs) > 3 else len(scores)
    boxes = in_pixels(boxes[:count, _YXYX], size)
    return Candidates(boxes, scores[:count], labels[:count].round().astype(np.int64))


def ssd(
    outputs: Sequence[Array], size: Size, *, logits: bool = False, background: bool = False
) -> Candidates:
    """SSD with decoded boxes (y1 x1 y2 x2 as fractions) and n×classes scores.

    With `background`, the first column of scores means no object and is left out.
    """
    corners, scores = flat(outputs[0], 4)[:, _YXYX], flat(outputs[1])
    turned = np.any(corners[:, 2:] < corners[:, :2], axis=1)
    if turned.sum() > 0.1 * len(turned):  # decoded boxes have positive sides by construction
        raise ModelError(
            f"{turned.sum()} of {len(turned)} boxes have negative sides: these are offsets from anchors, not "
            "boxes; set decoder: ssd-raw in the card."
        )
    scores = scores[:, 1:] if background else scores
    return Candidates(in_pixels(corners, size), sigmoid(scores) if logits else scores)


def ssd_raw(
    outputs: Sequence[Array],
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
    middle = anchors[:, :2] + anchors[:, 2:] * offsets[:, [1, 0]]
    sides = anchors[:, 2:] * np.exp(offsets[:, [3, 2]])
    scores = scores[:, 1:] if background else scores
    corners = in_pixels(centred(np.hstack([middle, sides])), size)
    return Candidates(corners, sigmoid(scores) if logits else scores)


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


def boxes(
    outputs: Sequence[Array], size: Size, *, logits: bool = False, fractions: bool = False
) -> Candidates:
    """Any n×4 boxes x1 y1 x2 y2, in input pixels or fractions, and n×classes scores."""
    corners, scores = flat(outputs[0], 4), flat(outputs[1])
    if not fractions and len(corners) > 9 and np.abs(corners).max() < 4:
        raise ModelError(
            f"All {len(corners)} boxes lie within {corners.min():.2g} to {corners.max():.2g}: they are "
            "fractions of the image, not pixels; set options: {fractions: true} in the card."
        )
    return Candidates(
        in_pixels(corners, size) if fractions else corners, sigmoid(scores) if logits else scores
    )


def efficientdet_rows(outputs: Sequence[Array], size: Size) -> Candidates:
    """EfficientDet (automl): n×7 of image number, y1 x1 y2 x2 in pixels, score, class."""
    table = flat(outputs[0], 7)
    return Candidates(table[:, [2, 1, 4, 3]], table[:, 5], table[:, 6].round().astype(np.int64))


def efficientdet(
    outputs: Sequence[Array],
    size: Size,
    *,
    logits: bool = False,
    strides: tuple[int, ...] = (8, 16, 32, 64, 128),
    anchor_scale: float = 4.0,
) -> Candidates:
    """EfficientDet's raw heads: n×4 of dy dx log h log w relative to anchors, and n×classes scores."""
    offsets, scores = flat(outputs[0], 4), flat(outputs[1])
    anchors = efficientdet_anchors(size, strides, anchor_scale)
    sides = anchors[:, 2:] * np.exp(offsets[:, [3, 2]])
    middle = anchors[:, :2] + anchors[:, 2:] * offsets[:, [1, 0]]
    return Candidates(centred(np.hstack([middle, sides])), sigmoid(scores) if logits else scores)


def blazeface(
    outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 16, 16), each: int = 2
) -> Candidates:
    """BlazeFace (MediaPipe): n×16 of a box around an anchor's centre in input pixels and six key points,
    which are ignored, and n×1 logits. Layers of one stride share their cells, `each` anchors per layer."""
    rows, scores = flat(outputs[0]), sigmoid(np.clip(flat(outputs[1]), -100, 100))
    layers = {stride: each * strides.count(stride) for stride in strides}
    centres = [np.repeat((grid(size, s) + 0.5) * s, count, axis=0) for s, count in layers.items()]
    anchors = np.concatenate(centres)
    if len(anchors) != len(rows):
        raise Unreadable(f"{len(rows)} rows for {len(anchors)} anchors of strides {strides}, {each} each")
    return Candidates(centred(np.hstack([rows[:, :2] + anchors, rows[:, 2:4]])), scores)


def efficientdet_anchors(size: Size, strides: Sequence[int], anchor_scale: float) -> Array:
    """Nine anchors per cell (three sizes by three shapes), as centre x, y and sides: n×4."""
    shapes = [(1.0, 1.0), (1.4, 0.7), (0.7, 1.4)]  # width and height at aspect ratios 1, 2 and 1/2
    scales = [2 ** (octave / 3) for octave in range(3)]
    kinds = np.array([[w * s, h * s] for s in scales for w, h in shapes], np.float32) * anchor_scale
    cells, steps = grids(size, strides)
    middle = np.repeat((cells + 0.5) * steps, len(kinds), axis=0)
    sides = (steps[:, None] * kinds[None]).reshape(-1, 2)
    return np.hstack([middle, sides])
