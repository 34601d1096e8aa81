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
from stormproof.results.scores import Scores

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


def toy_scores(name: str = "net", measure: str = "AP", *, clean: float = 0.4, **more: Any) -> Scores:
    """Scores made by hand: fog falls from the clean score by 0.02 a severity, snow by 0.06."""
    cells = {"clean": clean}
    cells |= {f"fog@{s}": clean - 0.02 * s for s in SEVERITIES}
    cells |= {f"snow@{s}": clean - 0.06 * s for s in SEVERITIES}
    return replace(Scores(name, "toy", 500, {measure: cells}, tuple(cells)), **more)


def weather_scores(name: str = "net", clean: float = 0.4) -> Scores:
    """The same over a whole suite, so that its mean is mPC: frost falls like fog, brightness not at all."""
    made = toy_scores(name, clean=clean)
    cells = {**made.cells["AP"]}
    cells |= {f"frost@{s}": clean - 0.02 * s for s in SEVERITIES}
    cells |= {f"brightness@{s}": clean for s in SEVERITIES}
    return replace(made, cells={"AP": cells}, conditions=tuple(cells))
