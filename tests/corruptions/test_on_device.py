"""Devices by name, and moving images there and back."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from stormproof.core.errors import InvalidOption
from stormproof.core.loading import install_extra
from stormproof.corruptions import corrupt_image
from stormproof.corruptions.on_device import check_device, corrupt_images, download, upload


def images_of(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, 256, shape, np.uint8) for shape in shapes]


def test_images_of_any_sizes_form_a_batch_and_come_back() -> None:
    images = images_of((6, 8, 3), (8, 6, 3), (6, 8, 3), (6, 8))
    groups = {tuple(members): batch for members, batch in upload(images, "cpu")}
    assert {members: tuple(batch.shape) for members, batch in groups.items()} == {
        (0, 1, 2): (3, 3, 16, 16),
        (3,): (1, 1, 6, 8),
    }
    assert (download(groups[0, 1, 2], [(6, 8), (8, 6), (6, 8)])[1] == images[1]).all()


def test_images_of_any_sizes_equal_those_corrupted_one_by_one() -> None:
    images = images_of((20, 30, 3), (17, 9, 3), (20, 30), (20, 30, 3))
    ids = list("abcd")
    made = corrupt_images(images, "fog@3", ids=ids, seed=4, device="cpu")
    for image, name, one in zip(images, ids, made, strict=True):
        assert one.shape == image.shape
        assert (one == corrupt_image(image, "fog@3", seed=4, image_id=name)).all()


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:x", ""])
def test_refuses_names_that_are_no_device(name: str) -> None:
    with pytest.raises(InvalidOption, match="write cuda, cuda:1 or cpu"):
        check_device(name)


def _cuda(monkeypatch: pytest.MonkeyPatch, init: object, count: int = 1) -> None:
    """A torch that is built for CUDA."""
    monkeypatch.setattr(torch, "version", SimpleNamespace(cuda="13.0", hip=None))
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Found no NVIDIA driver on your system. Please check that …",
            "Found no NVIDIA driver on your system.",
        ),
        (
            "The NVIDIA driver on your system is too old (found version 11040). Please update …",
            "driver on your system is too old (found version 11040).",
        ),
    ],
)
def test_reports_a_missing_or_too_old_driver_in_one_line(
    monkeypatch: pytest.MonkeyPatch, said: str, expected: str
) -> None:
    def init() -> None:
        raise RuntimeError(said)

    _cuda(monkeypatch, init)
    with pytest.raises(InvalidOption) as caught:
        check_device("cuda")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refuses_a_gpu_number_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    _cuda(monkeypatch, lambda: None, count=2)
    check_device("cuda")
    check_device("cuda:1")
    with pytest.raises(InvalidOption, match="has 2 GPUs, cuda:0 to cuda:1"):
        check_device("cuda:2")


def test_reports_a_torch_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "version", SimpleNamespace(cuda=None, hip=None))
    with pytest.raises(InvalidOption, match="built without CUDA"):
        check_device("cuda")


def test_reports_that_torch_is_missing() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from stormproof.corruptions.on_device import check_device;"
        "check_device('cuda')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert install_extra("gpu") in run.stderr.splitlines()[-1]
