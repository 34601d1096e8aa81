"""What a person at a shell meets: completion, the notice of compiling, one line on interruption."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.imagefile import write_image

SCRIPT = Path(sys.executable).parent / "stormproof"


def complete(line: str) -> list[str]:
    """What bash would be offered at the end of a line."""
    words = line.split(" ")
    asked = {"_STORMPROOF_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([SCRIPT], env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    return done.stdout.split()


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the installed command")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("stormproof corr", {"corrupt"}),
        ("stormproof run --benchmark coco", {"coco-c", "coco-camera"}),
        ("stormproof run --conditions snow@", {f"snow@{s}" for s in range(1, 6)}),
        ("stormproof run --conditions clean,imagenet", {"clean,imagenet-c", "clean,imagenet-c-bar"}),
    ],
)
def test_names_are_completed(line: str, offered: set[str]) -> None:
    assert {*complete(line)} == offered


@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the installed command")
def test_the_completion_script_is_printed() -> None:
    environment = {**os.environ, "_STORMPROOF_COMPLETE": "source_bash"}
    shown = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert "complete -o default -F _stormproof_completion stormproof" in shown.stdout


@pytest.mark.slow
def test_the_first_use_of_a_kernel_is_announced_once(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png", np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NO_COLOR": "1"}
    shown = []
    for name in ("cold.png", "warm.png"):
        words = ["corrupt", str(tmp_path / "a.png"), str(tmp_path / name), "-c", "gaussian_noise@3"]
        done = subprocess.run([sys.executable, "-m", "stormproof", *words], env=environment,
                              capture_output=True, text=True, check=True)  # fmt: skip
        shown.append(done.stderr.count("Compiling for this machine"))
    assert shown == [1, 0]


@pytest.mark.parametrize("verb", ["corrupt", "score"])
def test_an_interruption_is_one_line(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    import_module("stormproof.report.sources")  # else it would import what is patched here, and keep it
    write_image(tmp_path / "a.png", np.zeros((8, 8, 3), np.uint8))
    monkeypatch.setattr("stormproof.tools.corrupted_copies.make_all", interrupted)
    monkeypatch.setattr("stormproof.results.run.runs_in", interrupted)
    words = {"corrupt": [str(tmp_path), str(tmp_path / "out"), "-c", "fog@3"], "score": [str(tmp_path)]}
    done = CliRunner().invoke(app, [verb, *words[verb]])
    assert done.exit_code == 130
    said = [line for line in done.stderr.splitlines() if line.strip() and "images" not in line]
    assert said == ["error: Stopped."]
