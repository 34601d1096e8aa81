"""Kills, full disks and revoked permissions: real processes, real file systems, the same rows in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from helpers import forked
from helpers.fake_models import GATE, MODELS
from helpers.kills import kills
from helpers.runs import all_bytes, all_rows
from helpers.scenes import write_scene
from helpers.typed import stormproof

STORMPROOF = [sys.executable, "-c", "from stormproof.cli import main; main()"]
IMAGES = 24  # two calls of the model each; what so many spells may do before their gates is fewer
STUCK = 600  # seconds after which a process is taken to hang: no bar, only an end


def command(spec: str, out: Path, *more: str) -> list[str]:
    return [*STORMPROOF, "run", "--model", f"{MODELS}:gated_boxes", "--data", spec, "--conditions", "noise",
            "--chunk", "1", "--out", str(out), *more]  # fmt: skip


def finish(run: list[str], here: Path) -> None:
    """A run with an open gate, to its end: in this process, which has everything loaded."""
    (here / GATE).touch()
    with chdir(here):
        done = stormproof(*run[len(STORMPROOF) :])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def long_scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("long") / "coco", images=IMAGES)


def test_a_killed_run_is_continued_to_the_same_bytes(long_scene: str, here: Path) -> None:
    out, short = here / "stormy", ("--engine", "local", "--limit", "12")
    _kill_after_a_while(command(long_scene, out, *short), out, random.Random(3))
    assert len(list((out / "parts").glob("part-*"))) < 12
    for place in (out, here / "calm"):
        finish(command(long_scene, place, *short), here)
    assert all_bytes(out) == all_bytes(here / "calm")
    assert all_rows(out).num_rows == 12 * 16


@pytest.mark.slow
def test_kills_of_run_and_workers_change_nothing(long_scene: str, here: Path) -> None:
    dice, out = random.Random(5), here / "stormy"
    parts = []
    for _ in range(2):  # a pool, and a pool that continues
        _kill_after_a_while(command(long_scene, out, "--workers", "2"), out, dice)
        parts.append(len(list((out / "parts").glob("part-*"))))
    assert parts[0] <= parts[1] < IMAGES, f"parts grew as {parts}: kills must fall into the run"
    assert parts[1], "the second kill must come after a part"
    finish(command(long_scene, out, "--workers", "2"), here)
    finish(command(long_scene, here / "calm", "--engine", "local"), here)
    assert all_bytes(out) == all_bytes(here / "calm")
    assert all_rows(out).num_rows == IMAGES * 16
    assert not list(out.rglob("*.tmp"))


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_nothing(here: Path) -> None:
    """Forked from a process that has loaded everything: a kill costs what is killed, not a start."""
    assert {*kills("pool", 10, seed=5, folder=here)} == {("same bytes", "")}


def _kill_after_a_while(run: list[str], out: Path, dice: random.Random) -> None:
    """Start a run, kill it at a random moment, and see that its workers end too.

    It cannot finish, since it stops at its gate; so nothing depends on when the moment is.
    """
    sign = dice.choice(["*", "part-*", "part-*"])  # from the first file begun, or the first one finished
    before = {*(out / "parts").glob(sign)}
    process = subprocess.Popen(
        run, cwd=out.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    _wait(lambda: not {*(out / "parts").glob(sign)} <= before, lambda: process.poll() is not None)
    time.sleep(dice.uniform(0.0, 0.25))
    process.kill()
    process.wait()
    _wait_for_silence(process.pid)


def _wait(happened: Callable[[], bool], ended: Callable[[], bool] = lambda: False) -> None:
    """Wait until it has happened; fail if the process exits before."""
    deadline = time.monotonic() + STUCK
    while not happened():
        assert not ended(), "the run ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def _wait_for_silence(group: int) -> None:
    """Until no process of a group is left; workers must not outlive a run that was killed."""

    def silent() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    _wait(silent)


def _has_parts(out: Path) -> bool:
    return bool([*(out / "parts").glob("part-*")])


@pytest.mark.slow
def test_ctrl_c_prints_how_to_continue(long_scene: str, here: Path) -> None:
    """Pressed while a run, which has written a part, waits at its gate."""
    process = subprocess.Popen(
        command(long_scene, here / "run", "--engine", "pool", "--workers", "1"),
        cwd=here,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell's background jobs ignore it
    )
    _wait(lambda: _has_parts(here / "run"), lambda: process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=STUCK)
    assert process.returncode == 130
    assert "Stopped; finished chunks are kept." in errors
    assert f"Continue with: stormproof run --model {MODELS}:gated_boxes" in errors
    assert "Traceback" not in errors
    _wait_for_silence(process.pid)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, 128 KiB large."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


@pytest.mark.slow
def test_a_full_disk_loses_nothing(long_scene: str, small_disk: Path, here: Path) -> None:
    out, calm, local = small_disk / "run", here / "calm", ("--limit", "16", "--engine", "local")
    run = command(long_scene, out, *local)
    (here / GATE).touch()
    code, said = forked.outcome(run[len(STORMPROOF) :], here)
    assert code == 2
    assert "No space left on device" in said
    assert "Continue with: stormproof run" in said
    assert "Traceback" not in said
    kept = all_bytes(out)
    assert 0 < len(kept) < 16
    _mount("-o", "remount,size=16m", small_disk)
    finish(run, here)
    finish(command(long_scene, calm, *local), here)
    assert all_bytes(out) == all_bytes(calm)
    assert kept.items() <= all_bytes(out).items()


@pytest.mark.slow
def test_revoked_permission_loses_nothing(
    long_scene: str, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small_disk)  # where the run waits at its gate
    _mount("-o", "remount,size=32m", small_disk)
    out, shield = small_disk / "run", small_disk / "shield"
    shield.mkdir()
    run = command(long_scene, out, "--limit", "20")
    process = forked.start(run[len(STORMPROOF) :], small_disk / "said")
    _wait(lambda: _has_parts(out), lambda: process.exitcode is not None)
    # A read-only view over the folder: root ignores permission bits, but not this. It is made elsewhere and
    # laid over in one step, since a mount on which a worker writes cannot become read-only.
    _mount("--bind", out, shield)
    _mount("-o", "remount,bind,ro", shield)
    _mount("--bind", shield, out)
    try:
        (small_disk / GATE).touch()
        code = forked.end(process, STUCK)
        kept = all_bytes(out)
    finally:
        subprocess.run(["umount", "-l", str(out)], check=True)
        subprocess.run(["umount", "-l", str(shield)], check=True)
    said = (small_disk / "said").read_text()
    assert code == 2, said
    assert "Read-only file system" in said
    assert "Continue with: stormproof run" in said
    finish([*run, "--engine", "local"], small_disk)
    assert all_rows(out).num_rows == 20 * 16
    assert kept.items() <= all_bytes(out).items()
