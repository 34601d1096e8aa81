"""Runs of tiny models on tiny images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.scenes import write_scene
from stormproof.engine.config import RunConfig, make_config

MODELS = Path(__file__).with_name("fake_models.py")
Configure = Callable[..., RunConfig]


def all_rows(run: Path) -> pa.Table:
    """Every row of a run, sorted, as one table."""
    parts = [pq.read_table(path) for path in sorted((run / "parts").glob("part-*.parquet"))]
    table = pa.concat_tables(parts).replace_schema_metadata(None)
    return table.sort_by([("index", "ascending"), ("condition", "ascending")]).combine_chunks()


def all_bytes(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "parts").glob("part-*"))}


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("scene") / "coco")


@pytest.fixture
def configure(scene: str, tmp_path: Path) -> Configure:
    """Settings of a small run; keywords replace any of them."""

    def make(model: str = "brightness_boxes", out: str = "run", **settings: Any) -> RunConfig:
        usual = {"data": scene, "conditions": ["fog@2,contrast@4"], "engine": "local", "chunk": 4}
        return make_config({"model": f"{MODELS}:{model}", "out": str(tmp_path / out), **usual, **settings})

    return make
