"""The network to train: the distilled encoder (wct16x_4SE) as it is, and a new decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torchnet import TorchNetwork

from stormproof.style.layers import (
    BUILTIN_DECODER,
    DISTILLED_ENCODER,
    NOISE,
    NOISE_CHANNELS,
    TAPS,
    Weights,
)


def read_encoder(folder: Path) -> Weights:
    """The distilled encoder's weights."""
    state = torch.load(folder / "wct16x_4SE.pth", map_location="cpu", weights_only=True)
    return {name: value.numpy() for name, value in state.get("model", state).items()}


class Student(nn.Module):
    """An encoder that stays as it is, and a decoder that learns."""

    def __init__(self, encoder: Weights) -> None:
        super().__init__()
        self.encoder = TorchNetwork(DISTILLED_ENCODER, encoder).requires_grad_(False)
        self.decoder = TorchNetwork(BUILTIN_DECODER)
        # The encoder's features are about ten units high; the decoder works with about one.
        for name, share in (("conv42", 0.2), ("join3", 0.1), ("join2", 0.1), ("join1", 0.1), ("conv11", 0.3)):
            self.decoder.convs[f"c{name}"].weight.data.mul_(share)

    def levels(self, images: Tensor) -> list[Tensor]:
        """The encoder's features at relu1_1 … relu4_1."""
        return self.encoder.taps(images, TAPS)

    def decode(
        self, features: Tensor, levels: list[Tensor], alpha: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """The image of `features`, with the detail of the content's `levels` as far as α leaves it."""
        shape = (len(features), NOISE_CHANNELS, *features.shape[2:])
        noise = torch.randn(shape, device=features.device, generator=generator)
        others = {NOISE: noise, **dict(zip(TAPS[:-1], levels, strict=False))}
        return self.decoder(features, others, alpha)

    def load(self, path: Path) -> None:
        """Continue from saved `weights`."""
        with np.load(path) as stored:
            own = {
                name.removeprefix("decoder."): stored[name]
                for name in stored.files
                if name.startswith("decoder.")
            }
        fresh = TorchNetwork(BUILTIN_DECODER, own)
        self.decoder.load_state_dict(fresh.state_dict())

    def weights(self) -> dict[str, np.ndarray]:
        return {
            f"{part}.{name}": value.astype(np.float16)
            for part, network in (("encoder", self.encoder), ("decoder", self.decoder))
            for name, value in network.weights().items()
        }


class Critic(nn.Module):
    """Tells patches of a painting from patches painted in its style: how far each is from genuine.

    What repeats like a lattice keeps a style's statistics, so the statistics alone do not prevent it.
    """

    def __init__(self, width: int = 48, look: int = 256) -> None:
        super().__init__()
        steps, inputs = [], 3
        for outputs in (width, 2 * width, 4 * width):
            steps += [self._normed(nn.Conv2d(inputs, outputs, 4, 2, 1)), nn.LeakyReLU(0.2)]
            inputs = outputs
        self.body = nn.Sequential(*steps)
        self.genuine = self._normed(nn.Conv2d(inputs, 1, 3))
        self.match = self._normed(nn.Linear(look, inputs))

    @staticmethod
    def _normed(layer: nn.Module) -> nn.Module:
        return nn.utils.parametrizations.spectral_norm(layer)

    def forward(self, images: Tensor, look: Tensor) -> Tensor:
        """A map of N×1×h×w; `look` is N×256, the style's statistics."""
        seen = self.body(images * 2 - 1)
        wanted = self.match(look)[:, :, None, None]
        return self.genuine(seen) + (seen * wanted).mean((1, 2, 3), keepdim=True)
