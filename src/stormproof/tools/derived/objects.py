"""Layouts for objects: COCO, YOLO, VOC."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import yaml

from stormproof.core.sample import RLE, Instances, Sample
from stormproof.core.spec import Spec
from stormproof.datasets.write_coco import entries
from stormproof.tools.derived.layout import Layout, Target, no_objects
from stormproof.world.writers.format import Record
from stormproof.world.writers.voc import add


def _objects(sample: Sample) -> Instances:
    found = sample.truth.instances
    return Instances(np.zeros((0, 4)), np.zeros(0, np.int64)) if found is None else found


def _write_coco(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    path = target.image(f"images/{target.split}", name, sample.image)
    rows = list(entries(sample.truth.instances, _numbers(target)))
    height, width = sample.image.shape[:2]
    size = {"height": height, "width": width}
    return path, {"id": sample.id, "file_name": path.name, **size, "annotations": rows}


def _numbers(target: Target) -> tuple[int, ...]:
    return target.category_ids or tuple(range(1, len(target.classes) + 1))


def _finish_coco(target: Target, records: Sequence[Record]) -> None:
    """Numbers of images and annotations are kept where they still tell all apart."""
    own = [record["id"] for record in records]
    keep = all(name.isdecimal() for name in own) and len(set(map(int, own))) == len(own)
    images, annotations = [], []
    for k, record in enumerate(records, 1):
        number = int(record["id"]) if keep else k
        images.append({**{key: record[key] for key in ("file_name", "height", "width")}, "id": number})
        annotations += [{**row, "image_id": number} for row in record["annotations"]]
    if len({row["id"] for row in annotations}) != len(annotations):
        annotations = [{**row, "id": k} for k, row in enumerate(annotations, 1)]
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": n, "name": c} for n, c in zip(_numbers(target), target.classes, strict=True)],
    }
    target.file("annotations", f"instances_{target.split}.json").write_text(json.dumps(content))


def _spec_coco(target: Target) -> Spec:
    root, split = target.root, target.split
    return Spec("coco", f"{root}/annotations/instances_{split}.json", {"images": f"{root}/images/{split}"})


def _outline(mask: RLE) -> list[float]:
    """The largest outline of a mask, as x, y pairs of pixel centres' corners."""
    found, _ = cv2.findContours(mask.to_mask().astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    largest = max(found, key=cv2.contourArea, default=np.zeros((0, 1, 2)))
    return (largest.reshape(-1, 2) + 0.5).ravel().tolist() if len(largest) >= 3 else []


def _write_yolo(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    """Polygons where objects have masks, else boxes; no crowds, since YOLO cannot excuse them."""
    path = target.image(f"images/{target.split}", name, sample.image)
    height, width = sample.image.shape[:2]
    objects, lines = _objects(sample), []
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        if objects.crowd[k] or objects.ignore[k]:
            continue
        values = [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]
        if objects.masks is not None:
            ring = np.array(_outline(objects.masks[k]) or (x1, y1, x2, y1, x2, y2, x1, y2)).reshape(-1, 2)
            values = (ring / (width, height)).clip(0, 1).ravel().tolist()
        lines.append(f"{int(objects.labels[k])} {' '.join(f'{min(max(v, 0), 1):.9f}' for v in values)}\n")
    target.file(f"labels/{target.split}", f"{name}.txt").write_text("".join(lines))
    return path, {}


def _finish_yolo(target: Target, records: Sequence[Record]) -> None:
    content = {"path": ".", target.split: f"images/{target.split}", "names": dict(enumerate(target.classes))}
    target.file(".", "data.yaml").write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _write_voc(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    path = target.image("JPEGImages", name, sample.image)
    height, width = sample.image.shape[:2]
    root = ElementTree.Element("annotation")
    add(root, folder="VOC", filename=path.name)
    depth = 1 if sample.image.ndim == 2 else sample.image.shape[2]
    add(ElementTree.SubElement(root, "size"), width=width, height=height, depth=depth)
    objects = _objects(sample)
    for k, (x1, y1, x2, y2) in enumerate(objects.boxes.tolist()):
        found = ElementTree.SubElement(root, "object")
        hard = int(objects.crowd[k] or objects.ignore[k])
        add(found, name=target.classes[int(objects.labels[k])], difficult=hard)
        # VOC counts pixels from 1 and includes the last.
        add(ElementTree.SubElement(found, "bndbox"), xmin=x1 + 1, ymin=y1 + 1, xmax=x2, ymax=y2)
    tree = ElementTree.ElementTree(root)
    ElementTree.indent(tree)
    tree.write(target.file("Annotations", f"{name}.xml"), encoding="utf-8")
    return path, {"name": name}


def _finish_voc(target: Target, records: Sequence[Record]) -> None:
    names = "".join(f"{record['name']}\n" for record in records)
    target.file("ImageSets/Main", f"{target.split}.txt").write_text(names)
    target.file(".", "classes.txt").write_text("".join(f"{name}\n" for name in target.classes))


def _spec_yolo(target: Target) -> Spec:
    return Spec("yolo", f"{target.root}/data.yaml", {"split": target.split})


def _spec_voc(target: Target) -> Spec:
    return Spec("voc", str(target.root), {"split": target.split, "classes": f"{target.root}/classes.txt"})


COCO = Layout("coco", _write_coco, _finish_coco, _spec_coco, no_objects)
YOLO = Layout("yolo", _write_yolo, _finish_yolo, _spec_yolo, no_objects)
VOC = Layout("voc", _write_voc, _finish_voc, _spec_voc, no_objects)
