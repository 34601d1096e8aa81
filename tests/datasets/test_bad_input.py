"""Broken files: each a typed error that names the file, the record and the value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from helpers.complaints import complaint
from stormproof.core.errors import DatasetError
from stormproof.datasets import read_dataset

Build = Callable[..., str]


def test_refuses_an_image_of_another_size_than_stated(
    build: Build, tmp_path: Path, trees: ModuleType
) -> None:
    spec = build("coco")
    trees.save(tmp_path / "tree/photos/b.png", np.zeros((10, 32, 3), np.uint8))
    assert "(10, 32)" in complaint(spec)
    assert "(24, 32)" in complaint(spec)


def test_names_a_missing_image_file(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    (tmp_path / "tree/photos/b.png").unlink()
    text = complaint(spec)
    assert "b.png, image '9': no such image file" in text


def test_names_a_truncated_jpeg(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    path = tmp_path / "tree/JPEGImages/2007_000002.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    assert "2007_000002.jpg" in complaint(spec)


def test_refuses_a_label_map_with_unknown_ids(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    for kind, path, value in [
        ("voc-seg", "SegmentationClass/2007_000001.png", 33),
        ("ade20k", "annotations/validation/ADE_val_00000001.png", 151),
        ("camvid", "testannot/0001TP_008550.png", 12),
        ("bdd-seg", "labels/sem_seg/masks/val/b1.png", 19),
    ]:
        spec = build(kind, kind)
        trees.save(tmp_path / kind / path, trees.label_map(0, value))
        text = complaint(spec)
        assert Path(path).name in text
        assert f"384 pixels have unknown class ids [{value}]" in text


def test_refuses_a_label_map_of_colours(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("camvid")
    trees.save(tmp_path / "tree/testannot/0001TP_008550.png", trees.make_image())
    assert "0001TP_008550.png: contains colours (mode RGB)" in complaint(spec)


def test_refuses_a_label_map_of_another_size(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("ade20k")
    trees.save(tmp_path / "tree/annotations/validation/ADE_val_00000001.png", np.zeros((5, 6), np.uint8))
    assert "(24, 32)" in complaint(spec)


def test_names_labels_without_an_image_and_images_without_labels(build: Build, tmp_path: Path) -> None:
    spec = build("ade20k")
    image = tmp_path / "tree/images/validation/ADE_val_00000001.jpg"
    image.rename(image.with_name("ADE_val_00000002.jpg"))
    with pytest.raises(DatasetError) as caught:
        read_dataset(spec)
    found = (caught.value, *caught.value.others)
    texts = sorted(f"{Path(each.file).name} {each.problem}" for each in found)
    assert texts == ["ADE_val_00000001.png has no image.", "ADE_val_00000002.jpg has no label file."]


def test_names_panoptic_annotations_of_unknown_images(build: Build, tmp_path: Path) -> None:
    spec, path = build("panoptic"), tmp_path / "tree/panoptic_val.json"
    content = json.loads(path.read_text())
    content["annotations"][0]["image_id"] = 99
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match="annotation 0: image_id 99 is not among the file's images"):
        read_dataset(spec)


def test_refuses_panoptic_segments_without_a_description(build: Build, tmp_path: Path) -> None:
    spec = build("panoptic")
    path = tmp_path / "tree/panoptic_val.json"
    path.write_text(path.read_text().replace("131077", "131078"))
    assert "131078" in complaint(spec)


BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;&x;&x;&x;&x;">
<!ENTITY z "&y;&y;&y;&y;&y;&y;&y;&y;">]><annotation><object><name>&z;</name></object></annotation>"""
READS_A_FILE = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>
<annotation><object><name>&x;</name></object></annotation>"""


@pytest.mark.parametrize("text", [BOMB, READS_A_FILE])
def test_xml_entities_are_refused(build: Build, tmp_path: Path, text: str) -> None:
    spec = build("voc")
    (tmp_path / "tree/Annotations/2007_000001.xml").write_text(text)
    assert "2007_000001.xml: defines the XML entity 'x'" in complaint(spec)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<name>person</name>", "<name>persn</name>", "object 1: unknown class 'persn'"),
        (
            "<xmax>10</xmax>",
            "<xmax>-3</xmax>",
            "object 0: box xmin, ymin, xmax, ymax = (1.0, 1.0, -3.0, 12.0)",
        ),
        ("<xmax>10</xmax>", "<xmax>ten</xmax>", "object 0: box"),
        ("<xmax>10</xmax>", "<xmax>inf</xmax>", "object 0: box"),
        ("<xmax>10</xmax>", "", "object 0: box"),
        ("</annotation>", "", "is not XML"),
    ],
)
def test_names_the_broken_record_of_a_voc_file(
    build: Build, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    spec = build("voc")
    path = tmp_path / "tree/Annotations/2007_000001.xml"
    path.write_text(path.read_text().replace(old, new))
    assert f"2007_000001.xml, {expected}" in complaint(spec) or f"2007_000001.xml: {expected}" in complaint(
        spec
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Cra 0 0 0 1 2 3 4", "line 1: unknown type 'Cra'"),
        ("Car 0 0 0 1 2 nan 4", "line 1: box x1, y1, x2, y2 = (1.0, 2.0, nan, 4.0)"),
        ("Car 0 0 0 9 2 3 4", "line 1: box"),
        ("Car 0 0 0 1 2 3", "line 1: 'Car 0 0 0 1 2 3' must be"),
        ("Car 0 7 0 1 2 3 4", "line 1: occlusion 7"),
    ],
)
def test_names_the_broken_record_of_a_kitti_file(
    build: Build, tmp_path: Path, line: str, expected: str
) -> None:
    spec = build("kitti")
    (tmp_path / "tree/training/label_2/000000.txt").write_text(line)
    assert f"000000.txt, {expected}" in complaint(spec)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2 0.5 0.5 0.1 0.1", "class 2 is not among the 2 names"),
        ("0.5 0.5 0.5 0.1 0.1", "class 0.5"),
        ("0 0.5 0.5 0.1", "3 coordinates"),
        ("0 0.5 0.5 -0.1 0.1", "from 0 to 1"),
        ("0 50 50 10 10", "from 0 to 1"),
        ("0 0.5 nan 0.1 0.1", "from 0 to 1"),
        ("cat 0.5 0.5 0.1 0.1", "must be a class number"),
    ],
)
def test_names_the_broken_record_of_a_yolo_file(
    build: Build, tmp_path: Path, line: str, expected: str
) -> None:
    spec = build("yolo")
    (tmp_path / "tree/labels/val/a.txt").write_text(f"0 0.5 0.5 0.1 0.1\n{line}\n")
    text = complaint(spec)
    assert "a.txt, line 2" in text
    assert expected in text


def test_names_kitti_images_without_labels(build: Build, tmp_path: Path) -> None:
    spec = build("kitti")
    (tmp_path / "tree/training/label_2/000001.txt").unlink()
    assert "000001.png: has no label file; add one, an empty file if it shows no object" in complaint(spec)
    (tmp_path / "tree/training/ImageSets").mkdir()
    (tmp_path / "tree/training/ImageSets/some.txt").write_text("000000\n")
    assert read_dataset(f"{spec},split=some").ids == ("000000",)


def test_names_kitti_sequences_without_labels(build: Build, tmp_path: Path) -> None:
    spec = build("kitti-tracking")
    (tmp_path / "tree/training/image_02/0099").mkdir()
    assert "0099: has no label file; add one, an empty file if it shows no object" in complaint(spec)
    first = read_dataset(f"{spec},sequence=0000").ids[0]
    assert first.startswith("0000/")


@pytest.mark.parametrize("digits", [20, 5001])
def test_refuses_kitti_track_numbers_that_are_too_large(build: Build, tmp_path: Path, digits: int) -> None:
    spec = build("kitti-tracking")
    line = f"0 {'9' * digits} Car 0 2 1.55 2.5 3 20 15.75 1.5 1.6 4.1 1.0 1.7 13.2 1.6\n"
    (tmp_path / "tree/training/label_02/0000.txt").write_text(line)
    with pytest.raises(DatasetError, match="must begin with the numbers of its frame and its track"):
        read_dataset(spec).truth(0)


@pytest.mark.parametrize("digits", [19, 20, 5001])
def test_refuses_bdd_ids_that_are_too_large_for_a_track(build: Build, tmp_path: Path, digits: int) -> None:
    spec = build("bdd")
    (file,) = (tmp_path / "tree").rglob("*.json")
    frames = json.loads(file.read_text())
    for frame in frames:
        for label in frame["labels"] or ():
            label["id"] = "9" * digits
    file.write_text(json.dumps(frames))
    objects = read_dataset(spec).truth(0).instances
    assert objects is not None
    assert {*objects.tracks.tolist()} == {-1}


def test_yolo_names_are_read_as_they_are_written(build: Build, tmp_path: Path) -> None:
    """YAML takes on and no for truth values, 010 and 1_0 for numbers, ~ for nothing."""
    spec = build("yolo")
    names = ["on", "no", "Yes", "010", "1_0", "1.50", "~", "null", "2001-01-01", "1:30"]
    for listed in (f"[{', '.join(names)}]", "".join(f"\n  {k}: {name}" for k, name in enumerate(names))):
        (tmp_path / "tree/data.yaml").write_text(f"val: images/val\nnames: {listed}\n")
        assert read_dataset(spec).classes == tuple(names)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("val: images/val\nnames: [cat, cat]\n", "class name 'cat' occurs twice"),
        ("val: images/val\nnames: {0: cat, 2: dog}\n", "must run 0, 1, 2"),
        ("val: images/val\nnames: {zero: cat, 1: dog}\n", "must run 0, 1, 2 …, not zero, 1"),
        ("val: images/val\nnames: [cat, [dog]]\n", "it must list the class names"),
        ("val: images/val\n", "names is None"),
        ("val: images/nowhere\nnames: [cat, dog]\n", "'images/nowhere'"),
        ("val: [unclosed\n", "is not YAML"),
        ("!!python/object/apply:os.system [ls]\n", "is not YAML"),
    ],
)
def test_names_the_broken_key_of_yolos_yaml(build: Build, tmp_path: Path, yaml: str, expected: str) -> None:
    spec = build("yolo")
    (tmp_path / "tree/data.yaml").write_text(yaml)
    text = complaint(spec)
    assert "data.yaml" in text
    assert expected in text


def test_refuses_yolo_files_that_mix_boxes_and_polygons(build: Build, tmp_path: Path) -> None:
    spec = build("yolo")
    (tmp_path / "tree/labels/val/b.txt").write_text("0 0.1 0.1 0.5 0.1 0.5 0.5\n")
    assert "b.txt, object 0: this set mixes boxes and polygons" in complaint(spec)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"person"', '"persn"', "frame 'b1.jpg', label 0: unknown category 'persn'"),
        ('"x2": 9', '"x2": -9', "frame 'b1.jpg', label 0: box2d"),
        ('"x2": 9', '"x2": NaN', "frame 'b1.jpg', label 0: box2d"),
        ('"b2.jpg"', '"b1.jpg"', "frame 'b1' occurs twice"),
        ('"b2.jpg"', '"/etc/passwd"', "/etc/passwd"),
    ],
)
def test_names_the_broken_record_of_a_bdd_file(
    build: Build, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    spec = build("bdd")
    path = tmp_path / "tree/det_val.json"
    path.write_text(path.read_text().replace(old, new, 1))
    assert expected in complaint(spec)


def test_refuses_unknown_ids_and_broken_polygons_of_cityscapes(tmp_path: Path, trees: ModuleType) -> None:
    where = tmp_path / "gtFine/val/aa/aa_1_1_gtFine_instanceIds.png"
    trees.save(where, np.full((4, 4), 35000, np.uint16))
    assert "unknown class ids [35]" in complaint(f"cityscapes:{tmp_path}")
    where.unlink()
    bad = {
        "imgHeight": 4,
        "imgWidth": 4,
        "objects": [{"label": "car", "polygon": [[0, 0], [1, "a"], [2, 2]]}],
    }
    trees.save_text(where.with_name("aa_1_1_gtFine_polygons.json"), json.dumps(bad))
    assert "object 0: polygon [[0, 0], [1, 'a'], [2, 2]]" in complaint(f"cityscapes:{tmp_path}")
    bad["objects"] = [{"label": "boat", "polygon": [[0, 0], [1, 1], [2, 2]]}]
    where.with_name("aa_1_1_gtFine_polygons.json").write_text(json.dumps(bad))
    assert "object 0: unknown label 'boat'" in complaint(f"cityscapes:{tmp_path}")


def test_names_missing_folders_and_splits(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    assert "did you mean" in complaint(spec.replace("/tree", "/treee"))
    text = complaint(spec.replace("split=val", "split=vall"))
    assert "no split 'vall'. Did you mean 'val'? Splits found: val." in text
    assert "Splits found: val." in complaint(build("cityscapes", "c") + ",split=test")
    assert "Splits found: validation." in complaint(build("ade20k", "a") + ",split=val")
    assert "Splits found: test." in complaint(build("camvid", "cv").replace("split=test", "split=val"))
    assert "Splits found: train, val." in complaint(build("yolo", "y") + ",split=test")
    assert "choose a split: test" in complaint(f"camvid:{tmp_path}/cv")
    assert "no such file or folder; did you mean" in complaint(build("coco", "co").replace("photos", "photo"))
    (tmp_path / "empty").mkdir()
    assert "contains no images" in complaint(f"images:{tmp_path}/empty")
    assert "XML annotations" in complaint(f"voc:{tmp_path}/empty")


def test_refuses_two_images_with_one_name(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("images")
    trees.save(tmp_path / "tree/b.jpg", trees.make_image())
    assert "image id 'b' occurs twice" in complaint(spec)


def test_a_line_of_a_track_without_an_object_is_refused(tmp_path: Path) -> None:
    from stormproof.datasets.kitti import _tracks

    (tmp_path / "0000.txt").write_text("0 7\n")
    with pytest.raises(DatasetError, match="unknown type ''"):
        _tracks(tmp_path / "0000.txt")
