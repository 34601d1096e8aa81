"""Files appear whole: what killed writers leave is removed, what living ones write is left alone."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from stormproof.core.files import sweep, sweep_below, whole_file, write_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove open files")
DIES = """
import os, signal, sys
from pathlib import Path
from typing import Any
from stormproof.core.files import whole_file
with whole_file(Path(sys.argv[1]), durable=sys.argv[2] == "durable") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def be_killed(path: Path, kind: str = "durable") -> Path:
    """A process that is killed while it writes; returns what it leaves."""
    subprocess.run([sys.executable, "-c", DIES, str(path), kind], check=False)
    (left,) = (each for each in path.parent.iterdir() if each.suffix == ".tmp")
    return left


@pytest.mark.parametrize("name", ["run.json", "frost@3[textures=a].json", "a*b"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path, name: str) -> None:
    be_killed(tmp_path / name)
    write_text(tmp_path / name, "whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_sweeping_a_folder_removes_what_was_left(tmp_path: Path) -> None:
    be_killed(tmp_path / "image.png", "quick")
    sweep_below(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_being_written_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "clean.json"
    with whole_file(path) as file:
        file.write(b"first")
        sweep(path)
        sweep_below(tmp_path)
        write_text(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["clean.json"]


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path, errors = tmp_path / "clean.json", []

    def write_often(text: str) -> None:
        try:
            for _ in range(100):
                write_text(path, text * 100)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write_often, args=(text,)) for text in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert path.read_text() in {text * 100 for text in "abcd"}
    assert [each.name for each in tmp_path.iterdir()] == ["clean.json"]


def test_a_sweep_spares_a_new_file_under_the_name_of_a_swept_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = tmp_path / ".clean.json.0123456789ab.tmp"
    stale.write_text("swept by another process before its writer had locked it")
    lock = fcntl.flock

    def lock_late(file: Any, how: int) -> None:
        stale.unlink()
        stale.write_text("begun again by its writer")
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    sweep(tmp_path / "clean.json")
    assert stale.read_text() == "begun again by its writer"
