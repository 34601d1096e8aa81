"""Rendered street scenes, written in seven formats and read back: everything a format can say must return."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stormproof.core.sample import Instances
from stormproof.datasets import kitti, read_dataset
from stormproof.datasets import voc as voc_reader
from stormproof.datasets.dataset import Dataset, thing_classes
from stormproof.world.classes import OBJECTS, SEMANTIC
from stormproof.world.formats import FORMATS, SceneOrder, export
from stormproof.world.samples import Rendered, render

SIZE = {"width": 320, "height": 200}
COUNT = 4  # the last shows a rider
SPECS = {
    "coco": "coco:{root}/annotations/instances_val2017.json",
    "voc": "voc:{root},split=val",
    "cityscapes": "cityscapes:{root},disparity=disparity,calib=camera,right=rightImg8bit",
    "yolo": "yolo:{root}/data.yaml",
    "kitti": "kitti:{root},split=val,depth=depth_2,calib=calib,right=image_3",
    "camvid": "camvid:{root}",
    "panoptic": "panoptic:{root}/annotations/panoptic_val2017.json",
}
Written = Callable[[str], Dataset]


@pytest.fixture(scope="module")
def scenes() -> list[Rendered]:
    return [render(0, "val", i, **SIZE, stereo=True, baseline=0.54) for i in range(COUNT)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the scenes are written, in a folder for each format."""
    return tmp_path_factory.mktemp("scenes")


@pytest.fixture(scope="module")
def written(folder: Path) -> Written:
    """Write the scenes in a format, once, and open what was written."""

    @cache
    def write(kind: str) -> Dataset:
        export(SceneOrder("val", COUNT, kind, **SIZE, stereo=True), folder / kind)
        return read_dataset(SPECS[kind].format(root=folder / kind))

    return write


def objects(scene: Rendered) -> Instances:
    assert scene.sample.truth.instances is not None
    return scene.sample.truth.instances


def names(scene: Rendered) -> list[str]:
    return [OBJECTS[label] for label in objects(scene).labels]


def riders(scene: Rendered) -> list[bool]:
    return [name == "person" and group >= 0 for name, group in zip(names(scene), scene.groups, strict=True)]


@pytest.mark.parametrize("kind", SPECS)
def test_images_return_pixel_for_pixel(written: Written, scenes: list[Rendered], kind: str) -> None:
    dataset = written(kind)
    assert len(dataset) == COUNT
    for i, scene in enumerate(scenes):
        np.testing.assert_array_equal(dataset[i].image, scene.sample.image)
        assert dataset.size(i) == scene.sample.image.shape[:2]


def test_objects_return_from_coco(written: Written, scenes: list[Rendered]) -> None:
    dataset = written("coco")
    assert dataset.classes == OBJECTS
    for i, scene in enumerate(scenes):
        expected, found = objects(scene), dataset.truth(i).instances
        np.testing.assert_array_equal(found.boxes, expected.boxes)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.crowd, expected.ignore)
        np.testing.assert_array_equal(found.area, [mask.area for mask in expected.masks])
        for one, other in zip(found.masks, expected.masks, strict=True):
            np.testing.assert_array_equal(one.counts, other.counts)


def test_objects_return_from_voc(written: Written, scenes: list[Rendered], folder: Path) -> None:
    boxes = written("voc")
    maps = read_dataset(f"voc-seg:{folder}/voc,split=val")
    for i, scene in enumerate(scenes):
        expected, found = objects(scene), boxes.truth(i).instances
        known = np.array([name in voc_reader.CLASSES for name in names(scene)], bool)
        np.testing.assert_array_equal(found.boxes, expected.boxes[known])
        np.testing.assert_array_equal(found.ignore, expected.ignore[known])
        assert [boxes.classes[label] for label in found.labels] == list(np.array(names(scene))[known])
        values = np.array(
            [0, *(_voc_value(n, s) for n, s in zip(names(scene), expected.ignore, strict=True))]
        )
        np.testing.assert_array_equal(maps.truth(i).semantic.labels, values[scene.instance])
    with PIL.Image.open(folder / "voc/SegmentationClass/val_000000.png") as image:
        assert image.mode == "P"


def _voc_value(name: str, small: bool) -> int:
    if name not in voc_reader.CLASSES:
        return 0
    return 255 if small else voc_reader.CLASSES.index(name) + 1


def cityscapes_names(scene: Rendered) -> list[str]:
    signs = {"traffic light": "traffic light", "stop sign": "traffic sign"}
    return [
        "rider" if rides else signs.get(name, name)
        for name, rides in zip(names(scene), riders(scene), strict=True)
    ]


def cityscapes_semantic(dataset: Dataset, scene: Rendered) -> np.ndarray:
    stuff = np.full(256, 255)
    stuff[: len(SEMANTIC)] = [dataset.semantic_classes.index(name) for name in SEMANTIC]
    things = np.array([0, *(dataset.semantic_classes.index(name) for name in cityscapes_names(scene))])
    assert scene.sample.truth.semantic is not None
    return np.where(scene.instance > 0, things[scene.instance], stuff[scene.sample.truth.semantic.labels])


def test_objects_and_maps_return_from_cityscapes(written: Written, scenes: list[Rendered]) -> None:
    dataset = written("cityscapes")
    for i, scene in enumerate(scenes):
        truth, expected = dataset.truth(i), objects(scene)
        np.testing.assert_array_equal(truth.semantic.labels, cityscapes_semantic(dataset, scene))
        found = truth.instances
        counted = [k for k, name in enumerate(cityscapes_names(scene)) if name in dataset.classes]
        whole = {
            (cityscapes_names(scene)[k], tuple(expected.boxes[k])) for k in counted if not expected.ignore[k]
        }
        read = {
            (dataset.classes[found.labels[k]], tuple(found.boxes[k])) for k in np.flatnonzero(~found.crowd)
        }
        assert read == whole
        for k in np.flatnonzero(found.crowd):  # the small ones, as a group
            small = [j for j in counted if expected.ignore[j]]
            together = np.isin(scene.instance, [j + 1 for j in small])
            assert not (found.masks[k].to_mask() & ~together).any()


def test_cityscapes_polygons_say_nearly_the_same(
    written: Written, scenes: list[Rendered], folder: Path, tmp_path: Path
) -> None:
    """Outlines cannot say everything that a map of ids says: holes and slivers are lost."""
    written("cityscapes")
    shutil.copytree(folder / "cityscapes", tmp_path / "copy", ignore=shutil.ignore_patterns("*Ids.png"))
    dataset = read_dataset(f"cityscapes:{tmp_path}/copy")
    for i, scene in enumerate(scenes):
        same = dataset.truth(i).semantic.labels == cityscapes_semantic(dataset, scene)
        assert same.mean() > 0.97


@pytest.mark.parametrize("kind", ["cityscapes", "kitti"])
def test_stereo_pairs_and_depth_return(written: Written, scenes: list[Rendered], kind: str) -> None:
    dataset = written(kind)
    for i, scene in enumerate(scenes):
        expected, found = scene.sample.context, dataset[i].context
        np.testing.assert_array_equal(found.right, expected.right)
        assert found.camera.baseline == pytest.approx(0.54)
        assert (found.camera.fx, found.camera.cx) == pytest.approx((expected.camera.fx, expected.camera.cx))
        if kind == "kitti":  # metres × 256; what is farther than 16 bits reach is unknown
            near = expected.depth < 255
            np.testing.assert_allclose(found.depth[near], expected.depth[near], atol=0.5 / 256 + 1e-4)
            assert np.isnan(found.depth[np.isinf(expected.depth)]).all()
        else:  # disparity × 256 + 1, cut to whole numbers
            shift = expected.camera.fx * 0.54
            np.testing.assert_allclose(shift / found.depth, shift / expected.depth, atol=1 / 256 + 1e-4)


def test_objects_return_from_yolo(written: Written, scenes: list[Rendered]) -> None:
    dataset = written("yolo")
    assert dataset.classes == OBJECTS
    for i, scene in enumerate(scenes):
        expected, found = objects(scene), dataset.truth(i).instances
        np.testing.assert_allclose(found.boxes, expected.boxes[~expected.ignore], atol=1e-5)
        np.testing.assert_array_equal(found.labels, expected.labels[~expected.ignore])


def test_objects_return_from_kitti(written: Written, scenes: list[Rendered]) -> None:
    dataset = written("kitti")
    kinds = {"car": "Car", "truck": "Truck", "bus": "Misc", "person": "Pedestrian"}
    seen = 0
    for i, scene in enumerate(scenes):
        expected, found = objects(scene), dataset.truth(i).instances
        alone = [k for k, name in enumerate(names(scene)) if name in kinds and scene.groups[k] < 0]
        whole = [k for k in alone if not expected.ignore[k]]
        walking = [k for k in np.flatnonzero(~found.ignore) if dataset.classes[found.labels[k]] != "Cyclist"]
        np.testing.assert_allclose(found.boxes[walking], expected.boxes[whole], atol=0.005)
        assert [dataset.classes[found.labels[k]] for k in walking] == [kinds[names(scene)[k]] for k in whole]
        np.testing.assert_allclose(found.truncation[walking], expected.truncation[whole], atol=0.005)
        grades = np.digitize(expected.occlusion[whole], [0.1, 0.5]) / 3
        np.testing.assert_allclose(found.occlusion[walking], grades)
        regions = np.unique(found.boxes[found.ignore], axis=0)
        for box in expected.boxes[[k for k in alone if expected.ignore[k]]]:
            assert (np.abs(regions - box).max(axis=1) <= 0.005).any()
        seen += len(walking)
    assert seen > 0


def test_kitti_states_objects_in_space(written: Written, scenes: list[Rendered], folder: Path) -> None:
    """After the box: height, width, length, x, y, z and rotation_y; before it, alpha."""
    written("kitti")
    seen = 0
    for i, scene in enumerate(scenes):
        lines = (folder / f"kitti/training/label_2/{i:06d}.txt").read_text().splitlines()
        stated = {(line[3], *line[8:15]) for line in map(str.split, lines)}
        for name, small, one in zip(names(scene), objects(scene).ignore, scene.solids, strict=True):
            if name == "car" and not small:
                numbers = (one.alpha, one.height, one.width, one.length, *one.at, one.turn)
                assert tuple(f"{number:.2f}" for number in numbers) in stated
                seen += 1
    assert seen > 0


def test_a_rider_and_the_bicycle_are_one_cyclist_in_kitti() -> None:
    """Of this pair the bicycle alone would be too small to count; two more riders show no bicycle."""
    scene = render(0, "val", 12, **SIZE)
    boxes, ignored, ridden = objects(scene).boxes, objects(scene).ignore, np.array(scene.groups) == 0
    assert sorted(ignored[ridden]) == [False, True]
    found = FORMATS["kitti"].sample(scene, 12).truth.instances
    cyclists = np.flatnonzero(found.labels == kitti.CLASSES.index("Cyclist"))
    both = [*boxes[ridden, :2].min(axis=0), *boxes[ridden, 2:].max(axis=0)]
    alone = boxes[np.array(scene.groups) > 0]
    assert sorted(found.boxes[cyclists].tolist()) == sorted([both, *alone.tolist()])
    assert not found.ignore[cyclists].any()


def test_label_maps_return_from_camvid(written: Written, scenes: list[Rendered]) -> None:
    dataset = written("camvid")
    english = {
        "sidewalk": "pavement",
        "traffic sign": "signsymbol",
        "vegetation": "tree",
        "person": "pedestrian",
        "truck": "car",
        "bus": "car",
        "bicycle": "bicyclist",
    }
    table = np.full(256, 255)
    table[: len(SEMANTIC)] = [dataset.semantic_classes.index(english.get(name, name)) for name in SEMANTIC]
    for i, scene in enumerate(scenes):
        expected = table[scene.sample.truth.semantic.labels]
        on_bicycles = np.isin(scene.instance, [k + 1 for k, rides in enumerate(riders(scene)) if rides])
        expected[on_bicycles] = dataset.semantic_classes.index("bicyclist")
        np.testing.assert_array_equal(dataset.truth(i).semantic.labels, expected)


def test_panoptic_segments_return(scenes: list[Rendered], written: Written) -> None:
    """Every thing, every class of stuff as one segment, and as one the things too small to count."""
    dataset = written("panoptic")
    assert dataset.semantic_classes == SEMANTIC
    assert thing_classes(dataset) == ("person", "car", "truck", "bus", "bicycle")
    for i, scene in enumerate(scenes):
        before, after = scene.sample.truth, dataset.truth(i)
        np.testing.assert_array_equal(after.semantic.labels, before.semantic.labels)
        assert dataset.ids[i] == str(i)
        things = np.isin(before.semantic.labels, [SEMANTIC.index(name) for name in thing_classes(dataset)])
        counted = things & ~np.isin(before.panoptic, before.crowds)
        np.testing.assert_array_equal(after.panoptic[counted], before.panoptic[counted])
        crowds = things & np.isin(before.panoptic, before.crowds)
        assert np.isin(after.panoptic[crowds], after.crowds).all()
        for label in {*np.unique(before.semantic.labels[~things]).tolist()} - {255}:
            assert len(np.unique(after.panoptic[before.semantic.labels == label])) == 1
        small = {int(before.panoptic[m.to_mask()][0]) for m, few in
                 zip(objects(scene).masks, objects(scene).ignore, strict=True) if few}  # fmt: skip
        assert {*before.crowds} == small
        assert {*after.crowds} == {*np.unique(after.panoptic[crowds]).tolist()} <= small


def test_cityscapes_has_panoptic_truth(scenes: list[Rendered], written: Written) -> None:
    dataset = written("cityscapes")
    for i in range(len(scenes)):
        truth = dataset.truth(i)
        assert ((truth.panoptic == 0) == (truth.semantic.labels == 255)).all()
        for number, mask in zip(truth.instances.ids, truth.instances.masks, strict=True):
            assert (truth.panoptic[mask.to_mask()] == number).all()
