"""Composed conditions through a whole run: on the host, on a device and from copies, to scores and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.engine.config import make_config
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run
from stormproof.report.make import Options, make_report
from stormproof.results.run import Run
from stormproof.results.store.export import export_truth
from stormproof.results.store.integrity import problems

CHAIN = "geometric_distortion@3+gaussian_noise@2+jpeg_compression@3"
PARTS = CHAIN.split("+")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("scene"), images=4)


def _run(scene: str, out: Path, **settings: object) -> Run:
    usual = {"conditions": [CHAIN, *PARTS], "engine": "local", "model": f"{MODELS}:contrast_boxes"}
    run(make_config({**usual, "data": scene, "out": str(out), **settings}))
    return Run(out)


def _rows(one: Run) -> list[dict[str, Any]]:
    return [row for path in one.parts for row in pq.read_table(path).drop_columns(["content"]).to_pylist()]


def test_a_chain_runs_is_stored_scored_and_reported(scene: str, tmp_path: Path) -> None:
    found = _run(scene, tmp_path / "host")
    assert list(problems(found, deep=True)) == []
    assert found.record.recipes.keys() == {"geometric_distortion", "gaussian_noise", "jpeg_compression"}
    stored = {(row["condition"], row["corruption"], row["severity"]) for row in _rows(found)}
    assert (CHAIN, "geometric_distortion+gaussian_noise+jpeg_compression", None) in stored
    versions = {row["condition"]: row["recipe"] for row in _rows(found)}
    assert versions[CHAIN] == sum(versions[part] for part in PARTS)
    scores = found.score(replicates=50)
    assert scores.conditions == ("clean", CHAIN, *PARTS)
    assert [each.words for each in scores.sets] == ["3 conditions", "1 composed condition"]
    truths = export_truth(found, tmp_path / "truth")
    moved = {text: json.loads(path.read_text())["annotations"] for text, path in truths.items()}
    assert moved.keys() == {"clean", PARTS[0], CHAIN}
    assert moved[CHAIN] == moved[PARTS[0]] != moved["clean"]
    make_report([str(tmp_path / "host")], tmp_path / "page.html", Options(images=0))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What is worse together" in page
    assert "4 images are too few to say" in page


def test_a_chain_has_the_same_rows_on_a_device_and_from_copies(scene: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    host = _rows(_run(scene, tmp_path / "host"))
    assert _rows(_run(scene, tmp_path / "device", device="cpu", batch=4)) == host
    copies, texts = tmp_path / "copies", ",".join([CHAIN, *PARTS])
    done = CliRunner().invoke(app, ["corrupt", scene, str(copies), "-c", texts, "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert (copies / CHAIN).is_dir()
    assert _rows(_run(scene, tmp_path / "copied", copies=str(copies))) == host


def test_a_plan_warns_of_an_order_that_light_would_not_take(scene: str, tmp_path: Path) -> None:
    usual = {
        "engine": "local",
        "model": f"{MODELS}:contrast_boxes",
        "data": scene,
        "out": str(tmp_path / "a"),
    }
    wrong = make_plan(make_config({**usual, "conditions": ["jpeg_compression@2+fog@3"]}))
    assert any("fog@3+jpeg_compression@2" in doubt for doubt in wrong.doubts)
    right = make_plan(make_config({**usual, "conditions": ["fog@3+jpeg_compression@2"]}))
    assert right.doubts == ()
