"""A pool of coloured rectangles on grey, which a network learns in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from training.pool import Pool, array, create

COLOURS = np.array(
    [
        (230, 30, 30), (30, 220, 40), (40, 60, 230), (230, 220, 40), (220, 50, 220), (40, 220, 220),
        (250, 250, 250),
    ]
)  # fmt: skip


def toy_pool(folder: Path, count: int, split: str = "train", width: int = 128, height: int = 96) -> None:
    """Every scene: two to four rectangles, each in its class's colour and semantic class label + 1."""
    pool = Pool(split, count, width, height, 0, 1, 1)
    create(folder, pool)
    images, semantic, instance, objects, done = (
        array(folder, pool, name, "r+") for name in ("images", "semantic", "instance", "objects", "done")
    )
    rng = np.random.default_rng(len(split))
    images[:] = rng.integers(90, 120, images.shape)
    for i in range(count):
        for k in range(int(rng.integers(2, 5))):
            w, h = rng.integers(12, 48, 2)
            x, y = rng.integers(0, width - w), rng.integers(0, height - h)
            label = int(rng.integers(len(COLOURS)))
            place = (slice(y, y + h), slice(x, x + w))
            images[i][place], semantic[i][place], instance[i][place] = COLOURS[label], label + 1, k + 1
            objects[i, k] = (x, y, x + w, y + h, label, 1)
    done[:] = count
