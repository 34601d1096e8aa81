"""Oriented boxes as rows, and the overlap of every pair of them."""

from __future__ import annotations

import numpy as np

from stormproof.core.oriented import oriented_overlap
from stormproof.core.sample import Floats


def rotated_rows(corners: Floats) -> Floats:
    """Centre x, y, width, height and angle of rectangles given by their corners; the first side is the width,
    and the angle lies in (−π, π]. For other quadrilaterals, a rectangle of the mean opposite sides."""
    corners = np.asarray(corners, np.float64).reshape(-1, 4, 2)
    across = (corners[:, 1] - corners[:, 0] + corners[:, 2] - corners[:, 3]) / 2
    down = (corners[:, 3] - corners[:, 0] + corners[:, 2] - corners[:, 1]) / 2
    sides = np.hypot(across[:, 0], across[:, 1]), np.hypot(down[:, 0], down[:, 1])
    angle = np.where(
        sides[0] > 0, np.arctan2(across[:, 1], across[:, 0]), np.arctan2(-down[:, 0], down[:, 1])
    )
    return np.column_stack([corners.mean(axis=1), *sides, angle])


def oriented_iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union of every quadrilateral in `a` (rows, n×4×2) with every one in `b` (columns)."""
    return np.array([[oriented_overlap(one, other) for other in b] for one in a]).reshape(len(a), len(b))
