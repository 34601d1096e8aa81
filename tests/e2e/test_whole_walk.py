"""The main job in one piece: images through corruptions and a model to scores and a page."""

from __future__ import annotations

import json
from pathlib import Path

from helpers.scored_models import MODELS
from helpers.typed import stormproof


def test_one_run_from_images_to_report(scene: str, here: Path) -> None:
    ran = stormproof("run", "--model", f"{MODELS}:contrast_boxes", "--data", scene, "--engine", "local",
                     "--conditions", "fog,contrast@2", "--out", here / "run")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    scores = json.loads(stormproof("score", here / "run", "--json").stdout)["scores"]["AP"]
    assert [*scores] == ["clean", *(f"fog@{severity}" for severity in range(1, 6)), "contrast@2"]
    assert 0 < scores["fog@5"] != scores["clean"] > 0
    made = stormproof("report", here / "run", "--out", here / "page.html")
    assert made.returncode == 0, made.stderr
    told = json.loads((here / "page.json").read_text(encoding="utf-8"))
    table = told["summary"]
    clean = table["rows"][0][table["columns"].index("P")]
    assert clean == 100 * scores["clean"]
    page = (here / "page.html").read_text(encoding="utf-8")
    assert f"{clean:.1f}" in page
    assert "contrast@2" in page
