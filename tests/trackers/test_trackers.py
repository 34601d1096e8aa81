"""Trackers told of a real run, with stand-ins in place of the tracking services."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from engine.conftest import MODELS
from engine.scenes import write_scene
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.errors import MissingExtra, UnknownName
from stormproof.store.record import read_record
from stormproof.trackers import TRACKERS, open_tracker


class Notebook(ModuleType):
    """Stands in for a tracking package: every call is written down."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def noted(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            page = SimpleNamespace(summary=SimpleNamespace(update=lambda d: noted_as("summary", d)))
            for verb in ("log", "finish", "add_scalar", "add_text", "close"):
                setattr(page, verb, lambda *a, _verb=verb, **o: self.calls.append((_verb, a, o)))
            return page

        def noted_as(verb: str, value: Any) -> None:
            self.calls.append((verb, (value,), {}))

        return noted

    def values(self, verb: str) -> list[Any]:
        return [args[0] for name, args, _ in self.calls if name == verb and args]


PACKAGES = {"mlflow": "mlflow", "wandb": "wandb", "tensorboard": "tensorboardX"}


@pytest.fixture
def tracked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Notebook:
    """A small run and one round of scores, told to the tracker the test names."""
    notebook = Notebook(PACKAGES[request.param])
    monkeypatch.setitem(sys.modules, PACKAGES[request.param], notebook)
    settings = {"model": f"{MODELS}:brightness_boxes", "data": write_scene(tmp_path / "scene", images=4),
                "out": str(tmp_path / "run"), "conditions": ["fog@1"], "engine": "local", "chunk": 2,
                "tags": {"backbone": "r50"}}  # fmt: skip
    tracker = open_tracker(request.param)
    run(make_config(settings), [tracker])
    tracker.scored(read_record(tmp_path / "run"), {"AP/mPC": 0.25, "AP/fog@1": 0.5})
    return notebook


@pytest.mark.parametrize("tracked", ["mlflow"], indirect=True)
def test_mlflow_gets_progress_and_scores(tracked: Notebook) -> None:
    assert tracked.values("log_params")[0]["tag.backbone"] == "r50"
    logged = tracked.values("log_metrics")
    assert logged[:2] == [{"cells/done": 4, "cells/failed": 0}, {"cells/done": 8, "cells/failed": 0}]
    assert logged[-1] == {"AP/mPC": 0.25, "AP/fog-1": 0.5}
    assert tracked.values("end_run") == ["FINISHED", "FINISHED"]


@pytest.mark.parametrize("tracked", ["wandb"], indirect=True)
def test_wandb_gets_progress_and_scores(tracked: Notebook) -> None:
    assert tracked.values("log")[-1] == {"cells/done": 8, "cells/failed": 0}
    assert tracked.values("summary")[-1] == {"AP/mPC": 0.25, "AP/fog@1": 0.5}
    made = next(options for name, _, options in tracked.calls if name == "init")
    assert made["config"]["model"] == "brightness_boxes"


@pytest.mark.parametrize("tracked", ["tensorboard"], indirect=True)
def test_tensorboard_gets_progress_and_scores(tracked: Notebook) -> None:
    scalars = [args for name, args, _ in tracked.calls if name == "add_scalar"]
    assert ("cells/done", 8, 2) in scalars
    assert ("AP/mPC", 0.25, 0) in scalars
    assert sum(name == "close" for name, _, _ in tracked.calls) == 2


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_names_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(MissingExtra, match=rf"pip install 'stormproof\[{name}\]'"):
        open_tracker(name)


def test_an_unknown_tracker_is_said() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'mlflow'"):
        open_tracker("mflow")
