"""Images in an object store, by the plugin of docs/adding/dataset.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.plugins import read_block
from stormproof.corruptions.plugins import load_plugins
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.report.make import Options, make_report
from stormproof.results.run import Run

BUCKET = read_block("dataset.md", r"\+\+\+ b/bucket\.py\n@@[^\n]*\n(.*?)^```$")
MODEL = """
from stormproof import Prediction


def find(images):
    return [Prediction([[10, 20, 50, 60]], [0.9], [0]) for image in images]
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    (tmp_path / "bucket.py").write_text(BUCKET)
    (tmp_path / "model.py").write_text(MODEL)
    load_plugins([str(tmp_path / "bucket.py")])
    return str(tmp_path / "bucket.py")


def client() -> Any:
    opened = read_dataset("bucket:street")
    return sys.modules[type(opened.images[0]).__module__].CLIENT  # type: ignore[attr-defined]


def settings(plugin: str, folder: Path) -> dict[str, object]:
    model = f"{folder.with_name('model.py')}:find"
    return {"model": model, "data": "bucket:street", "conditions": ["contrast@1"], "plugin": [plugin],
            "engine": "local", "out": str(folder)}  # fmt: skip


def test_an_image_that_the_store_lacks_is_named_and_tried_again(plugin: str, tmp_path: Path) -> None:
    stored = client().stored
    kept = stored.pop("street/3.png")
    made = run_it(make_config(settings(plugin, tmp_path / "run")))
    assert [failure.image for failure in made.failures] == ["3.png", "3.png"]
    assert "OSError: 404 for street/3.png" in made.failures[0].error
    stored["street/3.png"] = kept
    assert not run_it(make_config(settings(plugin, tmp_path / "run"))).failures
    assert Run(tmp_path / "run").score().images == 6


def test_a_report_shows_images_of_a_store(plugin: str, tmp_path: Path) -> None:
    run_it(make_config(settings(plugin, tmp_path / "run")))
    steps: list[str] = []
    make_report([str(tmp_path / "run")], tmp_path / "page.html", Options(images=1), steps.append)
    assert any(step.startswith("making ") for step in steps)
    assert "Images are not shown" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_other_boxes_are_another_dataset(plugin: str) -> None:
    before = read_dataset("bucket:street").fingerprint
    client().stored["street/boxes.json"] = b'{"0.png": [[10, 20, 50, 60]]}'
    assert read_dataset("bucket:street").fingerprint != before
