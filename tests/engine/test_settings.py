"""A setting is declared once, and shows on the command line, in Python and in run.yaml."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stormproof as sp
from helpers.runs import Configure
from stormproof.engine.config import SETTINGS, read_settings
from stormproof.engine.executors import ENGINES
from stormproof.engine.run import run


def test_every_setting_is_a_flag_with_its_help() -> None:
    from stormproof.cli import app

    runner = CliRunner()
    shown = " ".join(runner.invoke(app, ["run", "--help"], env={"COLUMNS": "400"}).stdout.split())
    for name, (_, setting) in SETTINGS.items():
        assert all(flag in shown for flag in setting.flags or (f"--{name.replace('_', '-')}",))
        assert setting.help.removesuffix(".") in shown
        assert setting.default_words in shown


def test_python_shows_every_setting_with_its_help() -> None:
    parameters = inspect.signature(sp.run).parameters
    assert [*parameters][:2] == ["model", "data"]
    assert set(parameters) == {*SETTINGS, "progress"}
    assert parameters["batch"].default == 8
    assert parameters["engine"].default == "pool"
    assert all(setting.help in str(sp.run.__doc__) for _, setting in SETTINGS.values())


def test_python_takes_every_setting(scene: str, tmp_path: Path) -> None:
    with pytest.raises(sp.StormproofError, match="'bacth' is not a setting; did you mean 'batch'"):
        sp.run("a.py:f", scene, out=tmp_path / "run", bacth=3)
    named = sp.run(
        lambda images: [{"boxes": [], "scores": [], "labels": []} for _ in images],
        scene, out=tmp_path / "run", conditions=[sp.Condition.parse("fog@3"), "contrast@1"], limit=2,
        chunk=1, expect={"AP": 0.5}, progress=False,
    )  # fmt: skip
    assert named.conditions == ("clean", "fog@3", "contrast@1")
    assert (named.record.chunk, named.record.expect) == (1, {"AP": 0.5})


def test_help_names_every_engine_of_ours() -> None:
    from stormproof.cli import app

    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).stdout
    words = next(line for line in shown.splitlines() if "Where chunks are run" in line)
    assert all(name in words for name in ENGINES)


def test_a_run_writes_every_setting_that_it_has(configure: Configure) -> None:
    config = configure(limit=1, name="mine")
    run(config)
    written = read_settings(Path(config.out) / "run.yaml")
    assert {*written} == {name for name, value in config if value is not None}
    assert written["name"] == "mine"
