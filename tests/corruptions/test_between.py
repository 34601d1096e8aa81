"""Severities between two whole ones: parameters grow as declared, whole ones stay, what switches refuses."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition
from stormproof.corruptions import CORRUPTIONS, corrupt_image, find

IMAGE = np.random.default_rng(5).integers(0, 256, (40, 56, 3), np.uint8)
SWITCHING = ("spatter", "saturate", "psf_blur")
GRADED = tuple(name for name, found in CORRUPTIONS.items() if found.severities)


@pytest.mark.parametrize("name", [name for name in GRADED if name not in SWITCHING])
def test_every_parameter_lies_between_its_neighbours(name):
    found = find(name)
    for below in found.severities[:-1]:
        low, high = (found.parameters(Condition.of(name, s)) for s in (below, below + 1))
        for share in (0.01, 0.5, 0.99):
            middle = found.parameters(Condition.of(name, below + share))
            for key, value in middle.items():
                if isinstance(value, str):
                    assert value == low[key] == high[key]
                else:
                    assert min(low[key], high[key]) <= value <= max(low[key], high[key])


@pytest.mark.parametrize("name", GRADED)
def test_whole_severities_are_what_is_declared(name):
    found = find(name)
    for severity in found.severities:
        values = found.parameters(Condition.of(name, severity))
        declared = {k: r.values[severity - 1 if r.rises else 0] for k, r in found.ladders.items()}
        assert values == declared


@pytest.mark.parametrize("name", SWITCHING)
def test_a_corruption_that_switches_refuses_fractional_severities(name):
    with pytest.raises(
        InvalidCondition, match=rf"{name}@1.5: {name} has no values between.*{name}@1 or {name}@2"
    ):
        corrupt_image(IMAGE, f"{name}@1.5")


def test_fixing_the_switching_parameter_allows_fractional_severities():
    corrupt_image(IMAGE, "spatter@1.5[liquid=water]")


def test_refuses_a_severity_beyond_the_last():
    with pytest.raises(InvalidCondition, match=r"haze has no severity 3.5"):
        find("haze").parameters(Condition.parse("haze@3.5"))


@pytest.mark.parametrize(
    ("between", "given"),
    [
        ("gaussian_noise@2.5", "gaussian_noise[sigma=0.15]"),
        ("motion_blur@1.5", "motion_blur[radius=12,sigma=4]"),
    ],
)
def test_a_fractional_severity_equals_its_interpolated_parameters(between, given):
    # Both share severity 0's noise: a sweep over a severity or a parameter keeps it.
    one, two = (corrupt_image(IMAGE, text, image_id="a") for text in (between, given))
    assert (one == two).all()


def test_haze_grows_by_equal_factors():
    beta = find("haze").parameters(Condition.parse("haze@1.5"))["beta"]
    assert beta == pytest.approx((0.004 * 0.012) ** 0.5)


def test_the_canonical_text_keeps_the_fraction():
    assert str(Condition.parse("fog@2.50")) == "fog@2.5"
    assert Condition.parse("fog@2.5").whole_severity is None
    assert Condition.parse("fog@2").whole_severity == 2
