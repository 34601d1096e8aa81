"""What a run keeps in memory does not grow with its grid."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from helpers.runs import Configure
from stormproof.core.imagefile import write_image
from stormproof.engine.run import run


@pytest.mark.parametrize("model", ["brightness_masks", "thresholds"])
def test_memory_does_not_grow_with_conditions(model: str, configure: Configure, tmp_path: Path) -> None:
    """Masks and label maps of noise are the largest answers there are: a run on every pixel or two."""
    folder = tmp_path / "photos"
    folder.mkdir()
    write_image(folder / "a.png", np.random.default_rng(0).integers(0, 256, (600, 800, 3), np.uint8))

    def peak(conditions: int) -> int:
        sweep = ",".join(f"contrast[factor={0.9 - k / 100:.2f}]" for k in range(conditions))
        config = configure(model, f"run{conditions}", data=f"images:{folder}", conditions=[sweep], batch=4)
        tracemalloc.start()
        try:
            assert run(config).complete
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is loaded once
    assert peak(40) < 1.1 * peak(10)
