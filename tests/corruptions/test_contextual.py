"""Haze and defocus: what the formulas say, on flat, drawn and real depth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import skimage.data

from stormproof import apply, corrupt_image, imaging
from stormproof.core.imagefile import read_image
from stormproof.core.sample import Context, Sample
from stormproof.datasets.depthmaps import depth_from_disparity, fill_unknown, read_calibration, read_disparity

PHOTO = skimage.data.astronaut()[100:340, 60:380]


def under(image: np.ndarray, depth: np.ndarray | float, condition: str) -> np.ndarray:
    full = np.broadcast_to(np.asarray(depth, np.float32), image.shape[:2])
    return apply(Sample("a", image, context=Context(depth=full)), condition).image


@pytest.mark.parametrize("distance", [3.0, 20.0, 60.0])
@pytest.mark.parametrize("grey", [False, True])
def test_haze_on_flat_depth_is_an_alpha_blend(distance: float, grey: bool) -> None:
    image = PHOTO[..., :1] if grey else PHOTO
    alpha = 1 - np.exp(-0.04 * distance)
    blended = corrupt_image(image, f"alpha_blend[alpha={alpha}]").astype(int)
    assert np.abs(under(image, distance, "haze[beta=0.04]") - blended).max() <= 1


def _street(shared: Path) -> np.ndarray:
    """Real depth of a street, up to the sky, from measured disparities."""
    disparity = read_disparity(shared / "data/stereo_depth/kitti2015_000046/disp_occ_0.png")
    depth = np.float32(721 * 0.54) / disparity
    return fill_unknown(depth)


def test_haze_on_real_depth_loses_contrast_as_koschmieder_says(shared: Path) -> None:
    depth = _street(shared)
    visibility = float(np.percentile(depth, 90))
    black, white = (np.full((*depth.shape, 3), level, np.uint8) for level in (0, 255))
    condition = f"haze[visibility={visibility}]"
    contrast = (under(white, depth, condition) / 255 - under(black, depth, condition) / 255).mean(axis=2)
    seen = imaging.gaussian_field(
        np.minimum(depth, np.float32(6.24 * visibility / 3.912)), (2, 2), truncate=4, rule="nearest"
    )
    at_visibility = np.abs(seen / visibility - 1) < 0.02
    assert at_visibility.sum() > 200
    assert contrast[at_visibility].mean() == pytest.approx(0.02, rel=0.1)  # five grey levels of 255 are left
    clear = contrast > 0.2
    slope = (-np.log(contrast[clear]) * seen[clear]).sum() / (seen[clear] ** 2).sum()
    assert slope == pytest.approx(3.912 / visibility, rel=0.02)


def test_haze_grows_with_distance_and_hides_the_sky() -> None:
    depth = np.where(np.arange(PHOTO.shape[0])[:, None] < 40, np.inf, 10.0)
    out = under(PHOTO, depth, "haze[beta=0.04]").astype(int)
    assert np.abs(out[:30] - (205, 208, 211)).max() <= 1
    below = np.abs(out[60:] - corrupt_image(PHOTO, f"alpha_blend[alpha={1 - np.exp(-0.4)}]")[60:].astype(int))
    assert below.max() <= 1


@pytest.mark.parametrize(
    ("kappa", "focus", "distance"), [(3.6, 1, 50.0), (2.0, 1, 4.0), (2.8, 2, 0.8), (3.6, 10, 9)]
)
def test_defocus_on_constant_depth_is_a_gaussian_blur(kappa: float, focus: float, distance: float) -> None:
    rho = kappa * abs(distance - focus) / (distance * focus)
    expected = imaging.gaussian_field(PHOTO.astype(np.float32), (rho, rho), truncate=4, rule="nearest")
    out = under(PHOTO, distance, f"defocus[kappa={kappa},focus={focus}]")
    assert np.abs(out - expected).max() <= 1
    blurred = corrupt_image(PHOTO, f"gaussian_blur[sigma={rho}]").astype(int)
    assert np.abs(out.astype(int) - blurred).max() <= 1


def scattered(image: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Eq. 3 read literally: a loop over source pixels, each with a Gaussian that sums to one."""
    reach = int(4 * sigma.max() + 1)
    values = np.pad(image.astype(float), ((reach,) * 2, (reach,) * 2, (0, 0)), mode="edge")
    widths = np.pad(sigma, reach, mode="edge")
    light, weight = np.zeros_like(values), np.zeros(values.shape[:2])
    steps = np.arange(-reach, reach + 1)
    for y in range(reach, values.shape[0] - reach) if reach == 0 else range(values.shape[0]):
        for x in range(values.shape[1]):
            g = np.exp(-0.5 * (steps / max(widths[y, x], 1e-6)) ** 2)
            g /= g.sum()
            rows = slice(max(y - reach, 0), y + reach + 1)
            columns = slice(max(x - reach, 0), x + reach + 1)
            patch = np.outer(g[rows.start - (y - reach) :], g[columns.start - (x - reach) :])
            patch = patch[: values.shape[0] - rows.start, : values.shape[1] - columns.start]
            light[rows, columns] += patch[..., None] * values[y, x]
            weight[rows, columns] += patch
    inner = (slice(reach, -reach), slice(reach, -reach))
    return (light / weight[..., None])[inner]


def test_defocus_is_the_papers_scatter() -> None:
    """Two surfaces, then a slope: against a loop over all pixels."""
    image = PHOTO[40:70, 100:140]
    steps = np.where(np.arange(40) < 18, 2.0, 30.0) * np.ones((30, 1))
    slope = np.linspace(1.2, 20, 40) * np.ones((30, 1))
    for depth, focus, tolerance in ((steps, 1, 1), (slope, 1, 1.5), (slope, 5, 1.5), (slope, 2, 1.5)):
        rho = 3.6 * np.abs(depth - focus) / (depth * focus)
        out = under(image, depth, f"defocus[kappa=3.6,focus={focus}]")
        assert np.abs(out - scattered(image, rho)).max() <= tolerance, focus


def test_a_sharp_object_keeps_its_edge_and_the_background_leaks_over_it() -> None:
    """White background at infinity, black object in focus at 1 m, left of column 40."""
    image = np.full((60, 80, 3), 255, np.uint8)
    image[:, :40] = 0
    depth = np.where(np.arange(80) < 40, 1.0, np.inf) * np.ones((60, 1))
    row = under(image, depth, "defocus[kappa=3.6,focus=1]")[30, :, 0].astype(float)
    assert (row[40:] == 255).all()  # none of the object's black reaches the background
    assert (row[:20] == 0).all()
    # Just inside, the background sends Φ of its Gaussian beside the object's own weight of one.
    reach = np.arange(1, 15)
    g = np.exp(-0.5 * (np.arange(-14, 15) / 3.6) ** 2)
    leak = np.array([g[14 + d :].sum() for d in reach]) / g.sum()
    assert np.abs(row[40 - reach] - 255 * leak / (1 + leak)).max() <= 1
    assert row[40] - row[39] > 150  # a gather blur would leave a ramp of about 30 a pixel


def test_an_object_in_focus_keeps_its_texture_and_the_wall_behind_it_does_not(shared: Path) -> None:
    """The motorcycle in focus: its own texture survives, the wall behind it does not."""
    folder = shared / "data/stereo_depth/middlebury2014_motorcycle_Q"
    image = read_image(folder / "im0.png")
    depth = fill_unknown(
        depth_from_disparity(read_disparity(folder / "disp0GT.pfm"), read_calibration(folder / "calib.txt"))
    )
    out = under(image, depth, "defocus[kappa=20,focus=2.2]").astype(float)
    near, far = depth < 2.4, depth > 3.5
    detail = [np.abs(np.diff(image.mean(axis=2), axis=1)) for image in (image.astype(float), out)]
    kept = [detail[1][part[:, 1:]].mean() / detail[0][part[:, 1:]].mean() for part in (near, far)]
    assert kept[0] > 0.7
    assert kept[1] < 0.45
