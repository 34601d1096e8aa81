"""The study of pairs keeps its scores, and its simulation counts families."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stormproof.results.scores import Replicates

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "together"


@pytest.fixture
def chance(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("chance")


def test_counts_sentences_in_simulated_families(chance: ModuleType) -> None:
    for simulated in (chance.sums, chance.precisions):
        scores = simulated(np.random.default_rng(0), 50)
        pairs = [text for text in scores.conditions if "+" in text]
        assert len(chance.interactions(scores, scores.headline)) == len(pairs)
    worse, _, one_by_one = chance.shares(chance.sums, 50, 3)
    assert worse <= one_by_one


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "study", raising=False)  # every study has one of that name
    made = importlib.import_module("study")
    monkeypatch.delitem(sys.modules, "study")
    return made


def test_scores_are_stored_with_their_intervals(study: ModuleType, tmp_path: Path) -> None:
    kept = study.read(FOLDER / "scores.npz")
    study.write(tmp_path / "again.npz", kept)
    again = study.read(tmp_path / "again.npz")
    for name, found in study.found_in(kept).items():
        assert len(found) == 87
        others = {one.condition: one for one in study.found_in(again)[name]}
        for one in found[:5]:
            assert others[one.condition].beyond["sum"].low == pytest.approx(one.beyond["sum"].low, abs=1e-3)


def test_the_pairs_of_the_page_are_those_of_the_suites(study: ModuleType) -> None:
    wanted = {"clean", *map(str, study.read_conditions(study.CONDITIONS))}
    for scores in study.read(FOLDER / "scores.npz").values():
        assert {*scores.conditions} == wanted


def some(scores: Any, measure: str, texts: tuple[str, ...]) -> Any:
    """The scores of a run of a few conditions."""
    cells = {measure: {text: scores.per_condition[measure][text] for text in texts}}
    drawn = {measure: {text: scores.spread(measure)[text] for text in texts}}
    return replace(scores, conditions=texts, per_condition=cells, replicates=Replicates(drawn, {}))


def test_a_run_of_a_few_conditions_keeps_the_scores_of_the_others(study: ModuleType) -> None:
    name, measure = "street-grid", "AP"
    kept = study.read(FOLDER / "scores.npz")[name]
    run = some(kept, measure, ("clean", "rain@3", "night@3", "rain@3+night@3"))
    old = some(kept, measure, tuple(text for text in kept.conditions if text != "rain@3+night@3"))
    renewed = study.renewed(old, run, name)
    assert renewed.per_condition[measure] == kept.per_condition[measure]
    assert list(renewed.conditions) == list(kept.conditions)
    for text, drawn in kept.spread(measure).items():
        assert np.array_equal(renewed.spread(measure)[text], drawn)


def test_a_run_of_other_scenes_is_not_mixed_with_kept_scores(study: ModuleType) -> None:
    kept = study.read(FOLDER / "scores.npz")["street-grid"]
    other = some(kept, "AP", ("clean", "rain@3"))
    other = replace(other, per_condition={"AP": {**other.per_condition["AP"], "clean": 0.5}})
    with pytest.raises(SystemExit, match="differs from the scores kept: clean"):
        study.renewed(kept, other, "street-grid")
    with pytest.raises(SystemExit, match="2 scenes, not 200"):
        study.renewed(kept, replace(kept, images=2), "street-grid")
    few = some(kept, "AP", ("clean", "rain@3"))
    with pytest.raises(SystemExit, match="no scores under snow@3"):
        study.renewed(few, few, "street-grid")
