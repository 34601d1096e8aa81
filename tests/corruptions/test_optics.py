"""Intensity noise, lens blur and lens tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import skimage.data

from stormproof import corrupt_image
from stormproof.core.errors import InvalidOption

PHOTO = skimage.data.astronaut()[:384]


def snr(clean: np.ndarray, noisy: np.ndarray) -> float:
    x, y = clean.astype(float), noisy.astype(float)
    return float(10 * np.log10((x**2).sum() / ((x - y) ** 2).sum()))


def _noise(level: int, weight: float, channels: int = 3) -> np.ndarray:
    flat = np.full((300, 300, channels), level, np.uint8)
    return corrupt_image(flat, f"intensity_noise[weight={weight}]").astype(float) - level


def test_intensity_noise_has_the_strength_of_its_formula() -> None:
    """To first order the deviation is w·√2 / (2^Φ·ln 2), of full scale."""
    for level in (64, 128, 192):
        expected = 255 * 0.03 * np.sqrt(2) / (2 ** (level / 255) * np.log(2))
        assert _noise(level, 0.03).std() == pytest.approx(expected, rel=0.03)


def test_intensity_noise_is_half_luminance_half_chrominance() -> None:
    noise = _noise(128, 0.03)
    assert np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1] == pytest.approx(0.5, abs=0.02)


def test_intensity_noise_works_on_grey() -> None:
    assert _noise(128, 0.03, channels=1).std() == pytest.approx(_noise(128, 0.03).std(), rel=0.05)


def test_intensity_noise_has_the_papers_signal_to_noise_ratios() -> None:
    levels = [snr(PHOTO, corrupt_image(PHOTO, f"intensity_noise@{s}")) for s in range(1, 6)]
    assert all(a > b + 1.5 for a, b in pairwise(levels))
    assert abs(levels[2] - snr(PHOTO, corrupt_image(PHOTO, "gaussian_noise@1"))) < 4


def test_lens_blur_is_never_stronger_than_the_weakest_gaussian_blur() -> None:
    levels = [snr(PHOTO, corrupt_image(PHOTO, f"psf_blur@{s}")) for s in (1, 2, 3)]
    assert levels[0] > levels[1] > levels[2] > snr(PHOTO, corrupt_image(PHOTO, "gaussian_blur@1"))


def _spot(row: int, column: int, lens: str, size: tuple[int, int] = (256, 1024)) -> np.ndarray:
    """Second moments of a bright point's image: yy, xx."""
    image = np.zeros((*size, 1), np.uint8)
    image[row, column] = 255
    light = corrupt_image(image, f"psf_blur[lens={lens}]").astype(float)[..., 0]
    y, x = np.mgrid[: size[0], : size[1]]
    y, x = y - (light * y).sum() / light.sum(), x - (light * x).sum() / light.sum()
    return np.array([(light * y * y).sum(), (light * x * x).sum()]) / light.sum()


def test_the_spread_grows_outwards_and_more_across_the_radius() -> None:
    centre, edge = _spot(128, 512, "front_camera_3"), _spot(128, 1004, "front_camera_3")
    assert edge.min() > 2 * centre.max()
    assert edge[0] > 1.2 * edge[1]  # at the right edge, across the radius is up and down


def test_a_lens_table_says_how_wide_a_point_becomes(tmp_path: Path) -> None:
    table = tmp_path / "lens.csv"
    table.write_text("# width=1024\n# view=60\nangle,radial,tangential\n0,2,2\n60,2,2\n")
    edge = np.zeros((64, 1024, 1), np.uint8)
    edge[:, 700:] = 255
    profile = corrupt_image(edge, f"psf_blur[lens={table}]").astype(float)[32, :, 0]
    spread, x = np.diff(profile) / 255, np.arange(1023) - 699
    # A pixel is a square when it gives light and again when it takes it: 1/12 each. Cut at 3σ, 0.97 is left.
    assert (spread * x**2).sum() == pytest.approx(0.97 * 4 + 1 / 6, rel=0.05)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,2\n", "first line"),
        ("angle,radial,tangential\n0,1\n", "three numbers|reshape|shape"),
        ("angle,radial,tangential\n5,1,1\n2,1,1\n", "must increase"),
        ("angle,radial,tangential\n0,-1,1\n", "negative"),
    ],
)
def test_a_broken_lens_table_is_refused(tmp_path: Path, content: str, said: str) -> None:
    table = tmp_path / "lens.csv"
    table.write_text(content)
    with pytest.raises(InvalidOption, match=said):
        corrupt_image(PHOTO, f"psf_blur[lens={table}]")


def test_a_missing_lens_table_is_named() -> None:
    with pytest.raises(InvalidOption, match="front_camera_1"):
        corrupt_image(PHOTO, "psf_blur[lens=no_such.csv]")


def test_lens_blur_keeps_a_flat_image() -> None:
    flat = np.full((90, 130, 3), 77, np.uint8)
    assert (corrupt_image(flat, "psf_blur@3") == flat).all()
