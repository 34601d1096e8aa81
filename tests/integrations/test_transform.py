"""Corrupting batches during training."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from imaging.both_sets import photographs
from stormproof.integrations.transform import CorruptionTransform


def test_training_with_corruption_is_repeatable_and_varied() -> None:
    images = torch.from_numpy(np.concatenate([photographs(24, 32)] * 8)).permute(0, 3, 1, 2)
    ids = [f"{i}.png" for i in range(len(images))]
    transform = CorruptionTransform(("imagenet-c", "gaussian_noise[sigma=0.1]"), share=0.5, seed=3)
    once, again = transform(images, ids), transform(images, ids)
    assert torch.equal(once, again)
    assert not torch.equal(once, transform(images, ids, epoch=1))
    clean = (once == images).flatten(1).all(1)
    assert 2 <= int(clean.sum()) <= 14
    assert torch.equal(transform(images[3], ids[3]), once[3])
    assert torch.equal(CorruptionTransform("fog@3", share=0)(images, ids), images)


class _Photographs(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.transform = CorruptionTransform("imagenet-c")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> torch.Tensor:
        image = torch.from_numpy(photographs(24, 32)[i % 2]).permute(2, 0, 1)
        return self.transform(image, f"{i}.png")


def test_a_data_loader_takes_it() -> None:
    batches = list(torch.utils.data.DataLoader(_Photographs(), batch_size=2))
    assert [batch.shape for batch in batches] == [(2, 3, 24, 32)] * 2


def test_every_epoch_has_its_own_images_and_its_own_noise() -> None:
    images = torch.from_numpy(np.concatenate([photographs(24, 32)] * 8)).permute(0, 3, 1, 2)
    ids = [f"{i}.png" for i in range(len(images))]
    noise = CorruptionTransform("gaussian_noise@3", share=1)
    assert not (noise(images, ids) == noise(images, ids, epoch=1)).flatten(1).all(1).any()
    half = CorruptionTransform("brightness@5", share=0.5)  # the same wherever it is applied
    chosen = [(half(images, ids, epoch=e) != images).flatten(1).any(1) for e in (0, 1)]
    assert not torch.equal(*chosen)
