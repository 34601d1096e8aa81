"""Broken COCO files: every complaint names the file, the record and the value."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.complaints import complaint
from stormproof.core.errors import DatasetError
from stormproof.datasets import read_dataset

Build = Callable[..., str]


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
    "category written as a float": (
        annotation(1, category_id=3.0),
        ["annotation 2", "category_id 3.0", "must be a whole number, such as 1"],
    ),
    "negative box": (annotation(0, bbox=[2, 3, -10, 8]), ["annotation 1", "[2, 3, -10, 8]"]),
    "nan box": (annotation(2, bbox=[2, 3, float("nan"), 8]), ["annotation 5", "nan"]),
    "short box": (annotation(0, bbox=[2, 3]), ["annotation 1", "bbox [2, 3]"]),
    "no box": (lambda content: content["annotations"][0].pop("bbox"), ["annotation 1", "has no bbox"]),
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
    "no category name": (
        lambda content: content["categories"][0].update(name=None),
        ["category 18", "name None must be text"],
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
def test_names_the_broken_record_of_a_coco_file(build: Build, tmp_path: Path, case: str) -> None:
    spec = build("coco")
    change, expected = COCO_CHANGES[case]
    edit_coco(tmp_path, change)
    text = complaint(spec)
    for part in ["instances_val.json", *expected]:
        assert part in text


def test_all_problems_of_a_file_are_reported_together(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    edit_coco(tmp_path, lambda c: [row.update(bbox=[0, 0, -1, 1]) for row in c["annotations"]])
    with pytest.raises(DatasetError) as caught:
        read_dataset(spec)
    assert [error.record for error in (caught.value, *caught.value.others)] == [
        f"annotation {i}" for i in (1, 2, 5)
    ]
    assert "and 2 more" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.record, len(again.others)) == (str(caught.value), "annotation 1", 2)
