"""Scalar fields over the image plane: plasma clouds, falling snow, the relief of water drops on a lens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.imaging.cpu.convolution import line_blur
from stormproof.imaging.cpu.warps import enlarge
from stormproof.imaging.plans import EDGES, EMBOSS, FAR, TINY, Field


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
    """One step of diamond–square on a torus, n×n to 2n×2n."""
    n = coarse.shape[0]
    out = np.empty((2 * n, 2 * n), np.float32)
    for step, wobble in zip((_centres, _across, _down), wobbles, strict=True):
        step(coarse, wobble, np.float32(amplitude), out)
    return out


def plasma(levels: Iterable[tuple[float, Iterable[Field]]], side: int, size: tuple[int, int]) -> Field:
    """The upper left part, of `size`, of a fractal cloud by diamond–square on a torus, from 0 to 1.

    It begins as one point, and doubles its sides with every level, up to `side`. New points are the mean of
    their four neighbours plus amplitude·wobble. A level is its amplitude and three n×n fields of wobbles, one
    at a time to spare memory: for square centres, for midpoints of rows, of columns.
    """
    cloud = np.zeros((1, 1), np.float32)
    levels = iter(levels)
    while len(cloud) < side:
        amplitude, wobbles = next(levels)
        cloud = subdivide(cloud, wobbles, amplitude)
    low, high = cloud.min(), cloud.max()
    part: Field = cloud[: size[0], : size[1]] - low
    part /= max(high - low, np.float32(TINY))
    return part


def snowfall(
    seeds: Field,
    flake: float,
    threshold: float,
    path: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    size: tuple[int, int],
) -> Field:
    """Streaks of falling flakes, in whole grey levels; `size` is that of the result.

    Seeds, from 0 to 1, are enlarged `flake` times, corners on corners, set to 0 below `threshold`, and
    blurred along a `path` of weights and (dy, dx).
    """
    layer = enlarge(seeds, flake)
    layer[layer < threshold] = 0
    np.clip(layer, 0, 1, out=layer)
    layer *= 255
    streaks = line_blur(layer, *path, guard=np.float32(0))
    return np.asarray(np.rint(streaks[: size[0], : size[1]]), np.float32)


def both_ways(layer: Field) -> Field:
    """A layer and the same rotated by 180°, added up."""
    return np.asarray(layer + layer[::-1, ::-1])


def drift(field: Field, down: int, across: int) -> Field:
    """The field moved by whole pixels; what leaves it on one side enters on the other."""
    return np.roll(field, (down, across), (0, 1))


def _distance(edges: Any) -> Field:
    """Each pixel's distance to the nearest edge, by OpenCV's own integers.

    On Intel's processors OpenCV would use Intel's library, which rounds differently: pixels would depend on
    the machine. The switch is the thread's own.
    """
    used = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    try:
        distance: Any = cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5)
    finally:
        cv2.ipp.setUseIPP(used)
    return np.asarray(distance, np.float32)


def relief(layer: npt.NDArray[np.uint8]) -> Field:
    """Light on drops: the distance from their edges, equalised and embossed, as a map of 0..255."""
    distance = _distance(cv2.Canny(layer, *EDGES))
    near = cv2.blur(np.minimum(distance, FAR), (3, 3)).astype(np.uint8)
    embossed = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, np.array(EMBOSS))
    return cv2.blur(embossed, (3, 3)).astype(np.float32)
