"""Resizing and padding on a device: the bytes of OpenCV and Pillow."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from stormproof.imaging.gpu.resizing import ResizedSide, fit_images
from stormproof.models.geometry import ON_DEVICE, Fit, place, plan_fit


def fitted(images: list[np.ndarray], fits: list[Fit], rule: str, device: str = "cpu") -> np.ndarray:
    sides = [
        tuple(ResizedSide(*side) for side in zip(fit.image, fit.inner, fit.offset, fit.canvas, strict=True))
        for fit in fits
    ]
    given = [torch.from_numpy(image).to(device) for image in images]
    return fit_images(given, sides, rule, 114).cpu().numpy()  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ON_DEVICE)
@pytest.mark.parametrize("resize", ["stretch", "letterbox", "none"])
def test_images_of_any_size_have_the_bytes_of_the_host(resize: str, rule: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        canvas = tuple(rng.integers(1, 130, 2).tolist())
        images = [rng.integers(0, 256, (*rng.integers(1, 120, 2), 3), np.uint8) for _ in range(3)]
        if resize == "none":
            images = [images[0][:40, :50]] * 2
        fits = [plan_fit(image.shape[:2], canvas, resize, multiple=16) for image in images]  # type: ignore[arg-type]
        made = fitted(images, fits, rule)
        for image, fit, own in zip(images, fits, made, strict=True):
            assert (own == place(image, fit, 114, rule)).all(), (image.shape, canvas)


@pytest.mark.parametrize("size", [(640, 480), (427, 640), (320, 320), (1280, 1280)], ids=str)
def test_a_photograph_resized_for_yolo_has_the_bytes_of_the_host(size: tuple[int, int]) -> None:
    image = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
    fit = plan_fit(size, (640, 640), "letterbox")
    assert (fitted([image], [fit], "linear")[0] == place(image, fit, 114)).all()


def test_areas_of_whole_pixels_have_the_bytes_of_opencv() -> None:
    """Which has its own code for them, and more of it for halves; sides may shrink by different factors."""
    rng = np.random.default_rng(5)
    for down, across in [(1, 2), (2, 1), (2, 2), (2, 3), (3, 3), (4, 4), (5, 2), (7, 6)]:
        height, width = rng.integers(1, 40, 2).tolist()
        image = rng.integers(0, 256, (down * height, across * width, 3), np.uint8)
        fit = plan_fit(image.shape[:2], (height, width), "stretch")  # type: ignore[arg-type]
        assert (fitted([image], [fit], "area")[0] == place(image, fit, 114, "area")).all(), (down, across)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("rule", ON_DEVICE)
def test_the_kernel_gives_the_same_bytes(rule: str) -> None:
    from stormproof.imaging.gpu import triton_kernels

    rng = np.random.default_rng(4)
    images = [rng.integers(0, 256, (*rng.integers(100, 640, 2), 3), np.uint8) for _ in range(6)]
    fits = [plan_fit(image.shape[:2], (320, 416), "letterbox") for image in images]  # type: ignore[arg-type]
    expected = fitted(images, fits, rule)
    for _ in range(2):  # compared with its twin, then alone
        assert (fitted(images, fits, rule, "cuda") == expected).all()
    assert not triton_kernels.refused
