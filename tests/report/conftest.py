"""Tiny runs to report on, made once per session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.scenes import write_scene, write_street
from report.hostile import SCRIPT, rename_classes, rename_model
from results.conftest import MODELS
from stormproof.core.condition import SEVERITIES
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.subject import Subject
from stormproof.results.aggregates import aggregates, grid_of

MakeRun = Callable[..., Path]


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


def subject(name: str = "net", measure: str = "AP", **more: Any) -> Subject:
    """A subject made by hand: fog falls from the clean score by 0.02 a severity, snow by 0.06."""
    clean = more.pop("clean", 0.4)
    scores = {"clean": clean}
    scores |= {f"fog@{s}": clean - 0.02 * s for s in SEVERITIES}
    scores |= {f"snow@{s}": clean - 0.06 * s for s in SEVERITIES}
    totals = aggregates(measure, grid_of(scores, tuple(scores)))
    made = Subject(name, name, "toy", 500, measure, {measure: scores}, {measure: totals})
    return replace(made, **more)
