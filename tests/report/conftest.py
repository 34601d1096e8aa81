"""Tiny runs to report on, made once per session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import SCRIPT, rename_classes, rename_model
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from stormproof.engine.config import make_config
from stormproof.engine.run import run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two detectors on one hostile scene, and a segmenter on a street."""
    folder = tmp_path_factory.mktemp("reported")
    scene, street = write_scene(folder / "scene", images=6), write_street(folder / "street", images=3)
    rename_classes(scene)
    found = {}
    for name, model, data in (
        ("boxes", "contrast_boxes", scene),
        ("masks", "contrast_masks", scene),
        ("maps", "thresholds", street),
    ):
        settings: dict[str, Any] = {"tags": {"backbone": name}, "engine": "local"}
        out = folder / name
        conditions = ["fog,gaussian_noise"]
        run(
            make_config(
                {
                    "model": f"{MODELS}:{model}",
                    "data": data,
                    "conditions": conditions,
                    "out": str(out),
                    **settings,
                }
            )
        )
        found[name] = out
    rename_model(found["boxes"], SCRIPT)
    return found
