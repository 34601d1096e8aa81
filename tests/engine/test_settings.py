"""A setting is declared once, and shows on the command line, in Python and in run.yaml."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

import stormproof as sp
from helpers.runs import Configure
from stormproof.cli.settings import with_settings
from stormproof.engine.api import signature
from stormproof.engine.config import RunConfig, Setting, read_settings, settings_of
from stormproof.engine.executors import ENGINES
from stormproof.engine.run import run


class Lamp(RunConfig):
    """The settings of a run, and two more."""

    colour: Annotated[str, Setting("The colour of the lamp.", flags=("--colour", "-k"))] = "red"
    wires: Annotated[dict[str, int], Setting("One wire, e.g. earth=2.")] = {}  # noqa: RUF012


def test_a_new_setting_shows_on_the_command_line() -> None:
    app, given = typer.Typer(), dict[str, Any]()

    def light(settings: dict[str, Any], dry: bool = False) -> None:
        """Light a lamp."""
        given.update(settings, dry=dry)

    app.command()(with_settings(light, Lamp))

    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "160"}).stdout
    for words in (
        "Light a lamp.",
        "--colour",
        "-k",
        "The colour of the lamp.",
        "Default: red.",
        "--wires",
        "--dry",
    ):
        assert words in shown
    assert CliRunner().invoke(app, ["-k", "blue", "--wires", "earth=2", "--dry"]).exit_code == 0
    assert (given["colour"], given["wires"], given["dry"]) == ("blue", {"earth": "2"}, True)
    assert given["seed"] is None


def test_a_new_setting_is_a_python_keyword() -> None:
    colour = signature(Lamp).parameters["colour"]
    assert (colour.kind, colour.default, colour.annotation) == (colour.KEYWORD_ONLY, "red", str)


def test_a_new_setting_can_be_set_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    settings = {"model": "a.b:c", "data": "images:x", "out": "o", "colour": "green"}
    path.write_text(yaml.safe_dump(settings))
    assert read_settings(path, Lamp) == settings
    assert Lamp.model_validate(settings).model_dump(mode="json")["colour"] == "green"
    with pytest.raises(sp.StormproofError, match="'colour' is not a setting"):
        read_settings(path)


def test_python_shows_every_setting_with_its_help() -> None:
    parameters = inspect.signature(sp.run).parameters
    assert [*parameters][:2] == ["model", "data"]
    assert set(parameters) == {*RunConfig.model_fields, "progress"}
    assert parameters["batch"].default == 8
    assert parameters["engine"].default == "pool"
    assert all(setting.help in str(sp.run.__doc__) for _, setting in settings_of(RunConfig).values())


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
