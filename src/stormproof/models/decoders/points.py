"""Detectors without anchors: each cell of a feature map predicts an object and the distances of its edges."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from stormproof.models.candidates import Candidates
from stormproof.models.decoders.arrays import Array, Unreadable, centred, flat, grid, grids, sigmoid, softmax
from stormproof.models.geometry import Size


def nanodet(outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 32)) -> Candidates:
    """NanoDet: class probabilities and distances, 4×bins, of every level; cell centres lie at
    (i + ½)·stride − ½."""
    return _from_levels(outputs, size, strides, shift=-0.5)


def picodet(
    outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 32, 64)
) -> Candidates:
    """PicoDet: outputs as NanoDet's, with four levels; cell centres lie at (i + ½)·stride."""
    return _from_levels(outputs, size, strides, shift=0.0)


def _from_levels(
    outputs: Sequence[Array], size: Size, strides: tuple[int, ...], *, shift: float
) -> Candidates:
    """Levels are distinguished by their length, so outputs may come classes first or level by level."""
    levels = [flat(output) for output in outputs]
    pairs = [[level for level in levels if len(level) == len(grid(size, stride))] for stride in strides]
    if any(len(pair) != 2 for pair in pairs):
        raise Unreadable(f"it needs two outputs for each of the strides {strides}")
    scores, distances = (np.concatenate([pair[k] for pair in pairs]) for k in range(2))
    cells, steps = grids(size, strides)
    return Candidates(_from_distances((cells + 0.5) * steps + shift, distances, steps), scores)


def nanodet_plus(
    outputs: Sequence[Array], size: Size, *, classes: int = 80, strides: tuple[int, ...] = (8, 16, 32, 64)
) -> Candidates:
    """NanoDet-Plus: one n×(classes + 4×bins) table; cells are anchored at their corner i·stride."""
    rows = flat(outputs[0])
    cells, steps = grids(size, strides)
    return Candidates(_from_distances(cells * steps, rows[:, classes:], steps), rows[:, :classes])


def scrfd(
    outputs: Sequence[Array], size: Size, *, strides: tuple[int, ...] = (8, 16, 32), each: int = 2
) -> Candidates:
    """SCRFD: n×1 scores, n×4 distances left, up, right, down in strides, and n×10 key points (ignored) of
    every level, distinguished by their shape; `each` rows per cell, anchored at its corner."""
    tables = {output.shape: flat(output) for output in map(flat, outputs)}
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


def fastestdet(outputs: Sequence[Array], size: Size) -> Candidates:
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
    return Candidates(centred(np.hstack([middle, sides])), scores)


def _planes_first(output: Array) -> Array:
    """h×w×planes, as in exports from TensorFlow, converted to planes×h×w."""
    return output.transpose(2, 0, 1)


def centernet(outputs: Sequence[Array], size: Size, *, logits: bool = True, peaks: int = 100) -> Candidates:
    """CenterNet: classes×h×w heat map, 2×h×w sides and 2×h×w offsets, in cells; the peaks are objects.

    A cell is a peak if no neighbour is hotter; this replaces suppression.
    """
    outputs = [_planes_first(output) for output in outputs] if outputs[1].shape[0] != 2 else outputs
    heat = sigmoid(outputs[0]) if logits else outputs[0]
    around = np.stack([cv2.dilate(plane.astype(np.float32), np.ones((3, 3), np.uint8)) for plane in heat])
    peak = np.where(heat.astype(np.float32) >= around, heat, 0).ravel()
    best = np.argsort(-peak, kind="stable")[:peaks]
    labels, y, x = np.unravel_index(best, heat.shape)
    sides = outputs[1][:, y, x].T
    offset = outputs[2][:, y, x].T if len(outputs) > 2 else 0.5
    step = np.array([size[1] / heat.shape[2], size[0] / heat.shape[1]])
    rows = np.hstack([(np.stack([x, y], axis=1) + offset) * step, sides * step])
    return Candidates(centred(rows), peak[best], labels.astype(np.int64))
