"""Runs of tiny models on tiny images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.fake_models import MODELS
from helpers.runs import Configure
from helpers.scenes import write_scene
from stormproof.engine.config import RunConfig, make_config


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("scene") / "coco")


@pytest.fixture
def configure(scene: str, tmp_path: Path) -> Configure:
    """Settings of a small run; keywords replace any of them."""

    def make(model: str = "brightness_boxes", out: str = "run", **settings: Any) -> RunConfig:
        usual = {"data": scene, "conditions": ["fog@2,contrast@4"], "engine": "local", "chunk": 4}
        return make_config({"model": f"{MODELS}:{model}", "out": str(tmp_path / out), **usual, **settings})

    return make
