"""The study of pairs keeps its scores, and its simulation counts families."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "together"


@pytest.fixture
def chance(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("chance")


def test_simulated_families_are_counted(chance: ModuleType) -> None:
    for simulated in (chance.sums, chance.precisions):
        scores = simulated(np.random.default_rng(0), 50)
        pairs = [text for text in scores.conditions if "+" in text]
        assert len(chance.interactions(scores, scores.headline)) == len(pairs)
    worse, _, one_by_one = chance.shares(chance.sums, 50, 3)
    assert worse <= one_by_one


def test_scores_are_kept_with_their_intervals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "study", raising=False)  # every study has one of that name
    study = importlib.import_module("study")
    monkeypatch.delitem(sys.modules, "study")
    kept = study.read(FOLDER / "scores.npz")
    study.write(tmp_path / "again.npz", kept)
    again = study.read(tmp_path / "again.npz")
    for name, found in study.found_in(kept).items():
        assert len(found) == 87
        others = {one.condition: one for one in study.found_in(again)[name]}
        for one in found[:5]:
            assert others[one.condition].beyond["sum"].low == pytest.approx(one.beyond["sum"].low, abs=1e-3)
