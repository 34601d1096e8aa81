"""Runs from before RMSE and SNR were kept: they read, continue and score as they did."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from engine.conftest import Configure, all_rows
from stormproof.engine.run import run
from stormproof.results.kept import kept_scores
from stormproof.results.score import score_run
from stormproof.results.store.seal import seal

NEW = ("rmse", "snr")


def forget(out: Path) -> None:
    """Take the new columns out of every part, as an older version left them."""
    for path in sorted((out / "parts").glob("*.parquet")):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns(list(NEW)).replace_schema_metadata(table.schema.metadata), path)
        with path.open("r+b") as file:
            seal(file)


def test_an_older_run_scores_as_before(configure: Configure, tmp_path: Path) -> None:
    run(configure())
    out = tmp_path / "run"
    now = score_run(out)
    forget(out)
    older = score_run(out)
    assert repr(older.by_measure) == repr(now.by_measure)  # as words: NaN is not NaN
    assert older.quality == {}
    assert now.quality["fog@2"]["rmse"] > 0
    assert kept_scores(out)["scores"].keys() == now.by_measure.keys()


def test_an_older_run_continues(configure: Configure, tmp_path: Path) -> None:
    run(configure(conditions=["fog@2"]))
    out = tmp_path / "run"
    forget(out)
    run(configure(conditions=["fog@2,contrast@4"]))
    rows = all_rows(out).to_pylist()
    assert all(row["rmse"] is None for row in rows if row["condition"] == "fog@2")
    assert all(row["rmse"] > 0 for row in rows if row["condition"] == "contrast@4")
    assert set(score_run(out).quality) == {"clean", "fog@2", "contrast@4"}
