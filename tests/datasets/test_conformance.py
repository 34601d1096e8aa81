"""What every registered kind of dataset must do, tried on a tiny example of each."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.sample import Truth
from stormproof.core.spec import OBJECT
from stormproof.datasets import READERS, read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.image_files import image_path

Build = Callable[..., str]
WITHOUT_TRUTH = {"images"}
NEED_IMAGES_FOR_TRUTH = {
    "yolo", "tar", "world", "images", "kitti-tracking", "ade20k", "bdd-seg", "camvid", "nrec", "acdc", "dota",
    "foggy-cityscapes",
}  # fmt: skip


@pytest.fixture(params=sorted({*READERS} - {OBJECT, "maite"}))  # whose objects are another package's
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spec(kind: str, build: Build) -> str:
    return build(kind)


@pytest.fixture
def dataset(spec: str) -> Dataset:
    return read_dataset(spec)


def same_truth(a: Truth, b: Truth) -> None:
    assert (a.instances is None, a.semantic is None) == (b.instances is None, b.semantic is None)
    if a.instances is not None and b.instances is not None:
        for name in ("boxes", "labels", "crowd", "ignore", "area", "ids", "occlusion", "truncation"):
            np.testing.assert_array_equal(getattr(a.instances, name), getattr(b.instances, name))
        for one, other in zip(a.instances.masks or (), b.instances.masks or (), strict=True):
            np.testing.assert_array_equal(one.to_mask(), other.to_mask())
    if a.semantic is not None and b.semantic is not None:
        np.testing.assert_array_equal(a.semantic.labels, b.semantic.labels)


def test_is_a_dataset(dataset: Dataset) -> None:
    assert isinstance(dataset, Dataset)
    assert len(dataset) == len(dataset.ids) > 0
    assert all(isinstance(name, str) and name for name in dataset.ids)
    assert len(set(dataset.ids)) == len(dataset.ids)
    assert len(set(dataset.classes)) == len(dataset.classes)
    assert len(set(dataset.semantic_classes)) == len(dataset.semantic_classes)
    assert dataset.name


def test_samples_carry_their_truth(dataset: Dataset, kind: str) -> None:
    for i, name in enumerate(dataset.ids):
        sample = dataset[i]
        assert sample.id == name
        assert sample.image.shape[:2] == dataset.size(i)
        same_truth(sample.truth, dataset.truth(i))
        assert (sample.truth.instances is not None) == bool(dataset.classes)
    assert bool(dataset.classes or dataset.semantic_classes) == (kind not in WITHOUT_TRUTH)


def test_labels_are_within_the_classes(dataset: Dataset) -> None:
    seen = 0
    for i in range(len(dataset)):
        truth = dataset.truth(i)
        if truth.instances is not None:
            labels = truth.instances.labels
            assert ((labels >= 0) & (labels < len(dataset.classes))).all()
            seen += len(labels)
            for mask in truth.instances.masks or ():
                assert mask.size == dataset.size(i)
        if truth.semantic is not None:
            values = np.unique(truth.semantic.labels)
            assert (values[values != truth.semantic.ignore] < len(dataset.semantic_classes)).all()
            seen += 1
    assert seen or not (dataset.classes or dataset.semantic_classes)


def test_indexing_follows_python(dataset: Dataset) -> None:
    assert dataset[-1].id == dataset.ids[-1]
    same_truth(dataset.truth(-1), dataset.truth(len(dataset) - 1))
    assert dataset.size(-1) == dataset.size(len(dataset) - 1)
    for call in (dataset.__getitem__, dataset.truth):
        with pytest.raises(IndexError):
            call(len(dataset))


def test_opening_twice_gives_the_same(dataset: Dataset, spec: str) -> None:
    again = read_dataset(spec)
    assert list(again.ids) == list(dataset.ids)
    assert again.fingerprint == dataset.fingerprint
    same_truth(again.truth(0), dataset.truth(0))


def test_survives_pickling(dataset: Dataset) -> None:
    again = pickle.loads(pickle.dumps(dataset))
    assert again.fingerprint == dataset.fingerprint
    same_truth(again.truth(0), dataset.truth(0))


def test_fingerprint_does_not_depend_on_the_place(
    dataset: Dataset, spec: str, kind: str, tmp_path: Path
) -> None:
    if kind == "world":
        pytest.skip("the world lies in no place")
    shutil.copytree(tmp_path / "tree", tmp_path / "elsewhere")
    moved = read_dataset(spec.replace(str(tmp_path / "tree"), str(tmp_path / "elsewhere")))
    assert moved.fingerprint == dataset.fingerprint


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("cityscapes", "excuse_caravans=true"),
        ("coco-o", "masks=true"),
        ("coco-keypoints", f"sigmas=[{','.join(['0.1'] * 17)}]"),
        ("yolo-obb", "oriented=true"),
    ],
)
def test_fingerprint_depends_on_options_that_change_the_truth(build: Build, name: str, option: str) -> None:
    spec = build(name).removesuffix(f",{option}")
    assert read_dataset(f"{spec},{option}").fingerprint != read_dataset(spec).fingerprint


def test_fingerprint_depends_on_the_annotations(dataset: Dataset, spec: str) -> None:
    sources = getattr(dataset, "sources", ())
    if not sources:
        pytest.skip("no annotation files of its own; tried elsewhere")
    before = dataset.fingerprint
    with sources[-1].open("ab") as file:
        file.write(b"\n")  # means nothing to any of the formats
    assert read_dataset(spec).fingerprint != before


def test_truth_needs_no_pixels(kind: str, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind in {"tar", "world"}:
        pytest.skip("has no image files")

    def refuse(*_: object) -> None:
        pytest.fail("an image was decoded")

    monkeypatch.setattr("stormproof.datasets.dataset.read_image", refuse)
    for i in range(len(dataset)):
        dataset.truth(i)
        dataset.size(i)


def test_truth_needs_no_image_files(spec: str, kind: str, dataset: Dataset) -> None:
    if kind in NEED_IMAGES_FOR_TRUTH:
        pytest.skip("pairs labels with image files, or takes sizes from them")
    truths = [dataset.truth(i) for i in range(len(dataset))]
    for i in range(len(dataset)):
        path = image_path(dataset, i)
        assert path is not None
        path.unlink()
    again = read_dataset(spec)
    assert list(again.ids) == list(dataset.ids)
    for i, truth in enumerate(truths):
        same_truth(again.truth(i), truth)
