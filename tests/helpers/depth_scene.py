"""A small scene of known depth."""

from __future__ import annotations

import numpy as np


def scene(size: tuple[int, int] = (80, 120)) -> tuple[np.ndarray, np.ndarray]:
    """A dark box at 5 m before a bright wall at 20 m."""
    image = np.full((*size, 3), 200, np.uint8)
    depth = np.full(size, 20, np.float32)
    image[20:60, 40:80] = 40
    depth[20:60, 40:80] = 5
    return image, depth


def thinned(depth: np.ndarray, share: float = 0.06) -> np.ndarray:
    hit = np.random.default_rng(1).random(depth.shape) < share
    return np.where(hit, depth, np.nan).astype(np.float32)
