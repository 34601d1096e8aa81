"""Corrupting batches during training."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from helpers.both_sets import photographs
from stormproof.core.condition import Condition
from stormproof.core.errors import (
    InvalidImage,
    InvalidOption,
    MissingContext,
    StormproofError,
    UnknownName,
)
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


def test_inside_compose_an_image_needs_no_id() -> None:
    import PIL.Image

    image = torch.from_numpy(photographs(24, 32)[0]).permute(2, 0, 1)
    one, other = (CorruptionTransform("gaussian_noise@3", share=1) for _ in range(2))
    first, second = one(image), one(image)
    assert not torch.equal(first, second)  # a counter takes the id's place
    assert torch.equal(first, other(image))  # and begins anew with each transform
    batch = CorruptionTransform("gaussian_noise@3", share=1)(torch.stack([image, image]))
    assert torch.equal(batch, torch.stack([first, second]))  # it counts the images of a batch in their order
    floats = CorruptionTransform("gaussian_noise@3", share=1)(image.float() / 255)
    assert torch.equal((floats * 255).round().to(torch.uint8), first)
    drawn = CorruptionTransform("gaussian_noise@3", share=1)(
        PIL.Image.fromarray(image.permute(1, 2, 0).numpy())
    )
    assert np.array_equal(np.asarray(drawn), first.permute(1, 2, 0).numpy())
    for wrong in ("street.png", image.numpy()):
        with pytest.raises(InvalidImage, match="a tensor or a PIL image, not"):
            one(wrong, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("fog@3[on=person]", MissingContext),
        ("noise_of_nobody@3", UnknownName),
        ("fog@3+haze@2", MissingContext),
        (Condition.of("fog", 3, {"colour": 1}), UnknownName),
    ],
)
def test_refuses_what_an_image_alone_cannot_be_given(
    condition: Condition | str, error: type[StormproofError]
) -> None:
    with pytest.raises(error):
        CorruptionTransform([condition])


def test_needs_a_condition() -> None:
    with pytest.raises(InvalidOption, match="conditions is empty"):
        CorruptionTransform([])


@pytest.mark.parametrize(
    ("ids", "named"),
    [(["a", "b", "c"], "3 images"), ("abcd", "1 image"), ([], "0 images"), ([*"abcde"], "5 images")],
)
def test_a_batch_needs_an_id_for_each_image(ids: str | list[str], named: str) -> None:
    with pytest.raises(InvalidOption, match=f"names {named}, but 4 are given"):
        CorruptionTransform("fog@3")(torch.zeros((4, 3, 16, 16), dtype=torch.uint8), ids)


class _Unnamed(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.transform = CorruptionTransform("gaussian_noise@3", share=1)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> torch.Tensor:
        return self.transform(torch.full((3, 16, 16), 128, dtype=torch.uint8))


@pytest.mark.slow
def test_workers_and_epochs_count_apart() -> None:
    loader = torch.utils.data.DataLoader(_Unnamed(), batch_size=1, num_workers=2)
    seen = [batch for _ in range(2) for batch in loader]
    assert len({batch.numpy().tobytes() for batch in seen}) == 4
