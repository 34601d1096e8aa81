"""Broken files: each a typed error that names the file, the record and the value."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stormproof.datasets import open_dataset
from stormproof.errors import DatasetError, InvalidImage, StormproofError

Build = Callable[..., str]


def open_everything(spec: str) -> None:
    dataset = open_dataset(spec)
    for i in range(len(dataset)):
        dataset.truth(i)
        dataset[i]


def complaint(spec: str) -> str:
    """The first complaint from opening a dataset and everything in it."""
    with pytest.raises(StormproofError) as caught:
        open_everything(spec)
    assert isinstance(caught.value, DatasetError | InvalidImage), repr(caught.value)
    return str(caught.value)


def edit_coco(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = tmp_path / "tree/instances_val.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_broken_json_names_the_line(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    path = tmp_path / "tree/instances_val.json"
    path.write_text(path.read_text()[:200])
    assert "instances_val.json, line 1 column" in complaint(spec)


Change = Callable[[dict[str, Any]], object]


def annotation(number: int, **fields: Any) -> Change:
    return lambda content: content["annotations"][number].update(fields)


def image(number: int, **fields: Any) -> Change:
    return lambda content: content["images"][number].update(fields)


def runs(number: int, **fields: Any) -> Change:
    return lambda content: content["annotations"][number]["segmentation"].update(fields)


COCO_CHANGES: dict[str, tuple[Change, list[str]]] = {
    "missing image": (annotation(0, image_id=404), ["annotation 1", "image_id 404 is not among"]),
    "unknown category": (annotation(1, category_id=99), ["annotation 2", "category_id 99"]),
    "negative box": (annotation(0, bbox=[2, 3, -10, 8]), ["annotation 1", "[2, 3, -10, 8]"]),
    "nan box": (annotation(2, bbox=[2, 3, float("nan"), 8]), ["annotation 5", "nan"]),
    "short box": (annotation(0, bbox=[2, 3]), ["annotation 1", "bbox [2, 3]"]),
    "no box": (lambda content: content["annotations"][0].pop("bbox"), ["annotation 1", "lacks bbox"]),
    "negative area": (annotation(0, area=-1), ["annotation 1", "area -1"]),
    "wrong rle size": (runs(1, size=[10, 10]), ["annotation 2", "[10, 10]", "[24, 32]"]),
    "rle that does not add up": (runs(1, counts=[0, 5]), ["annotation 2", "add up to 5", "768"]),
    "cut rle": (runs(2, counts="T33e0000P"), ["annotation 5", "T33e"]),
    "negative runs": (runs(1, counts=[-5, 773]), ["annotation 2", "[-5, 773]"]),
    "two-point polygon": (annotation(0, segmentation=[[1, 2, 3, 4]]), ["annotation 1", "at least 3 points"]),
    "a mask missing": (annotation(0, segmentation=[]), ["annotation 1", "masks=false"]),
    "annotation ids twice": (annotation(0, id=5), ["annotation 5", "occurs twice"]),
    "image ids twice": (image(0, id=9), ["image id '9' occurs twice"]),
    "category ids twice": (
        lambda content: content["categories"][0].update(id=3),
        ["category 3", "occurs twice"],
    ),
    "class names collide": (
        lambda content: content["categories"][0].update(name="car "),
        ["class name 'car' occurs twice"],
    ),
    "no images list": (lambda content: content.pop("images"), ["no list 'images'"]),
    "a path out of the folder": (image(0, file_name="../../etc/x.png"), ["../../etc/x.png"]),
    "wrong image size": (image(1, height=25), ["RLE size [24, 32]", "[25, 32]"]),
    "size of nothing": (image(1, height=0), ["image 9", "(0, 32)"]),
}


@pytest.mark.parametrize("case", COCO_CHANGES)
def test_coco(build: Build, tmp_path: Path, case: str) -> None:
    spec = build("coco")
    change, expected = COCO_CHANGES[case]
    edit_coco(tmp_path, change)
    text = complaint(spec)
    for part in ["instances_val.json", *expected]:
        assert part in text


def test_all_problems_of_a_file_come_together(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    edit_coco(tmp_path, lambda c: [row.update(bbox=[0, 0, -1, 1]) for row in c["annotations"]])
    with pytest.raises(DatasetError) as caught:
        open_dataset(spec)
    assert [error.record for error in (caught.value, *caught.value.others)] == [
        f"annotation {i}" for i in (1, 2, 5)
    ]
    assert "and 2 more" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.record, len(again.others)) == (str(caught.value), "annotation 1", 2)


def test_image_of_another_size_than_stated(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("coco")
    trees.save(tmp_path / "tree/pictures/b.png", np.zeros((10, 32, 3), np.uint8))
    assert "(10, 32)" in complaint(spec)
    assert "(24, 32)" in complaint(spec)


def test_missing_image_file(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    (tmp_path / "tree/pictures/b.png").unlink()
    text = complaint(spec)
    assert "b.png, image '9': no such image file" in text


def test_truncated_jpeg(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    path = tmp_path / "tree/JPEGImages/2007_000002.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    assert "2007_000002.jpg" in complaint(spec)


def test_label_map_with_unknown_ids(build: Build, tmp_path: Path, trees: ModuleType) -> None:
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
        assert f"384 pixels hold unknown class ids [{value}]" in text


def test_label_map_of_colours(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("camvid")
    trees.save(tmp_path / "tree/testannot/0001TP_008550.png", trees.picture())
    assert "0001TP_008550.png: holds colours (mode RGB)" in complaint(spec)


def test_label_map_of_another_size(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("ade20k")
    trees.save(tmp_path / "tree/annotations/validation/ADE_val_00000001.png", np.zeros((5, 6), np.uint8))
    assert "(24, 32)" in complaint(spec)


def test_labels_without_image_and_image_without_labels(build: Build, tmp_path: Path) -> None:
    spec = build("ade20k")
    image = tmp_path / "tree/images/validation/ADE_val_00000001.jpg"
    image.rename(image.with_name("ADE_val_00000002.jpg"))
    with pytest.raises(DatasetError) as caught:
        open_dataset(spec)
    found = (caught.value, *caught.value.others)
    texts = sorted(f"{Path(each.file).name} {each.problem}" for each in found)
    assert texts == ["ADE_val_00000001.png has no image.", "ADE_val_00000002.jpg has no label file."]


def test_panoptic_segments_that_nobody_described(build: Build, tmp_path: Path) -> None:
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
def test_voc(build: Build, tmp_path: Path, old: str, new: str, expected: str) -> None:
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
def test_kitti(build: Build, tmp_path: Path, line: str, expected: str) -> None:
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
def test_yolo(build: Build, tmp_path: Path, line: str, expected: str) -> None:
    spec = build("yolo")
    (tmp_path / "tree/labels/val/a.txt").write_text(f"0 0.5 0.5 0.1 0.1\n{line}\n")
    text = complaint(spec)
    assert "a.txt, line 2" in text
    assert expected in text


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("val: images/val\nnames: [cat, cat]\n", "class name 'cat' occurs twice"),
        ("val: images/val\nnames: {0: cat, 2: dog}\n", "must run 0, 1, 2"),
        ("val: images/val\n", "names is None"),
        ("val: images/nowhere\nnames: [cat, dog]\n", "'images/nowhere'"),
        ("val: [unclosed\n", "is not YAML"),
        ("!!python/object/apply:os.system [ls]\n", "is not YAML"),
    ],
)
def test_yolo_yaml(build: Build, tmp_path: Path, yaml: str, expected: str) -> None:
    spec = build("yolo")
    (tmp_path / "tree/data.yaml").write_text(yaml)
    text = complaint(spec)
    assert "data.yaml" in text
    assert expected in text


def test_yolo_boxes_and_polygons_mixed(build: Build, tmp_path: Path) -> None:
    spec = build("yolo")
    (tmp_path / "tree/labels/val/b.txt").write_text("0 0.1 0.1 0.5 0.1 0.5 0.5\n")
    assert "b.txt, object 0: boxes and polygons are mixed" in complaint(spec)


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
def test_bdd(build: Build, tmp_path: Path, old: str, new: str, expected: str) -> None:
    spec = build("bdd")
    path = tmp_path / "tree/det_val.json"
    path.write_text(path.read_text().replace(old, new, 1))
    assert expected in complaint(spec)


def test_cityscapes_unknown_ids_and_polygons(tmp_path: Path, trees: ModuleType) -> None:
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


def test_folders_and_splits_that_are_not_there(build: Build, tmp_path: Path) -> None:
    spec = build("voc")
    assert "did you mean" in complaint(spec.replace("/tree", "/treee"))
    text = complaint(spec.replace("split=val", "split=vall"))
    assert "no split 'vall'. Did you mean 'val'? Splits found: val." in text
    assert "Splits found: val." in complaint(build("cityscapes", "c") + ",split=test")
    assert "Splits found: validation." in complaint(build("ade20k", "a") + ",split=val")
    assert "Splits found: test." in complaint(build("camvid", "cv").replace("split=test", "split=val"))
    assert "Splits found: train, val." in complaint(build("yolo", "y") + ",split=test")
    assert "choose a split: test" in complaint(f"camvid:{tmp_path}/cv")
    assert "no such file or folder; did you mean" in complaint(
        build("coco", "co").replace("pictures", "picture")
    )
    (tmp_path / "empty").mkdir()
    assert "holds no images" in complaint(f"images:{tmp_path}/empty")
    assert "XML annotations" in complaint(f"voc:{tmp_path}/empty")


def test_two_images_of_one_name(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("images")
    trees.save(tmp_path / "tree/b.jpg", trees.picture())
    assert "image id 'b' occurs twice" in complaint(spec)


def tar_with(path: Path, entry: tarfile.TarInfo, content: bytes = b"") -> str:
    entry.size = entry.size or len(content)
    with tarfile.open(path, "w") as archive:
        archive.addfile(entry, io.BytesIO(content.ljust(entry.size)))
    return f"tar:{path}"


@pytest.mark.parametrize("name", ["../a.png", "/etc/a.png", "x/../../a.png", "..\\a.png"])
def test_tar_members_that_lead_out(tmp_path: Path, name: str) -> None:
    entry = tarfile.TarInfo("placeholder")
    entry.name = name
    assert "leads out of the archive" in complaint(tar_with(tmp_path / "x.tar", entry))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_tar_links_and_devices(tmp_path: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("a.png")
    entry.type, entry.linkname = kind, "/etc/passwd"
    assert "x.tar, a.png: is a link, device or sparse file" in complaint(tar_with(tmp_path / "x.tar", entry))


def test_tar_members_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.datasets.tar.MAX_MEMBER_BYTES", 10)
    assert "has 11 bytes; the limit is 10" in complaint(
        tar_with(tmp_path / "x.tar", tarfile.TarInfo("a.png"), b"x" * 11)
    )


def test_tar_samples_that_are_not_whole(tmp_path: Path, trees: ModuleType) -> None:
    path, image = tmp_path / "x.tar", trees.png(trees.picture())
    rows = [{"category": "dog", "bbox": [1, 2, -3, 4]}]
    cases: list[tuple[dict[str, bytes], str]] = [
        ({"a.json": b"[]"}, "sample 'a': has 0 images"),
        ({"a.png": image, "a.jpg": image}, "sample 'a': has 2 images"),
        ({"README": b"hello"}, "README: has no key and ending"),
        ({"a.png": image, "a.json": b"{"}, "a.json, line 1 column 2"),
        ({"a.png": image, "a.json": json.dumps(rows).encode()}, "a.json, annotation 0: bbox [1, 2, -3, 4]"),
        ({"a.png": image[:200]}, "a.png: cannot be decoded"),
        ({"a.png": image, "a.seg.png": image}, "semantic_classes=FILE"),
    ]
    for members, expected in cases:
        trees.write_tar(path, members)
        assert expected in complaint(f"tar:{path}")
    path.write_bytes(b"not a tar" * 100)
    assert "uncompressed tar" in complaint(f"tar:{path}")
    with tarfile.open(tmp_path / "y.tar.gz", "w:gz"):
        pass
    assert "gunzip" in complaint(f"tar:{tmp_path}/y.tar.gz")
