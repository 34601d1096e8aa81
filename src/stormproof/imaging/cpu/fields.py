"""Scalar fields over the image plane: plasma clouds, and the relief of water drops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.imaging.plans import Field


@kernel
def _centres(coarse: Any, wobble: Any, amplitude: Any, out: Any) -> None:
    """Keep the coarse points and put a new one into the middle of each square."""
    n = coarse.shape[0]
    for i in range(n):
        here, below = coarse[i], coarse[(i + 1) % n]
        top, middle = out[2 * i], out[2 * i + 1]
        for j in range(n):
            k = j + 1 if j + 1 < n else 0
            total = (here[j] + below[j]) + (here[k] + below[k])
            top[2 * j] = here[j]
            middle[2 * j + 1] = total * np.float32(0.25) + amplitude * wobble[i, j]


@kernel
def _across(coarse: Any, wobble: Any, amplitude: Any, out: Any) -> None:
    """New points between two coarse ones side by side, with the centres above and below."""
    n = coarse.shape[0]
    for i in range(n):
        here = coarse[i]
        top, middle, above = out[2 * i], out[2 * i + 1], out[(2 * i - 1) % (2 * n)]
        for j in range(n):
            k = j + 1 if j + 1 < n else 0
            total = (middle[2 * j + 1] + above[2 * j + 1]) + (here[j] + here[k])
            top[2 * j + 1] = total * np.float32(0.25) + amplitude * wobble[i, j]


@kernel
def _down(coarse: Any, wobble: Any, amplitude: Any, out: Any) -> None:
    """New points between two coarse ones one above the other, with the centres left and right."""
    n = coarse.shape[0]
    for i in range(n):
        here, below, middle = coarse[i], coarse[(i + 1) % n], out[2 * i + 1]
        for j in range(n):
            before = 2 * j - 1 if j > 0 else 2 * n - 1
            total = (middle[2 * j + 1] + middle[before]) + (here[j] + below[j])
            middle[2 * j] = total * np.float32(0.25) + amplitude * wobble[i, j]


def subdivide(coarse: Field, wobbles: Iterable[Field], amplitude: float) -> Field:
    """One step of diamond–square on a torus: n×n to 2n×2n.

    New points are the mean of their four neighbours plus amplitude·wobble. `wobbles` yields three n×n
    fields, one at a time to spare memory: for square centres, for midpoints of rows, of columns.
    """
    n = coarse.shape[0]
    out = np.empty((2 * n, 2 * n), np.float32)
    for step, wobble in zip((_centres, _across, _down), wobbles, strict=True):
        step(coarse, wobble, np.float32(amplitude), out)
    return out


def drift(field: Field, down: int, across: int) -> Field:
    """The field moved by whole pixels; what leaves it on one side enters on the other."""
    return np.roll(field, (down, across), (0, 1))


_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


def relief(layer: npt.NDArray[np.uint8]) -> Field:
    """Light on drops: the distance from their edges, equalised and embossed, as a map of 0..255."""
    edges = cv2.Canny(layer, 50, 150)
    distance = cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5)
    near = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    embossed = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, _EMBOSS)
    return cv2.blur(embossed, (3, 3)).astype(np.float32)
