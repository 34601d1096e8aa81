"""A steerable pyramid (Simoncelli & Freeman 1995): oriented band-pass images, an octave apart.

The filters are the spatial ones of order 5 (Karasaridis & Simoncelli 1996) that the authors of VIF and IFC
use, with the coefficients of matlabPyrTools' sp5Filters (E. Simoncelli, MIT licence). Exact filters in the
frequency domain give other bands, and a VIF that differs by up to 40 % where little information is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from stormproof.core.sample import Floats


def _mirror(quarter: list[list[float]]) -> Floats:
    """The whole of a filter that is symmetric about its middle row and column, from its upper left part."""
    half = np.array(quarter)
    left: Floats = np.concatenate((half, half[-2::-1]))
    return np.concatenate((left, left[:, -2::-1]), axis=1)


_FIRST_LOW = _mirror(
    [
        [0.00341614, -0.01551246, -0.03848215],
        [-0.01551246, 0.05586982, 0.1592557],
        [-0.03848215, 0.1592557, 0.40304148],
    ]
)
_LOW = _mirror(
    [
        [0.00170808, -0.00489834, -0.00775624, -0.01888864, -0.01924108],
        [-0.00489834, -0.01046562, -0.01322234, 0.008212, 0.02005976],
        [-0.00775624, -0.01322234, 0.02793492, 0.06554076, 0.07962786],
        [-0.01888864, 0.008212, 0.06554076, 0.12852666, 0.16339236],
        [-0.01924108, 0.02005976, 0.07962786, 0.16339236, 0.2019308],
    ]
)
# Odd in x: the upper left part of the filter, with the sign of its right half turned.
_ACROSS = _mirror(
    [
        [0.00277643, -0.00986904, -0.01021852, 0.0],
        [0.00496194, -0.00893064, -0.03075356, 0.0],
        [0.01026699, 0.01189859, -0.08226445, 0.0],
        [0.01455399, 0.02755155, -0.11732297, 0.0],
    ]
) * np.array([1, 1, 1, 1, -1, -1, -1])
ORIENTED = (_ACROSS, -_ACROSS.T)  # responds to vertical edges, to horizontal ones


def pyramid_bands(image: Floats, levels: int) -> Iterator[list[Floats]]:
    """For each level, finest first, the bands of vertical and of horizontal edges."""
    low = _filter(image, _FIRST_LOW)
    for _ in range(levels):
        yield [_filter(low, oriented) for oriented in ORIENTED]
        low = np.ascontiguousarray(_filter(low, _LOW)[::2, ::2])


def _filter(image: Floats, kernel: Floats) -> Floats:
    return np.asarray(cv2.filter2D(image, cv2.CV_64F, kernel, borderType=cv2.BORDER_REFLECT_101), np.float64)
