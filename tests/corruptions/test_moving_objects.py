"""Key points and corners of oriented boxes go where their pixels go."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.sample import Instances, Truth
from stormproof.corruptions.geometry import move_truth


def shift(size: tuple[int, int], right: float, down: float) -> tuple[np.ndarray, np.ndarray]:
    """The field that moves every pixel: output (y, x) shows input (y − down, x − right)."""
    return np.full(size, -down, np.float32), np.full(size, -right, np.float32)


def moved(data: dict[str, np.ndarray], right: float, down: float) -> Instances:
    objects = Instances(np.array([[10.0, 10, 40, 30]]), [0], data=data)
    truth = move_truth(Truth(objects), *shift((50, 60), right, down))
    assert truth.instances is not None
    return truth.instances


def test_points_move_with_the_pixels() -> None:
    points = np.array([[[12.0, 20, 2], [30, 25, 1], [0, 0, 0]]])
    found = moved({"points": points, "sigmas": np.full((1, 3), 0.1)}, 5, -3)
    assert found.data["points"][0] == pytest.approx(np.array([[17, 17, 2], [35, 22, 1], [0, 0, 0]]), abs=1e-3)
    assert found.data["sigmas"].tolist() == [[0.1, 0.1, 0.1]]


def test_a_point_that_leaves_the_image_is_no_longer_labelled() -> None:
    found = moved({"points": np.array([[[12.0, 20, 2], [38, 25, 2]]])}, 25, 0)
    assert found.data["points"][0] == pytest.approx(np.array([[37, 20, 2], [0, 0, 0]]), abs=1e-3)


def test_corners_move_beyond_the_border() -> None:
    corners = np.array([[[25.0, 10], [40, 20], [25, 30], [10, 20]]])
    found = moved({"corners": corners}, 30, 5)
    assert found.data["corners"] == pytest.approx(corners + np.array([30, 5]), abs=1e-3)
    assert found.boxes[0] == pytest.approx([40, 15, 60, 35], abs=1e-3)  # cut at the border
