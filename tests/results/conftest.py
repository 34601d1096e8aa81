"""Runs to score: made by tiny models on tiny photos, once per session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.scenes import write_scene, write_street
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results import verdicts

MODELS = Path(__file__).with_name("scored_models.py")
Make = Callable[..., Path]


@pytest.fixture(scope="package", autouse=True)
def _eight_images_decide() -> Iterator[None]:
    """Verdicts are tested on runs of eight images, which are too few for a user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "FEWEST", 2)
        yield


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Run a model of `scored_models` on boxes or label maps; the folder of the run comes back."""
    folder = tmp_path_factory.mktemp("scored")
    data = {"scene": write_scene(folder / "scene", images=8), "street": write_street(folder / "street")}

    def made(model: str, on: str = "scene", name: str = "", **settings: Any) -> Path:
        out = folder / f"{name or model}-{on}"
        usual = {"conditions": ["fog,gaussian_noise"], "engine": "local"}
        run(
            make_config(
                {"model": f"{MODELS}:{model}", "data": data[on], "out": str(out), **usual, **settings}
            )
        )
        return out

    return made
