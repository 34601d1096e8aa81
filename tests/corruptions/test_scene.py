"""What depth decides: fog along the ray, focus, motion, a flash; and the sensor noise of the same paper."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import imaging
from stormproof.core.errors import InvalidCondition
from stormproof.core.sample import Camera, Context, Sample
from stormproof.corruptions import SUITES, apply, corrupt_image
from stormproof.corruptions.needs import pinhole
from stormproof.corruptions.recipes.scene import _depth_at, ray_lengths

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
def test_beta_visibility_and_mor_give_the_same_fog(name: str) -> None:
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


# --- 3D Common Corruptions


def halves() -> tuple[np.ndarray, np.ndarray]:
    """Stripes; the left half lies at 20 m, the right half at 80 m."""
    image = np.zeros((64, 128, 3), np.uint8)
    image[:, ::4] = 240
    depth = np.full((64, 128), 20, np.float32)
    depth[:, 64:] = 80
    return image, depth


def contrast(image: np.ndarray, part: slice) -> float:
    return float(image[8:-8, part].std(axis=1).mean())


def test_the_suite_lists_the_3d_common_corruptions() -> None:
    assert len(SUITES["3dcc"].corruptions) == 10
    assert len(SUITES["3dcc"]) == 50


def test_fog_takes_the_mean_colour() -> None:
    image, depth = halves()
    image[..., 1] //= 2
    made = fogged(image, depth, "fog_3d@1").astype(float)
    mean = image.reshape(-1, 3).mean(axis=0)
    t = np.exp(-4 * 20 / 80)
    assert made[:, :64] == pytest.approx(t * image[:, :64] + (1 - t) * mean, abs=0.6)


def test_focus_is_near_or_far() -> None:
    image, depth = halves()
    near, far = slice(8, 56), slice(72, 120)
    clean = contrast(image, near)
    sharp = fogged(image, depth, "near_focus@3"), fogged(image, depth, "far_focus@3")
    assert contrast(sharp[0], near) > 0.95 * clean
    assert contrast(sharp[0], far) < 0.5 * clean
    assert contrast(sharp[1], far) > 0.95 * clean
    assert contrast(sharp[1], near) < 0.5 * clean


@pytest.mark.parametrize("share", [0, 0.125, 0.5, 0.875, 1])
def test_finds_the_depth_below_which_a_share_of_pixels_lies(share: float) -> None:
    """Equal depths at both ends, as clipping and the sky make them, change nothing."""
    rng = np.random.default_rng(5)
    for low, high in ((0, 99), (4, 6), (5, 5), (20, 99)):
        depth = np.clip(rng.normal(5, 2, (31, 17)), low, high).astype(np.float32)
        depth[rng.random(depth.shape) < 0.2] = np.inf
        place = min(int(share * depth.size), depth.size - 1)
        assert _depth_at(depth, share) == np.sort(depth, axis=None)[place]


def test_near_things_smear_four_times_as_far() -> None:
    """A bright column at 20 m and at 80 m; the light of each is spread over its path."""
    image, depth = halves()
    image[:] = 0
    image[:, 32] = image[:, 96] = 250
    context = Context(depth=depth)
    for image_id in "abcd":
        made = apply(Sample(image_id, image, context=context), "xy_motion_blur[path=200]").image[32, :, 0]
        near, far = (made[:64] > 0).sum(), (made[64:] > 0).sum()
        if near > 12:  # moved mostly sideways
            assert far == pytest.approx(near / 4, abs=1.5)
            return
    pytest.fail("no motion was horizontal")


def test_forward_motion_leaves_the_middle_in_place() -> None:
    image = np.random.default_rng(0).integers(0, 256, (61, 81, 3), np.uint8)
    depth = np.full((61, 81), 10, np.float32)
    made = fogged(image, depth, "z_motion_blur@5")
    assert (made[30, 40] == image[30, 40]).all()
    assert made[:, :8].std() < 0.6 * image[:, :8].std()


def test_a_streak_is_the_mean_along_its_line() -> None:
    image = np.random.default_rng(1).integers(0, 256, (5, 40, 3), np.uint8)
    dx = np.full((5, 40), 7.0, np.float32)
    made = imaging.streak(image, np.zeros_like(dx), dx)
    places = [np.floor(np.arange(40) + k * 7 / 8 + 0.5).astype(int) for k in range(8)]
    expected = np.mean([image[:, np.minimum(place, 39)] for place in places], axis=0)
    assert np.abs(made - expected).max() <= 0.51


@pytest.mark.parametrize("tilt", [0.0, 0.5, 1.0])
def test_the_normal_of_a_plane_follows_its_tilt(tilt: float) -> None:
    """The plane z = 10 + tilt·X, seen through the axis: its normal makes the angle atan(tilt)."""
    u = (np.arange(101) - 50) / 80
    depth = np.tile(10 / (1 - tilt * u), (41, 1)).astype(np.float32)
    camera = Camera(fx=80.0, fy=80.0, cx=50.0, cy=20.0)
    facing = imaging.facing(depth, camera, 1)
    assert facing[20, 50] == pytest.approx(np.cos(np.arctan(tilt)), abs=6e-3)
    flat = np.full((41, 101, 3), 100, np.uint8)
    lit = fogged(flat, depth, "flash@2", camera)[20, 50, 0]
    assert lit == pytest.approx(100 * (1 + facing[20, 50] / 1.4), abs=1)


def test_the_sky_takes_no_flash() -> None:
    depth = np.full((20, 30), np.inf, np.float32)
    image = np.full((20, 30, 3), 90, np.uint8)
    assert (fogged(image, depth, "flash@5") == image).all()


def test_iso_noise_has_the_spread_of_its_formula() -> None:
    grey = np.full((200, 200, 3), 128, np.uint8)
    noisy = corrupt_image(grey, "iso_noise@1").astype(float)
    assert noisy.mean() == pytest.approx(128, abs=1.5)
    spread = 255 * np.hypot(np.sqrt(128 / 255 / 25), 0.7 * 0.08)
    assert noisy.std() == pytest.approx(spread, rel=0.03)


def test_low_light_squares_the_range() -> None:
    image = np.full((200, 200, 3), 130, np.uint8)
    image[0, 0], image[0, 1] = 30, 230
    dark = corrupt_image(image, "low_light@2").astype(float)[1:]
    assert dark.mean() == pytest.approx(255 * 0.5 * 0.5**2, abs=1)
    assert dark.std() == pytest.approx(255 * np.hypot(np.sqrt(0.125 / 120), 0.018), rel=0.06)


def test_one_bit_leaves_two_levels() -> None:
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert {*np.unique(corrupt_image(image, "color_quant@5"))} == {0, 128}


def test_bit_errors_last_until_the_end_of_the_row_of_blocks() -> None:
    image = np.random.default_rng(0).integers(0, 256, (160, 320, 3), np.uint8)
    made = corrupt_image(image, "bit_error@4")
    blocks = (made != image).reshape(10, 16, 20, 48).any(axis=(1, 3))
    assert blocks.any()
    assert not blocks.all()
    assert (np.diff(blocks.astype(int), axis=1) >= 0).all()  # once wrong, wrong to the end
