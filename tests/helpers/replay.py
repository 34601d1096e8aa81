"""A draw that hands a recipe the very numbers imagecorruptions draws, so that images can be compared."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np


class Replay:
    """Stands in for `stormproof.core.randomness.Draw`; answers each named stream with the reference's draws.

    The reference draws from NumPy's global generator in the order its code runs; each class method
    below repeats that order for one corruption, after the same seeding.
    """

    time = 0.0  # of a single image

    def __init__(self, fields: dict[str, object]) -> None:
        self.fields = fields

    def each(self, plan: Callable[[Replay], object]) -> object:
        return plan(self)

    def uniform(self, stream: str, low: float = 0, high: float = 1) -> float:
        return self.fields[stream]

    def integer(self, stream: str, count: int) -> int:
        return self.fields[stream]

    each_uniform, each_integer = uniform, integer

    def uniform_field(self, stream: str, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
        return self._field(stream, shape)

    def normal_field(self, stream: str, shape: tuple[int, ...], mean: float, sd: float) -> np.ndarray:
        return self._field(stream, shape)

    def integer_field(self, stream: str, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        field = self.fields[stream]
        assert field.shape == shape
        return field.astype(np.int8)

    def _field(self, stream: str, shape: tuple[int, ...]) -> np.ndarray:
        field = self.fields[stream]
        assert field.shape == shape
        return field.astype(np.float32)


def motion_blur(size: tuple[int, int], seed: int, **_: object) -> Replay:
    np.random.seed(seed)
    return Replay({"angle": np.random.uniform(-45, 45)})


def snow(
    size: tuple[int, int], seed: int, *, density: float, spread: float, flake: float, **_: object
) -> Replay:
    np.random.seed(seed)
    layer = np.random.normal(size=size, loc=density, scale=spread)
    rows, columns = (ceil(side / flake) for side in size)
    top, left = (size[0] - rows) // 2, (size[1] - columns) // 2
    angle = np.random.uniform(-135, -45)
    return Replay({"flakes": layer[top : top + rows, left : left + columns], "angle": angle})


def spatter(size: tuple[int, int], seed: int, *, density: float, spread: float, **_: object) -> Replay:
    np.random.seed(seed)
    return Replay({"drops": np.random.normal(size=size, loc=density, scale=spread)})


def fog(size: tuple[int, int], seed: int, *, decay: float, **_: object) -> Replay:
    np.random.seed(seed)
    side = 1 << (max(size) - 1).bit_length()
    fields, n, w = {}, 1, 100.0
    while n < side:
        for part in ("centre", "row", "column"):
            fields[f"wobble{n}{part}"] = np.random.uniform(-w, w, (n, n))
        n, w = 2 * n, w / decay
    return Replay(fields)


def elastic_transform(size: tuple[int, int], seed: int, **_: object) -> Replay:
    np.random.seed(seed)
    reach = size[0] * 0.005
    return Replay({axis: np.random.uniform(-reach, reach, size=size) for axis in ("dx", "dy")})


def glass_blur(size: tuple[int, int], seed: int, *, reach: int, iterations: int, **_: object) -> Replay:
    np.random.seed(seed)
    rows, columns = (max(side - 2 * reach, 0) for side in size)
    return Replay({"shift": np.random.randint(-reach, reach, size=(iterations, rows, columns, 2))})


def frost(size: tuple[int, int], seed: int, *, images: tuple[np.ndarray, ...], **_: object) -> Replay:
    np.random.seed(seed)
    index = np.random.randint(5)
    own = images[index].shape
    scale = max(1.0, size[0] / own[0], size[1] / own[1]) * 1.1
    height, width = ceil(own[0] * scale), ceil(own[1] * scale)
    top, left = np.random.randint(0, height - size[0]), np.random.randint(0, width - size[1])
    return Replay({"texture": index, "top": top, "left": left})
