"""What is printed holds no password and no key; what is passed on names no folder, as folders name people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app, console
from stormproof.cli.outcome import say_continue

_REQUIREMENT = "requirements: [{id: R1, metric: AP, condition: clean, at_least: 0.01}]\n"


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["stormproof", *words])  # which a run records
    done = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert done.exit_code in (0, 1), done.output  # 1: a requirement is not met


def test_pages_and_evidence_name_no_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model, the data and the run lie in a folder named after somebody, as the current one does."""
    private, out = tmp_path / "ada.lovelace", tmp_path / "passed-on"
    here = private / "work"
    data = write_scene(private / "scene", images=2)
    for folder in (here, out):
        folder.mkdir()
    model, run, rules = shutil.copy(MODELS, private / "model.py"), private / "run", private / "r.yaml"
    rules.write_text(_REQUIREMENT, encoding="utf-8")
    monkeypatch.chdir(here)
    call(monkeypatch, "run", "--model", f"{model}:contrast_boxes", "--data", data, "-c", "contrast@2",
         "--engine", "local", "--out", str(run))  # fmt: skip
    call(monkeypatch, "score", str(run))
    evidence = ("evidence", str(run), "--require", str(rules), "--pixels", "1")
    call(monkeypatch, *evidence, "--out", str(out / "evidence.json"))
    call(monkeypatch, "report", str(run), "--images", "1", "--out", str(out / "page.html"))
    shutil.rmtree(private / "scene")
    call(monkeypatch, "report", str(run), "--images", "1", "--out", str(out / "without-data.html"))
    assert "Images are not shown" in (out / "without-data.html").read_text(encoding="utf-8")
    files = sorted(path.name for path in out.rglob("*") if path.is_file())
    assert {"evidence.json", "page.html", "page.json", "without-data.html"} <= {*files}
    leaks = [path.name for path in out.rglob("*") if path.is_file() and b"lovelace" in path.read_bytes()]
    assert leaks == []


@pytest.mark.parametrize("speak", [console.say, console.note, console.warn, console.fail])
def test_no_line_of_a_command_holds_a_password_or_a_key(
    speak: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    speak("The model at http://somebody:pa55word@host/predict?api_key=k3y does not answer.")
    assert "http://host/predict does not answer." in "".join(capsys.readouterr())


def test_the_command_that_continues_a_run_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["stormproof", "run", "--model", "http://me:pa55word@host/x?api_key=k3y"]
    )
    say_continue()
    assert capsys.readouterr().err == "Continue with: stormproof run --model 'http://host/x?…'\n"
