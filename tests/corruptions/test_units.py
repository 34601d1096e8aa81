"""Physical units hold in the pixels: what a condition says it does is measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.core.sample import Context, Sample
from stormproof.corruptions import apply, corrupt_image
from stormproof.corruptions.units import physical


def stated(text: str) -> dict[str, float]:
    return {quantity.name: quantity.value for quantity in physical(Condition.parse(text))}


def flat(value: int, side: int = 400) -> np.ndarray:
    return np.full((side, side, 3), value, np.uint8)


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_impulse_noise_hits_as_many_values_and_pixels_as_it_says(severity: int) -> None:
    text = f"impulse_noise@{severity}"
    changed = corrupt_image(flat(128), text) != 128
    assert 100 * changed.mean() == pytest.approx(stated(text)["values hit"], abs=0.3)
    assert 100 * changed.any(axis=2).mean() == pytest.approx(stated(text)["pixels hit"], abs=0.5)


def test_impulse_noise_at_its_worst_changes_three_pixels_in_five() -> None:
    assert stated("impulse_noise@5") == pytest.approx({"values hit": 27, "pixels hit": 61.1}, abs=0.05)


@pytest.mark.parametrize("radius", [10, 15, 20])
def test_motion_blur_smears_a_point_as_far_as_it_says(radius: int) -> None:
    point = flat(0, 201)
    point[100, 100] = 255
    text = f"motion_blur[radius={radius},sigma=500]"  # all steps weigh alike
    rows, columns = np.nonzero(corrupt_image(point, text)[:, :, 0])
    length = math.hypot(float(np.ptp(rows)), float(np.ptp(columns)))
    assert length == pytest.approx(stated(text)["path"], abs=1)


@pytest.mark.parametrize("severity", [1, 2])
def test_noise_is_as_strong_as_it_says(severity: int) -> None:
    text = f"gaussian_noise@{severity}"
    noise = corrupt_image(flat(128), text).astype(float) - 128
    found = stated(text)
    assert noise.std() == pytest.approx(found["noise σ"], rel=0.02)
    assert 20 * math.log10(255 / noise.std()) == pytest.approx(found["SNR at white"], abs=0.2)
    shot = f"shot_noise@{severity}"
    grey = corrupt_image(flat(85), shot).astype(float)  # a third of white, where nothing is clipped
    photons = stated(shot)["photons at white"] / 3
    assert grey.mean() / grey.std() == pytest.approx(math.sqrt(photons), rel=0.05)
    assert stated(shot)["SNR at white"] == pytest.approx(20 * math.log10(math.sqrt(3 * photons)))


@pytest.mark.parametrize(("focus", "kappa"), [(2, 6), (10, 30), (10, 60)])
def test_the_far_background_is_blurred_as_it_says(focus: float, kappa: float) -> None:
    line = flat(0, 101)
    line[:, 50] = 255
    text = f"defocus[focus={focus},kappa={kappa}]"
    far = Context(depth=np.full((101, 101), np.inf, np.float32))
    spread = apply(Sample("a", line, context=far), text).image[50, :, 0].astype(float)
    sigma = math.sqrt(float(np.average((np.arange(101) - 50) ** 2, weights=spread)))
    assert sigma == pytest.approx(stated(text)["blur σ of the far background"], rel=0.06)


def test_visibility_is_where_two_hundredths_of_the_contrast_are_left() -> None:
    found = stated("haze[visibility=100]")
    assert found["visibility"] == pytest.approx(100)
    assert math.exp(-found["extinction β"] * found["visibility"]) == pytest.approx(0.02, abs=1e-5)
    left = math.exp(-found["extinction β"] * found["meteorological optical range"])
    assert left == pytest.approx(0.05, abs=1e-4)
