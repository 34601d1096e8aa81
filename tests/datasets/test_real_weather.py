"""ACDC, Foggy Cityscapes and COCO-O: which images, with which truth, in which condition."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.core.errors import DatasetError
from stormproof.datasets import read_dataset

Build = Callable[..., str]


def test_acdc_has_four_conditions_and_labelled_references(build: Build) -> None:
    dataset = read_dataset(build("acdc"))
    conditions = dataset.attributes["condition"]  # type: ignore[attr-defined]
    assert sorted(conditions.values()) == ["clear", "fog", "night", "rain", "snow"]
    assert dataset.ids[0] == "clear/GOPR0_frame_000000", "three references lack a label map"
    assert len(dataset.semantic_classes) == 19
    night = [conditions[name] for name in dataset.ids].index("night")
    semantic = dataset.truth(night).semantic
    assert semantic is not None
    assert {*np.unique(semantic.labels).tolist()} == {0, 10, 13, 255}
    assert dataset[night].image.shape[:2] == semantic.labels.shape


def test_acdc_names_what_it_lacks(build: Build, tmp_path: Path) -> None:
    spec = build("acdc")
    next((tmp_path / "tree/gt/rain").rglob("*.png")).unlink()
    with pytest.raises(DatasetError, match="has no label map"):
        read_dataset(spec)
    with pytest.raises(DatasetError, match="no labelled images"):
        read_dataset(f"{spec},split=train")


def test_foggy_cityscapes_shares_the_truth_of_its_frames(build: Build) -> None:
    dataset = read_dataset(build("foggy-cityscapes"))
    fog = dataset.attributes["fog"]  # type: ignore[attr-defined]
    assert {*fog.values()} == {"clear", "0.005", "0.01", "0.02"}
    frames = [name for name in dataset.ids if fog[name] == "clear"]
    assert len(dataset) == 4 * len(frames)
    clear, thick = (list(dataset.ids).index(name) for name in (frames[0], f"{frames[0]}_beta_0.02"))
    ours, theirs = dataset.truth(clear).instances, dataset.truth(thick).instances
    assert ours is not None
    assert theirs is not None
    assert ours.boxes.tolist() == theirs.boxes.tolist()
    assert len(ours) > 0


def test_foggy_cityscapes_refuses_other_names(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("foggy-cityscapes")
    trees.save(tmp_path / "tree/leftImg8bit_foggy/val/aa/strange.png", trees.make_image())
    with pytest.raises(DatasetError, match="FRAME_leftImg8bit_foggy"):
        read_dataset(spec)


def test_images_of_a_domain_of_coco_o_have_their_own_truth(
    build: Build, tmp_path: Path, trees: ModuleType
) -> None:
    spec, sketch = build("coco-o"), tmp_path / "tree/sketch"
    path = sketch / "annotations/instances_val2017.json"
    content = json.loads(path.read_text())
    content["images"].append({"id": 9, "file_name": "b.jpg", "height": 30, "width": 40})
    content["annotations"].append({**content["annotations"][0], "id": 2, "image_id": 9, "bbox": [3, 4, 5, 6]})
    path.write_text(json.dumps(content))
    trees.save(sketch / "val2017/b.jpg", np.zeros((30, 40, 3), np.uint8))
    dataset = read_dataset(spec)
    sample = dataset[dataset.ids.index("sketch/9")]
    assert sample.image.shape[:2] == dataset.size(4) == (30, 40)
    assert sample.truth.objects.boxes.tolist() == [[3, 4, 8, 10]]
    assert dataset.truth(3).objects.boxes.tolist() == [[1, 2, 12, 11]]


def test_coco_o_joins_its_domains(build: Build, tmp_path: Path) -> None:
    spec = build("coco-o")
    dataset = read_dataset(spec)
    domains = dataset.attributes["domain"]  # type: ignore[attr-defined]
    assert [domains[name] for name in dataset.ids] == [
        "cartoon", "handmake", "painting", "sketch", "tattoo", "weather",
    ]  # fmt: skip
    assert dataset.ids[3] == "sketch/7"
    found = dataset.truth(3).instances
    assert found is not None
    assert found.boxes.tolist() == [[1, 2, 12, 11]]
    assert dataset.classes == ("person", "car")
    assert dataset[5].id == "weather/7"
    groups = tmp_path / "groups.csv"
    groups.write_text("id,group\ncartoon/7,a\nsketch/7,a\n")
    grouped = read_dataset(f"{spec},exif=apply,groups={groups}")  # as any dataset of image files
    assert grouped.groups == {"cartoon/7": "a", "sketch/7": "a"}  # type: ignore[attr-defined]
    before = dataset.fingerprint
    (tmp_path / "tree/weather/annotations/instances_val2017.json").unlink()
    fewer = read_dataset(spec)
    assert len(fewer) == 5
    assert fewer.fingerprint != before
    with pytest.raises(DatasetError, match="cartoon"):
        read_dataset(f"coco-o:{tmp_path}")
