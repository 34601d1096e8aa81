"""One changed import line: the reference's names, signatures and habits."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from helpers import reference
from stormproof import corrupt, get_corruption_names
from stormproof.core.errors import InvalidCondition, InvalidImage, MissingContext, UnknownName

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


@pytest.mark.parametrize("subset", ["common", "validation", "all", "noise", "blur", "weather", "digital"])
def test_subsets_equal_those_of_the_reference(subset: str) -> None:
    assert get_corruption_names(subset) == reference.package().get_corruption_names(subset)


def test_the_signature_begins_like_that_of_the_reference() -> None:
    theirs = inspect.signature(reference.package().corrupt).parameters
    ours = inspect.signature(corrupt).parameters
    assert [(p.name, p.default) for p in theirs.values()] == [
        (p.name, p.default) for p in list(ours.values())[:4]
    ]
    assert list(ours)[4:] == ["seed", "image_id"]


def test_a_corruption_number_equals_its_name() -> None:
    for number, name in enumerate(get_corruption_names("all")):
        assert (corrupt(IMAGE, 2, name) == corrupt(IMAGE, 2, corruption_number=number)).all()


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 1), (40, 50, 3)])
@pytest.mark.parametrize("name", get_corruption_names("all"))
def test_the_result_has_three_channels_as_the_references(name: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    assert corrupt(image, 3, name).shape == (40, 50, 3)


def test_calls_repeat_and_images_differ() -> None:
    assert (corrupt(IMAGE, 3, "gaussian_noise") == corrupt(IMAGE, 3, "gaussian_noise")).all()
    flat = np.full((64, 64, 3), 100, np.uint8)
    nearly = flat.copy()
    nearly[0, 0, 0] = 101
    a, b = (corrupt(i, 3, "gaussian_noise").astype(int).ravel() for i in (flat, nearly))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


def test_seed_and_image_id_decide_the_pixels() -> None:
    base = corrupt(IMAGE, 3, "fog", seed=1, image_id="a")
    assert (base == corrupt(IMAGE, 3, "fog", seed=1, image_id="a")).all()
    assert (base != corrupt(IMAGE, 3, "fog", seed=2, image_id="a")).any()
    assert (base != corrupt(IMAGE, 3, "fog", seed=1, image_id="b")).any()


def test_without_a_seed_numpys_generator_decides_as_in_the_reference() -> None:
    np.random.seed(7)
    first, second = (corrupt(IMAGE, 3, "gaussian_noise", seed=None) for _ in range(2))
    np.random.seed(7)
    again = corrupt(IMAGE, 3, "gaussian_noise", seed=None)
    assert (first != second).any()
    assert (first == again).all()


@pytest.mark.parametrize("severity", [0, 6, "3", 2.5, None, True])
def test_refuses_wrong_severities(severity: object) -> None:
    with pytest.raises(InvalidCondition, match="1 to 5"):
        corrupt(IMAGE, severity, "fog")  # type: ignore[arg-type]


def test_numpy_integers_are_severities() -> None:
    assert (corrupt(IMAGE, np.int64(3), "fog") == corrupt(IMAGE, 3, "fog")).all()  # type: ignore[arg-type]


def test_refuses_wrong_names_and_images() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'gaussian_noise'"):
        corrupt(IMAGE, 1, "gausian_noise")
    with pytest.raises(UnknownName, match="subset"):
        get_corruption_names("nosie")
    with pytest.raises(InvalidCondition, match="0 to 18"):
        corrupt(IMAGE, 1, corruption_number=19)
    with pytest.raises(InvalidCondition, match="corruption_name"):
        corrupt(IMAGE, 1)
    with pytest.raises(InvalidCondition, match="corruption_number=9"):
        corrupt(IMAGE, 3, 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidImage, match="float64"):
        corrupt(IMAGE / 255, 1, "fog")


def test_accepts_smaller_images_than_the_reference() -> None:
    for size in (1, 2, 8, 31):
        tiny = np.full((size, size, 3), 90, np.uint8)
        for name in get_corruption_names("all"):
            assert corrupt(tiny, 5, name).shape == tiny.shape


def test_a_corruption_that_needs_depth_says_so_at_once() -> None:
    with pytest.raises(MissingContext, match="rain needs depth"):
        corrupt(IMAGE, 3, "rain")
    with pytest.raises(MissingContext, match="depth"):
        corrupt(IMAGE, "rain@3")
    with pytest.raises(UnknownName, match=r"write corrupt\(image, 'iso_noise@3'\)"):
        corrupt(IMAGE, 3, "iso_noise")
