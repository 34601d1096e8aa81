"""Scenes written in six layouts are what the readers read back, and the verb that writes them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption, OutputError, UnknownName
from stormproof.core.sample import Instances
from stormproof.datasets import read_dataset
from stormproof.world.classes import OBJECTS, SEMANTIC, VOID
from stormproof.world.formats import FORMATS, SceneOrder, as_cityscapes, export
from stormproof.world.samples import Rendered, render

COUNT, WIDTH, HEIGHT = 4, 256, 160


@pytest.fixture(scope="module")
def scenes() -> list[Rendered]:
    return [render(0, "val", k, width=WIDTH, height=HEIGHT, stereo=True) for k in range(COUNT)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    for name in FORMATS:
        export(SceneOrder("val", COUNT, name, WIDTH, HEIGHT, stereo=True), base / name)
    return base


def objects_of(scene: Rendered) -> Instances:
    objects = scene.sample.truth.instances
    assert objects is not None
    return objects


def test_objects_return_from_coco(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"coco:{root}/coco/annotations/instances_val2017.json,images={root}/coco/val2017")
    for k, scene in enumerate(scenes):
        sample, true = back[k], objects_of(scene)
        found = sample.truth.instances
        assert np.array_equal(sample.image, scene.sample.image)
        assert found is not None
        assert found.masks is not None
        assert true.masks is not None
        assert np.array_equal(found.boxes, true.boxes)
        assert [back.classes[i] for i in found.labels] == [OBJECTS[i] for i in true.labels]
        assert np.array_equal(found.crowd | found.ignore, true.ignore)
        assert all(
            np.array_equal(a.to_mask(), b.to_mask()) for a, b in zip(found.masks, true.masks, strict=True)
        )


def test_objects_return_from_voc(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"voc:{root}/voc,split=val")
    for k, scene in enumerate(scenes):
        sample, true = back[k], objects_of(scene)
        known = np.array([OBJECTS[i] in ("person", "bicycle", "car", "bus") for i in true.labels], bool)
        found = sample.truth.instances
        assert found is not None
        assert np.array_equal(sample.image, scene.sample.image)
        assert np.array_equal(found.boxes, true.boxes[known])
        assert [back.classes[i] for i in found.labels] == [OBJECTS[i] for i in true.labels[known]]
        assert np.array_equal(found.ignore, true.ignore[known])
        with PIL.Image.open(root / f"voc/SegmentationClass/val_{k:06d}.png") as image:
            assert image.mode == "P"
            classes = np.asarray(image)
        assert set(np.unique(classes)) <= {0, 2, 6, 7, 15, 255}
        shown = np.isin(scene.instance, np.flatnonzero(known) + 1)
        assert np.array_equal(classes > 0, shown)


def test_objects_and_maps_return_from_cityscapes(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"cityscapes:{root}/cityscapes,split=val")
    for k, scene in enumerate(scenes):
        sample, true = back[k], scene.sample.truth
        assert np.array_equal(sample.image, scene.sample.image)
        assert sample.truth.semantic is not None
        assert true.semantic is not None
        assert sample.truth.instances is not None
        # Riders are persons and lights are signs in the world.
        names = {"rider": "person", "traffic light": "traffic sign"}
        table = np.full(256, VOID, np.uint8)
        for i, name in enumerate(back.semantic_classes):
            if names.get(name, name) in SEMANTIC:
                table[i] = SEMANTIC.index(names.get(name, name))
        assert np.array_equal(table[sample.truth.semantic.labels], true.semantic.labels)
        counted = {OBJECTS.index(name) for name in ("person", "car", "truck", "bus", "bicycle")}
        objects = objects_of(scene)
        kept = [i for i in range(len(objects)) if objects.labels[i] in counted and not objects.ignore[i]]
        found = sample.truth.instances
        assert sorted(map(tuple, found.boxes[~found.crowd].tolist())) == sorted(
            map(tuple, objects.boxes[kept].tolist())
        )
    camera = json.loads(
        (root / "cityscapes/camera/val/stormproof/stormproof_000000_000000_camera.json").read_text()
    )
    with PIL.Image.open(
        root / "cityscapes/disparity/val/stormproof/stormproof_000000_000000_disparity.png"
    ) as image:
        coded = np.asarray(image).astype(float)
    disparity = (coded - 1) / 256
    depth = scenes[0].sample.context.depth
    assert depth is not None
    near = depth < 30
    recovered = camera["intrinsic"]["fx"] * camera["extrinsic"]["baseline"] / disparity[near]
    assert np.allclose(recovered, depth[near], rtol=0.01)


def test_cityscapes_polygons_draw_the_map(root: Path, scenes: list[Rendered]) -> None:
    from stormproof.datasets.cityscapes import draw_polygons, id_map

    drawn = draw_polygons(
        root / "cityscapes/gtFine/val/stormproof/stormproof_000000_000001_gtFine_polygons.json"
    )
    labels = np.where(drawn >= 1000, drawn // 1000, drawn)
    written = FORMATS["cityscapes"]
    ids = id_map(as_cityscapes(scenes[1]), written.classes, written.semantic_classes).astype(int)
    assert (labels == np.where(ids >= 1000, ids // 1000, ids)).mean() > 0.97


def test_objects_return_from_yolo(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"yolo:{root}/yolo/data.yaml,split=val")
    for k, scene in enumerate(scenes):
        sample, true = back[k], objects_of(scene)
        found = sample.truth.instances
        assert found is not None
        assert np.array_equal(sample.image, scene.sample.image)
        assert np.allclose(found.boxes, true.boxes[~true.ignore], atol=1e-4)
        assert np.array_equal(found.labels, true.labels[~true.ignore])
    assert back.classes == OBJECTS


def test_objects_return_from_kitti(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"kitti:{root}/kitti")
    for k, scene in enumerate(scenes):
        sample, true = back[k], objects_of(scene)
        found = sample.truth.instances
        assert found is not None
        assert np.array_equal(sample.image, scene.sample.image)
        for theirs, ours in (("Car", "car"), ("Truck", "truck"), ("Misc", "bus")):
            mine = (true.labels == OBJECTS.index(ours)) & ~true.ignore
            read = (found.labels == back.classes.index(theirs)) & ~found.ignore
            assert np.array_equal(found.boxes[read], true.boxes[mine])
            assert np.allclose(found.truncation[read], true.truncation[mine], atol=0.006)
        walking = [
            i
            for i in range(len(true))
            if OBJECTS[true.labels[i]] == "person" and scene.groups[i] < 0 and not true.ignore[i]
        ]
        assert ((found.labels == back.classes.index("Pedestrian")) & ~found.ignore).sum() == len(walking)
        with PIL.Image.open(root / f"kitti/training/depth_2/{k:06d}.png") as image:
            metres = np.asarray(image).astype(float) / 256
        depth = scene.sample.context.depth
        assert depth is not None
        assert np.allclose(metres[metres > 0], depth[metres > 0], atol=1 / 256)
        assert (metres[np.isinf(depth)] == 0).all()
        with PIL.Image.open(root / f"kitti/training/image_3/{k:06d}.png") as image:
            assert np.array_equal(np.asarray(image), scene.sample.context.right)


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


def test_label_maps_return_from_camvid(root: Path, scenes: list[Rendered]) -> None:
    back = read_dataset(f"camvid:{root}/camvid")
    names = {
        "sidewalk": "pavement",
        "traffic sign": "signsymbol",
        "vegetation": "tree",
        "truck": "car",
        "bus": "car",
        "bicycle": "bicyclist",
    }
    for k, scene in enumerate(scenes):
        sample, true = back[k], scene.sample.truth.semantic
        found = sample.truth.semantic
        assert found is not None
        assert true is not None
        assert np.array_equal(sample.image, scene.sample.image)
        for i, name in enumerate(SEMANTIC):
            allowed = {"person": ("pedestrian", "bicyclist")}.get(name, (names.get(name, name),))
            assert set(np.unique(found.labels[true.labels == i])) <= {
                back.semantic_classes.index(a) for a in allowed
            }
        assert (found.labels[true.labels == VOID] == found.ignore).all()


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
