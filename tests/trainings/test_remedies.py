"""Remedies at test time: images painted in the look of clean scenes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from stormproof.world.samples import render  # noqa: E402
from training.storm import RESTYLED  # noqa: E402
from training.stylizing import Restyled  # noqa: E402


def test_a_repainted_scene_has_the_look_of_clean_ones() -> None:
    """Its features' statistics come near the mean of clean scenes'; at α = 0 the scene is only rebuilt."""
    scene = torch.from_numpy(render(0, "val", 3, width=128, height=80).sample.image)[None]
    noisy = (scene + 60 * torch.randn(scene.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 255)
    noisy = noisy.to(torch.uint8)
    made = {name: Restyled(torch.device("cpu"), alpha, scenes=2) for name, alpha in RESTYLED.items()}
    painted = {name: paint(noisy) for name, paint in made.items()}
    wanted = made["restyled"].look

    def apart(image: torch.Tensor) -> float:
        found = made["rebuilt"].painter.look(image, 2)
        return sum(float((a - b).square().mean()) for a, b in zip(found, wanted, strict=True))

    with torch.no_grad():
        assert apart(painted["restyled"]) < 0.5 * apart(noisy)
        assert apart(painted["restyled"]) < apart(painted["rebuilt"])
    assert painted["rebuilt"].shape == scene.shape
    assert painted["rebuilt"].dtype == torch.uint8
    assert (painted["rebuilt"].float() - noisy.float()).abs().mean() < (
        painted["restyled"].float() - noisy.float()
    ).abs().mean()
