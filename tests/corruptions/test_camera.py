"""Lens and sensor faults, the camera's order, and the suite beside the paper's quality row."""

from __future__ import annotations

from functools import cache
from itertools import chain, pairwise
from statistics import fmean

import numpy as np
import pytest

from helpers import camera_quality as q
from stormproof.core.condition import SEVERITIES, Condition
from stormproof.core.imagefile import read_image
from stormproof.corruptions import CORRUPTIONS, SUITES, corrupt_image
from stormproof.corruptions.corruption import find
from stormproof.corruptions.suites import ORDER
from stormproof.metrics.fidelity import Reference
from stormproof.metrics.quality import ssim

PHOTOS = 6
DISPUTED = {
    name: [Condition.of(name, s, {parameter: v}) for s, v in zip(SEVERITIES, numbers, strict=True)]
    for name, parameter, numbers in (
        ("focus_motor_damage", "sigma", (0.40, 0.45, 0.50, 0.55, 0.60)),
        ("lens_shading_damage", "strength", (5, 10, 20, 30, 50)),
        ("cmos_sensor_damage", "spots", (1, 2, 3, 5, 7)),
        ("transfer_harness_exception", "share", (0.03, 0.06, 0.09, 0.11, 0.14)),
    )
}
needs_photos = pytest.mark.skipif(
    not q.COCO.is_dir() or not q.ROWS.is_file(), reason=f"no photographs or quality rows under {q.SHARED}"
)


def scene(height: int = 120, width: int = 160, channels: int = 3) -> np.ndarray:
    """Soft colours with edges, away from black and white."""
    y, x = np.mgrid[:height, :width]
    waves = 128 + 70 * np.sin(x[..., None] / 11 + np.arange(channels)) * np.cos(y[..., None] / 13)
    return np.where((x // 20 + y // 20)[..., None] % 2, waves, 0.6 * waves).astype(np.uint8)


Measured = dict[Condition, np.ndarray]


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Of each photograph under each condition, the SSIM of luma and the mean difference of colours."""
    conditions = (*SUITES["camera"], *chain(*DISPUTED.values()))
    rows: dict[Condition, list[tuple[float, float]]] = {condition: [] for condition in conditions}
    for path in q.photographs(q.COCO, PHOTOS):
        clean = read_image(path)
        for condition in conditions:
            made = corrupt_image(clean, condition, image_id=path.stem)
            rows[condition].append((ssim(clean, made), np.abs(made.astype(int) - clean).mean()))
    return {condition: np.array(values) for condition, values in rows.items()}


def mean_ssim(measured: Measured, conditions: list[Condition]) -> float:
    return fmean(measured[condition][:, 0].mean() for condition in conditions)


def severities(name: str) -> list[Condition]:
    return [Condition.of(name, s) for s in SEVERITIES]


@needs_photos
def test_the_suite_meets_the_papers_ssim(measured: Measured) -> None:
    paper = q.published()
    means = {name: mean_ssim(measured, severities(name)) for name in paper}
    far = {name: (means[name], paper[name]) for name in paper if abs(means[name] - paper[name]) > q.TOLERANCE}
    assert set(far) == {*q.DISPUTED, *q.BY_VIF}


@pytest.fixture(scope="module")
def references() -> tuple[Reference, ...]:
    return tuple(Reference(read_image(path)) for path in q.photographs(q.COCO, 3))


@cache
def mean_vif(references: tuple[Reference, ...], fault: str) -> float:
    return fmean(
        one.vif_and_ifc(corrupt_image(one.clean, f"{fault}@{s}"))[0] for one in references for s in SEVERITIES
    )


@needs_photos
@pytest.mark.parametrize("name", [*q.BY_VIF, "focus_motor_damage"])
def test_four_faults_meet_the_papers_vif(references: tuple[Reference, ...], name: str) -> None:
    """The paper's VIF is 0.74 for images that hardly differ, where it should be 0.99; relative to that."""
    paper = q.published("vif")
    expected = paper[name] / paper["memory_exception"] * mean_vif(references, "memory_exception")
    assert mean_vif(references, name) == pytest.approx(expected, abs=0.05)


@needs_photos
def test_no_severity_is_easier_than_the_one_before(measured: Measured) -> None:
    for name in q.published():
        values = [mean_ssim(measured, [condition]) for condition in severities(name)]
        assert all(harder <= easier + 1e-9 for easier, harder in pairwise(values)), (name, values)


@needs_photos
def test_every_fault_changes_colours_more_at_each_severity(measured: Measured) -> None:
    """SSIM of luma does not see a change of colour: the mean RGB difference must grow on every photograph.

    Faults whose random places differ between severities grow on average only.
    """
    for name in q.published():
        change = np.stack([measured[condition][:, 1] for condition in severities(name)], axis=1)
        fault = find(name)
        fixed = fault.nested or not fault.is_random
        assert (np.diff(change if fixed else change.mean(axis=0)) > 0).all(), (name, change)


@needs_photos
@pytest.mark.parametrize("name", DISPUTED)
def test_variants_meet_the_papers_disputed_ssim_values(measured: Measured, name: str) -> None:
    assert set(DISPUTED[name]) <= set(SUITES["camera-variants"])
    assert mean_ssim(measured, DISPUTED[name]) == pytest.approx(q.published()[name], abs=q.TOLERANCE)


@needs_photos
def test_a_camera_without_faults_returns_the_photograph() -> None:
    for path in q.photographs(q.COCO, 3):
        photograph = read_image(path)
        for neutral in (
            "bad_pixel_damage[share=0]",
            "gamma_damage[gamma=1]",
            "lens_shading_damage[strength=0]",
            "white_balance_damage[error=0]",
        ):
            assert (corrupt_image(photograph, neutral) == photograph).all(), neutral


def test_the_suite_is_the_papers_sixteen_faults_and_the_variants_are_others() -> None:
    assert len(SUITES["camera"].corruptions) == 16
    assert len(SUITES["camera"]) == 80
    assert not set(SUITES["camera"]) & set(SUITES["camera-variants"])
    families = {name for name, c in CORRUPTIONS.items() if c.family in ("camera", "isp", "board")}
    assert families - {"bit_error"} == set(ORDER)  # of 3D Common Corruptions


def test_fog_is_thickest_at_its_centre_and_alike_at_any_resolution() -> None:
    black = np.zeros((480, 640, 3), np.uint8)
    fogged = corrupt_image(black, "camera_fog@3")[..., 0].astype(int)
    row, column = np.unravel_index(fogged.argmax(), fogged.shape)
    assert fogged[96, 320] == fogged[row, column]
    # the law itself: t = exp(−0.03·√640), airlight 0.85 − 0.03
    assert fogged[96, 320] == pytest.approx(255 * 0.82 * (1 - np.exp(-0.03 * np.sqrt(640))), abs=1)
    corner = np.sqrt(640) - 0.04 * np.hypot(479 - 96, 639 - 320)
    assert fogged[-1, -1] == pytest.approx(255 * 0.82 * (1 - np.exp(-0.03 * corner)), abs=1)
    double = corrupt_image(np.zeros((960, 1280, 3), np.uint8), "camera_fog@3")[::2, ::2, 0].astype(int)
    assert np.abs(double - fogged).max() <= 1
    assert (corrupt_image(black, "camera_fog@3[scale=pixels]") == corrupt_image(black, "camera_fog@3")).all()


def test_fog_by_pixels_ends_where_its_depth_turns_negative() -> None:
    wide = np.zeros((1200, 4000, 1), np.uint8)
    fogged = corrupt_image(wide, "camera_fog@3[scale=pixels]")[..., 0]
    assert fogged[240, 2000] > 100
    assert (fogged[:, :100] == 0).all()  # beyond 25·√4000 pixels the depth would be negative


def test_a_drop_shows_its_surroundings_upside_down() -> None:
    image = np.zeros((200, 200, 3), np.uint8)
    image[:100] = (200, 0, 0)  # red above, blue below
    image[100:] = (0, 0, 200)
    out = corrupt_image(image, "lens_obstruction[drops=400]", image_id="drops")
    upper = out[:60].reshape(-1, 3)
    assert (upper[:, 2] > 150).any()  # drops in the red half show blue, though dimmed
    assert out.max() <= 200
    assert out[..., 2].max() <= 200


def test_lens_obstruction_can_dim_the_whole_image() -> None:
    flat = np.full((64, 64, 3), 200, np.uint8)
    out = corrupt_image(flat, "lens_obstruction[drops=0,light=0.7]")
    assert (out == 140).all()
    assert (corrupt_image(flat, "lens_obstruction[drops=0]") == flat).all()


def test_ccd_spots_smear_their_columns_white() -> None:
    image = np.full((90, 1000, 3), 50, np.uint8)
    out = corrupt_image(image, "ccd_sensor_damage@3", image_id="ccd")
    white = (out == 255).all(axis=(0, 2))
    assert 8 <= white.sum() <= 10  # five for 500 pixels; two may share a column
    blobs = (out[:, ~white] == 255).all(axis=2)
    assert blobs.any()
    assert ((out == 255) | (out == 50)).all()


def test_cmos_spots_blacken_row_and_column() -> None:
    image = np.full((300, 500, 3), 90, np.uint8)
    out = corrupt_image(image, "cmos_sensor_damage[spots=1]", image_id="cmos")
    black = (out == 0).all(axis=2)
    assert (black.mean(axis=1) > 0.9).sum() == 1
    assert (black.mean(axis=0) > 0.9).sum() == 1
    row, column = black.mean(axis=1).argmax(), black.mean(axis=0).argmax()
    assert (out[row, column] == 255).all()


@pytest.mark.parametrize("name", ["ccd_sensor_damage", "cmos_sensor_damage"])
def test_a_damaged_sensor_shows_at_any_width_and_a_sound_one_nowhere(name: str) -> None:
    for width in (1, 9, 64):
        image = np.full((24, width, 1), 90, np.uint8)
        assert (corrupt_image(image, f"{name}@1") != image).any()
        assert (corrupt_image(image, f"{name}[spots=0]") == image).all()


def test_loss_of_focus_is_the_stated_gaussian_blur() -> None:
    image = scene()
    blurred = corrupt_image(image, "gaussian_blur[sigma=2.2]")
    assert (corrupt_image(image, "focus_motor_damage@4") == blurred).all()


def test_jitter_blurs_along_one_line_and_shifts_nothing() -> None:
    image = np.zeros((101, 101, 1), np.uint8)
    image[50, 50] = 255
    out = corrupt_image(image, "focus_motor_jitter@3", image_id="dot")[..., 0].astype(float)
    y, x = np.nonzero(out)
    assert abs(y.mean() - 50) < 0.5
    assert abs(x.mean() - 50) < 0.5
    spread = np.linalg.eigvalsh(np.cov(np.stack((y, x)), aweights=out[y, x]))
    assert spread[1] == pytest.approx(2.8**2, rel=0.25)
    assert spread[0] < 0.3
