"""The studies of intervals and of the estimator still run: small sets, and what they print."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from helpers.runs import Make

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "confidence"


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)  # where a script finds its neighbours
    module = importlib.import_module("interval_coverage")
    monkeypatch.setattr(module, "REPLICATES", 20)
    return module


@pytest.fixture
def estimator(coverage: ModuleType) -> ModuleType:
    return importlib.import_module("estimator")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    module = importlib.import_module("false_passes")
    monkeypatch.setattr(module, "TRUTH_IMAGES", 400)
    monkeypatch.setattr(module, "REPLICATES", 20)
    return module


@pytest.mark.parametrize(("alone", "tables"), [(False, 3), (True, 2)])
def test_counts_outcomes_of_simulated_gates(
    gate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], alone: bool, tables: int
) -> None:
    place = gate.Place("photos", 8, alone)
    gate.truth(place)
    gate.sets(place, 40, range(2))
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["world"] for row in rows] == [0, 1, 2, 3, 0, 1]
    for interval in (interval for row in rows[4:] for interval in row["found"].values()):
        assert interval["low"] < interval["estimate"] < interval["high"]
        assert interval["images"] == 40
    (tmp_path / "rows.jsonl").write_text(printed)
    lines = list(gate.tables([tmp_path / "rows.jsonl"]))
    assert len([line for line in lines if line.startswith("| photos | 8 | 40 | 2 |")]) == tables
    assert lines[0].count("|") == lines[2].count("|")


def test_compares_halves_of_a_run(
    coverage: ModuleType, make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coverage.split([make("contrast_boxes")], range(2))
    printed = capsys.readouterr().out
    for row in map(json.loads, printed.splitlines()):
        assert row["images"] == 4
        assert row["found"]["mPC"]["within"] > 0
    (tmp_path / "rows.jsonl").write_text(printed)
    coverage.table([tmp_path / "rows.jsonl"])
    head, _, line = capsys.readouterr().out.splitlines()
    assert line.count("|") == head.count("|")


def test_compares_the_estimator_with_a_full_run(estimator: ModuleType, make: Make) -> None:
    run = make("contrast_boxes")
    full = estimator.Full.of(run, images=8, replicates=10)
    part, whole, stopped = estimator.lines(full, [4, 8], repetitions=3, precision=50)
    assert part.count("|") == stopped.count("|") == estimator.HEAD.count("|")
    assert "| until ± 50: 8 |" in stopped
    cells = [cell.strip() for cell in whole.split("|")[1:-1]]
    assert cells[3:] == ["8", "100.0 %", "+0.00", "0.00", "3 of 3", "0.00", "100 %"]


def test_counts_looks_at_growing_sets(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = importlib.import_module("looks")
    for name, value in (("REPLICATES", 20), ("_PATHS", 1000)):
        monkeypatch.setattr(looks, name, value)
    place = gate.Place("street", 8, True)
    gate.truth(place)
    looks.sets(place, range(2), images=60, looks=2)
    printed = capsys.readouterr().out
    ends = json.loads(printed.splitlines()[-1])["looks"]
    assert [len(ends[kind]["mPC"]) for kind in ("plain", "spent")] == [2, 2]
    plain, spent = (ends[kind]["mPC"][0] for kind in ("plain", "spent"))
    assert spent[0] < plain[0] < plain[1] < spent[1]  # an early look is stricter
    (tmp_path / "rows.jsonl").write_text(printed)
    looks.table([tmp_path / "rows.jsonl"])
    assert capsys.readouterr().out.count("| street | 8 | 2 |") == 3 * len(looks.BETTER)
    looks.spending()
    assert len(capsys.readouterr().out.splitlines()) == 3 + len(looks.SPENDING)


def test_tries_the_numbers_of_images_that_would_decide(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enough, truth = importlib.import_module("enough"), tmp_path / "truth.jsonl"
    monkeypatch.setattr(enough, "REPLICATES", 20)
    gate.truth(gate.Place("street", 8, True))
    truth.write_text(capsys.readouterr().out)
    enough.sets(truth, range(6), most=400)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(capsys.readouterr().out)
    assert len(rows.read_text().splitlines()) == 6
    enough.table([rows])
    assert capsys.readouterr().out.startswith("6 sets, ")


def test_counts_average_precision_near_0_and_1(gate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = importlib.import_module("ends")
    monkeypatch.setattr(ends, "REPLICATES", 20)
    truth = [{"AP": 0.99, "VOC07 AP50": 0.91}] * ends.WORLDS
    line = ends.line("street", 8, "nearly all", 30, truth, sets=2)
    assert line.startswith("| street | 8 | nearly all | 30 | 2 | 99.0 | 0.0 / 0.0 |")


def test_estimates_a_simulated_grid(estimator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    precision = importlib.import_module("precision")
    monkeypatch.setattr(precision, "WORLDS", {"small": ("street", 8, 20, 1.0, 1.0)})
    monkeypatch.setattr(precision, "CORRUPTIONS", ("fog", "snow"))
    monkeypatch.setattr(precision, "SEVERITIES", (1, 5))
    cells = [cell.strip() for cell in precision.line("small", 1, 5.0, (10,)).split("|")[1:-1]]
    assert cells[:2] == ["small", "20"]
    assert 10 < float(cells[2]) < 90
