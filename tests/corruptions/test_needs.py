"""Corruptions on part of the image."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import apply, corrupt_image
from stormproof.core.condition import Condition
from stormproof.core.errors import MissingContext, UnknownName
from stormproof.core.sample import RLE, Context, Instances, Sample, SemanticMap, Truth
from stormproof.corruptions import CORRUPTIONS, SUITES, Corruption

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
BOXES = [[5.0, 5.0, 20.0, 15.0], [30.4, 10.6, 50.0, 35.0]]
CLASSES = ("car", "person", "traffic light")


def boxed(labels: tuple[int, int] = (0, 1)) -> Sample:
    return Sample("a", IMAGE, Truth(Instances(BOXES, list(labels))))


def changed(sample: Sample, part: str, **names: tuple[str, ...]) -> np.ndarray:
    out = apply(sample, f'brightness_shift[factor=0,on="{part}"]', **names).image
    return (out == 0).all(axis=2) & (IMAGE != 0).any(axis=2) | (out != IMAGE).any(axis=2)


def test_objects_and_background_share_the_image() -> None:
    objects, background = changed(boxed(), "objects"), changed(boxed(), "background")
    assert objects[5:15, 5:20].all()
    assert objects[11:35, 30:50].all()  # pixels whose centres lie in the box
    assert objects.sum() == 10 * 15 + 24 * 20
    assert (objects ^ background).all()


def test_masks_take_precedence_over_boxes() -> None:
    mask = np.zeros(IMAGE.shape[:2], bool)
    mask[6:9, 7:12] = True
    sample = Sample("a", IMAGE, Truth(Instances([[5, 5, 20, 15]], [0], masks=(RLE.from_mask(mask),))))
    assert (changed(sample, "objects") == mask).all()


def test_class_names_choose_objects() -> None:
    only = changed(boxed(), "person", classes=CLASSES)
    assert only[11:35, 30:50].all()
    assert only.sum() == 24 * 20
    both = changed(boxed(), "car+person", classes=CLASSES)
    assert (both == changed(boxed(), "objects")).all()
    assert not changed(boxed(), "traffic light", classes=CLASSES).any()


def test_class_names_choose_regions_of_a_semantic_map() -> None:
    labels = np.zeros(IMAGE.shape[:2], np.uint8)
    labels[20:] = 1
    labels[:, 50:] = 255
    sample = Sample("a", IMAGE, Truth(semantic=SemanticMap(labels)))
    assert (changed(sample, "road", semantic_classes=("background", "road")) == (labels == 1)).all()
    assert (changed(sample, "objects", semantic_classes=("background", "road")) == (labels == 1)).all()


def test_names_the_truth_that_is_missing() -> None:
    with pytest.raises(MissingContext, match="the positions of objects"):
        corrupt_image(IMAGE, "fog@3[on=objects]")
    with pytest.raises(MissingContext, match="does not say where objects are"):
        apply(Sample("a", IMAGE), "fog@3[on=objects]")
    with pytest.raises(MissingContext, match="has no list of classes"):
        apply(boxed(), "fog@3[on=car]")
    with pytest.raises(UnknownName, match="Did you mean 'person'"):
        apply(boxed(), "fog@3[on=persons]", classes=CLASSES)


def test_an_image_without_objects_stays_clean() -> None:
    empty = Sample("a", IMAGE, Truth(Instances(np.zeros((0, 4)), [])))
    assert (apply(empty, "fog@5[on=objects]").image == IMAGE).all()


def test_grey_images_of_two_dimensions_work() -> None:
    sample = Sample("a", IMAGE[..., 0], Truth(Instances(BOXES, [0, 1])))
    assert apply(sample, "gaussian_noise@3[on=objects]").image.shape == IMAGE.shape[:2]


@pytest.mark.parametrize(
    "corruption", [c for c in CORRUPTIONS.values() if c.labels == "fixed"], ids=lambda c: c.name
)
def test_any_corruption_changes_only_its_part_of_the_image(corruption: Corruption) -> None:
    listed = {c for suite in SUITES.values() for c in suite if c.corruption == corruption.name}
    condition = max(listed or {Condition.of(corruption.name, corruption.severities[-1])}, key=str)
    truth = Truth(Instances(BOXES, [0, 1]))
    sample = Sample("a", IMAGE, truth, Context(depth=np.full(IMAGE.shape[:2], 30, np.float32)))
    whole = apply(sample, condition).image
    params = dict(condition.params) | {"on": "background"}
    part = apply(sample, Condition.of(corruption.name, condition.severity, params)).image
    inside = np.zeros(IMAGE.shape[:2], bool)
    inside[5:15, 5:20] = inside[11:35, 30:50] = True
    assert (part[inside] == IMAGE[inside]).all()
    assert (part[~inside] == whole[~inside]).all()
