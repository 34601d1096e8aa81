"""Weights of a network of one number."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch = pytest.importorskip("torch", reason="needs torch")
    torch.save(
        {"state_dict": {"weight": torch.ones(1)}, "meta": {"dataset_meta": {"classes": ("cat", "dog")}}},
        tmp_path / "weights.pth",
    )
    return tmp_path / "weights.pth"
