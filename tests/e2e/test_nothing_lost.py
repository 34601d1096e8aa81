"""Kills, full disks and revoked permissions: real processes, real file systems, the same rows in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.conftest import MODELS, all_bytes, all_rows
from engine.scenes import write_scene

STORMPROOF = [sys.executable, "-c", "from stormproof.cli import main; main()"]
KILLS = 20
IMAGES = 100  # at least 40 ms of work each, so that twenty short spells cannot finish them


def command(spec: str, out: Path, *more: str) -> list[str]:
    return [*STORMPROOF, "run", "--model", f"{MODELS}:slow_boxes", "--data", spec, "--suite", "noise",
            "--chunk", "1", "--out", str(out), *more]  # fmt: skip


@pytest.fixture(scope="module")
def long_scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("long") / "coco", images=IMAGES)


@pytest.mark.slow
def test_twenty_kills_change_nothing(long_scene: str, tmp_path: Path) -> None:
    subprocess.run(command(long_scene, tmp_path / "calm"), check=True, capture_output=True, timeout=120)
    dice, out = random.Random(5), tmp_path / "stormy"
    parts = []
    for kill in range(KILLS):
        engine = ("--engine", "local") if kill % 4 else ("--workers", "2")
        _kill_after_a_while(command(long_scene, out, *engine), out, dice)
        parts.append(len(list((out / "parts").glob("part-*"))) if out.exists() else 0)
    assert 0 < parts[KILLS // 2] <= parts[-1] < IMAGES, f"parts grew as {parts}: kills must fall into the run"
    subprocess.run(command(long_scene, out), check=True, capture_output=True, timeout=120)
    assert all_bytes(out) == all_bytes(tmp_path / "calm")
    assert all_rows(out).num_rows == IMAGES * 16
    assert not list(out.rglob("*.tmp"))


def _kill_after_a_while(run: list[str], out: Path, dice: random.Random) -> None:
    """Start a run, let it work for a random moment, kill it, and see that its workers end too."""
    process = subprocess.Popen(
        run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    sign = dice.choice(["*", "part-*", "part-*"])  # from the first file begun, or the first one finished
    before = {*(out / "parts").glob(sign)}
    deadline = time.monotonic() + 20
    while {*(out / "parts").glob(sign)} <= before and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(dice.uniform(0.0, 0.25))
    process.kill()
    process.wait()
    _wait_for_silence(process.pid)


def _wait_for_silence(group: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("workers outlived the run that was killed")


def test_ctrl_c_says_how_to_go_on(long_scene: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        command(long_scene, out), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for_part(out, process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Stopped; what was finished is kept." in errors
    assert f"Continue with: stormproof run --model {MODELS}:slow_boxes" in errors
    assert "Traceback" not in errors
    _wait_for_silence(process.pid)


def _wait_for_part(out: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30
    while not list((out / "parts").glob("part-*")):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, a quarter of a megabyte large."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def test_a_full_disk_loses_nothing(long_scene: str, small_disk: Path, tmp_path: Path) -> None:
    out, calm = small_disk / "run", tmp_path / "calm"
    full = subprocess.run(
        command(long_scene, out, "--limit", "40"), capture_output=True, text=True, check=False, timeout=60
    )
    assert full.returncode == 2
    assert "No space left on device" in full.stderr
    assert "Continue with: stormproof run" in full.stderr
    assert "Traceback" not in full.stderr
    kept = all_bytes(out)
    assert 0 < len(kept) < 40
    _remount(small_disk, "size=16m")
    subprocess.run(command(long_scene, out, "--limit", "40"), check=True, capture_output=True, timeout=60)
    subprocess.run(command(long_scene, calm, "--limit", "40"), check=True, capture_output=True, timeout=60)
    assert all_bytes(out) == all_bytes(calm)
    assert kept.items() <= all_bytes(out).items()


def test_revoked_permission_loses_nothing(long_scene: str, small_disk: Path) -> None:
    _remount(small_disk, "size=32m")
    out = small_disk / "run"
    run = command(long_scene, out, "--limit", "60")
    process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True)
    _wait_for_part(out, process)
    # A read-only bind over the folder: root ignores permission bits, but not this.
    for options in (["--bind", str(out), str(out)], ["-o", "remount,bind,ro", str(out)]):
        subprocess.run(["mount", *options], check=True)
    try:
        _, errors = process.communicate(timeout=30)
        kept = all_bytes(out)
    finally:
        subprocess.run(["umount", "-l", str(out)], check=True)
    assert process.returncode == 2, errors
    assert "Read-only file system" in errors
    assert "Continue with: stormproof run" in errors
    subprocess.run(run, check=True, capture_output=True, timeout=60)
    assert all_rows(out).num_rows == 60 * 16
    assert kept.items() <= all_bytes(out).items()
