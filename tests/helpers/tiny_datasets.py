"""Tiny, correct datasets in every format, written from the formats' public definitions."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image

HEIGHT, WIDTH = 24, 32
NAMES = ("aa_000001_000019", "aa_000002_000019")


def make_image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def save(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(array).save(path)
    return path


def save_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def label_map(*values: int) -> np.ndarray:
    """Vertical stripes of the values."""
    return np.repeat(np.array(values, np.uint8), WIDTH // len(values))[None].repeat(HEIGHT, 0)


def coco(root: Path) -> str:
    content = {
        "images": [
            {"id": 7, "file_name": "sub/a.png", "height": HEIGHT, "width": WIDTH},
            {"id": 9, "file_name": "b.png", "height": HEIGHT, "width": WIDTH},
        ],
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
        "annotations": [
            {
                "id": 1, "image_id": 9, "category_id": 18, "bbox": [2, 3, 10, 8], "iscrowd": 0, "area": 77.5,
                "segmentation": [[2, 3, 12, 3, 12, 11, 2, 11]],
            },
            {
                "id": 2, "image_id": 7, "category_id": 3, "bbox": [0, 0, 2, 24],
                "segmentation": {"size": [HEIGHT, WIDTH], "counts": [0, 48, HEIGHT * WIDTH - 48]},
            },
            {
                "id": 5, "image_id": 9, "category_id": 3, "bbox": [4, 4, 4, 3], "iscrowd": 1,
                "segmentation": {"size": [HEIGHT, WIDTH], "counts": "T33e000000la0"},
            },
        ],
    }  # fmt: skip
    save(root / "photos/sub/a.png", make_image(1))
    save(root / "photos/b.png", make_image(2))
    save_text(root / "instances_val.json", json.dumps(content))
    return f"coco:{root}/instances_val.json,images=photos"


def panoptic(root: Path) -> str:
    segments = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    segments[:, 8:16] = (44, 1, 0)  # 44 + 256 = 300
    segments[:, 16:] = (5, 0, 2)  # 5 + 2 · 65536
    save(root / "panoptic_val/a.png", segments)
    save(root / "images/a.png", make_image())
    content = {
        "images": [{"id": 1, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}],
        "categories": [{"id": 200, "name": "rug", "isthing": 0}, {"id": 1, "name": "person", "isthing": 1}],
        "annotations": [
            {
                "image_id": 1,
                "file_name": "a.png",
                "segments_info": [{"id": 300, "category_id": 1}, {"id": 131077, "category_id": 200}],
            }
        ],
    }
    save_text(root / "panoptic_val.json", json.dumps(content))
    return f"panoptic:{root}/panoptic_val.json"


def voc_object(name: str, box: tuple[float, ...], extra: str = "") -> str:
    corners = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
    return f"<object><name>{name}</name>{extra}<bndbox>{corners}</bndbox></object>"


def voc_xml(*objects: str) -> str:
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    return f"<annotation><filename>a.jpg</filename>{size}{''.join(objects)}</annotation>"


def voc(root: Path) -> str:
    car = voc_object("car", (1, 1, 10, 12), "<difficult>0</difficult><truncated>0</truncated>")
    person = voc_object("person", (5.5, 2, 30, 24), "<difficult>1</difficult><truncated>1</truncated>")
    save_text(root / "Annotations/2007_000001.xml", voc_xml(car, person))
    save_text(root / "Annotations/2007_000002.xml", voc_xml())
    save_text(root / "Annotations/2007_000003.xml", voc_xml())
    save_text(root / "ImageSets/Main/val.txt", "2007_000001\n2007_000002\n")
    save_text(root / "ImageSets/Main/car_val.txt", "2007_000001  1\n2007_000002 -1\n")
    for i in (1, 2, 3):
        save(root / f"JPEGImages/2007_00000{i}.jpg", make_image(i))
    return f"voc:{root},split=val"


def nrec(root: Path) -> str:
    place = root / "test/collected"
    person, part = voc_object("person", (1, 1, 10, 12)), voc_object("person-part", (5, 2, 30, 24))
    save_text(place / "AnnotationsPositiveNegative/a.xml", voc_xml(person, part))
    for i, name in enumerate("ab"):  # nobody is in b, so it has no file
        save(place / f"ImagesPositiveNegative/{name}.png", make_image(i))
    return f"nrec:{root}"


def voc_segmentation(root: Path) -> str:
    stripes = PIL.Image.fromarray(label_map(0, 7, 15, 255)).convert("P")
    (root / "SegmentationClass").mkdir()
    stripes.save(root / "SegmentationClass/2007_000001.png")
    save(root / "JPEGImages/2007_000001.jpg", make_image())
    save_text(root / "ImageSets/Segmentation/val.txt", "2007_000001\n")
    return f"voc-seg:{root},split=val"


def cityscapes(root: Path) -> str:
    numbers = np.full((HEIGHT, WIDTH), 7, np.uint16)  # road
    numbers[:4] = 23  # sky
    numbers[8:12, 4:10] = 26000  # two cars
    numbers[8:12, 12:20] = 26001
    numbers[14:20, 2:6] = 24  # a group of persons
    numbers[14:20, 10:14] = 30000  # a trailer
    for i, name in enumerate(NAMES):
        save(root / f"leftImg8bit/val/aa/{name}_leftImg8bit.png", make_image(i))
        save(root / f"gtFine/val/aa/{name}_gtFine_instanceIds.png", numbers)
    return f"cityscapes:{root}"


def acdc(root: Path) -> str:
    for k, condition in enumerate(("fog", "night", "rain", "snow")):
        place, frame = f"{condition}/val/GOPR{k}", f"GOPR{k}_frame_00000{k}"
        save(root / f"rgb_anon/{place}/{frame}_rgb_anon.png", make_image(k))
        save(root / f"gt/{place}/{frame}_gt_labelTrainIds.png", label_map(0, 13, 10, 255))
        save(root / f"rgb_anon/{condition}/val_ref/GOPR{k}/{frame}_rgb_ref_anon.png", make_image(k + 4))
    save(root / "gt/fog/val_ref/GOPR0/GOPR0_frame_000000_gt_ref_labelTrainIds.png", label_map(0, 1, 2, 255))
    return f"acdc:{root}"


def foggy_cityscapes(root: Path) -> str:
    cityscapes(root)
    for i, name in enumerate(NAMES):
        for k, beta in enumerate(("0.005", "0.01", "0.02")):
            file = f"leftImg8bit_foggy/val/aa/{name}_leftImg8bit_foggy_beta_{beta}.png"
            save(root / file, make_image(100 + 3 * i + k))
    return f"foggy-cityscapes:{root}"


def coco_o(root: Path) -> str:
    categories = [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}]
    for k, domain in enumerate(("cartoon", "handmake", "painting", "sketch", "tattoo", "weather")):
        image = {"id": 7, "file_name": "a.jpg", "height": HEIGHT, "width": WIDTH}
        box = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 8 + k, 9], "area": 72, "iscrowd": 0}
        content = {"images": [image], "annotations": [box], "categories": categories}
        save_text(root / domain / "annotations/instances_val2017.json", json.dumps(content))
        save(root / domain / "val2017/a.jpg", make_image(k))
    return f"coco-o:{root}"


def ade20k(root: Path) -> str:
    save(root / "images/validation/ADE_val_00000001.jpg", make_image())
    save(root / "annotations/validation/ADE_val_00000001.png", label_map(0, 1, 2, 150))
    return f"ade20k:{root}"


def bdd(root: Path) -> str:
    box = {"x1": 1.5, "y1": 2, "x2": 9, "y2": 12.25}
    frames = [
        {
            "name": "b1.jpg",
            "attributes": {"weather": "rainy", "scene": "tunnel", "timeofday": "undefined"},
            "labels": [
                {
                    "id": "0",
                    "category": "person",
                    "box2d": box,
                    "attributes": {"occluded": False, "crowd": True},
                },
                {"id": "1", "category": "other vehicle", "box2d": box, "attributes": {"occluded": True}},
                {"id": "2", "category": "lane", "poly2d": [[[0, 0], [1, 1]]]},
            ],
        },
        {"name": "b2.jpg", "labels": None},
    ]
    save(root / "val/b1.jpg", make_image(1))
    save(root / "val/b2.jpg", make_image(2))
    save_text(root / "det_val.json", json.dumps(frames))
    return f"bdd:{root}/det_val.json,images=val"


def bdd_segmentation(root: Path) -> str:
    save(root / "images/10k/val/b1.jpg", make_image())
    save(root / "labels/sem_seg/masks/val/b1.png", label_map(0, 13, 18, 255))
    return f"bdd-seg:{root}"


def kitti(root: Path) -> str:
    tail = "1.5 1.6 4.1 1.0 1.7 13.2 1.6"
    lines = [
        f"Car 0.25 2 1.55 2.5 3 20 15.75 {tail}",
        "DontCare -1 -1 -10 1 1 5 6 -1 -1 -1 -1000 -1000 -1000 -10",
    ]
    save_text(root / "training/label_2/000000.txt", "\n".join(lines) + "\n")
    save_text(root / "training/label_2/000001.txt", "")
    for i in (0, 1):
        save(root / f"training/image_2/00000{i}.png", make_image(i))
    return f"kitti:{root}"


def kitti_tracking(root: Path) -> str:
    tail = "1.5 1.6 4.1 1.0 1.7 13.2 1.6"
    lines = [
        f"0 7 Car 0 2 1.55 2.5 3 20 15.75 {tail}",
        f"0 9 Person 0 0 1.55 4.5 3 10 15.75 {tail}",
        "0 -1 DontCare -1 -1 -10 1 1 5 6 -1000 -1000 -1000 -10 -1 -1 -1",
        f"2 7 Car 0 0 1.55 4.5 3 22 15.75 {tail}",
    ]
    save_text(root / "training/label_02/0000.txt", "\n".join(lines) + "\n")
    save_text(root / "training/label_02/0001.txt", "")
    for i in range(3):
        save(root / f"training/image_02/0000/00000{i}.png", make_image(i))
    save(root / "training/image_02/0001/000000.png", make_image(3))
    return f"kitti-tracking:{root}"


def camvid(root: Path) -> str:
    save(root / "test/0001TP_008550.png", make_image())
    save(root / "testannot/0001TP_008550.png", label_map(0, 8, 10, 11))
    return f"camvid:{root},split=test"


def yolo(root: Path) -> str:
    save_text(
        root / "data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n"
    )
    save_text(root / "labels/val/a.txt", "1 0.5 0.5 0.25 0.5\n0 0.25 0.25 0.5 0.5\n")
    save(root / "images/val/a.png", make_image(1))
    save(root / "images/val/b.png", make_image(2))
    save(root / "images/train/c.png", make_image(3))
    return f"yolo:{root}/data.yaml"


def coco_keypoints(root: Path) -> str:
    """One person with seventeen joints, one without labels."""
    joints = [word for k in range(17) for word in (k + 4, 20 - k, k % 3)]
    person = {"image_id": 7, "category_id": 1, "iscrowd": 0, "bbox": [2, 2, 20, 20], "area": 180.5}
    content = {
        "images": [{"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}],
        "categories": [{"id": 1, "name": "person", "keypoints": [f"j{k}" for k in range(17)]}],
        "annotations": [
            {**person, "id": 1, "keypoints": joints, "num_keypoints": 11},
            {**person, "id": 2, "bbox": [24, 2, 4, 9], "keypoints": [0] * 51, "num_keypoints": 0},
        ],
    }
    save(root / "val/a.png", make_image(1))
    save_text(root / "person_keypoints_val.json", json.dumps(content))
    return f"coco:{root}/person_keypoints_val.json"


def lvis(root: Path) -> str:
    """Two images, each searched for some of three classes."""
    image = {"height": HEIGHT, "width": WIDTH, "not_exhaustive_category_ids": [18]}
    content = {
        "images": [
            {**image, "id": 7, "coco_url": "http://host/val/a.png", "neg_category_ids": [18]},
            {**image, "id": 9, "coco_url": "http://host/val/b.png", "neg_category_ids": []},
        ],
        "categories": [
            {"id": number, "name": name, "frequency": often}
            for number, name, often in ((18, "dog", "r"), (3, "car", "f"), (20, "cow", "c"))
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [2, 3, 10, 8], "area": 77.5},
            {"id": 2, "image_id": 9, "category_id": 20, "bbox": [0, 0, 2, 24], "area": 48},
        ],
    }
    for k, name in enumerate("ab"):
        save(root / f"val/{name}.png", make_image(k))
    save_text(root / "lvis_val.json", json.dumps(content))
    return f"coco:{root}/lvis_val.json"


def yolo_pose(root: Path) -> str:
    save_text(root / "data.yaml", "val: images/val\nnames: [person]\nkpt_shape: [2, 3]\n")
    save_text(root / "labels/val/a.txt", "0 0.5 0.5 0.25 0.5 0.25 0.5 2 0 0 0\n")
    save(root / "images/val/a.png", make_image(1))
    return f"yolo:{root}/data.yaml"


def yolo_obb(root: Path) -> str:
    save_text(root / "data.yaml", "val: images/val\nnames: [ship]\n")
    save_text(root / "labels/val/a.txt", "0 0.25 0.25 0.5 0.25 0.5 0.75 0.25 0.75\n")
    save(root / "images/val/a.png", make_image(1))
    return f"yolo:{root}/data.yaml,oriented=true"


def dota(root: Path) -> str:
    lines = "imagesource:GoogleEarth\ngsd:0.1\n10 2 18 10 10 18 2 10 ship 0\n20 4 28 4 28 8 20 8 crane 1\n"
    save_text(root / "val/labelTxt/P0001.txt", lines)
    save_text(root / "val/labelTxt/P0002.txt", "")
    for seed, name in enumerate(("P0001", "P0002")):
        save(root / f"val/images/{name}.png", make_image(seed))
    return f"dota:{root},split=val"


def images(root: Path) -> str:
    save(root / "b.png", make_image(1))
    save(root / "deeper/a.jpg", make_image(2))
    save(root / "grey.bmp", make_image(3)[..., 0])
    return f"images:{root}"


def png(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    PIL.Image.fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def tar(root: Path) -> str:
    polygon = [[2, 3, 12, 3, 12, 11, 2, 11]]
    row = {"category": "dog", "bbox": [2, 3, 10, 8], "segmentation": polygon, "iscrowd": 0}
    members = {
        "set/a.png": png(make_image(1)),
        "set/a.json": json.dumps({"annotations": [row]}).encode(),
        "set/a.semantic.png": png(label_map(0, 1, 255, 0)),
        "set/b.png": png(make_image(2)),
        "set/b.json": json.dumps([]).encode(),
    }
    write_tar(root / "val-0000.tar", members)
    save_text(root / "areas.txt", "ground\nwall\n")
    return f"tar:{root}/val-0000.tar,semantic_classes=areas.txt"


def world(root: Path) -> str:
    return "world:val,count=2,size=128x80"


BUILDERS: dict[str, Callable[[Path], str]] = {
    "coco": coco, "panoptic": panoptic, "voc": voc, "voc-seg": voc_segmentation, "cityscapes": cityscapes,
    "ade20k": ade20k, "bdd": bdd, "bdd-seg": bdd_segmentation, "kitti": kitti, "camvid": camvid, "yolo": yolo,
    "kitti-tracking": kitti_tracking,
    "images": images, "nrec": nrec, "tar": tar, "world": world, "acdc": acdc,
    "foggy-cityscapes": foggy_cityscapes, "coco-o": coco_o, "coco-keypoints": coco_keypoints,
    "lvis": lvis, "yolo-pose": yolo_pose, "yolo-obb": yolo_obb, "dota": dota,
}  # fmt: skip
