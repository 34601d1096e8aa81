"""Each format's writer: its reader gets back everything that the format can say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidTruth, UnknownName
from stormproof.core.sample import Camera, Context, Instances, Sample, SemanticMap, Truth
from stormproof.datasets import WRITERS, cityscapes, find_writer, read_dataset, voc
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.writing import Destination

HEIGHT, WIDTH = 40, 60
BOXES = np.array([(2, 3, 12, 13), (20.5, 5, 31.25, 17), (35, 20, 55, 38), (1, 25, 9, 39)], np.float64)
WHOLE, CROWD, IGNORED, CUT = range(4)


def masks() -> tuple[np.ndarray, ...]:
    """Masks much smaller than their boxes, so that an area taken from a box is noticed."""
    found = np.zeros((len(BOXES), HEIGHT, WIDTH), bool)
    for k, (x1, y1, x2, y2) in enumerate(BOXES.astype(int)):
        found[k, y1:y2, x1 : x1 + 2] = found[k, y1 : y1 + 2, x1:x2] = True
    return tuple(found)


def sample(name: str = "7", *, with_masks: bool = True, labels: tuple[int, ...] = (0, 1, 1, 0)) -> Sample:
    objects = Instances(
        BOXES, np.array(labels), np.stack(masks()) if with_masks else None,
        crowd=np.arange(4) == CROWD, ignore=np.arange(4) == IGNORED, ids=np.array([11, 12, 13, 14]),
        area=None if with_masks else np.array([77.5, 60.0, 41.25, 30.0]),
        occlusion=np.array([0.0, 0.3, 0.6, np.nan]), truncation=np.array([0.0, 0.5, 0.0, np.nan]),
    )  # fmt: skip
    semantic = np.full((HEIGHT, WIDTH), 255, np.uint8)
    semantic[:, 30:] = 1
    semantic[10:30, :30] = 0
    image = np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    return Sample(name, image, Truth(objects, SemanticMap(semantic)))


def written(name: str, root: Path, samples: list[Sample], **names: tuple[str, ...]) -> Dataset:
    """The samples stored in a format and opened again."""
    writer, destination = find_writer(name), Destination(root, **names)
    assert writer.lacks(destination) == ""
    records = [writer.write(destination, f"image_{one.id}", one)[1] for one in samples]
    writer.finish(destination, json.loads(json.dumps(records)))
    return read_dataset(str(writer.spec(destination)))


def objects_of(dataset: Dataset, index: int = 0) -> Instances:
    found = dataset.truth(index).instances
    assert found is not None
    return found


@pytest.mark.parametrize("with_masks", [True, False])
def test_coco_keeps_areas_flags_and_numbers(tmp_path: Path, with_masks: bool) -> None:
    source = sample(with_masks=with_masks)
    true = source.truth.instances
    back = written("coco", tmp_path, [source], classes=("car", "person"), category_ids=(3, 1))
    found = objects_of(back)
    assert back.ids == ("7",)
    assert back.category_ids == (1, 3)  # type: ignore[attr-defined]  # COCO's order is that of the numbers
    assert [back.classes[label] for label in found.labels] == ["car", "person", "person", "car"]
    np.testing.assert_array_equal(found.boxes, true.boxes)
    np.testing.assert_array_equal(found.area, true.area)
    assert not np.array_equal(found.area, true.sides.prod(axis=1))
    np.testing.assert_array_equal(found.ids, true.ids)
    assert found.crowd.tolist() == [False, True, True, False]  # COCO has one flag for both
    assert (found.masks is not None) == with_masks
    for one, other in zip(found.masks or (), true.masks or (), strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)


def test_coco_counts_images_whose_ids_are_not_numbers(tmp_path: Path) -> None:
    for place, names, expected in (
        ("text", ("a", "000012"), ("1", "2")),
        ("twice", ("4", "4"), ("1", "2")),
        ("numbers", ("40", "4"), ("40", "4")),
    ):
        samples = [sample(name) for name in names]
        writer, destination = find_writer("coco"), Destination(tmp_path / place, classes=("car", "person"))
        records = [writer.write(destination, f"file{k}", one)[1] for k, one in enumerate(samples)]
        writer.finish(destination, records)
        back = read_dataset(str(writer.spec(destination)))
        assert back.ids == expected
        assert len({row for k in range(2) for row in objects_of(back, k).ids.tolist()}) == 8


def test_coco_numbers_its_categories_from_one(tmp_path: Path) -> None:
    """As COCO does; to many tools, category 0 is the background."""
    written("coco", tmp_path, [sample()], classes=("car", "person"))
    content = json.loads((tmp_path / "annotations/instances_val.json").read_text())
    assert content["categories"] == [{"id": 1, "name": "car"}, {"id": 2, "name": "person"}]
    assert {row["category_id"] for row in content["annotations"]} == {1, 2}


def test_coco_never_calls_an_annotation_zero(tmp_path: Path) -> None:
    """pycocotools takes a match with annotation 0 for no match."""
    source = sample()
    plain = replace(source, truth=Truth(Instances(BOXES, np.array([0, 1, 1, 0]))))
    written("coco", tmp_path, [plain], classes=("car", "person"))
    rows = json.loads((tmp_path / "annotations/instances_val.json").read_text())["annotations"]
    assert [row["id"] for row in rows] == [1, 2, 3, 4]


def test_voc_marks_excused_objects_as_difficult(tmp_path: Path) -> None:
    source = sample()
    back = written("voc", tmp_path, [source], classes=("car", "person"))
    found = objects_of(back)
    np.testing.assert_array_equal(found.boxes, BOXES)
    assert found.ignore.tolist() == [False, True, True, False]
    np.testing.assert_array_equal(found.occlusion, [0, np.nan, np.nan, np.nan])  # a flag has no amount
    np.testing.assert_array_equal(found.truncation, [0, np.nan, 0, np.nan])
    assert back.classes == ("car", "person")
    assert not (tmp_path / "SegmentationClass").exists()  # whose numbers mean VOC's own classes


def test_voc_segmentations_leave_excused_objects_void(tmp_path: Path) -> None:
    car, person = voc.CLASSES.index("car"), voc.CLASSES.index("person")
    source = sample(labels=(car, person, person, car))
    back = written("voc", tmp_path, [source], classes=voc.CLASSES)
    maps = read_dataset(f"voc-seg:{tmp_path},split=val").truth(0).semantic
    expected = np.zeros((HEIGHT, WIDTH), int)
    for mask, value in zip(masks(), (car + 1, 255, 255, car + 1), strict=True):
        expected[mask] = value
    np.testing.assert_array_equal(maps.labels, expected)
    assert back.classes == voc.CLASSES


def test_yolo_leaves_excused_objects_out(tmp_path: Path) -> None:
    back = written("yolo", tmp_path, [sample(with_masks=False)], classes=("car", "person"))
    np.testing.assert_allclose(objects_of(back).boxes, BOXES[[WHOLE, CUT]], atol=1e-6)


def test_kitti_turns_excused_objects_into_regions(tmp_path: Path) -> None:
    camera = Camera(300, 300, 30, 20, baseline=0.5)
    depth = np.full((HEIGHT, WIDTH), 12.5, np.float32)
    depth[:4] = np.inf
    source = replace(sample(), context=Context(depth, camera))
    source = replace(source, truth=Truth(source.truth.instances))
    back = written("kitti", tmp_path, [source], classes=("Car", "Pedestrian"))
    found = objects_of(back)
    kept = ~found.ignore
    np.testing.assert_allclose(found.boxes[kept], BOXES[[WHOLE, CUT]])
    np.testing.assert_allclose(found.truncation[kept], [0, np.nan])
    np.testing.assert_allclose(found.occlusion[kept], [0, np.nan])
    assert len(np.unique(found.boxes[found.ignore], axis=0)) == 2
    text = (tmp_path / "training/label_2/image_7.txt").read_text()
    assert text.count("DontCare") == 2
    written("kitti", tmp_path / "again", [back[0]], classes=back.classes)  # one region, eight objects
    assert text == (tmp_path / "again/training/label_2/image_image_7.txt").read_text()
    seen = read_dataset(f"kitti:{tmp_path},split=val,depth=depth_2,calib=calib")[0].context
    assert seen.camera == camera
    np.testing.assert_array_equal(np.isnan(seen.depth), np.isinf(depth))
    np.testing.assert_array_equal(seen.depth[4:], depth[4:])


def test_cityscapes_draws_objects_over_the_map(tmp_path: Path) -> None:
    """Objects of classes without instances stay in the map; excused objects are groups."""
    classes, semantic = ("car", "stop sign"), ("road", "sky")
    source = sample(labels=(0, 0, 0, 1))
    back = written("cityscapes", tmp_path, [source], classes=classes, semantic_classes=semantic)
    found, true = objects_of(back), source.truth
    assert back.ids == ("stormproof_image-7_000000",)
    assert {back.classes[label] for label in found.labels} == {"car"}
    assert found.crowd.tolist() == [True, False]
    np.testing.assert_array_equal(found.masks[1].to_mask(), masks()[WHOLE])
    excused = (masks()[CROWD] | masks()[IGNORED]) & (true.semantic.labels != 255)
    np.testing.assert_array_equal(found.masks[0].to_mask(), excused)
    labels = back.truth(0).semantic.labels
    stop = masks()[CUT]
    known = true.semantic.labels[stop] == 0
    assert (labels[stop][known] == cityscapes.SEMANTIC_CLASSES.index("road")).all()
    assert (labels[stop][~known] == 255).all()


def test_cityscapes_keeps_the_names_of_its_own_frames(tmp_path: Path) -> None:
    names = {"classes": ("car", "person"), "semantic_classes": ("road", "sky")}
    writer, destination = find_writer("cityscapes"), Destination(tmp_path, **names)
    path, _ = writer.write(destination, "aachen_000000_000019_leftImg8bit", sample())
    assert path == tmp_path / "leftImg8bit/val/aachen/aachen_000000_000019_leftImg8bit.png"


@pytest.mark.parametrize("names", [("sky", "road"), ("sky", "building")])
def test_camvid_keeps_pixels_without_truth(tmp_path: Path, names: tuple[str, ...]) -> None:
    source = sample()
    back = written("camvid", tmp_path, [source], semantic_classes=names)
    assert back.semantic_classes == names
    np.testing.assert_array_equal(back.truth(0).semantic.labels, source.truth.semantic.labels)


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_says_what_it_lacks_and_drops(name: str, tmp_path: Path) -> None:
    writer = find_writer(name)
    nothing = writer.lacks(Destination(tmp_path))
    assert nothing == "" if name == "images" else "the dataset has no" in nothing
    both = Destination(tmp_path, classes=("car", "stop sign"), semantic_classes=("road",))
    dropped = {"cityscapes": "objects of class stop sign", "camvid": "objects", "panoptic": "objects",
               "images": "objects and label maps"}  # fmt: skip
    assert writer.drops(both) == dropped.get(name, "label maps")


def test_yolo_cuts_off_boxes_that_its_fractions_cannot_state(tmp_path: Path) -> None:
    boxes = [(-30.0, 5, 10, 20), (-2.0, 5, 12, 20), (50.0, 30, 90, 70), (-10.0, 5, WIDTH + 30, 20)]
    source = Sample("a", sample().image, Truth(Instances(boxes, [0] * 4)))
    back = objects_of(written("yolo", tmp_path, [source], classes=("car",)))
    expected = [(0, 5, 10, 20), (-2, 5, 12, 20), (50, 30, WIDTH, HEIGHT), (0, 5, WIDTH, 20)]
    np.testing.assert_allclose(back.boxes, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["camvid", "cityscapes", "panoptic"])
def test_a_sample_without_the_map_that_a_format_needs_is_named(name: str, tmp_path: Path) -> None:
    destination = Destination(tmp_path, classes=("car",), semantic_classes=("road", "sky"))
    with pytest.raises(InvalidTruth, match="7 has no"):
        find_writer(name).write(destination, "7", replace(sample(), truth=Truth()))


def test_unknown_formats_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'coco'"):
        find_writer("cocoa")
