"""Wrong annotation files in every format are named, and right ones raise no alarm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import DatasetError
from stormproof.datasets import read_dataset
from stormproof.datasets.annotation_checks import Gravity
from stormproof.datasets.survey import check, evenly_spread, first_findings, survey

HEIGHT, WIDTH, IMAGES = 60, 80, 12
VOC_NAMES = ("bird", "boat", "car", "person")
Change = Callable[[np.ndarray], np.ndarray]


def boxes_of(image: int) -> np.ndarray:
    """Six random boxes x1 y1 x2 y2 in whole pixels, inside the image."""
    numbers = np.random.default_rng(image)
    sides = numbers.integers(4, 30, (6, 2))
    low = numbers.integers(0, np.array([WIDTH, HEIGHT]) - sides + 1)
    return np.hstack([low, low + sides]).astype(float)


def labels_of(image: int) -> np.ndarray:
    return (np.arange(6) + image) % len(VOC_NAMES)


def photograph(path: Path, image: int, *, orientation: int = 1, rotated: bool = False) -> None:
    """A noisy JPEG or PNG; `rotated` stores it so that a viewer that heeds the tag shows it upright."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = PIL.Image.fromarray(
        np.random.default_rng(100 + image).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    )
    if rotated:
        pixels = pixels.transpose(
            {6: PIL.Image.Transpose.ROTATE_90, 3: PIL.Image.Transpose.ROTATE_180}[orientation]
        )
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    pixels.save(path, exif=exif)


def text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def same(boxes: np.ndarray) -> np.ndarray:
    return boxes


def as_sides(boxes: np.ndarray) -> np.ndarray:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])


def as_centres(boxes: np.ndarray) -> np.ndarray:
    return np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]])


def fractions(boxes: np.ndarray) -> np.ndarray:
    return boxes / [WIDTH, HEIGHT, WIDTH, HEIGHT]


def on_its_side(boxes: np.ndarray) -> np.ndarray:
    return as_sides(boxes)[:, [1, 0, 3, 2]]


def from_one(boxes: np.ndarray) -> np.ndarray:
    """As VOC counts pixels."""
    return boxes + np.array([1, 1, 0, 0])


def coco(root: Path, *, box: Change = as_sides, size: tuple[int, int] = (HEIGHT, WIDTH), **more: Any) -> str:
    """A COCO file; `box` says what becomes of corners, `more` changes every annotation."""
    rows: list[dict[str, Any]] = []
    for image in range(IMAGES):
        photograph(root / f"images/{image}.jpg", image)
        for numbers, label in zip(box(boxes_of(image)).tolist(), labels_of(image).tolist(), strict=True):
            row = {
                "id": len(rows) + 1,
                "image_id": image,
                "category_id": label + 1,
                "bbox": numbers,
                "iscrowd": 0,
            }
            rows.append(row | more)
    content = {
        "images": [
            {"id": i, "file_name": f"{i}.jpg", "height": size[0], "width": size[1]} for i in range(IMAGES)
        ],
        "categories": [{"id": i + 1, "name": name} for i, name in enumerate(VOC_NAMES)],
        "annotations": rows,
    }  # fmt: skip
    text(root / "set.json", json.dumps(content))
    return f"coco:{root}/set.json,images={root}/images"


def edited(root: Path, change: Callable[[dict[str, Any]], None], **more: Any) -> str:
    """A COCO file changed as a whole."""
    spec = coco(root, **more)
    content = json.loads((root / "set.json").read_text())
    change(content)
    text(root / "set.json", json.dumps(content))
    return spec


def voc(root: Path, *, box: Change = from_one, orientation: int = 1) -> str:
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
    for image in range(IMAGES):
        photograph(root / f"JPEGImages/{image}.jpg", image, orientation=orientation)
        objects = ""
        for (x1, y1, x2, y2), label in zip(box(boxes_of(image)), labels_of(image), strict=True):
            corners = f"<xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
            objects += f"<object><name>{VOC_NAMES[label]}</name><bndbox>{corners}</bndbox></object>"
        text(root / f"Annotations/{image}.xml", f"<annotation>{size}{objects}</annotation>")
    return f"voc:{root}"


def yolo(root: Path, *, box: Change = as_centres, labels: str = "labels", **photo: Any) -> str:
    for image in range(IMAGES):
        photograph(root / f"images/val/{image}.jpg", image, **photo)
        rows = zip(labels_of(image), fractions(box(boxes_of(image))), strict=True)
        lines = [f"{label} {' '.join(f'{v:.6f}' for v in numbers)}\n" for label, numbers in rows]
        text(root / f"{labels}/val/{image}.txt", "".join(lines))
    text(root / "data.yaml", f"path: {root}\nval: images/val\nnames: {json.dumps(VOC_NAMES)}\n")
    return f"yolo:{root}/data.yaml"


def kitti(root: Path, *, box: Change = same) -> str:
    for image in range(IMAGES):
        photograph(root / f"training/image_2/{image:06}.png", image)
        lines = [
            f"Car 0.00 0 1.55 {' '.join(f'{v:.4f}' for v in numbers)} 1.5 1.6 4.1 1.0 1.7 13.2 1.6\n"
            for numbers in box(boxes_of(image))
        ]
        text(root / f"training/label_2/{image:06}.txt", "".join(lines))
    return f"kitti:{root}"


def bdd(root: Path, *, box: Change = same, **photo: Any) -> str:
    frames = []
    for image in range(IMAGES):
        photograph(root / f"val/{image}.jpg", image, **photo)
        labels = [
            {
                "id": str(k),
                "category": "car",
                "box2d": dict(zip(("x1", "y1", "x2", "y2"), numbers, strict=True)),
            }
            for k, numbers in enumerate(box(boxes_of(image)).tolist())
        ]
        frames.append({"name": f"{image}.jpg", "labels": labels})
    text(root / "det.json", json.dumps(frames))
    return f"bdd:{root}/det.json,images=val"


def maps(root: Path, folder: str, ending: str, values: tuple[int, ...]) -> None:
    for image in range(IMAGES):
        stripes = np.repeat(np.array(values, np.uint8), WIDTH // len(values))[None].repeat(HEIGHT, 0)
        path = root / folder / f"{image}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(stripes).save(path)


def cityscapes(root: Path, *values: int) -> str:
    for image in range(IMAGES):
        photograph(root / f"leftImg8bit/val/a/a_{image:06}_000019_leftImg8bit.png", image)
    maps(root, "gtFine/val/a", ".png", values or (7, 11, 23, 26))
    for image in range(IMAGES):
        made = root / f"gtFine/val/a/{image}.png"
        made.rename(made.with_name(f"a_{image:06}_000019_gtFine_labelIds.png"))
    return f"cityscapes:{root}"


def voc_maps(root: Path, *values: int) -> str:
    for image in range(IMAGES):
        photograph(root / f"JPEGImages/{image}.jpg", image)
    maps(root, "SegmentationClass", ".png", values or (0, 3, 15, 255))
    return f"voc-seg:{root}"


def camvid(root: Path, *values: int) -> str:
    for image in range(IMAGES):
        photograph(root / f"test/{image}.png", image)
    maps(root, "testannot", ".png", values or (0, 3, 8, 11))
    return f"camvid:{root},split=test"


def stray_masks(content: dict[str, Any]) -> None:
    for row in content["annotations"]:
        x, y = ((row["bbox"][k] + side // 2) % side for k, side in ((0, WIDTH), (1, HEIGHT)))
        row["segmentation"] = [[x, y, x + 5, y, x + 5, y + 5, x, y + 5]]


def second_class_only(content: dict[str, Any]) -> None:
    content["categories"] += [{"id": k, "name": f"other {k}"} for k in range(5, 9)]
    for row in content["annotations"]:
        row["category_id"] = 2


def counted_from_one(content: dict[str, Any]) -> None:
    content["categories"].insert(0, {"id": 0, "name": "aeroplane"})


def listed_twice(content: dict[str, Any]) -> None:
    more = [{**row, "id": row["id"] + 1000} for row in content["annotations"]]
    content["annotations"] += more


def photo_twice(root: Path) -> str:
    spec = coco(root)
    shutil.copy(root / "images/3.jpg", root / "images/7.jpg")
    return spec


def without_width(boxes: np.ndarray) -> np.ndarray:
    sides = as_sides(boxes)
    sides[::2, 2] = 0
    return sides


RIGHT = {
    "coco": coco, "voc": voc, "yolo": yolo, "kitti": kitti, "bdd": bdd, "cityscapes": cityscapes,
    "voc-seg": voc_maps, "camvid": camvid,
    "yolo, tag stated": lambda root: yolo(root, orientation=6, rotated=True) + ",exif=apply",
    "voc, tag stated": lambda root: voc(root, orientation=3) + ",exif=ignore",
    "coco, 90° before rotation": lambda root: coco_turned(root, before=True),
}  # fmt: skip


def coco_turned(root: Path, *, before: bool) -> str:
    """Photographs stored on their side with a tag, labelled before or after the rotation."""
    spec = coco(root, size=(WIDTH, HEIGHT), box=on_its_side) if before else coco(root)
    for image in range(IMAGES):
        photograph(root / f"images/{image}.jpg", image, orientation=6, rotated=True)
    return spec


WRONG: dict[str, tuple[Callable[[Path], str], str]] = {
    "coco: corners for x y width height": (lambda r: coco(r, box=same), "holds corners"),
    "coco: fractions": (lambda r: coco(r, box=lambda b: fractions(as_sides(b))), "look like fractions"),
    "coco: centres for corners": (lambda r: coco(r, box=as_centres), "holds a centre"),
    "coco: y before x": (lambda r: coco(r, box=on_its_side), "y before x"),
    "coco: boxes of images twice as large": (lambda r: coco(r, box=lambda b: 2 * as_sides(b)), "their image"),
    "coco: boxes of copies half as large": (lambda r: coco(r, box=lambda b: 0.4 * as_sides(b)), "upper left"),
    "coco: no annotations": (lambda r: edited(r, lambda c: c["annotations"].clear()), "No image has"),
    "coco: everything is a crowd": (lambda r: coco(r, iscrowd=1), "crowds or ignored"),
    "coco: every annotation twice": (lambda r: edited(r, listed_twice), "occur twice"),
    "coco: masks of other objects": (lambda r: edited(r, stray_masks), "lie outside their box"),
    "coco: boxes without width": (lambda r: coco(r, box=without_width), "no width"),
    "coco: height and width exchanged": (
        lambda r: edited(r, lambda c: [i.update(height=WIDTH, width=HEIGHT) for i in c["images"]]),
        "exchanged",
    ),
    "coco: sizes of other images": (
        lambda r: edited(r, lambda c: [i.update(height=48, width=64) for i in c["images"]]), "differ in",
    ),
    "coco: one photograph under two names": (photo_twice, "has the same content as '3'"),
    "coco: class numbers counted from 1": (lambda r: edited(r, counted_from_one), "counted from 1"),
    "coco: one class for everything": (lambda r: edited(r, second_class_only), "All 72 objects are 'boat'"),
    "coco: 90° after rotation": (lambda r: coco_turned(r, before=False), "add exif=apply"),
    "voc: fractions": (lambda r: voc(r, box=fractions), "look like fractions"),
    "voc: width and height for xmax ymax": (lambda r: voc(r, box=as_sides), "xmax ≥ xmin"),
    "voc: 180° tags": (lambda r: voc(r, orientation=3), "180°"),
    "yolo: corners for a centre": (lambda r: yolo(r, box=same), "holds corners"),
    "yolo: upper left corners for a centre": (lambda r: yolo(r, box=as_sides), "upper left corner"),
    "yolo: pixels": (lambda r: yolo(r, box=lambda b: as_centres(b) * 80), "fractions from 0 to 1"),
    "yolo: labels in a folder of another name": (lambda r: yolo(r, labels="label"), "No image has an object"),
    "yolo: 90° tags": (lambda r: yolo(r, orientation=6, rotated=True), "90°"),
    "kitti: fractions": (lambda r: kitti(r, box=fractions), "look like fractions"),
    "kitti: width and height for corners": (lambda r: kitti(r, box=as_sides), ""),
    "bdd: fractions": (lambda r: bdd(r, box=fractions), "look like fractions"),
    "bdd: 90° after rotation": (lambda r: bdd(r, orientation=6, rotated=True), "fit only the rotated image"),
    "cityscapes: only void": (lambda r: cityscapes(r, 0, 1, 2, 3), "No pixel"),
    "cityscapes: unknown ids": (lambda r: cityscapes(r, 7, 11, 99, 26), "unknown class ids [99]"),
    "cityscapes: ids of another scheme": (lambda r: cityscapes(r, *[3] * 39, 7), "98% of the pixels"),
    "voc-seg: only background": (lambda r: voc_maps(r, 0, 0, 0, 0), "Every pixel of 12 label maps is"),
    "camvid: unknown ids": (lambda r: camvid(r, 0, 3, 8, 40), "unknown class ids [40]"),
}  # fmt: skip


def said_of(spec: str, *levels: Gravity) -> list[str]:
    """What `inspect --check` would print: its problems, and findings of these levels."""
    try:
        found = check(read_dataset(spec))
    except DatasetError as error:
        return [str(error)]
    findings = [one.what for one in found.findings if one.level in levels]
    return [problem.what for problem in found.problems] + findings


@pytest.mark.parametrize("name", RIGHT)
def test_right_files_raise_no_alarm(tmp_path: Path, name: str) -> None:
    spec = RIGHT[name](tmp_path)
    assert said_of(spec, Gravity.warning) == []
    assert first_findings(read_dataset(spec), IMAGES) == []


@pytest.mark.parametrize("name", WRONG)
def test_names_what_is_wrong_with_a_file(tmp_path: Path, name: str) -> None:
    build, words = WRONG[name]
    said = said_of(build(tmp_path), *Gravity)
    assert said
    assert any(words in one for one in said), said


def test_at_least_twenty_wrong_files_are_tried() -> None:
    assert len(WRONG) >= 20


@pytest.mark.parametrize(
    "kind",
    ["coco:coco/instances_val2017.json", "coco:coco_train/instances_train2017.json",
     "coco:coco_panoptic/instances_val2017.json,images=images",
     "panoptic:coco_panoptic/panoptic_val2017.json,images=images",
     "voc:voc2012", "voc-seg:voc2012", "kitti:kitti_object", "camvid:camvid"],
)  # fmt: skip
def test_real_files_raise_no_alarm(shared: Path, kind: str) -> None:
    name, _, rest = kind.partition(":")
    dataset = read_dataset(f"{name}:{shared}/{rest}")
    assert first_findings(dataset, len(dataset)) == []
    found = survey(dataset, evenly_spread(len(dataset), 100))
    assert found.problems == []
    assert [one for one in found.findings if one.level is Gravity.warning] == []


def test_inspect_prints_the_problem_and_exits_with_1(tmp_path: Path) -> None:
    spec = coco(tmp_path, box=same)
    for arguments in ([spec], [spec, "--check"], [spec, "--json"]):
        result = CliRunner().invoke(app, ["inspect", *arguments])
        assert result.exit_code == 1
        assert "holds corners" in " ".join(result.stdout.split())


def test_orientation_tags_enter_the_fingerprint_only_if_they_are_applied(tmp_path: Path) -> None:
    spec = yolo(tmp_path)
    plain, stated, turned = (read_dataset(spec + rule) for rule in ("", ",exif=ignore", ",exif=apply"))
    assert plain.fingerprint == stated.fingerprint != turned.fingerprint


def test_sizes_are_compared_in_a_part_of_a_dataset_too(tmp_path: Path) -> None:
    """Also where a wrapper stands between the check and the file that states the sizes."""
    spec = edited(tmp_path, lambda c: [i.update(height=48, width=64) for i in c["images"]])
    listed = tmp_path / "some.txt"
    listed.write_text("".join(f"{name}\n" for name in read_dataset(spec).ids[:6]), encoding="utf-8")
    assert any("differ in" in words for words in said_of(f"{spec},only={listed}", *Gravity))
