"""What each format's own rules make of a tiny example, value by value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.core.errors import DatasetError
from stormproof.core.sample import RLE, Instances
from stormproof.datasets import ade20k, cityscapes, find_writer, kitti, read_dataset
from stormproof.datasets.writing import Destination
from stormproof.datasets.yolo import label_file

Build = Callable[..., str]


def stripes(trees: ModuleType, *values: int) -> np.ndarray:
    return trees.label_map(*values)


def test_voc_boxes_count_pixels_from_one(build: Build) -> None:
    dataset = read_dataset(build("voc"))
    found = dataset.truth(0).instances
    assert dataset.ids == ("2007_000001", "2007_000002")
    assert [dataset.classes[label] for label in found.labels] == ["car", "person"]
    assert found.boxes.tolist() == [[0, 0, 10, 12], [4.5, 1, 30, 24]]
    assert found.ignore.tolist() == [False, True]  # difficult
    np.testing.assert_array_equal(found.truncation, [0, np.nan])
    assert len(dataset.truth(1).instances) == 0


def test_voc_without_a_split_reads_every_annotation(build: Build) -> None:
    everything = read_dataset(build("voc").removesuffix(",split=val"))
    assert everything.ids == ("2007_000001", "2007_000002", "2007_000003")


def test_voc_class_lists_are_splits_too(build: Build) -> None:
    assert len(read_dataset(build("voc").replace("split=val", "split=car_val"))) == 2


def test_voc_takes_custom_classes(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("voc")
    trees.save_text(tmp_path / "tree/names.txt", "person\n\ncar\n")
    dataset = read_dataset(f"{spec},classes=names.txt")
    assert dataset.classes == ("person", "car")
    assert dataset.truth(0).instances.labels.tolist() == [1, 0]


def test_a_voc_devkit_folder_opens_the_folder_of_its_year(tmp_path: Path, trees: ModuleType) -> None:
    (tmp_path / "VOC2012").mkdir()
    trees.voc(tmp_path / "VOC2012")
    assert len(read_dataset(f"voc:{tmp_path},split=val")) == 2


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("voc-seg", (0, 7, 15, 255)),
        ("ade20k", (255, 0, 1, 149)),
        ("camvid", (0, 8, 10, 255)),
        ("bdd-seg", (0, 13, 18, 255)),
        ("panoptic", (255, 0, 1, 1)),
    ],
)
def test_reads_label_maps_of_every_format(
    build: Build, trees: ModuleType, kind: str, expected: tuple[int, ...]
) -> None:
    semantic = read_dataset(build(kind)).truth(0).semantic
    assert semantic.ignore == 255
    np.testing.assert_array_equal(semantic.labels, stripes(trees, *expected))


def test_class_tables_have_the_published_sizes() -> None:
    assert len(set(ade20k.CLASSES)) == 150
    assert len(cityscapes.SEMANTIC_CLASSES) == 19
    assert cityscapes.CLASSES == ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")
    assert sorted(label.id for label in cityscapes.LABELS) == list(range(-1, 34))
    trained = [label.train_id for label in cityscapes.LABELS if label.train_id != 255]
    assert trained == list(range(19))


def test_panoptic_keeps_the_segments(build: Build) -> None:
    dataset = read_dataset(build("panoptic"))
    assert dataset.semantic_classes == ("person", "rug")
    assert np.unique(dataset.truth(0).panoptic).tolist() == [0, 300, 131077]


def test_reads_cityscapes_instances_groups_and_trailers(build: Build) -> None:
    spec = build("cityscapes")
    assert not read_dataset(spec).truth(0).instances.ignore.any()  # the trailer is left out
    dataset = read_dataset(f"{spec},excuse_caravans=true")
    truth = dataset.truth(0)
    found = truth.instances
    kept = ~found.ignore
    assert [dataset.classes[k] for k in found.labels[kept]] == ["person", "car", "car"]
    assert found.ids[kept].tolist() == [24, 26000, 26001]
    assert found.crowd[kept].tolist() == [True, False, False]
    assert found.boxes[kept].tolist() == [[2, 14, 6, 20], [4, 8, 10, 12], [12, 8, 20, 12]]
    assert found.area[kept].tolist() == [24, 24, 32]
    # The trailer excuses detections of any class.
    assert sorted(found.labels[found.ignore].tolist()) == list(range(8))
    assert np.unique(found.boxes[found.ignore], axis=0).tolist() == [[10, 14, 14, 20]]
    labels = truth.semantic.labels
    assert (labels[0, 0], labels[5, 0], labels[9, 5], labels[15, 3], labels[15, 11]) == (10, 0, 13, 11, 255)
    assert dataset.category_ids == (24, 25, 26, 27, 28, 31, 32, 33)


@pytest.mark.parametrize("option", ["", ",excuse_caravans=true"])
def test_cityscapes_copies_excuse_what_the_original_excuses(
    build: Build, tmp_path: Path, option: str
) -> None:
    original = read_dataset(build("cityscapes") + option)
    writer = find_writer("cityscapes")
    names = {"classes": original.classes, "semantic_classes": original.semantic_classes}
    destination = Destination(tmp_path / "copy", **names)
    writer.write(destination, "aachen_000000_000019", original[0])
    ours, theirs = read_dataset(str(writer.spec(destination))).truth(0), original.truth(0)
    np.testing.assert_array_equal(ours.semantic.labels, theirs.semantic.labels)
    for field in ("ids", "labels", "boxes", "crowd", "ignore"):
        np.testing.assert_array_equal(getattr(ours.instances, field), getattr(theirs.instances, field))


def polygon_file() -> str:
    def box(label: str, x1: int, y1: int, x2: int, y2: int, **more: int) -> dict[str, object]:
        # Cityscapes' own tools fill a polygon's outline too, so the far pixels are x2 − 1 and y2 − 1.
        corners = [[x1, y1], [x2 - 1, y1], [x2 - 1, y2 - 1], [x1, y2 - 1]]
        return {"label": label, "polygon": corners, **more}

    objects = [
        box("road", 0, 0, 32, 24),
        box("sky", 0, 0, 32, 4),
        box("car", 4, 8, 10, 12),
        box("bus", 0, 0, 32, 24, deleted=1),
        box("car", 12, 8, 20, 12),
        box("persongroup", 2, 14, 6, 20),
        box("trailer", 10, 14, 14, 20),
        box("license plate", 5, 9, 7, 10),
    ]
    return json.dumps({"imgHeight": 24, "imgWidth": 32, "objects": objects})


def test_cityscapes_polygons_say_the_same_as_instance_ids(build: Build, tmp_path: Path) -> None:
    spec = build("cityscapes")
    from_ids = read_dataset(spec).truth(0)
    for path in (tmp_path / "tree/gtFine/val/aa").glob("*_instanceIds.png"):
        path.with_name(path.name.replace("instanceIds.png", "polygons.json")).write_text(polygon_file())
        path.unlink()
    dataset = read_dataset(spec)
    assert dataset.size(0) == (24, 32)
    from_polygons = dataset.truth(0)
    np.testing.assert_array_equal(from_polygons.semantic.labels, from_ids.semantic.labels)
    for name in ("boxes", "labels", "crowd", "ignore", "ids", "area"):
        np.testing.assert_array_equal(
            getattr(from_polygons.instances, name), getattr(from_ids.instances, name), err_msg=name
        )


@pytest.mark.parametrize(
    ("kind", "values"), [("labelIds", (7, 26, 24, 4)), ("labelTrainIds", (0, 13, 11, 255))]
)
def test_reads_cityscapes_with_label_ids_only(
    tmp_path: Path, trees: ModuleType, kind: str, values: tuple[int, ...]
) -> None:
    trees.save(tmp_path / f"gtFine/val/aa/aa_1_1_gtFine_{kind}.png", trees.label_map(*values))
    dataset = read_dataset(f"cityscapes:{tmp_path}")
    assert dataset.classes == ()
    assert dataset.truth(0).instances is None
    np.testing.assert_array_equal(dataset.truth(0).semantic.labels, trees.label_map(0, 13, 11, 255))


def test_reads_bdds_names_flags_and_lanes(build: Build) -> None:
    dataset = read_dataset(build("bdd"))
    found = dataset.truth(0).instances
    assert [dataset.classes[label] for label in found.labels] == ["pedestrian", "car"]
    assert found.boxes.tolist() == [[1.5, 2, 9, 12.25]] * 2
    assert (found.crowd.tolist(), found.ignore.tolist()) == ([True, False], [False, True])
    np.testing.assert_array_equal(found.occlusion, [0, np.nan])
    assert len(dataset.truth(1).instances) == 0


def test_reads_bdds_weather_and_scene(build: Build) -> None:
    assert read_dataset(build("bdd")).attributes == {"weather": {"b1": "rainy"}, "scene": {"b1": "tunnel"}}


def test_reads_the_city_of_cityscapes(build: Build) -> None:
    cities = read_dataset(build("cityscapes")).attributes["city"]
    assert [*cities.values()] == [name.partition("_")[0] for name in cities]


def test_reads_bdds_segmentation_in_the_older_layout(tmp_path: Path, trees: ModuleType) -> None:
    trees.save(tmp_path / "seg/images/val/x.jpg", trees.make_image())
    trees.save(tmp_path / "seg/labels/val/x_train_id.png", trees.label_map(0, 255, 1, 2))
    dataset = read_dataset(f"bdd-seg:{tmp_path}")
    assert dataset.ids == ("x",)
    np.testing.assert_array_equal(dataset.truth(0).semantic.labels, trees.label_map(0, 255, 1, 2))


def test_kitti_dont_care_excuses_every_class(build: Build) -> None:
    dataset = read_dataset(build("kitti"))
    found = dataset.truth(0).instances
    assert found.labels.tolist() == [0, *range(8)]
    assert found.ignore.tolist() == [False] + [True] * 8
    assert found.boxes[0].tolist() == [2.5, 3, 20, 15.75]
    assert found.boxes[1:].tolist() == [[1, 1, 5, 6]] * 8
    assert (found.truncation[0], found.occlusion[0]) == (0.25, kitti.OCCLUSION[2])
    assert np.isnan(found.truncation[1])


def test_kitti_s_distance_is_the_z_of_its_location(build: Build) -> None:
    """… 1.5 1.6 4.1 are height, width and length, 1.0 1.7 13.2 the location x, y, z, 1.6 the turn."""
    for kind in ("kitti", "kitti-tracking"):
        found = read_dataset(build(kind, kind)).truth(0).instances
        assert found.distance[0] == 13.2
        assert np.isnan(found.distance[found.ignore]).all(), "a region without a location"


@pytest.mark.parametrize(("grade", "hidden"), [(0, 0.0), (1, 1 / 3), (2, 2 / 3), (3, np.nan)])
def test_kitti_s_grades_of_occlusion_are_thirds(
    build: Build, tmp_path: Path, grade: int, hidden: float
) -> None:
    spec, file = build("kitti"), tmp_path / "tree/training/label_2/000000.txt"
    file.write_text(file.read_text().replace("Car 0.25 2", f"Car 0.25 {grade}"))
    np.testing.assert_allclose(read_dataset(spec).truth(0).instances.occlusion[0], hidden)


@pytest.mark.parametrize(
    ("occlusion", "grade"), [(0.0, 0), (0.099, 0), (0.1, 1), (0.499, 1), (0.5, 2), (1.0, 2), (np.nan, 3)]
)
def test_kitti_writes_a_tenth_as_partly_and_a_half_as_largely_hidden(occlusion: float, grade: int) -> None:
    objects = Instances([[0, 0, 5, 5]], [0], occlusion=[occlusion])
    (line,) = kitti._lines(objects, ("Car",), ())
    assert line.split()[2] == str(grade)


def test_panoptic_crowds_are_crowds(build: Build, tmp_path: Path) -> None:
    spec, file = build("panoptic"), tmp_path / "tree/panoptic_val.json"
    content = json.loads(file.read_text())
    content["annotations"][0]["segments_info"][0]["iscrowd"] = 1
    file.write_text(json.dumps(content))
    assert read_dataset(spec).truth(0).crowds == (300,)
    assert read_dataset(spec).things == ("person",)


def test_bdd_keeps_riders_apart_from_pedestrians(build: Build, tmp_path: Path) -> None:
    """The benchmark's names, those of the 2018 release, and the categories it excuses."""
    spec, file = build("bdd"), tmp_path / "tree/det_val.json"
    frames = json.loads(file.read_text())
    box = {"x1": 1, "y1": 2, "x2": 9, "y2": 12}
    said = {
        "rider": "rider", "person": "pedestrian", "pedestrian": "pedestrian", "bike": "bicycle",
        "motor": "motorcycle", "truck": "truck", "trailer": "truck", "other person": "pedestrian",
    }  # fmt: skip
    frames[0]["labels"] = [{"id": str(k), "category": name, "box2d": box} for k, name in enumerate(said)]
    file.write_text(json.dumps(frames))
    dataset = read_dataset(spec)
    found = dataset.truth(0).instances
    assert [dataset.classes[label] for label in found.labels] == [*said.values()]
    assert found.ignore.tolist() == [False] * 6 + [True] * 2


def test_yolo_replaces_the_last_images_of_a_path_by_labels() -> None:
    assert label_file(Path("images/coco/images/val/a.jpg")).as_posix() == "images/coco/labels/val/a.txt"
    assert label_file(Path("set/val/images.jpg")).as_posix() == "set/val/images.txt"


def test_voc_flags_of_0_mean_that_an_object_is_whole(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    """A flag of 0 means nothing is hidden or cut off; of 1, that something is, and not how much."""
    spec = build("voc")
    flags = "<occluded>{}</occluded><truncated>{}</truncated>"
    objects = [trees.voc_object("car", (1, 1, 10, 12), flags.format(*pair)) for pair in ((0, 1), (1, 0))]
    trees.save_text(
        tmp_path / "tree/Annotations/2007_000001.xml",
        trees.voc_xml(*objects, trees.voc_object("car", (1, 1, 2, 2))),
    )
    found = read_dataset(spec).truth(0).instances
    np.testing.assert_array_equal(found.occlusion, [0, np.nan, np.nan])
    np.testing.assert_array_equal(found.truncation, [np.nan, 0, np.nan])


def test_camvid_takes_classes_from_its_file(tmp_path: Path, trees: ModuleType) -> None:
    trees.save(tmp_path / "images/a.png", trees.make_image())
    trees.save(tmp_path / "labels/a_L.png", trees.label_map(0, 1, 2, 2))
    names = {"classes": {"0": "road", "2": "void", "1": "sky"}, "ignore_index": 2}
    trees.save_text(tmp_path / "classes.json", json.dumps(names))
    dataset = read_dataset(f"camvid:{tmp_path}")
    assert dataset.semantic_classes == ("road", "sky")
    np.testing.assert_array_equal(dataset.truth(0).semantic.labels, trees.label_map(0, 1, 255, 255))


def test_yolo_boxes_are_fractions_around_a_centre(build: Build) -> None:
    dataset = read_dataset(build("yolo"))
    found = dataset.truth(0).instances
    assert dataset.ids == ("a", "b")
    assert [dataset.classes[label] for label in found.labels] == ["dog", "cat"]
    assert found.boxes.tolist() == [[12, 6, 20, 18], [0, 0, 16, 12]]
    assert found.masks is None
    assert len(dataset.truth(1).instances) == 0  # no label file: no objects


def test_yolo_polygons_become_masks(build: Build, tmp_path: Path) -> None:
    spec = build("yolo")
    (tmp_path / "tree/labels/val/a.txt").write_text("1 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n")
    dataset = read_dataset(spec)
    found = dataset.truth(0).instances
    assert found.boxes.tolist() == [[8, 6, 24, 18]]
    expected = np.zeros((24, 32), bool)
    expected[6:18, 8:24] = True
    np.testing.assert_array_equal(found.masks[0].to_mask(), expected)
    assert dataset.truth(1).instances.masks == ()


@pytest.mark.parametrize(
    "yaml",
    [
        "val: images/val\nnames: [cat, dog]\n",
        "path: /no/longer/there\nval: [images/val]\nnames: [cat, dog]\n",
        "val: ../images/val\nnames: [cat, dog]\n",
        "val: list.txt\nnames: {0: cat, 1: dog}\n",
    ],
)
def test_reads_variants_of_yolos_data_yaml(build: Build, tmp_path: Path, yaml: str) -> None:
    spec = build("yolo")
    (tmp_path / "tree/data.yaml").write_text(yaml)
    (tmp_path / "tree/list.txt").write_text("./images/val/a.png\nimages/val/b.png\n")
    dataset = read_dataset(spec)
    assert dataset.ids == ("a", "b")
    assert len(dataset.truth(0).instances) == 2


def test_image_folder_ids_are_paths(build: Build, tmp_path: Path) -> None:
    dataset = read_dataset(build("images"))
    assert dataset.ids == ("b", "deeper/a", "grey")
    assert dataset[2].image.shape == (24, 32)
    assert read_dataset(f"images:{tmp_path}/tree/b.png").ids == ("b",)


def test_reads_objects_and_maps_from_a_tar(build: Build, trees: ModuleType) -> None:
    dataset = read_dataset(build("tar"))
    assert dataset.ids == ("set/a", "set/b")
    assert dataset.classes == ("dog",)
    truth = dataset.truth(0)
    assert truth.instances.boxes.tolist() == [[2, 3, 12, 11]]
    expected = np.zeros((24, 32), bool)
    expected[3:11, 2:12] = True
    assert truth.instances.masks[0].counts.tolist() == RLE.from_mask(expected).counts.tolist()
    np.testing.assert_array_equal(truth.semantic.labels, trees.label_map(0, 1, 255, 0))
    assert dataset.truth(1).semantic is None
    np.testing.assert_array_equal(dataset[1].image, trees.make_image(2))


def test_objects_in_a_tar_may_be_rows_of_a_coco_file(tmp_path: Path, trees: ModuleType) -> None:
    """Their image_id is a number of that file; in the archive, the name says which image is meant."""
    rows = [{"id": 7, "image_id": 139, "category": "dog", "bbox": [1, 2, 3, 4]}]
    image = trees.png(trees.make_image())
    trees.write_tar(tmp_path / "x.tar", {"a.png": image, "a.json": json.dumps(rows).encode()})
    assert read_dataset(f"tar:{tmp_path}/x.tar").truth(0).instances.boxes.tolist() == [[1, 2, 4, 6]]


def test_reads_tar_shards_by_range_and_pattern(tmp_path: Path, trees: ModuleType) -> None:
    for i in range(3):
        trees.write_tar(tmp_path / f"val-{i:04d}.tar", {f"{i}.png": trees.png(trees.make_image(i))})
    assert read_dataset(f"tar:{tmp_path}/val-{{0000..0002}}.tar").ids == ("0", "1", "2")
    assert read_dataset(f"tar:{tmp_path}/val-*.tar").ids == ("0", "1", "2")


def test_tar_fingerprint_follows_labels_not_pixels(tmp_path: Path, trees: ModuleType) -> None:
    def fingerprint(seed: int, box: list[int]) -> str:
        label = json.dumps([{"category": "dog", "bbox": box}]).encode()
        trees.write_tar(tmp_path / "x.tar", {"a.png": trees.png(trees.make_image(seed)), "a.json": label})
        return read_dataset(f"tar:{tmp_path}/x.tar").fingerprint

    assert fingerprint(1, [1, 2, 3, 4]) == fingerprint(2, [1, 2, 3, 4]) != fingerprint(1, [1, 2, 3, 5])


def test_nrec_parts_of_people_are_ignored(build: Callable[..., str]) -> None:
    dataset = read_dataset(build("nrec"))
    found = dataset.truth(0).instances
    assert found is not None
    assert found.labels.tolist() == [0, 0]
    assert found.ignore.tolist() == [False, True]
    nobody = dataset.truth(1).instances
    assert nobody is not None
    assert len(nobody.labels) == 0
    with pytest.raises(DatasetError, match="test"):
        read_dataset(build("nrec", "other") + ",split=tset")
