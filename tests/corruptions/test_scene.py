"""What depth decides: fog along the ray, its airlight and its three names for one number."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import imaging
from stormproof.core.errors import InvalidCondition
from stormproof.core.sample import Camera, Context, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.needs import pinhole
from stormproof.corruptions.recipes.scene import ray_lengths

CAMERA = Camera(fx=80.0, fy=90.0, cx=50.0, cy=20.0)


def fogged(image: np.ndarray, depth: np.ndarray, condition: str, camera: Camera | None = None) -> np.ndarray:
    return apply(Sample("a", image, context=Context(depth=depth, camera=camera)), condition).image


def street() -> np.ndarray:
    """A dark street below a pale sky."""
    image = np.full((60, 100, 3), (40, 50, 60), np.uint8)
    image[:20] = (200, 210, 220)
    return image


def test_light_fades_along_the_ray() -> None:
    """A pixel 60 px off a focal length of 80 px lies 1.25 times as far as its depth says."""
    depth = np.full((60, 100), 100, np.float32)
    depth[:20] = np.inf
    made = fogged(street(), depth, "ray_fog[beta=0.01]", CAMERA)
    rays = np.hypot(np.hypot((np.arange(100) - 50) / 80, 1), (40 - 20) / 90)
    t = np.exp(-0.01 * 100 * rays)
    expected = np.array([200, 210, 220]) * (1 - t[:, None]) + np.array([40, 50, 60]) * t[:, None]
    assert made[40] == pytest.approx(expected, abs=0.6)
    assert (made[:20] == street()[:20]).all()
    assert ray_lengths((60, 100), CAMERA)[20, 50] == 1


def test_without_a_camera_the_view_is_assumed() -> None:
    depth = np.full((60, 100), 80, np.float32)
    wide = fogged(street(), depth, "ray_fog@2[view=100]")
    assert (wide == fogged(street(), depth, "ray_fog@2", pinhole((60, 100), 100))).all()
    assert (wide != fogged(street(), depth, "ray_fog@2[view=30]")).any()
    # The dataset's camera is known, so nothing is assumed.
    known = (fogged(street(), depth, f"ray_fog@2[view={view}]", CAMERA) for view in (30, 100))
    assert np.array_equal(*known)


@pytest.mark.parametrize("name", ["haze", "ray_fog"])
def test_one_number_has_three_names(name: str) -> None:
    depth = np.full((60, 100), 80, np.float32)
    by_beta = fogged(street(), depth, f"{name}[beta=0.02]")
    assert (fogged(street(), depth, f"{name}[mor={2.996 / 0.02}]") == by_beta).all()
    assert (fogged(street(), depth, f"{name}[visibility={3.912 / 0.02}]") == by_beta).all()
    with pytest.raises(InvalidCondition, match="only one of beta, visibility, mor"):
        fogged(street(), depth, f"{name}[mor=100,visibility=100]")


def test_the_airlight_is_the_median_of_the_brightest_dark_pixels() -> None:
    image = np.full((100, 100, 3), 30, np.uint8)
    image[10:40, 10:40] = (210, 220, 230)  # the sky
    image[60:64, 60:64] = 255  # a lamp, too small for the dark channel
    image[70:95, 70:95] = (255, 255, 0)  # bright, but one channel is dark
    image[20:30, 20:30] = np.arange(200, 210)[:, None, None]  # a cloud: 100 pixels of ten greys
    light = imaging.airlight(image, window=15, share=0.001)
    assert light.tolist() == [210, 220, 230] or 200 <= light[0] < 210
    # Brute force, pixel by pixel.
    least = np.pad(image.min(axis=2), 7, constant_values=255)
    dark = np.array([[least[y : y + 15, x : x + 15].min() for x in range(100)] for y in range(100)])
    chosen = dark >= np.sort(dark.ravel())[-10]
    greys = np.sort(image[chosen] @ np.array(imaging.LUMA))
    assert light @ np.array(imaging.LUMA) == pytest.approx(greys[(len(greys) - 1) // 2], abs=1)
