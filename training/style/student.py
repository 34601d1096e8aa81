"""The networks to train, grown from the distilled pair (wct16x_4SE and 4SD), and their judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stormproof.style.layers import BUILTIN_DECODER, BUILTIN_ENCODER, DISTILLED_ENCODER, Weights, convolutions
from stormproof.style.torchnet import Network

# The built-in decoder has one more layer: its first starts as the pair's first, its second as the identity.
ORIGINS = {"conv42": "conv41", "conv41": None}


def read_pair(folder: Path) -> tuple[Weights, Weights]:
    """The distilled encoder's and decoder's weights."""
    states = [
        torch.load(folder / f"wct16x_4S{part}.pth", map_location="cpu", weights_only=True) for part in "ED"
    ]
    encoder, decoder = ({k: v.numpy() for k, v in state.get("model", state).items()} for state in states)
    return encoder, decoder


@torch.no_grad()
def grow(network: Network, old: Weights, origins: Mapping[str, str | None] | None = None) -> None:
    """Initialise a wider and deeper network so that it computes what the old one does.

    The old channels come first and ignore new ones. New channels read all channels, with random weights. A
    layer without an origin starts as the identity, which its ReLU does not change: its input is positive.
    """
    before = 0  # old channels among the inputs
    for conv in convolutions(network.layers):
        module = network.convs[f"c{conv.name}"]
        origin = (origins or {}).get(conv.name, conv.name)
        if origin is None:
            weight = np.zeros((before, before, conv.size, conv.size), np.float32)
            weight[range(before), range(before), conv.size // 2, conv.size // 2] = 1
            bias = np.zeros(before, np.float32)
        else:
            weight, bias = old[f"{origin}.weight"], old[f"{origin}.bias"]
        outputs, inputs = weight.shape[:2]
        module.weight[:outputs] = 0
        module.weight[:outputs, :inputs] = torch.from_numpy(weight.astype(np.float32))
        module.bias[:outputs] = torch.from_numpy(bias.astype(np.float32))
        before = outputs


class Student(nn.Module):
    """An encoder and a decoder that begin as the distilled pair."""

    def __init__(self, pair: tuple[Weights, Weights]) -> None:
        super().__init__()
        self.encoder, self.decoder = Network(BUILTIN_ENCODER), Network(BUILTIN_DECODER)
        grow(self.encoder, pair[0])
        grow(self.decoder, pair[1], ORIGINS)

    def load(self, path: Path) -> None:
        """Continue from saved `weights`."""
        with np.load(path) as stored:
            for part, network in (("encoder", self.encoder), ("decoder", self.decoder)):
                own = {k.removeprefix(f"{part}."): stored[k] for k in stored if k.startswith(f"{part}.")}
                grow(network, own)

    def weights(self) -> dict[str, np.ndarray]:
        return {
            f"{part}.{name}": value.astype(np.float16)
            for part, network in (("encoder", self.encoder), ("decoder", self.decoder))
            for name, value in network.weights().items()
        }


def judge(pair: tuple[Weights, Weights]) -> Network:
    """The distilled encoder, frozen: it measures how far a painting is from its style."""
    return Network(DISTILLED_ENCODER, pair[0]).eval().requires_grad_(False)
