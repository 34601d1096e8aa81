"""What corruptions declare: severities, derived parameters, needs, and reserved parameters."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import Condition, apply, corrupt_image
from stormproof.core.errors import InvalidCondition, InvalidTruth, MissingContext, UnknownName
from stormproof.core.sample import Context, Instances, Sample, Truth
from stormproof.corruptions import SUITES, find
from stormproof.corruptions.corruption import corruption

GREY = np.full((24, 32, 3), 120, np.uint8)


def test_severities_follow_from_the_ladders() -> None:
    assert find("fog").severities == (1, 2, 3, 4, 5)
    assert find("psf_blur").severities == (1, 2, 3)
    assert find("alpha_blend").severities == ()


def test_refuses_a_need_other_than_depth_and_camera() -> None:
    with pytest.raises(ValueError, match="depth and camera, not lidar"):
        corruption(family="test", cite="none", needs=("depth", "lidar"))


@pytest.mark.parametrize("severity", [4, 5])
def test_a_missing_severity_is_refused_and_the_others_are_listed(severity: int) -> None:
    with pytest.raises(InvalidCondition, match="1, 2, 3"):
        corrupt_image(GREY, f"psf_blur@{severity}")


def test_a_corruption_without_severities_says_what_to_give() -> None:
    with pytest.raises(InvalidCondition, match=r"additive_noise\[zeta_w=…,zeta_u=…,psi=…\]"):
        corrupt_image(GREY, "additive_noise@3")
    with pytest.raises(InvalidCondition, match="lacks psi"):
        corrupt_image(GREY, "additive_noise[zeta_w=1,zeta_u=1]")


def test_the_mutators_are_the_papers_34_and_the_contextual_ones_its_15() -> None:
    assert len(SUITES["mutators"]) == 34
    assert len(SUITES["contextual"]) == 15
    assert len(SUITES["optics"]) == 13
    assert "alpha_blend[alpha=0.25]" in map(str, SUITES["mutators"])
    assert "defocus[focus=10,kappa=3.6]" in map(str, SUITES["contextual"])


def test_visibility_is_converted_to_extinction() -> None:
    given = find("haze").parameters(Condition.parse("haze[visibility=97.8]"))
    assert given["beta"] == pytest.approx(0.04)
    with pytest.raises(InvalidCondition, match="only one of beta, visibility, mor"):
        find("haze").parameters(Condition.parse("haze[visibility=97.8,beta=0.04]"))
    with pytest.raises(InvalidCondition, match="visibility must be a number > 0"):
        find("haze").parameters(Condition.parse("haze[visibility=0]"))


def test_the_camera_constant_follows_from_table_3() -> None:
    text = "defocus[f_number=1.4,focal_length=0.0025,pixel_width=0.00000124,focus=1]"
    assert find("defocus").parameters(Condition.parse(text))["kappa"] == pytest.approx(3.6, abs=5e-4)
    with pytest.raises(InvalidCondition, match="all of f_number, focal_length, pixel_width"):
        find("defocus").parameters(Condition.parse("defocus[f_number=1.4,focus=1]"))


@pytest.mark.parametrize("text", ["haze[beta=0.04]", "defocus[kappa=2,focus=1]"])
def test_missing_depth_is_named_with_the_way_to_get_it(text: str) -> None:
    for attempt in (lambda: corrupt_image(GREY, text), lambda: apply(Sample("a", GREY), text)):
        with pytest.raises(MissingContext, match="stormproof depth") as caught:
            attempt()
        assert "depth=FOLDER" in str(caught.value)


def _with_depth(depth: np.ndarray) -> Sample:
    return Sample("a", GREY, context=Context(depth=depth.astype(np.float32)))


def _flat(value: float) -> np.ndarray:
    return np.full(GREY.shape[:2], float(value))


@pytest.mark.parametrize("value", [0.0, -3.0])
def test_depth_that_is_not_positive_is_refused(value: float) -> None:
    depth = _flat(10)
    depth[5, 7] = value
    with pytest.raises(InvalidTruth, match=r"\(5, 7\).*NaN"):
        apply(_with_depth(depth), "haze[beta=0.04]")


def test_depth_in_millimetres_is_refused_with_its_scale() -> None:
    with pytest.raises(InvalidTruth, match="depth_scale=1000"):
        apply(_with_depth(_flat(4200)), "haze[beta=0.04]")


def test_infinite_depth_is_sky_and_accepted() -> None:
    assert (apply(_with_depth(_flat(np.inf)), "haze[beta=0.04]").image == (205, 208, 211)).mean() > 0.99
    assert (apply(_with_depth(_flat(np.inf)), "defocus[kappa=3.6,focus=1]").image == GREY).all()


def test_depth_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidTruth, match="depth map"):
        Sample("a", GREY, context=Context(depth=np.ones((5, 5), np.float32)))


def test_refuses_sparse_depth_and_fills_small_holes_with_the_nearest() -> None:
    sparse = _flat(np.nan)
    sparse[::4, ::4] = 10
    with pytest.raises(MissingContext, match="fill_depth=true"):
        apply(_with_depth(sparse), "haze[beta=0.04]")
    holed = _flat(10)
    holed[3:9, 4:12] = np.nan
    filled = apply(_with_depth(holed), "haze[beta=0.04]").image
    assert (filled == apply(_with_depth(_flat(10)), "haze[beta=0.04]").image).all()


def test_reserved_parameters_are_in_the_text_and_change_no_random_number() -> None:
    texts = ("fog@3[on=objects]", "elastic_transform@2[labels=moved]")
    assert [str(Condition.parse(text)) for text in texts] == list(texts)
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    everything = Sample("a", image, Truth(Instances([[0, 0, 50, 40]], [0])))
    whole = apply(everything, "gaussian_noise@3").image
    assert (apply(everything, "gaussian_noise@3[on=objects]").image == whole).all()
    moved = apply(everything, "elastic_transform@2[labels=moved]").image
    assert (moved == apply(everything, "elastic_transform@2").image).all()


def test_impossible_reserved_parameters_are_refused() -> None:
    for text, said in (
        ("fog@3[labels=moved]", "does not move pixels"),
        ("geometric_distortion@1[labels=sideways]", "moved or fixed"),
        ("geometric_distortion@1[on=objects]", "labels=fixed"),
        ("fog@3[on=3]", "on=objects"),
        ('fog@3[on="car+"]', r"joined by \+"),
    ):
        condition = Condition.parse(text)
        with pytest.raises(InvalidCondition, match=said):
            find(condition.corruption or "").parameters(condition)
    with pytest.raises(UnknownName, match="and on, scale, labels"):
        find("geometric_distortion").parameters(Condition.parse("geometric_distortion[deltas=1]"))
    with pytest.raises(UnknownName, match=r"It takes: scattering, scale; and on\."):  # its own scale
        find("camera_fog").parameters(Condition.parse("camera_fog[scaling=1]"))
