"""Folders and datasets that several verbs are tried on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.typed import make_image
from stormproof.core.imagefile import write_image


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for i, name in enumerate(["a.png", "b.jpg", "more/c.png", "more/d.bmp", "more/grey.png"]):
        write_image(folder / name, make_image(i, (36, 48) if "grey" in name else (36, 48, 3)))
    (folder / "notes.txt").write_text("not an image")
    return folder


@pytest.fixture
def scenes(tmp_path: Path) -> str:
    """A dataset of two images with depth: near on the left, far on the right."""
    for folder in ("left", "depth"):
        (tmp_path / folder).mkdir()
    for name in ("a", "b"):
        write_image(tmp_path / "left" / f"{name}.png", np.full((36, 48, 3), 60, np.uint8))
        np.save(
            tmp_path / "depth" / f"{name}.npy", np.tile(np.geomspace(1, 400, 48, dtype=np.float32), (36, 1))
        )
    return f"images:{tmp_path / 'left'},depth={tmp_path / 'depth'}"
