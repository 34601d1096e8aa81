"""The studies of intervals and of the estimator still run: small sets, and what they print."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from results.conftest import Make

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "confidence"


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)  # where a script finds its neighbours
    module = importlib.import_module("interval_coverage")
    monkeypatch.setattr(module, "POPULATION", 400)
    monkeypatch.setattr(module, "REPLICATES", 20)
    return module


@pytest.fixture
def estimator(coverage: ModuleType) -> ModuleType:
    return importlib.import_module("estimator")


def test_simulated_intervals_hold_their_estimates(
    coverage: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coverage.simulate(100, range(1))
    printed = capsys.readouterr().out
    (row,) = map(json.loads, printed.splitlines())
    assert (row["images"], row["trial"]) == (100, 0)
    assert {"mPC", "ΔmPC", "mIoU, mPC"} <= set(row["found"])
    for interval in row["found"].values():
        assert interval["low"] < interval["estimate"] < interval["high"]
    (tmp_path / "rows.jsonl").write_text(printed)
    coverage.table([tmp_path / "rows.jsonl"])
    head, _, line = capsys.readouterr().out.splitlines()
    assert line.startswith("| 8 classes | 100 | 1 |")
    assert line.count("|") == head.count("|")


def test_halves_of_a_run_are_compared(
    coverage: ModuleType, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make("contrast_boxes")
    coverage.split([run], range(2))
    for row in map(json.loads, capsys.readouterr().out.splitlines()):
        assert row["images"] == 4
        gap = row["found"]["mPC"]
        assert gap["low"] < gap["estimate"] < gap["high"]


def test_the_estimator_is_held_against_a_full_run(estimator: ModuleType, make: Make) -> None:
    run = make("contrast_boxes")
    full = estimator.Full.of(run, images=8, replicates=10)
    part, whole, stopped = estimator.lines(full, [4, 8], repetitions=3, precision=50)
    assert part.count("|") == stopped.count("|") == estimator.HEAD.count("|")
    assert "| until ± 50: 8 |" in stopped
    cells = [cell.strip() for cell in whole.split("|")[1:-1]]
    assert cells[3:] == ["8", "100.0 %", "+0.00", "0.00", "3 of 3", "0.00", "100 %"]
