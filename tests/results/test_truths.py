"""What the dataset says, laid out at once or image by image: the same, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.datasets import read_dataset
from stormproof.metrics.records import DetectionTruth
from stormproof.results.truths import Truths


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Seven images, one without objects, with decimal boxes whose corners do not give their sides."""
    rng = np.random.default_rng(4)
    rows = [
        {"id": k + 1, "image_id": int(image), "category_id": int(kind), "bbox": box, "iscrowd": k % 9 // 8,
         **({"area": 12.5} if k % 2 else {})}
        for k, (image, kind, box) in enumerate(zip(
            rng.choice([1, 2, 3, 5, 6, 7], 60), rng.integers(1, 4, 60),
            (rng.integers(1, 999, (60, 4)) / 10).tolist(), strict=True))
    ]  # fmt: skip
    content = {
        "images": [{"id": i, "file_name": f"{i}.png", "height": 200, "width": 200} for i in range(1, 8)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(("cat", "dog", "person"), 1)],
        "annotations": rows,
    }
    (tmp_path / "truth.json").write_text(json.dumps(content))
    return f"coco:{tmp_path / 'truth.json'}"


@pytest.mark.parametrize("chosen", [None, ("person", "cat")])
@pytest.mark.parametrize("unreadable", [frozenset(), frozenset({1, 4})])
def test_laying_out_objects_at_once_equals_image_by_image(data, chosen, unreadable):
    truths = Truths(read_dataset(data), 6, 0, chosen, unreadable)
    one_by_one = DetectionTruth.of(truths._objects(Condition()), truths.classes)
    assert (truths.still.ids, truths.still.masks) == (one_by_one.ids, one_by_one.masks)
    for name in ("image", "boxes", "labels", "crowd", "ignore", "area", "sides"):
        ours, theirs = getattr(truths.still, name), getattr(one_by_one, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), name


def test_sides_are_kept_as_stated_for_some_of_the_classes(data):
    dataset = read_dataset(data)
    stated = [tuple(row["bbox"][2:]) for row in json.loads(Path(data[5:]).read_text())["annotations"]]
    assert {*map(tuple, Truths(dataset, 7, 0, ("dog",)).still.sides.tolist())} <= {*stated}
