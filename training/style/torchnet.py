"""The style networks in torch: for training, and as the oracle of the ONNX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from stormproof.style.layers import (
    EPSILON,
    Conv,
    Join,
    Layer,
    MaxPool,
    Up,
    Weights,
    convolutions,
    joins,
    weight_shapes,
)


class TorchNetwork(nn.Module):
    """The layers in sequence; `taps` returns intermediate outputs."""

    def __init__(self, layers: Sequence[Layer], weights: Weights | None = None) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.convs = nn.ModuleDict(
            {f"c{c.name}": nn.Conv2d(c.inputs, c.outputs, c.size) for c in convolutions(self.layers)}
            | {f"c{j.name}": nn.Conv2d(j.inputs, j.outputs, 1, bias=False) for j in joins(self.layers)}
        )
        for conv in convolutions(self.layers):
            module = self.convs[f"c{conv.name}"]
            assert isinstance(module, nn.Conv2d)
            assert module.bias is not None
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu" if conv.relu else "linear")
            nn.init.zeros_(module.bias)
        if weights is not None:
            for name in weight_shapes(self.layers):
                layer, part = name.split(".")
                value = torch.from_numpy(weights[name].astype("float32"))
                getattr(self.convs[f"c{layer}"], part).data.copy_(value)

    def forward(
        self, x: Tensor, others: Mapping[str, Tensor] | None = None, strength: Tensor | float = 0
    ) -> Tensor:
        """The output for `x`; `others` are what layers join, at a strength that is a number or N×1×1×1."""
        for layer in self.layers:
            if isinstance(layer, Join):
                assert others is not None
                share = strength if layer.grows else 1 - strength
                x = x + self.convs[f"c{layer.name}"](others[layer.source] * share)
            else:
                x = self.step(layer, x)
        return x

    def taps(self, x: Tensor, names: Sequence[str]) -> list[Tensor]:
        """The outputs of the named convolutions (after their ReLU)."""
        found = []
        for layer in self.layers:
            assert not isinstance(layer, Join)  # an encoder joins nothing
            x = self.step(layer, x)
            if isinstance(layer, Conv) and layer.name in names:
                found.append(x)
        return found

    def weights(self) -> Weights:
        """The weights as float32 arrays, by layer name."""
        return {
            name: getattr(self.convs[f"c{module}"], part).detach().float().cpu().numpy()
            for name in weight_shapes(self.layers)
            for module, part in [name.split(".")]
        }

    def step(self, layer: Conv | MaxPool | Up, x: Tensor) -> Tensor:
        if isinstance(layer, Conv):
            if layer.size == 3:
                x = functional.pad(x, (1, 1, 1, 1), mode="reflect")
            x = self.convs[f"c{layer.name}"](x)
            return functional.relu(x) if layer.relu else x
        if isinstance(layer, MaxPool):
            return functional.max_pool2d(x, 2, 2, ceil_mode=True)
        if layer.smooth:
            return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return functional.interpolate(x, scale_factor=2, mode="nearest")


def statistics(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every channel over space, as N×C×1×1."""
    features = features.float()
    mean = features.mean((2, 3), keepdim=True)
    deviation = (features.var((2, 3), keepdim=True) + EPSILON).sqrt()
    return mean, deviation


def adain(content: Tensor, style: tuple[Tensor, Tensor]) -> Tensor:
    """The content's features with the style's statistics (huang2017, Eq. 8)."""
    mean, deviation = statistics(content)
    return (content.float() - mean) / deviation * style[1] + style[0]
