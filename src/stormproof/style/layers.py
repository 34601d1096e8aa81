"""Encoders and decoders of AdaIN as data: a tuple of layers and the weights by name.

One description serves the ONNX graph (`onnx.py`) and the torch network (`torchnet.py`). All convolutions
pad by reflection, pooling halves and rounds up, up-sampling doubles by nearest neighbour (huang2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]
Run = Callable[[Field], Field]  # one network: 1×C×H×W in and out
Weights = Mapping[str, npt.NDArray[np.floating]]  # "conv11.weight", "conv11.bias", …

EPSILON = 1e-5  # added to variances, as in the original


@dataclass(frozen=True, slots=True)
class Conv:
    name: str
    inputs: int
    outputs: int
    size: int = 3
    relu: bool = True


@dataclass(frozen=True, slots=True)
class Pool:
    """2×2 maximum, stride 2; an odd last row or column gets its own windows."""


@dataclass(frozen=True, slots=True)
class Up:
    """Every value twice in both directions."""


Layer = Conv | Pool | Up


def chain(channels: int, blocks: Sequence[Sequence[tuple[str, int]]], between: Layer) -> tuple[Layer, ...]:
    """Blocks of (name, channels out) with `between` between them."""
    layers: list[Layer] = []
    for k, block in enumerate(blocks):
        if k:
            layers.append(between)
        for name, outputs in block:
            layers.append(Conv(name, channels, outputs))
            channels = outputs
    return tuple(layers)


def _blocks(names: str, widths: Sequence[int], sizes: Sequence[int]) -> list[list[tuple[str, int]]]:
    """Convolutions by name and output channels, grouped into blocks."""
    pairs = zip(names.split(), widths, strict=True)
    return [list(islice(pairs, size)) for size in sizes]


def _encoder(names: str, widths: Sequence[int]) -> tuple[Layer, ...]:
    """VGG-19 to relu4_1: two, two, four and one convolutions."""
    return chain(3, _blocks(names, widths, (2, 2, 4, 1)), Pool())


def _decoder(
    channels: int, names: str, widths: Sequence[int], sizes: Sequence[int] = (1, 4, 2, 2)
) -> tuple[Layer, ...]:
    """The encoder's mirror image. Its last convolution outputs colours, so it has no ReLU."""
    layers = chain(channels, _blocks(names, widths, sizes), Up())
    last = layers[-1]
    assert isinstance(last, Conv)
    return (*layers[:-1], replace(last, relu=False))


_NAMES = "conv11 conv12 conv21 conv22 conv31 conv32 conv33 conv34 conv41"
_BACK = "conv41 conv34 conv33 conv32 conv31 conv22 conv21 conv12 conv11"

# The original files are torch Sequentials, so their layers are named by position.
VGG_ENCODER = (
    Conv("0", 3, 3, size=1, relu=False),
    *_encoder("2 5 9 12 16 19 22 25 29", (64, 64, 128, 128, 256, 256, 256, 256, 512)),
)
VGG_DECODER = _decoder(512, "1 5 8 11 14 18 21 25 28", (256, 256, 256, 256, 128, 128, 64, 64, 3))

# Collaborative Distillation's 16× smaller pair (wang2020).
DISTILLED_ENCODER = (
    Conv("conv0", 3, 3, size=1, relu=False),
    *_encoder(_NAMES, (16, 16, 32, 32, 64, 64, 64, 64, 128)),
)
DISTILLED_DECODER = _decoder(128, _BACK, (64, 64, 64, 64, 32, 32, 16, 16, 3))

# The built-in pair, grown from that one: more channels at the bottleneck and where they cost least.
BUILTIN_ENCODER = (DISTILLED_ENCODER[0], *_encoder(_NAMES, (16, 16, 32, 32, 64, 64, 64, 128, 256)))
BUILTIN_DECODER = _decoder(
    256, f"conv42 {_BACK}", (128, 96, 96, 64, 64, 48, 48, 24, 24, 3), sizes=(2, 4, 2, 2)
)

TAPS = ("conv11", "conv21", "conv31", "conv41")  # relu1_1 … relu4_1, where styles are compared


def convolutions(layers: Sequence[Layer]) -> list[Conv]:
    return [layer for layer in layers if isinstance(layer, Conv)]


def weight_shapes(layers: Sequence[Layer]) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the arrays that a weights file must contain for these layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for conv in convolutions(layers):
        shapes[f"{conv.name}.weight"] = (conv.outputs, conv.inputs, conv.size, conv.size)
        shapes[f"{conv.name}.bias"] = (conv.outputs,)
    return shapes
