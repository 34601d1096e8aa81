"""The networks that are trained, and the teacher they learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stormproof.style.layers import (
    BUILTIN_DECODER,
    BUILTIN_ENCODER,
    DISTILLED_ENCODER,
    TAPS,
    Conv,
    Layer,
    Weights,
    convolutions,
)
from stormproof.style.torchnet import Network


class Normalised(Network):
    """A network whose convolutions are normalised over the batch while it learns.

    Eighteen plain layers hardly learn otherwise: what all images share drowns what tells them apart, and
    ReLUs die. The norms are part of the convolutions' weights once they are written.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__(layers)
        self.norms = nn.ModuleDict(
            {f"c{c.name}": nn.BatchNorm2d(c.outputs) for c in convolutions(layers) if c.relu}
        )

    def step(self, layer: Layer, x: Tensor) -> Tensor:
        if not isinstance(layer, Conv) or not layer.relu:
            return super().step(layer, x)
        raw = super().step(replace(layer, relu=False), x)
        return functional.relu(self.norms[f"c{layer.name}"](raw))

    def weights(self) -> Weights:
        held = dict(super().weights())
        for name, norm in self.norms.items():
            gain = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
            shift = norm.bias.detach() - norm.running_mean * gain
            factor, offset = gain.cpu().numpy(), shift.cpu().numpy()
            held[f"{name[1:]}.weight"] = held[f"{name[1:]}.weight"] * factor[:, None, None, None]
            held[f"{name[1:]}.bias"] = held[f"{name[1:]}.bias"] * factor + offset
        return held


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Normalised(BUILTIN_ENCODER), Normalised(BUILTIN_DECODER)
        last = self.decoder.convs[f"c{BUILTIN_DECODER[-1].name}"]
        nn.init.normal_(last.weight, std=0.02)
        nn.init.constant_(last.bias, 0.45)

    def weights(self) -> dict[str, np.ndarray]:
        return {
            f"{part}.{name}": value.astype(np.float16)
            for part, network in (("encoder", self.encoder), ("decoder", self.decoder))
            for name, value in network.weights().items()
        }


def tapped(layers: tuple[Layer, ...]) -> list[Conv]:
    return [conv for conv in convolutions(layers) if conv.name in TAPS]


def load_teacher(folder: Path) -> Network:
    state = torch.load(folder / "wct16x_4SE.pth", map_location="cpu", weights_only=True)
    state = state.get("model", state)  # the files hold the state dict under that name
    teacher = Network(DISTILLED_ENCODER, {k: v.numpy() for k, v in state.items()})
    return teacher.eval().requires_grad_(False)
