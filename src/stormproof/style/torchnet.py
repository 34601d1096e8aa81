"""The same networks in torch: for GPUs, for training, and as the oracle of the ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from stormproof.style.layers import EPSILON, Conv, Layer, Pool, Weights, convolutions


class Network(nn.Module):
    """The layers in sequence; `taps` returns intermediate outputs."""

    def __init__(self, layers: Sequence[Layer], weights: Weights | None = None) -> None:
        super().__init__()
        self.layers = tuple(layers)
        convs = convolutions(self.layers)
        self.convs = nn.ModuleDict({f"c{c.name}": nn.Conv2d(c.inputs, c.outputs, c.size) for c in convs})
        for conv in convs:
            module = self.convs[f"c{conv.name}"]
            assert isinstance(module, nn.Conv2d)
            assert module.bias is not None
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu" if conv.relu else "linear")
            nn.init.zeros_(module.bias)
            if weights is not None:
                for part in ("weight", "bias"):
                    value = torch.from_numpy(weights[f"{conv.name}.{part}"].astype("float32"))
                    getattr(module, part).data.copy_(value)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.step(layer, x)
        return x

    def taps(self, x: Tensor, names: Sequence[str]) -> list[Tensor]:
        """The outputs of the named convolutions (after their ReLU)."""
        found = []
        for layer in self.layers:
            x = self.step(layer, x)
            if isinstance(layer, Conv) and layer.name in names:
                found.append(x)
        return found

    def weights(self) -> Weights:
        """The weights as float32 arrays, by layer name."""
        return {
            f"{name[1:]}.{part}": getattr(module, part).detach().float().cpu().numpy()
            for name, module in self.convs.items()
            for part in ("weight", "bias")
        }

    def step(self, layer: Layer, x: Tensor) -> Tensor:
        if isinstance(layer, Conv):
            if layer.size == 3:
                x = functional.pad(x, (1, 1, 1, 1), mode="reflect")
            x = self.convs[f"c{layer.name}"](x)
            return functional.relu(x) if layer.relu else x
        if isinstance(layer, Pool):
            return functional.max_pool2d(x, 2, 2, ceil_mode=True)
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
