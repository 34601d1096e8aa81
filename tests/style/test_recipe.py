"""The condition `style[…]`: spaces, parts of the image, one encoding for all α."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, MissingContext
from stormproof.core.sample import RLE, Instances, Sample, Truth
from stormproof.corruptions import apply, corrupt_image, find_suite
from stormproof.style import painting
from stormproof.style.networks import open_network
from stormproof.style.sources import list_styles
from stormproof.world.samples import render


@pytest.fixture(scope="module")
def street() -> Sample:
    return render(0, "val", 3, width=128, height=96).sample


def changed(sample: Sample, condition: str) -> np.ndarray:
    return apply(sample, condition).image


def test_pixel_space_begins_with_the_original_and_ends_with_the_painting(street: Sample) -> None:
    full = changed(street, "style[alpha=1]")
    assert np.array_equal(changed(street, "style[alpha=0,space=pixel]"), street.image)
    assert np.array_equal(changed(street, "style[alpha=1,space=pixel]"), full)
    half = changed(street, "style[alpha=0.5,space=pixel]")
    assert np.abs(half - (street.image.astype(float) + full) / 2).max() <= 0.5
    assert not np.array_equal(changed(street, "style[alpha=0]"), street.image)


@pytest.mark.parametrize("space", ["feature", "pixel"])
def test_objects_and_background_tile_the_stylized_image(street: Sample, space: str) -> None:
    whole = changed(street, f"style[alpha=0.6,space={space}]")
    objects = changed(street, f"style[alpha=0.6,on=objects,space={space}]")
    background = changed(street, f"style[alpha=0.6,on=background,space={space}]")
    assert street.truth.instances is not None
    assert street.truth.instances.masks is not None
    mask = np.any([m.to_mask() for m in street.truth.instances.masks], axis=0)
    assert 0.01 < mask.mean() < 0.9
    assert np.array_equal(objects[~mask], street.image[~mask])
    assert np.array_equal(background[mask], street.image[mask])
    assert np.array_equal(objects[mask], whole[mask])
    assert np.array_equal(background[~mask], whole[~mask])


def test_content_and_style_are_encoded_once_for_all_alpha(
    street: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = open_network()
    encoded: list[str] = []

    class Counting:
        name, fingerprint = network.name, network.fingerprint

        def encode_content(self, image: np.ndarray) -> object:
            encoded.append("content")
            return network.encode_content(image)

        def paint(self, *given: object) -> np.ndarray:
            return network.paint(*given)

    monkeypatch.setattr(painting, "open_network", lambda text: Counting())
    monkeypatch.setattr(painting, "_last", painting._NOTHING)
    for condition in find_suite("object-centric"):
        if dict(condition.params)["alpha"] in (0.1, 0.5, 1):
            changed(street, str(condition))
    assert encoded == ["content"]


def test_the_style_depends_on_the_image_not_on_alpha(tmp_path: Path) -> None:
    sample = render(0, "val", 1, width=64, height=48).sample
    names = list(list_styles())
    chosen = painting.stylize(sample.image, list_styles()[names[2]], alpha=1.0)
    (tmp_path / "map.json").write_text(f'{{"{sample.id}": "{names[2]}"}}')
    given = changed(sample, f'style[alpha=1,stylemap="{tmp_path / "map.json"}"]')
    assert np.array_equal(given, chosen)
    with pytest.raises(InvalidCondition, match="no such file"):
        changed(sample, "style[alpha=1,stylemap=none.json]")


def test_accepts_grey_small_and_unlabelled_images() -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (40, 30, 1), (1, 1, 3), (6, 90, 3)):
        image = rng.integers(0, 256, shape, np.uint8)
        assert corrupt_image(image, "style[alpha=0.7]").shape == shape
    bare = Sample("bare", rng.integers(0, 256, (20, 20, 3), np.uint8))
    with pytest.raises(MissingContext, match="where objects are"):
        apply(bare, "style[alpha=1,on=objects]")
    none = Sample("none", bare.image, Truth(Instances(np.zeros((0, 4)), np.zeros(0))))
    assert np.array_equal(changed(none, "style[alpha=1,on=objects]"), none.image)
    boxes = Sample("boxes", bare.image, Truth(Instances(np.array([[2, 3, 9, 12]]), np.zeros(1))))
    painted = changed(boxes, "style[alpha=1,on=objects]")
    different = (painted != boxes.image).any(2)
    assert different[3:12, 2:9].any()
    different[3:12, 2:9] = False
    assert not different.any()


def test_masks_of_crowds_are_objects_too() -> None:
    mask = np.zeros((16, 16), bool)
    mask[4:9, 4:9] = True
    image = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    crowd = Instances(np.array([[4, 4, 9, 9]]), np.zeros(1), (RLE.from_mask(mask),), crowd=np.array([True]))
    painted = changed(Sample("crowd", image, Truth(crowd)), "style[alpha=1,on=objects]")
    assert (painted != image).any(2)[mask].any()
    assert np.array_equal(painted[~mask], image[~mask])


def test_object_centric_conditions_are_the_papers_sixty() -> None:
    suite = find_suite("object-centric")
    assert len(set(suite)) == 60
    spaces = [dict(c.params)["space"] for c in suite]
    assert (spaces.count("feature"), spaces.count("pixel")) == (33, 27)
    assert {dict(c.params).get("on", "image") for c in suite} == {"image", "objects", "background"}
    assert Condition.parse("style[alpha=0.4,on=objects,space=feature]") in suite.conditions
