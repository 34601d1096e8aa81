"""The verb that writes scenes; tests/datasets/test_round_trip.py reads them back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption, OutputError, UnknownName
from stormproof.core.sample import Instances
from stormproof.world.formats import SceneOrder, export
from stormproof.world.samples import Rendered, render

COUNT, WIDTH, HEIGHT = 4, 256, 160


@pytest.fixture(scope="module")
def scenes() -> list[Rendered]:
    return [render(0, "val", k, width=WIDTH, height=HEIGHT, stereo=True) for k in range(COUNT)]


def objects_of(scene: Rendered) -> Instances:
    objects = scene.sample.truth.instances
    assert objects is not None
    return objects


def test_kitti_boxes_in_space_project_onto_the_image(scenes: list[Rendered]) -> None:
    for scene in scenes:
        camera, objects = scene.sample.context.camera, objects_of(scene)
        assert camera is not None
        for k, solid in enumerate(scene.solids):
            x, y, z = solid.at
            if objects.truncation[k] > 0 or objects.occlusion[k] > 0.05 or z < 6 or objects.ignore[k]:
                continue
            u, v = camera.fx * x / z + camera.cx, camera.fy * (y - solid.height / 2) / z + camera.cy
            x1, y1, x2, y2 = objects.boxes[k]
            assert x1 - 2 <= u <= x2 + 2
            assert y1 - 2 <= v <= y2 + 2


def tree_hash(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        whole.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return whole.hexdigest()


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    order = SceneOrder("test", 9, "coco", 96, 64, seed=3)
    seen: list[int] = []
    export(order, tmp_path / "one", workers=1, advance=lambda: seen.append(1))
    export(order, tmp_path / "two", workers=2)
    assert len(seen) == 9
    assert tree_hash(tmp_path / "one") == tree_hash(tmp_path / "two")


def test_the_command_writes_and_reports(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        app,
        [
            "world",
            "--count",
            "2",
            "--size",
            "64x48",
            "--layout",
            "yolo",
            "--out",
            str(tmp_path / "new"),
            "-j",
            "1",
        ],
    )
    assert run.exit_code == 0, run.output
    assert "2 scenes" in run.output
    assert len(list((tmp_path / "new/images/val").iterdir())) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["new"]
    assert "Examples" in CliRunner().invoke(app, ["world", "--help"]).output


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (SceneOrder("val", -3, "coco"), InvalidOption),
        (SceneOrder("val", 0, "coco"), InvalidOption),
        (SceneOrder("val", 201, "coco"), InvalidOption),
        (SceneOrder("val", 2, "coco", 0, 0), InvalidOption),
        (SceneOrder("val", 2, "coco", 10**6, 10**6), InvalidOption),
        (SceneOrder("vall", 2, "coco"), UnknownName),
        (SceneOrder("val", 2, "cooc"), UnknownName),
    ],
)
def test_refuses_nonsense_orders(order: SceneOrder, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        export(order, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_refuses_destinations_that_are_in_use(tmp_path: Path) -> None:
    order = SceneOrder("val", 1, "yolo", 64, 48)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="overwrite"):
        export(order, tmp_path / "full")
    assert (tmp_path / "full/mine.txt").read_text() == "precious"
    export(order, tmp_path / "full", overwrite=True)
    assert (tmp_path / "full/data.yaml").is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is a file"):
        export(order, tmp_path / "file")
    with pytest.raises(OutputError):
        export(order, tmp_path / "file/below")
    with pytest.raises(InvalidOption, match="Workers"):
        export(order, tmp_path / "new", workers=-1)
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o555)
        with pytest.raises(OutputError, match="may write to"):
            export(order, tmp_path / "locked/out")
