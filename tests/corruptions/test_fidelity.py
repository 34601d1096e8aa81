"""Every corruption and severity against imagecorruptions 1.1.2, on real photographs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, poisson

from helpers import agreement as a
from stormproof.core.condition import SEVERITIES, Condition
from stormproof.corruptions import corrupt_image, find

VIEWS = [*zip(a.PHOTOS, a.SIZES, strict=True)]  # a photograph in each size; severities take them in turn


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", a.DETERMINISTIC)
def test_deterministic_corruptions_agree_with_the_reference(name: str, severity: int) -> None:
    photo, size = VIEWS[severity % 3]
    measured = a.deterministic(name, severity, a.photo(photo, size))
    near = measured.within_2 if name in ("pixelate", "saturate") else measured.within_1
    assert near >= 0.999, (photo, size, measured)
    assert abs(measured.bias) < 0.2, (photo, size, measured)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", a.REPLAYED)
def test_with_the_draws_of_the_reference_images_equal_those_of_the_reference(
    name: str, severity: int
) -> None:
    # The reference scatters glass_blur in pure Python: seconds an image, so the smallest size only.
    photo, size = VIEWS[0 if name == "glass_blur" else severity % 3]
    measured = a.replayed(name, severity, a.photo(photo, size), severity)
    assert measured.within_1 == 1, (photo, size, measured)
    assert measured.equal >= (0.9999 if name == "frost" else 0.995), (photo, size, measured)


@pytest.mark.slow
@pytest.mark.parametrize("severity", [1, 3, 5])
@pytest.mark.parametrize("name", a.RANDOM)
def test_random_corruptions_have_the_references_statistics(name: str, severity: int) -> None:
    """Mean, spread, SNR, histogram and spectrum over seeds lie within five standard errors."""
    seeds = 6 if name == "glass_blur" else 40
    ours, theirs = a.sampled(name, severity, a.photo("chelsea", (72, 96)), seeds)
    apart = a.standard_errors_apart(ours, theirs, a.FLOOR)
    # Few seeds estimate their own scatter badly (Student's t with 10 degrees of freedom).
    limit = 9 if name == "glass_blur" else 5
    assert apart.max() < limit, (
        int(apart.argmax()),
        apart.max(),
        ours.mean(axis=0)[:3],
        theirs.mean(axis=0)[:3],
    )


def _by_level(name: str, severity: int, repeats: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the output for each input level."""
    ramp = np.repeat(np.arange(256, dtype=np.uint8), repeats).reshape(256, repeats, 1)
    out = corrupt_image(ramp, Condition.of(name, severity)).astype(np.float64)
    return out.mean(axis=(1, 2)), out.std(axis=(1, 2))


def _moments(outcomes: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = (outcomes * chances).sum(axis=1)
    return mean, np.sqrt((chances * (outcomes - mean[:, None]) ** 2).sum(axis=1))


def _expected(name: str, severity: int) -> tuple[np.ndarray, np.ndarray]:
    """Moments of the truncated, saturated output for each level, from the distribution itself."""
    levels = np.arange(256)[:, None]
    value = next(iter(find(name).ladders.values())).values[severity - 1]
    if name == "shot_noise":
        counts = np.arange(400)
        outcomes = np.floor(np.clip(counts / value, 0, 1) * 255)
        return _moments(np.broadcast_to(outcomes, (256, 400)), poisson.pmf(counts, value * levels / 255))
    sd = 255 * value if name == "gaussian_noise" else np.maximum(levels * value, 1e-9)
    edges = np.arange(0, 256)
    below = norm.cdf((edges - levels) / sd)
    chances = np.diff(np.concatenate((below, np.ones((256, 1))), axis=1), axis=1)
    chances[:, 0] += below[:, 0]
    return _moments(np.broadcast_to(edges, (256, 256)), chances)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "speckle_noise"])
def test_noise_has_the_right_moments_at_every_grey_level(name: str, severity: int) -> None:
    mean, sd = _by_level(name, severity)
    expected_mean, expected_sd = _expected(name, severity)
    error = np.maximum(expected_sd / np.sqrt(4000), 1e-3)
    skip = 1 if name == "speckle_noise" else 0  # level 0 has no spread, and truncation ties there
    assert (np.abs(mean - expected_mean)[skip:] / error[skip:]).max() < 5
    assert np.abs(sd - expected_sd)[skip:].max() < 2.5


@pytest.mark.parametrize("severity", SEVERITIES)
def test_impulse_noise_hits_the_stated_share_of_values(severity: int) -> None:
    grey = np.full((500, 500, 3), 128, np.uint8)
    out = corrupt_image(grey, Condition.of("impulse_noise", severity))
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[severity - 1]
    assert (out == 0).mean() == pytest.approx(share / 2, abs=0.002)
    assert (out == 255).mean() == pytest.approx(share / 2, abs=0.002)
    touched = (out != 128).any(axis=2).mean()
    assert touched == pytest.approx(1 - (1 - share) ** 3, abs=0.004)


def test_defocus_kernels_keep_the_references_sums() -> None:
    from stormproof.corruptions.recipes.blur import disk

    sums = [disk(r, s).sum() for r, s in ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))]
    assert sums == pytest.approx([1, 1, 1, 1.0130, 1.0108], abs=1e-4)


def test_motion_blur_shifts_the_image_by_the_stated_pixels() -> None:
    from stormproof.corruptions.recipes.blur import motion_path

    shifts = []
    for radius, sigma in ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)):
        weights, path = motion_path((1000, 1000), radius, sigma, 0.0)
        shifts.append(float(weights @ path[:, 1]))
        assert weights.sum() == pytest.approx(1)
    assert shifts == pytest.approx([2.09, 3.68, 6.07, 8.99, 11.43], abs=0.01)


def test_zoom_blur_uses_the_factors_of_the_reference() -> None:
    ladders = find("zoom_blur").ladders
    pairs = zip(ladders["reach"].values, ladders["step"].values, strict=True)
    assert [round((reach - 1) / step) + 1 for reach, step in pairs] == [12, 16, 11, 13, 11]
