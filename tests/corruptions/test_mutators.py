"""The simple mutators against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image as Pillow

from stormproof import corrupt_image

RAMP = np.repeat(np.arange(256, dtype=np.uint8), 300).reshape(256, 300)
COLOURS = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)


@pytest.mark.parametrize("factor", [0.5, 0.875, 1.333, 2])
def test_brightness_is_a_product_that_saturates(factor: float) -> None:
    out = corrupt_image(COLOURS, f"brightness_shift[factor={factor}]")
    assert np.abs(out - np.minimum(COLOURS * float(factor), 255)).max() <= 0.5


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5, 0.75])
def test_alpha_is_the_weight_of_the_grey(alpha: float) -> None:
    out = corrupt_image(COLOURS, f"alpha_blend[alpha={alpha}]")
    expected = (1 - alpha) * COLOURS + alpha * np.array([205, 208, 211])
    assert np.abs(out - expected).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("amount", [0.01, 0.02, 0.05, 0.1])
def test_salt_and_pepper_hits_whole_pixels(amount: float) -> None:
    flat = np.full((400, 400, 3), 100, np.uint8)
    out = corrupt_image(flat, f"salt_and_pepper[amount={amount}]")
    hit = (out != flat).any(axis=2)
    assert hit.mean() == pytest.approx(amount, rel=0.06)
    assert set(np.unique(out[hit])) == {0, 255}
    assert (out[hit].max(axis=1) == out[hit].min(axis=1)).all()
    assert (out[hit][:, 0] == 255).mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("channel", ["R", "G", "B"])
def test_a_colour_channel_drops_to_nothing(channel: str) -> None:
    out = corrupt_image(COLOURS, f"channel_drop[channel={channel}]")
    kept = [i for i, name in enumerate("RGB") if name != channel]
    assert (out[..., "RGB".index(channel)] == 0).all()
    assert (out[..., kept] == COLOURS[..., kept]).all()


@pytest.mark.parametrize(("channel", "place"), [("Cb", 1), ("Cr", 2)])
def test_a_chroma_channel_drops_as_pillow_would_drop_it(channel: str, place: int) -> None:
    planes = np.array(Pillow.fromarray(COLOURS).convert("YCbCr"))
    planes[..., place] = 0
    expected = np.array(Pillow.fromarray(planes, "YCbCr").convert("RGB")).astype(int)
    out = corrupt_image(COLOURS, f"channel_drop[channel={channel}]").astype(int)
    assert np.abs(out - expected).max() <= 3  # Pillow rounds three times on its way


def test_a_grey_image_has_no_colour_to_lose() -> None:
    assert (corrupt_image(RAMP, "channel_drop[channel=Cr]") == RAMP).all()


@pytest.mark.parametrize(("w", "u", "psi"), [(5, 0.5, 0.5), (5, 0.5, 0.7), (15, 0.5, 0.5), (5, 2.5, 0.5)])
def test_additive_noise_has_the_variance_of_its_two_terms(w: float, u: float, psi: float) -> None:
    out = corrupt_image(RAMP, f"additive_noise[zeta_w={w},zeta_u={u},psi={psi}]").astype(float)
    middle = slice(110, 146)  # where nothing saturates
    levels = np.arange(256)[middle]
    spread = (out[middle] - levels[:, None]).std(axis=1)
    assert spread == pytest.approx(np.hypot(w, levels**psi * u), rel=0.15)
    assert spread.mean() == pytest.approx(np.hypot(w, levels**psi * u).mean(), rel=0.02)
    assert (out[middle] - levels[:, None]).mean() == pytest.approx(0, abs=0.5)
