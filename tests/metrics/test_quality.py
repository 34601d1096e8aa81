"""Image quality equals independent implementations; edge cases."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from scipy.signal import convolve2d
from scipy.stats import wasserstein_distance
from skimage.metrics import structural_similarity

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.metrics.fidelity import ifc, vif, vifp
from stormproof.metrics.pyramid import pyramid_bands
from stormproof.metrics.quality import (
    _SOBEL_MAX,
    colour_wasserstein,
    gradient_ssim,
    grey,
    object_quality,
    rmse,
    snr,
    ssim,
)
from stormproof.tools.quality_table import average_by_size, by_size


def make_image(seed=0, side=(112, 128)):
    """Blobs and edges over several scales, in colour."""
    rng = np.random.default_rng(seed)
    layers = sum(s * gaussian_filter(rng.normal(0, 1, (*side, 3)), (s, s, 0)) for s in (1, 2, 4, 8, 16))
    layers[side[0] // 3 : side[0] // 2, side[1] // 4 : side[1] // 2] += 2
    return (127 + 55 * layers).clip(0, 255).astype(np.uint8)


CLEAN = make_image()
CHANGED = {
    "noise": (CLEAN + np.random.default_rng(1).normal(0, 15, CLEAN.shape)).clip(0, 255).astype(np.uint8),
    "blur": cv2.GaussianBlur(CLEAN, (0, 0), 1.5),
    "dark": (CLEAN * 0.5).astype(np.uint8),
    "other": make_image(9),
}


@pytest.mark.parametrize("change", CHANGED)
def test_ssim_equals_scikit_image_and_sewar(change):
    a, b = grey(CLEAN), grey(CHANGED[change])
    expected = structural_similarity(
        a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    assert ssim(CLEAN, CHANGED[change]) == pytest.approx(expected, abs=1e-10)
    sewar = pytest.importorskip("sewar")
    from sewar.utils import Filter

    second = sewar.ssim(
        a.astype(np.uint8), b.astype(np.uint8), fltr_specs={"fltr": Filter.GAUSSIAN, "sigma": 1.5, "ws": 11}
    )[0]
    assert ssim(CLEAN, CHANGED[change]) == pytest.approx(second, abs=1e-10)


def plain_vifp(a, b):
    """Sheikh & Bovik's pixel-domain recipe, convolution by convolution."""
    kept = said = 0.0
    for scale in range(1, 5):
        n = 2 ** (5 - scale) + 1
        axis = np.arange(n) - n // 2
        kernel = np.exp(-(axis[:, None] ** 2 + axis[None, :] ** 2) / (2 * (n / 5) ** 2))
        kernel /= kernel.sum()

        def mean(values, kernel=kernel):
            return convolve2d(values, kernel, mode="valid")

        if scale > 1:
            a, b = mean(a)[::2, ::2], mean(b)[::2, ::2]
        va, vb = np.maximum(mean(a * a) - mean(a) ** 2, 0), np.maximum(mean(b * b) - mean(b) ** 2, 0)
        cov = mean(a * b) - mean(a) * mean(b)
        g = cov / (va + 1e-10)
        sv = vb - g * cov
        g[va < 1e-10], sv[va < 1e-10] = 0, vb[va < 1e-10]
        g[vb < 1e-10], sv[vb < 1e-10] = 0, 0
        sv[g < 0], g[g < 0] = vb[g < 0], 0
        sv = np.maximum(sv, 1e-10)
        kept += np.log10(1 + g**2 * va / (sv + 2)).sum()
        said += np.log10(1 + va / 2).sum()
    return kept / said


@pytest.mark.parametrize("change", CHANGED)
def test_vifp_equals_the_plain_recipe_and_sewar(change):
    a, b = grey(CLEAN), grey(CHANGED[change])
    assert vifp(CLEAN, CHANGED[change]) == pytest.approx(plain_vifp(a, b), abs=1e-8)
    sewar = pytest.importorskip("sewar")
    assert vifp(CLEAN, CHANGED[change]) == pytest.approx(sewar.vifp(a, b), abs=1e-8)


def test_pyramid_equals_the_spatial_filters_of_pyrtools():
    pyramids = pytest.importorskip("pyrtools").pyramids
    theirs = pyramids.SteerablePyramidSpace(grey(CLEAN), height=4, order=5).pyr_coeffs
    for level, bands in enumerate(pyramid_bands(grey(CLEAN), 4)):
        for k, band in zip((0, 3), bands, strict=True):
            assert np.abs(band - theirs[level, k]).max() < 1e-9 * np.abs(theirs[level, k]).max()


def slow_wavelet_information(a, b):
    """VIF's and IFC's sums over pyrtools bands, block by block and window by window."""
    from pyrtools import pyramids

    ours, theirs = (pyramids.SteerablePyramidSpace(x, height=4, order=5).pyr_coeffs for x in (a, b))
    kept = said = shared = 0.0
    for level in range(4):
        half = 2 ** (4 - level) // 2
        for k in (0, 3):
            c, d = ours[level, k], theirs[level, k]
            rows, columns = c.shape[0] // 3, c.shape[1] // 3
            c, d = c[: rows * 3, : columns * 3], d[: rows * 3, : columns * 3]
            views = np.lib.stride_tricks.sliding_window_view(c, (3, 3)).reshape(-1, 9)
            covariance = np.cov(views.T, bias=True)
            inverse, eigenvalues = np.linalg.inv(covariance), np.linalg.eigvalsh(covariance)
            trim = math.ceil(half / 3)
            for i in range(trim, rows - trim):
                for j in range(trim, columns - trim):
                    block = c[3 * i : 3 * i + 3, 3 * j : 3 * j + 3].ravel()
                    s = block @ inverse @ block / 9
                    near = np.s_[3 * i + 1 - half : 3 * i + 2 + half, 3 * j + 1 - half : 3 * j + 2 + half]
                    x, y = c[near].ravel(), d[near].ravel()
                    g = max(np.cov(x, y, bias=True)[0, 1] / x.var(), 0)
                    noise = max(y.var() - g * np.cov(x, y, bias=True)[0, 1], 1e-15) if g else y.var()
                    kept += np.log2(1 + g * g * s * eigenvalues / (noise + 0.4)).sum()
                    said += np.log2(1 + s * eigenvalues / 0.4).sum()
                    shared += np.log2(1 + g * g * s * eigenvalues / (noise + 1e-10)).sum()
    return kept / said, shared / a.size


@pytest.mark.parametrize("change", ["noise", "blur"])
def test_wavelet_vif_and_ifc_equal_a_slow_implementation(change):
    pytest.importorskip("pyrtools")
    expected_vif, expected_ifc = slow_wavelet_information(grey(CLEAN), grey(CHANGED[change]))
    assert vif(CLEAN, CHANGED[change]) == pytest.approx(expected_vif, rel=1e-3)
    assert ifc(CLEAN, CHANGED[change]) == pytest.approx(expected_ifc, rel=1e-3)


def test_equal_images_have_perfect_quality():
    assert rmse(CLEAN, CLEAN) == 0
    assert math.isinf(snr(CLEAN, CLEAN))
    assert ssim(CLEAN, CLEAN) == pytest.approx(1)
    assert gradient_ssim(CLEAN, CLEAN) == pytest.approx(1)
    assert vifp(CLEAN, CLEAN) == pytest.approx(1)
    assert vif(CLEAN, CLEAN) == pytest.approx(1)
    assert math.isinf(ifc(CLEAN, CLEAN))
    assert colour_wasserstein(CLEAN, CLEAN) == 0


@pytest.mark.parametrize("measure", [ssim, gradient_ssim, vifp, vif, ifc, snr])
def test_more_damage_lowers_quality(measure):
    values = [measure(CLEAN, cv2.GaussianBlur(CLEAN, (0, 0), sigma)) for sigma in (0.7, 1.5, 3.0)]
    assert values[0] > values[1] > values[2]


def test_a_flat_image_has_no_information_to_lose():
    flat = np.full_like(CLEAN, 90)
    for measure in (vif, vifp):
        assert measure(flat, flat) == 1
        assert math.isnan(measure(flat, CLEAN))


def test_vif_exceeds_one_for_gained_contrast_and_is_zero_for_a_flat_image():
    flat = np.full_like(CLEAN, 90)
    muted = (90 + (CLEAN.astype(float) - 90) * 0.4).astype(np.uint8)
    assert vifp(muted, CLEAN) > 1 > vifp(CLEAN, muted)
    assert vifp(CLEAN, flat) == pytest.approx(0, abs=1e-6)
    assert vif(CLEAN, flat) == pytest.approx(0, abs=1e-6)


def test_rmse_and_snr_by_hand():
    a, b = np.array([[3, 4]], np.uint8), np.array([[3, 3]], np.uint8)
    assert rmse(a, b) == pytest.approx(math.sqrt(0.5))
    assert snr(a, b) == pytest.approx(10 * math.log10(25))
    assert math.isinf(snr(np.zeros_like(a), b))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12))
def test_wasserstein_equals_scipy(seed, height, width):
    a, b = np.random.default_rng(seed).integers(0, 256, (2, height, width, 3)).astype(np.uint8)
    expected = np.mean(
        [wasserstein_distance(a[..., k].ravel() / 255, b[..., k].ravel() / 255) for k in range(3)]
    )
    assert colour_wasserstein(a, b) == pytest.approx(expected, abs=1e-12)


def test_grey_and_colour_images_of_one_grey_agree():
    a, b = grey(CLEAN).astype(np.uint8), grey(CHANGED["noise"]).astype(np.uint8)
    assert ssim(a, b) == ssim(a[..., None], b[..., None]) == ssim(np.dstack([a] * 3), np.dstack([b] * 3))


def test_small_crops_are_padded_and_too_small_images_refused():
    tiny = CLEAN[:4, :7]
    assert ssim(tiny, tiny) == pytest.approx(1)
    assert ssim(tiny, 255 - tiny) < 0.9
    with pytest.raises(InvalidImage, match="41 pixels a side; this image is 40×128"):
        vifp(CLEAN[:40], CLEAN[:40])
    with pytest.raises(InvalidImage, match="80 pixels a side"):
        vif(CLEAN[:79], CLEAN[:79])
    with pytest.raises(InvalidImage, match="compare images of the same size"):
        ssim(CLEAN, CLEAN[1:])


def test_quality_is_averaged_by_object_size():
    clean = np.full((200, 200, 3), 100, np.uint8)
    worse = clean.copy()
    worse[:20, :20] += 10  # the small object only
    boxes = [[0, 0, 20, 20], [20, 20, 70, 70], [90, 90, 250, 250], [300, 300, 310, 310], [0, 0, 9, 9]]
    objects = Instances(boxes, [0] * 5, crowd=[False] * 4 + [True])
    found = by_size(["rmse"], objects=True)(Sample("a", clean, Truth(objects)), [worse])
    made = average_by_size(["rmse"], [Condition()], [found])
    rows = {row.size: (row.count, *row.means.values()) for row in made}
    assert rows == {"image": (1, 1), "small": (1, 10), "medium": (1, 0), "large": (1, 0)}
    assert np.isnan(object_quality(clean, worse, objects, rmse)[3])
    nothing = by_size(["rmse"], objects=True)(Sample("a", clean), [worse])
    assert [row.size for row in average_by_size(["rmse"], [Condition()], [nothing])] == ["image"]


@pytest.mark.parametrize(
    ("box", "rows", "columns"),
    [
        ([10.5, 10.5, 20.5, 20.5], (10, 20), (10, 20)),
        ([-5, 70, 5, 95], (70, 79), (0, 4)),
        ([95, -20, 130, 3], (0, 2), (95, 99)),
    ],
)
def test_crops_are_rounded_outwards_and_end_at_the_border(box, rows, columns):
    seen = []

    def watch(clean, corrupted):
        seen.append(clean)
        return 0.0

    y, x = np.mgrid[:80, :100].astype(np.uint8)
    for plane in (y, x):
        object_quality(plane, plane, Instances([box], [0]), watch)
    assert [(int(crop.min()), int(crop.max())) for crop in seen] == [rows, columns]


def test_gradients_are_scaled_by_the_largest_that_a_sobel_filter_can_give():
    """A convex function of the pixels is largest at one of the 256 black and white neighbourhoods."""
    pixels = (np.arange(256)[:, None] >> np.arange(8)) & 1
    patches = np.insert(pixels, 4, 0, axis=1).reshape(-1, 3, 3).astype(np.float64)
    magnitude = [np.hypot(cv2.Sobel(p, -1, 1, 0)[1, 1], cv2.Sobel(p, -1, 0, 1)[1, 1]) for p in patches]
    assert max(magnitude) == pytest.approx(_SOBEL_MAX)
