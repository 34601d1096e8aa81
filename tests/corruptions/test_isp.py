"""The image signal processor: each stage's fault does what it says, in colour and in grey."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import stormproof.corruptions.recipes.isp
from stormproof import imaging
from stormproof.corruptions import corrupt_image
from stormproof.corruptions.suites import STAGES

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
NEUTRAL = np.repeat(RAMP, 3, axis=2)
LUMA = np.array(imaging.LUMA)


def colours(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("room", ["camera", "isp", "board"])
def test_recipes_use_primitives_only(room: str) -> None:
    path = Path(stormproof.corruptions.recipes.isp.__file__).with_name(f"{room}.py")
    roots = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.split(".")[0])
            assert not node.module.startswith("stormproof.imaging.")
    assert not roots & {"cv2", "numba", "scipy", "skimage", "torch", "PIL"}


def test_the_mosaic_is_rggb() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[..., 0], image[..., 1], image[..., 2] = 10, 20, 30
    assert imaging.mosaic(image).tolist() == [[10, 20] * 3, [20, 30] * 3] * 2
    assert (imaging.mosaic(RAMP) == RAMP[..., 0]).all()


def bilinear_by_hand(raw: np.ndarray) -> np.ndarray:
    """Slow and plain: the mean of the nearest sites of each colour, mirrored about the edge."""
    height, width = raw.shape
    out = np.zeros((height, width, 3), np.uint8)

    def at(y: int, x: int) -> int:
        y, x = (abs(v) if v < n else 2 * n - 2 - v for v, n in ((y, height), (x, width)))
        return int(raw[y, x])

    for y in range(height):
        for x in range(width):
            cross = at(y, x - 1) + at(y, x + 1) + at(y - 1, x) + at(y + 1, x)
            corners = at(y - 1, x - 1) + at(y - 1, x + 1) + at(y + 1, x - 1) + at(y + 1, x + 1)
            if y % 2 == x % 2:
                own, other = (0, 2) if y % 2 == 0 else (2, 0)
                out[y, x, own], out[y, x, 1], out[y, x, other] = (
                    raw[y, x],
                    (cross + 2) // 4,
                    (corners + 2) // 4,
                )
            else:
                along = (at(y, x - 1) + at(y, x + 1) + 1) // 2
                across = (at(y - 1, x) + at(y + 1, x) + 1) // 2
                out[y, x] = (along, raw[y, x], across) if y % 2 == 0 else (across, raw[y, x], along)
    return out


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (5, 4), (17, 24), (24, 17)])
def test_demosaicking_on_black_equals_plain_bilinear(size: tuple[int, int]) -> None:
    raw = np.random.default_rng(1).integers(1, 256, size, dtype=np.uint8)
    black = np.zeros((*size, 3), np.uint8)
    assert (imaging.demosaic(raw, black) == bilinear_by_hand(raw)).all()


def test_demosaicking_leaves_pixels_beyond_a_faults_reach() -> None:
    image = colours(30, 40)
    raw = imaging.mosaic(image)
    assert (imaging.demosaic(raw, image) == image).all()
    raw[12, 20] ^= 255
    out = imaging.demosaic(raw, image)
    changed = np.argwhere((out != image).any(axis=2))
    assert changed.min(axis=0).tolist() >= [10, 18]
    assert changed.max(axis=0).tolist() <= [14, 22]
    assert (out[10:15, 18:23] == bilinear_by_hand(raw)[10:15, 18:23]).all()


def test_black_level_lifts_one_colour() -> None:
    red = corrupt_image(NEUTRAL, "insufficient_black_level@3").astype(float)
    assert np.abs(red[..., 0] - (0.75 * RAMP[..., 0] + 0.25 * 255)).max() <= 0.51
    assert (red[..., 1:] == NEUTRAL[..., 1:]).all()
    green = corrupt_image(NEUTRAL, "excessive_black_level@5").astype(float)
    assert np.abs(green[..., 1] - (0.7 * RAMP[..., 0] + 0.3 * 255)).max() <= 0.51
    assert (green[..., ::2] == NEUTRAL[..., ::2]).all()


def test_black_level_follows_the_authors_script_or_the_paper() -> None:
    scripted = corrupt_image(NEUTRAL, "insufficient_black_level@1[share=0.3,level=51]")
    assert scripted[0, 0].tolist() == [15, 0, 0]
    weak = corrupt_image(NEUTRAL, "insufficient_black_level@5[law=gain]")
    assert weak[-1, -1].tolist() == [255, 153, 255]
    strong = corrupt_image(NEUTRAL, "excessive_black_level@5[law=gain]")
    assert strong[6, 4].tolist() == [100, 130, 100]
    assert strong[-1, -1].tolist() == [255, 255, 255]


@pytest.mark.parametrize(
    "condition",
    [
        "insufficient_black_level@4",
        "excessive_black_level@4",
        "lens_shading_damage@3",
        "white_balance_damage@3",
        "white_balance_damage@3[law=gains,error=0.2]",
        "gamma_damage@3",
    ],
)
def test_a_grey_image_becomes_the_luma_of_a_neutral_scene(condition: str) -> None:
    in_colour = corrupt_image(NEUTRAL, condition).astype(float) @ LUMA
    assert np.abs(corrupt_image(RAMP, condition)[..., 0] - in_colour).max() <= 1.01


def test_shading_follows_the_law_of_the_lens() -> None:
    white = np.full((301, 401, 3), 255, np.uint8)
    shaded = corrupt_image(white, "lens_shading_damage[strength=1]")[..., 0].astype(float)
    assert shaded[150, 200] == 255
    # Light falls by cos⁴; a display shows value^2.2 as light.
    assert (shaded[0, 0] / 255) ** 2.2 == pytest.approx(1 / 4, abs=0.01)
    q = 100 / np.hypot(150, 200)
    assert (shaded[150, 300] / 255) ** 2.2 == pytest.approx((1 + q**2) ** -2, abs=0.01)
    straight = corrupt_image(white, "lens_shading_damage[strength=1,profile=linear]")[..., 0]
    assert straight[0, 0] == 0
    assert straight[150, 300] == pytest.approx(255 * (1 - q), abs=1)
    assert (shaded == shaded[::-1, ::-1]).all()


def test_white_balance_misreads_green_and_blue() -> None:
    image = colours(40, 40) // 2
    means = image.mean(axis=(0, 1))
    read = means + np.array([0, 60, 60])
    gains = np.floor(read.sum()) / 3 / read
    expected = np.clip(np.floor(gains * image), 0, 255)
    out = corrupt_image(image, "white_balance_damage@3[law=grey_world]").astype(float)
    assert np.abs(out - expected).max() <= 1
    assert gains[0] > 1 > gains[1]
    from_right = read.sum() / means.sum() * means / read
    out = corrupt_image(image, "white_balance_damage@3").astype(float)
    assert np.abs(out - np.clip(from_right * image, 0, 255)).max() <= 0.51


def test_a_photograph_with_a_cast_reddens_from_step_to_step() -> None:
    """By the authors' script, the first step takes the cast out of a red photograph."""
    red = np.clip(colours(60, 60) // 2 + np.array([90, 20, 0]), 0, 255).astype(np.uint8)
    for law, monotone in (("misread", True), ("grey_world", False)):
        steps = [
            corrupt_image(red, f"white_balance_damage[law={law},error={error}]").astype(float)
            for error in (0, 0.2, 0.4, 0.6, 0.8, 1.0)
        ]
        change = [np.abs(image - red).mean() for image in steps]
        assert (np.diff(change) > 0).all() == monotone, change
    assert (corrupt_image(red, "white_balance_damage[law=misread,error=0]") == red).all()


def test_white_balance_gains_keep_the_luma_of_grey() -> None:
    grey = np.full((8, 8, 3), 100, np.uint8)
    out = corrupt_image(grey, "white_balance_damage[law=gains,error=0.3]").astype(float)
    assert out[0, 0] @ LUMA == pytest.approx(100, abs=1)
    assert out[0, 0, 0] > 100 > out[0, 0, 2]


def test_white_balance_of_black_is_black() -> None:
    black = np.zeros((8, 8, 3), np.uint8)
    assert (corrupt_image(black, "white_balance_damage@5") == 0).all()


@pytest.mark.parametrize(("severity", "share"), [(1, 0.02), (3, 0.08), (5, 0.20)])
def test_bad_pixels_hit_the_stated_share_of_sites(severity: int, share: float) -> None:
    flat = np.full((400, 400, 3), 200, np.uint8)
    out = corrupt_image(flat, f"bad_pixel_damage@{severity}")
    assert (out == 0).all(axis=2).mean() == pytest.approx(share, abs=0.004)
    assert set(np.unique(out)) == {0, 200}  # black, as the paper says
    dead = imaging.mosaic(corrupt_image(flat, f"bad_pixel_damage@{severity}[law=mosaic]")) == 0
    assert dead.mean() == pytest.approx(share, abs=0.004)
    assert (corrupt_image(flat[..., :1], f"bad_pixel_damage@{severity}") == 0).mean() == pytest.approx(
        share, abs=0.004
    )


def test_a_dead_site_becomes_a_blot_of_its_colour() -> None:
    flat = np.full((400, 400, 3), 200, np.uint8)
    out = corrupt_image(flat, "bad_pixel_damage[share=0.0005,law=mosaic]")
    for y, x in np.argwhere(imaging.mosaic(out)[2:-2, 2:-2] == 0)[:20] + 2:
        colour = (0, 1, 1, 2)[2 * (y % 2) + x % 2]
        assert out[y, x, colour] == 0
        assert out[y, x + 1, colour] == (150 if colour == 1 else 100)
    assert (out != flat).any(axis=2).mean() < 0.0005 * 10


def test_hot_and_dead_pixels_come_in_equal_numbers() -> None:
    flat = np.full((400, 400, 1), 100, np.uint8)
    for law in ("black", "mosaic"):
        out = corrupt_image(flat, f"bad_pixel_damage[fault=dead_and_hot,share=0.1,law={law}]")
        assert (out == 0).mean() == pytest.approx(0.05, abs=0.004)
        assert (out == 255).mean() == pytest.approx(0.05, abs=0.004)


def test_interpolation_damage_removes_the_colour_of_a_share_of_pixels() -> None:
    image = colours(200, 200)
    for severity, share in ((1, 0.2), (4, 0.8), (5, 1.0)):
        out = corrupt_image(image, f"cfa_interpolation_damage@{severity}")
        grey = (out == out[..., :1]).all(axis=2)
        assert grey.mean() == pytest.approx(share, abs=0.01)
        assert (out[~grey] == image[~grey]).all()
        assert (out[grey][:, 0] == imaging.grey_of(image)[grey][:, 0]).all()


def test_bilinear_interpolation_damage_keeps_the_measured_colour() -> None:
    image = colours(50, 60)
    out = corrupt_image(image, "cfa_interpolation_damage@5[law=bilinear]")
    assert (imaging.mosaic(out) == imaging.mosaic(image)).all()
    assert (out == bilinear_by_hand(imaging.mosaic(image))).all()


def test_interpolation_damage_leaves_grey_images_alone() -> None:
    out = corrupt_image(RAMP, "cfa_interpolation_damage@5")
    assert (out == RAMP).all()
    assert not np.shares_memory(out, RAMP)


def test_gamma_is_a_power_of_full_scale() -> None:
    out = corrupt_image(RAMP, "gamma_damage[gamma=2]")[..., 0]
    assert np.abs(out - 255 * (RAMP[..., 0] / 255.0) ** 2).max() <= 0.5
    assert (corrupt_image(RAMP, "gamma_damage[gamma=0.5]")[..., 0] >= RAMP[..., 0]).all()


def test_colour_space_damage_is_chroma_noise_and_soft_luma() -> None:
    flat = np.full((300, 300, 3), 128, np.uint8)
    out = imaging.to_yuv(corrupt_image(flat, "colour_space_damage[noise=20,blur=1]")).astype(float)
    assert out[..., 0].std() < 2
    assert out[..., 1].std() == pytest.approx(20, rel=0.05)
    assert out[..., 2].std() == pytest.approx(20, rel=0.05)
    assert abs(np.corrcoef(out[..., 1].ravel(), out[..., 2].ravel())[0, 1]) < 0.05
    grey = colours(40, 40)[..., :1]
    blurred = corrupt_image(grey, "gaussian_blur[sigma=2.2]")
    assert (corrupt_image(grey, "colour_space_damage@3") == blurred).all()


def test_wraparound_subtracts_the_offsets_twice() -> None:
    grey = np.full((200, 200, 1), 10, np.uint8)
    out = corrupt_image(grey, "colour_space_wraparound@5")
    assert (out == 250).mean() == pytest.approx(0.4, abs=0.01)  # 10 − 16 wraps
    assert (out == 10).mean() == pytest.approx(0.6, abs=0.01)
    colour = np.full((200, 200, 3), 90, np.uint8)
    hit = corrupt_image(colour, "colour_space_wraparound@1") != colour
    assert hit.any(axis=2).mean() == pytest.approx(0.02, abs=0.004)


def test_stages_follow_the_cameras_order() -> None:
    early = ["lens", "sensor", "black level", "lens shading", "white balance", "bad pixels"]
    assert list(STAGES)[:6] == early
    assert list(STAGES)[6:] == ["colour interpolation", "gamma", "colour space", "clock", "memory", "cable"]
