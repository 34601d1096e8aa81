"""Scenes of the world are under test here."""

from __future__ import annotations

import pytest

from stormproof.world import samples, scene


@pytest.fixture(autouse=True)
def scenes_are_composed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every time, though tests of other folders keep them."""
    monkeypatch.setattr(samples, "compose", scene.compose)
