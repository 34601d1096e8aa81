"""A dataset that lacks images, or whose labels are wrong, is not run in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.runs import Configure
from helpers.scenes import write_scene
from stormproof.cli import app
from stormproof.core.errors import InvalidOption
from stormproof.engine.plan import make_plan


def photos_of(root: Path) -> list[Path]:
    return sorted((root / "images").iterdir())


def run(spec: str, out: Path, *more: str) -> tuple[int, str]:
    command = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", spec, "--conditions", "contrast@4",
               "--out", str(out), "--engine", "local", *more]  # fmt: skip
    shown = CliRunner().invoke(app, command)
    if isinstance(shown.exception, InvalidOption):
        return 2, str(shown.exception)  # as `main` prints it
    return shown.exit_code, shown.output


def test_missing_images_are_refused_before_the_run(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "coco", images=16)
    for photo in photos_of(tmp_path / "coco")[4:]:
        photo.unlink()
    code, said = run(spec, tmp_path / "run")
    assert code == 2
    assert "12 of 16 images of instances are missing" in said
    assert "run on the other 4 with --allow-missing" in said
    assert not (tmp_path / "run").exists()


def test_missing_images_are_counted_where_they_are_allowed(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "coco", images=16)
    for photo in photos_of(tmp_path / "coco")[4:]:
        photo.unlink()
    code, said = run(spec, tmp_path / "run", "--allow-missing")
    assert code == 0
    assert "8 cells on 4 of 16 images, all done" in said
    assert "Time, summed over workers: decode" in said
    shown = CliRunner().invoke(app, ["score", str(tmp_path / "run")])
    assert "4 of 16 images (12 unreadable)" in " ".join(shown.output.split())
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--out", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "is scored on 4 of 16 images" in page.read_text()


@pytest.mark.parametrize("allowed", [False, True])
def test_no_image_at_all_is_an_error(tmp_path: Path, allowed: bool, configure: Configure) -> None:
    spec = write_scene(tmp_path / "coco")
    for photo in photos_of(tmp_path / "coco"):
        photo.unlink()
    with pytest.raises(InvalidOption, match="None of the 12 images"):
        make_plan(configure(data=spec, allow_missing=allowed))


def test_wrong_labels_are_named_when_a_run_begins(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "coco")
    path = tmp_path / "coco" / "instances.json"
    content = json.loads(path.read_text())
    for row in content["annotations"]:
        row["bbox"] = [value / 64 for value in row["bbox"]]
        row.pop("segmentation", None)
    path.write_text(json.dumps(content))
    said = run(spec, tmp_path / "run")[1]
    assert "coordinates look like fractions" in said
    assert "--check" in said


def test_right_labels_are_not_mentioned(tmp_path: Path) -> None:
    said = run(write_scene(tmp_path / "coco"), tmp_path / "run")[1]
    assert "--check" not in said


def test_wrong_labels_are_named_when_a_plan_begins(tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "coco")
    path = tmp_path / "coco" / "instances.json"
    content = json.loads(path.read_text())
    content["annotations"] = []
    path.write_text(json.dumps(content))
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"models: ['{MODELS}:brightness_boxes']\ndata: '{spec}'\nconditions: [contrast@4]\n"
        f"out: {tmp_path / 'runs'}\nengine: local\n"
    )
    shown = CliRunner().invoke(app, ["run", "--config", str(plan)])
    assert "No image has an object" in shown.output
