"""Runs of small models, and what their folders hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from helpers import scored_models
from helpers.scenes import write_scene, write_street
from stormproof.engine.config import RunConfig, make_config
from stormproof.engine.run import run

Configure = Callable[..., RunConfig]
Make = Callable[..., Path]


def all_rows(run: Path) -> pa.Table:
    """Every row of a run, sorted, as one table."""
    parts = [pq.read_table(path) for path in sorted((run / "parts").glob("part-*.parquet"))]
    table = pa.concat_tables(parts).replace_schema_metadata(None)
    return table.sort_by([("index", "ascending"), ("condition", "ascending")]).combine_chunks()


def all_bytes(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "parts").glob("part-*"))}


def runs_in(folder: Path) -> Make:
    """A function that runs a model of `scored_models` on boxes or label maps and returns the run's folder."""
    data = {"scene": write_scene(folder / "scene", images=8), "street": write_street(folder / "street")}

    def make(model: str, on: str = "scene", name: str = "", **settings: Any) -> Path:
        out = folder / f"{name or model}-{on}"
        usual = {
            "model": f"{scored_models.MODELS}:{model}", "data": data[on], "out": str(out),
            "conditions": ["fog,gaussian_noise"], "engine": "local",
        }  # fmt: skip
        run(make_config({**usual, **settings}))
        return out

    return make
