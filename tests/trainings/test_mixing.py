"""Cutout, AugMix and OA-Mix: what they change, what they leave."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from training import mixing
from training.mixing import mixed

HEIGHT, WIDTH = 32, 64
BOXES = torch.tensor([[[8.0, 8.0, 24.0, 24.0], [0.0, 0.0, 0.0, 0.0]]]).repeat(7, 1, 1)
VALID = torch.tensor([[1, 0]]).repeat(7, 1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(5)


def images() -> torch.Tensor:
    return torch.rand(7, 3, HEIGHT, WIDTH) * 2 - 1


@pytest.mark.parametrize("name", ["cutout", "augmix", "oamix"])
def test_images_change_and_stay_in_range(name: str) -> None:
    before = images()
    after = mixed(name, before, BOXES, VALID)
    assert after.shape == before.shape
    assert after.abs().max() <= 1
    changed = (after != before).flatten(1).any(1)
    assert changed.sum() >= 4


def test_cutout_leaves_all_but_its_squares() -> None:
    before = images()
    after = mixed("cutout", before, BOXES, VALID)
    holes = (after == 0).all(1)
    assert 0 < holes.float().mean() < mixing.HOLES * mixing.HOLE**2 * HEIGHT / WIDTH + 0.02
    assert torch.allclose(after[~holes[:, None].expand_as(after)], before[~holes[:, None].expand_as(before)])


def test_objects_keep_half_of_their_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every chain gives black, an object is at least half as bright as it was."""
    monkeypatch.setattr(mixing, "_chains", lambda x, _change: torch.zeros_like(x))
    white = torch.ones(7, 3, HEIGHT, WIDTH)
    after = (mixed("oamix", white, BOXES, VALID) + 1) / 2
    assert after[:, :, 12:20, 12:20].min() >= 0.5
    assert after[:, :, :, 40:].min() < 0.5  # the background may lose more


def test_operations_by_hand() -> None:
    level = torch.full((1, 1, 1, 1), 0.25)
    ramp = torch.linspace(0, 1, 256).view(1, 1, 16, 16)
    assert mixing._posterize(ramp, level).unique().numel() == 8  # a level of 2.5 of 10 keeps three bits
    assert mixing._solarize(ramp, level).max() == pytest.approx(0.75, abs=0.01)
    dark = ramp * 0.5
    assert mixing._autocontrast(dark, level).max() == 1
    assert mixing._equalize(dark, level).mean() == pytest.approx(0.5, abs=0.02)
