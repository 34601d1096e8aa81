"""Pipes and devices in the place of every file that a command takes: one sentence, at once.

Each is a fresh process with a limit of time and memory, as a user would meet it.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.scenes import write_scene
from kills import MODELS
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it

pytestmark = pytest.mark.slow
SECONDS = 120  # of a process on a busy machine; a pipe would block for ever
MEMORY = 6 << 30  # bytes of address space


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


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))


def call(place: Path, *words: str, limit: Callable[[], None] = limited) -> tuple[int, str]:
    command = [sys.executable, "-m", "stormproof", *words]
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, cwd=place, preexec_fn=limit, check=False,
    )  # fmt: skip
    assert "Traceback" not in found.stderr, found.stderr
    return found.returncode, " ".join((found.stdout + found.stderr).split())


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


@pytest.mark.parametrize("file", ["pipe", "/dev/zero"])
@pytest.mark.parametrize("what", COMMANDS)
def test_what_never_ends_is_refused_in_a_sentence(place: Path, what: str, file: str) -> None:
    code, text = call(place, *(word.replace("FILE", file) for word in COMMANDS[what]))
    assert code in (1, 2)
    assert len(text) < 1000
    assert file in text


@pytest.mark.parametrize("name", ["run.json", "parts/part-000000.parquet", "failures/part-000000.json"])
@pytest.mark.parametrize("device", [False, True])
def test_a_pipe_in_a_run_folder_is_named(place: Path, tmp_path: Path, name: str, device: bool) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to("/dev/zero" if device else place / "pipe")
    code, text = call(place, "score", str(tmp_path / "run"))
    assert code == 2
    assert Path(name).name in text


@pytest.mark.parametrize("verb", ["score", "report"])
def test_with_few_descriptors_it_works_or_says_why(place: Path, verb: str) -> None:
    words = ("report", "run", "--out", "few.html") if verb == "report" else ("score", "run", "--interval")
    code, text = call(place, *words, limit=few_descriptors)
    assert code == 0 or "Too many open files" in text


def test_a_run_with_few_descriptors_works_or_says_why(place: Path, tmp_path: Path) -> None:
    data = (place / "spec").read_text()
    words = ("run", "--model", MODEL, "--data", data, "--conditions", "fog", "--out", str(tmp_path / "few"))
    code, text = call(place, *words, limit=few_descriptors)
    assert code == 0 or "open files" in text, text
