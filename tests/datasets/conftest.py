"""Datasets to open: tiny ones in every format, and the real ones beside the repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from helpers import tiny_datasets


@pytest.fixture
def shared(shared: Path) -> Path:
    """The folder of real images and labels, which is not part of this repository."""
    return shared / "data"


@pytest.fixture
def trees() -> ModuleType:
    """The builders of tiny datasets."""
    return tiny_datasets


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., str]:
    """Write a tiny dataset of a kind, and return the spec that opens it."""

    def make(kind: str, where: str = "tree") -> str:
        if kind not in tiny_datasets.BUILDERS:
            pytest.fail(f"kind {kind!r} is registered but has no tiny example; add one to BUILDERS")
        root = tmp_path / where
        root.mkdir()
        return tiny_datasets.BUILDERS[kind](root)

    return make
