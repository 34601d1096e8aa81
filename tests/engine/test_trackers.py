"""Trackers told of a real run, with stand-ins in place of the tracking services."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from helpers.fake_models import MODELS
from helpers.scenes import write_scene
from stormproof.core.errors import MissingExtra, RunError, UnknownName
from stormproof.core.loading import install_extra
from stormproof.engine.config import RunConfig, make_config
from stormproof.engine.run import run
from stormproof.engine.trackers import TRACKERS, open_tracker
from stormproof.results.store.record import read_record


class Notebook(ModuleType):
    """Stands in for a tracking package: every call is written down."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.broken: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def noted(*args: Any, **options: Any) -> Any:
            if name in self.broken:
                raise ConnectionError(f"{name} is out of reach.\nA page of advice follows")
            if name.startswith("log_"):  # MLflow refuses all other signs
                assert all(re.fullmatch(r"[\w./: -]+", key) for key in args[0])
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


def small_run(folder: Path) -> RunConfig:
    settings = {"model": f"{MODELS}:brightness_boxes", "data": write_scene(folder / "scene", images=4),
                "out": str(folder / "run"), "conditions": ["fog@1"], "engine": "local", "chunk": 2,
                "tags": {"backbone": "r50", "crops?": "no"}}  # fmt: skip
    return make_config(settings)


@pytest.fixture
def tracked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Notebook:
    """A small run and one round of scores, told to the tracker the test names."""
    notebook = Notebook(PACKAGES[request.param])
    monkeypatch.setitem(sys.modules, PACKAGES[request.param], notebook)
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "events"))
    tracker = open_tracker(request.param)
    run(small_run(tmp_path), [tracker])
    tracker.scored(read_record(tmp_path / "run"), {"AP/mPC": 0.25, "AP/fog@1": 0.5})
    return notebook


@pytest.mark.parametrize("tracked", ["mlflow"], indirect=True)
def test_mlflow_gets_progress_and_scores(tracked: Notebook) -> None:
    assert tracked.values("log_params")[0]["tag.backbone"] == "r50"
    assert tracked.values("log_params")[0]["tag.crops-"] == "no"
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


def test_tensorboard_keeps_runs_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TensorBoard joins all that lies in one folder into one curve, which then runs to and fro."""
    notebook = Notebook("tensorboardX")
    monkeypatch.setitem(sys.modules, "tensorboardX", notebook)
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "events"))
    config = small_run(tmp_path)
    for _ in range(2):
        run(config, [open_tracker("tensorboard")])
    open_tracker("tensorboard").scored(read_record(tmp_path / "run"), {"AP/mPC": 0.25})
    home = tmp_path / "events" / "brightness_boxes on instances"
    assert notebook.values("SummaryWriter") == [
        str(home / "run 1"),
        str(home / "run 2"),
        str(home / "scores 1"),
    ]


def test_reports_an_unreachable_service_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = Notebook("mlflow")
    notebook.broken = {"set_experiment"}
    monkeypatch.setitem(sys.modules, "mlflow", notebook)
    with pytest.raises(RunError, match=r"--track mlflow failed: set_experiment is out of reach. Fix"):
        run(small_run(tmp_path), [open_tracker("mlflow")])


def test_a_run_outlives_its_tracker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = Notebook("mlflow")
    notebook.broken = {"log_metrics"}
    monkeypatch.setitem(sys.modules, "mlflow", notebook)
    with pytest.warns(UserWarning, match="mlflow failed, the run continues without it") as warned:
        summary = run(small_run(tmp_path), [open_tracker("mlflow")])
    assert summary.complete
    assert len(warned) == 1


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_names_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(MissingExtra, match=re.escape(install_extra(name))):
        open_tracker(name)


def test_refuses_an_unknown_tracker() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'mlflow'"):
        open_tracker("mflow")
