"""On a GPU: what the CPU gives, in every value, by Triton's kernels and without them.

    python -m pytest -m gpu tests

Recipes that work value by value must be equal; filters and resampling may be one grey level off by what was
promised, but are equal too, so that is what is held.
"""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.both_sets import EVERY, IDS, SUITES_HELD, on_cpu, on_torch, photographs
from stormproof.core.condition import Condition
from stormproof.corruptions import SUITES, on_device
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.imaging.gpu import proofs, triton_kernels

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
LAST = {condition.corruption: condition for condition in EVERY}.values()  # one of each recipe


def differences(images: np.ndarray, conditions: object, *, clip: bool = False) -> dict[str, int]:
    """How many values differ, by condition, where any do."""
    wrong = {
        str(condition): int(
            (on_torch(images, condition, "cuda", clip=clip) != on_cpu(images, condition, clip=clip)).sum()
        )
        for condition in conditions
    }
    return {name: count for name, count in wrong.items() if count}


@pytest.mark.parametrize("suite", SUITES_HELD)
def test_a_gpu_gives_the_pixels_of_the_cpu(suite: str) -> None:
    assert differences(photographs(97, 131), SUITES[suite].conditions) == {}
    assert not triton_kernels.refused


def test_frames_of_a_clip_equal_those_of_the_cpu() -> None:
    assert differences(photographs(97, 131), EVERY, clip=True) == {}
    assert not triton_kernels.refused


@pytest.mark.parametrize("size", [(1, 1), (64, 1), (17, 33)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_odd_sizes_and_grey_images_equal_those_of_the_cpu(
    size: tuple[int, int], channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton_kernels.trusted.clear()  # so that each kernel is compared with its twin at this size too
    monkeypatch.setattr(proofs, "remembers", lambda _: False)
    assert differences(photographs(*size, channels), LAST) == {}
    assert not triton_kernels.refused


@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_several_sizes_equal_those_of_the_cpu(channels: int) -> None:
    sizes = [(97, 131), (64, 90), (131, 60), (300, 97)]
    photos = [photographs(*size, channels)[:1] for size in sizes]
    batch = torch.zeros((len(sizes), channels, 300, 131), dtype=torch.uint8)
    for place, photo in zip(batch, photos, strict=True):
        place[:, : photo.shape[1], : photo.shape[2]] = torch.from_numpy(photo[0]).permute(2, 0, 1)
    wrong = []
    for condition in SUITES["imagenet-c"].conditions:
        made = corrupt_batch(batch.cuda(), condition, ids=[IDS[0]] * len(sizes), sizes=sizes).cpu()
        for own, photo, (height, width) in zip(made, photos, sizes, strict=True):
            expected = on_cpu(np.concatenate([photo] * 2), condition)[0]
            if (own[:, :height, :width].permute(1, 2, 0).numpy() != expected).any():
                wrong.append((str(condition), height, width))
    assert wrong == []
    assert not triton_kernels.refused


def test_a_long_strip_equals_that_of_the_cpu() -> None:
    conditions = map(
        Condition.parse, ("fog@3", "motion_blur@4", "jpeg_compression@2", "pixelate@3", "frost@1")
    )
    assert differences(photographs(64, 8192), conditions) == {}


def test_works_without_triton() -> None:
    with triton_kernels.without():
        assert differences(photographs(33, 40), LAST) == {}


def test_layouts_of_memory_do_not_matter() -> None:
    images = torch.from_numpy(photographs(40, 50)).permute(0, 3, 1, 2).cuda()
    wide = torch.zeros((2, 3, 48, 64), dtype=torch.uint8, device="cuda")
    wide[..., 4:44, 7:57] = images
    for condition in ("motion_blur@3", "gaussian_noise@2", "jpeg_compression@3"):
        expected = corrupt_batch(images.contiguous(), condition, ids=IDS)
        for other in (images, images.contiguous(memory_format=torch.channels_last), wide[..., 4:44, 7:57]):
            assert torch.equal(corrupt_batch(other, condition, ids=IDS), expected), condition


def test_a_batch_too_large_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.from_numpy(photographs(40, 50)).permute(0, 3, 1, 2).cuda()
    expected = corrupt_batch(images, "fog@3", ids=IDS)
    monkeypatch.setattr(on_device, "_FREE", {})
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1, 1))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    assert torch.equal(corrupt_batch(images, "fog@3", ids=IDS), expected)
