"""Trainings side by side: one that breaks is tried once more and stops no other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from training import parallel

RENDER = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
(folder / "pool.json").touch()
time.sleep(600)  # until it is ended
"""


def stand_in(started: list[list[str]]) -> object:
    """Processes as the order says: `steady` works, `shaky` with a small batch only, `lost` never."""

    def start(order: Sequence[str], nice: int = 0, path: str = "") -> subprocess.Popen[bytes]:
        started.append(list(order))
        if order[0] == "render":
            return subprocess.Popen([sys.executable, "-c", RENDER, str(Path(order[1]) / "train")])
        works = order[1] == "steady" or (order[1] == "shaky" and "--batch" in order)
        return subprocess.Popen([sys.executable, "-c", f"raise SystemExit({0 if works else 3})"])

    return start


def test_a_training_that_breaks_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(parallel, "_start", stand_in(started))
    names = ["steady", "shaky", "lost"]
    codes = parallel.train_all(names, tmp_path, tmp_path / "out", scenes=(8, 2), seconds=3600.0)
    assert codes == {"steady": 0, "shaky": 0, "lost": 3}
    assert [order[1] for order in started[1:]].count("lost") == 2
    assert [order[1] for order in started[1:]].count("steady") == 1


def test_reports_a_renderer_that_exits_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(order: Sequence[str], nice: int = 0, path: str = "") -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])

    monkeypatch.setattr(parallel, "_start", dead)
    with pytest.raises(RuntimeError, match="Rendering ended"):
        parallel.train_all(["steady"], tmp_path, tmp_path, scenes=(8, 2), seconds=3600.0)
