"""Scores kept with a run are what was written, or are made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stormproof.results.gathering import Boxes, Spool, joined

from engine.fake_models import brightness_boxes
from engine.scenes import write_scene
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.kept import kept_scores
from stormproof.results.tables import SCORES

MODELS = Path(brightness_boxes.__code__.co_filename)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = {"model": f"{MODELS}:brightness_boxes", "data": write_scene(tmp_path / "scene", images=3),
                "conditions": ["contrast@2"], "engine": "local", "out": str(tmp_path / "run")}  # fmt: skip
    run(make_config(settings))
    return tmp_path / "run"


def test_a_changed_number_is_not_believed(folder: Path) -> None:
    right = kept_scores(folder)
    path = folder / SCORES
    kept = json.loads(path.read_text())
    kept["scores"]["E"]["clean"] += 0.125
    path.write_text(json.dumps(kept))
    assert kept_scores(folder) == right
    path.write_text("{}")
    assert kept_scores(folder) == right


def test_boxes_beyond_what_memory_may_hold_come_back_from_a_file() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    parts = [
        Boxes(
            np.full(k, k, np.int32), rng.random((k, 4)).astype(kind), rng.random(k).astype(kind),
            np.arange(k, dtype=np.uint8), rng.random((k, 2)) if k % 2 else None,
        )
        for k, kind in ((3, np.float32), (0, np.float64), (5, np.float64), (4, np.float32))
    ]  # fmt: skip
    ways = []
    for held in (1 << 20, 100, 0):
        spool = Spool(held)
        for k, part in enumerate(parts):
            spool.add("fog@3" if k < 3 else "clean", part)
        ways.append([joined(list(spool.take(name))) for name in ("fog@3", "clean", "snow@1")])
    for way in ways[1:]:
        for one, other in zip(ways[0], way, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len(ways[0][0][0]) == 8
    assert len(ways[0][2][0]) == 0
