"""`coco:…,semantic=person`: a semantic map made from the masks of objects."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.datasets import read_dataset


def square(number: int, category: int, x: int, y: int, side: int, crowd: int = 0) -> dict:
    ring = [x, y, x + side, y, x + side, y + side, x, y + side]
    shape = {"segmentation": [ring], "area": side * side, "bbox": [x, y, side, side]}
    return {"id": number, "image_id": 1, "category_id": category, "iscrowd": crowd, **shape}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    content = {
        "images": [{"id": 1, "file_name": "1.png", "height": 10, "width": 12}],
        "categories": [{"id": 3, "name": "person"}, {"id": 5, "name": "car"}, {"id": 9, "name": "dog"}],
        "annotations": [
            square(1, 3, 1, 1, 2),
            square(2, 5, 0, 0, 6),
            square(3, 9, 7, 0, 2),
            square(4, 5, 5, 5, 4, 1),
        ],
    }
    (tmp_path / "val.json").write_text(json.dumps(content))
    return tmp_path / "val.json"


def test_named_classes_are_drawn_the_smaller_in_front(path: Path) -> None:
    data = read_dataset(f"coco:{path},semantic=[car,person]")
    assert data.semantic_classes == ("background", "car", "person")
    assert data.classes == ("person", "car", "dog")
    truth = data.truth(0)
    assert truth.instances is not None
    assert len(truth.instances) == 4
    assert truth.semantic is not None
    expected = np.zeros((10, 12), np.uint8)
    expected[5:9, 5:9] = 255  # a crowd is not scored
    expected[:6, :6] = 1
    expected[1:3, 1:3] = 2
    assert np.array_equal(truth.semantic.labels, expected)


def test_one_class_leaves_the_others_to_the_background(path: Path) -> None:
    data = read_dataset(f"coco:{path},semantic=person")
    assert data.semantic_classes == ("background", "person")
    assert data.truth(0).semantic.labels.sum() == 4  # type: ignore[union-attr]
    assert data.fingerprint != read_dataset(f"coco:{path}").fingerprint


def test_wrong_classes_are_refused(path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'person'"):
        read_dataset(f"coco:{path},semantic=persn")
    with pytest.raises(InvalidOption, match="names a class twice"):
        read_dataset(f"coco:{path},semantic=[car,car]")
    with pytest.raises(InvalidOption, match="has no masks to draw"):
        read_dataset(f"coco:{path},semantic=car,masks=false")
