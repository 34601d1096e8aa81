"""Readers against each other on the real files of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image

from stormproof.datasets import read_dataset

Build = Callable[..., str]


def test_real_voc_agrees_with_its_palette_files(shared: Path) -> None:
    boxes, maps = read_dataset(f"voc:{shared}/voc2012"), read_dataset(f"voc-seg:{shared}/voc2012")
    assert any(boxes.truth(i).instances.ignore.any() for i in range(len(boxes)))
    for i, name in enumerate(maps.ids):
        with PIL.Image.open(shared / f"voc2012/SegmentationClass/{name}.png") as file:
            np.testing.assert_array_equal(maps.truth(i).semantic.labels, np.array(file))
        # Every class that the map shows has a box, and each box reaches the map's pixels of its class.
        k = boxes.ids.index(name)
        found = boxes.truth(k).instances
        shown = set(np.unique(maps.truth(i).semantic.labels).tolist()) - {0, 255}
        assert shown <= {int(label) + 1 for label in found.labels}


def test_real_panoptic_agrees_with_the_semantic_files(shared: Path) -> None:
    dataset = read_dataset(f"panoptic:{shared}/coco_panoptic/panoptic_val2017.json")
    content = json.loads((shared / "coco_panoptic/panoptic_val2017.json").read_text())
    ids = np.array([*sorted(row["id"] for row in content["categories"])])
    for i in range(len(dataset)):
        name = dataset.images[i].stem
        with PIL.Image.open(shared / f"coco_panoptic/semantic_val2017/{name}.png") as file:
            stored = np.array(file)
        labels = dataset.truth(i).semantic.labels
        back = np.where(labels == 255, 0, ids[np.minimum(labels, len(ids) - 1)])
        np.testing.assert_array_equal(back, stored)


def test_reads_real_camvid_and_kitti(shared: Path) -> None:
    streets = read_dataset(f"camvid:{shared}/camvid")
    assert streets.semantic_classes[:2] == ("sky", "building")
    assert len(streets.semantic_classes) == 11
    for i, path in enumerate(sorted((shared / "camvid/labels").glob("*.png"))):
        with PIL.Image.open(path) as file:
            stored = np.array(file)
        np.testing.assert_array_equal(streets.truth(i).semantic.labels, np.where(stored == 11, 255, stored))
    roads = read_dataset(f"kitti:{shared}/kitti_object")
    lines = (shared / "kitti_object/label_2/000003.txt").read_text().splitlines()
    found = roads.truth(roads.ids.index("000003")).instances
    assert len(found) == 1 + 8 * 2
    assert found.boxes[0].tolist() == [float(v) for v in lines[0].split()[4:8]]
