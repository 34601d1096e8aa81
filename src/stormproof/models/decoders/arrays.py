"""Arithmetic that several decoders share, and the error for outputs they cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.models.geometry import Size

Array = npt.NDArray[Any]


class Unreadable(ValueError):
    """Raised by a decoder, in its own words, for outputs that do not fit it."""


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^−x), without overflow for large negative x.

    >>> sigmoid(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    half: Array = 0.5 * (1.0 + np.tanh(0.5 * x))
    return half


def softmax(x: Array) -> Array:
    """e^x over its sum along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    share: Array = raised / raised.sum(axis=-1, keepdims=True)
    return share


def centred(boxes: Array) -> Array:
    """Boxes x y w h around their centre as x1 y1 x2 y2.

    >>> centred(np.array([[5.0, 5.0, 4.0, 2.0]])).tolist()
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
