"""Pipes and devices in the place of every file that a command takes: one sentence, at once.

Each is a process of its own with a limit of time and memory.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from helpers import forked
from helpers.kills import MODELS
from helpers.scenes import write_scene
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, a run of it, and a pipe that nobody writes to."""
    folder = tmp_path_factory.mktemp("hostile")
    data = write_scene(folder / "scene", images=2)
    settings = {
        "model": f"{MODELS}:brightness_boxes",
        "data": data,
        "conditions": ["fog@2"],
        "engine": "local",
    }
    run_it(make_config({**settings, "out": str(folder / "run")}))
    (folder / "spec").write_text(data)
    os.mkfifo(folder / "pipe")
    return folder


MODEL = f"{MODELS}:brightness_boxes"
COMMANDS = {
    "dataset": ("run", "--model", MODEL, "--data", "coco:FILE", "--conditions", "clean", "--out", "o"),
    "images": ("run", "--model", MODEL, "--data", "images:FILE", "--conditions", "clean", "--out", "o"),
    "tar": ("run", "--model", MODEL, "--data", "tar:FILE", "--conditions", "clean", "--out", "o"),
    "yolo": ("inspect", "yolo:FILE"),
    "model": (
        "run",
        "--model",
        "onnx:FILE",
        "--data",
        "world:val,count=1",
        "--conditions",
        "clean",
        "--out",
        "o",
    ),
    "results": ("run", "--model", "results:FILE", "--data", "world:val,count=1", "--out", "o"),
    "plan": ("run", "--config", "FILE"),
    "requirements": ("check", "run", "--require", "FILE"),
    "submission": ("leaderboard", "verify", "FILE", "--model", MODEL, "--data", "world:val,count=1"),
    "evidence": ("verify", "run", "--evidence", "FILE"),
    "report": ("report", "FILE", "--out", "r.html"),
}


FILES = ("pipe", "/dev/zero")  # a pipe that nobody writes to blocks for ever; a device never ends
NAMES = ("run.json", "parts/part-000000.parquet", "failures/part-000000.json")


@pytest.fixture(scope="module")
def outcomes(place: Path) -> dict[tuple[str, str], tuple[int | None, str]]:
    """What comes of every command with each file: its exit code and its text, in one line."""
    words = {
        (what, file): [word.replace("FILE", file) for word in command]
        for what, command in COMMANDS.items()
        for file in FILES
    }
    for number, (name, file) in enumerate(product(NAMES, FILES)):
        run = place / f"run-{number}"
        shutil.copytree(place / "run", run)
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(place / file)
        words[name, file] = ["score", str(run)]
    found = {key: forked.outcome(line, place, memory=forked.MEMORY) for key, line in words.items()}
    return {key: (code, " ".join(text.split())) for key, (code, text) in found.items()}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("what", COMMANDS)
def test_refuses_pipes_and_devices_in_a_sentence(outcomes: Any, what: str, file: str) -> None:
    code, text = outcomes[what, file]
    assert code in (1, 2), text
    assert "Traceback" not in text
    assert len(text) < 1000
    assert file in text


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_in_a_run_folder_is_named(outcomes: Any, name: str, file: str) -> None:
    code, text = outcomes[name, file]
    assert code == 2, text
    assert "Traceback" not in text
    assert Path(name).name in text


@pytest.mark.parametrize("verb", ["report", "run"])  # a report scores too
def test_with_few_file_descriptors_it_works_or_says_why(place: Path, tmp_path: Path, verb: str) -> None:
    """In a fresh process, since importing opens files too."""
    out, data = str(tmp_path / "out"), (place / "spec").read_text()
    words = {
        "report": ("run", "--out", f"{out}.html"),
        "run": ("--model", MODEL, "--data", data, "--conditions", "fog", "--out", out),
    }[verb]
    found = subprocess.run(
        [sys.executable, "-m", "stormproof", verb, *words],
        capture_output=True, text=True, cwd=place, preexec_fn=few_descriptors, check=False,
        timeout=forked.STUCK,
    )  # fmt: skip
    assert "Traceback" not in found.stderr, found.stderr
    assert found.returncode == 0 or "open files" in " ".join(found.stderr.split()), found.stderr


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
