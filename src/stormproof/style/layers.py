"""Encoders and decoders of AdaIN as data: a tuple of layers and the weights by name.

One description serves the ONNX graph (`graph.py`) and the torch network (`torchnet.py`). All convolutions
pad by reflection, pooling halves and rounds up, up-sampling doubles by nearest neighbour (huang2017).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Weights = Mapping[str, npt.NDArray[np.floating]]  # "conv11.weight", "conv11.bias", …


@dataclass(frozen=True, slots=True)
class Conv:
    name: str
    inputs: int
    outputs: int
    size: int = 3
    relu: bool = True


@dataclass(frozen=True, slots=True)
class Pool:
    """2×2 maximum, stride 2; an odd last row or column is a window of its own."""


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


def _encoder(names: str, widths: Sequence[int], first: int = 3) -> tuple[Layer, ...]:
    """VGG-19 to relu4_1: two, two, four and one convolutions."""
    pairs = list(zip(names.split(), widths, strict=True))
    return chain(first, (pairs[:2], pairs[2:4], pairs[4:8], pairs[8:]), Pool())


def _decoder(channels: int, blocks: Sequence[Sequence[tuple[str, int]]]) -> tuple[Layer, ...]:
    """The last convolution gives colours, so nothing is cut off at 0."""
    layers = chain(channels, blocks, Up())
    last = layers[-1]
    assert isinstance(last, Conv)
    return (*layers[:-1], Conv(last.name, last.inputs, last.outputs, relu=False))


_NAMES = "conv11 conv12 conv21 conv22 conv31 conv32 conv33 conv34 conv41"

# The original files are torch Sequentials, so their layers are called by position.
VGG_ENCODER = (
    Conv("0", 3, 3, size=1, relu=False),
    *_encoder("2 5 9 12 16 19 22 25 29", (64, 64, 128, 128, 256, 256, 256, 256, 512)),
)
VGG_DECODER = _decoder(
    512,
    (
        [("1", 256)],
        [("5", 256), ("8", 256), ("11", 256), ("14", 128)],
        [("18", 128), ("21", 64)],
        [("25", 64), ("28", 3)],
    ),
)

# Collaborative Distillation's 16× smaller pair (wang2020).
DISTILLED_ENCODER = (
    Conv("conv0", 3, 3, size=1, relu=False),
    *_encoder(_NAMES, (16, 16, 32, 32, 64, 64, 64, 64, 128)),
)
DISTILLED_DECODER = _decoder(
    128,
    (
        [("conv41", 64)],
        [("conv34", 64), ("conv33", 64), ("conv32", 64), ("conv31", 32)],
        [("conv22", 32), ("conv21", 16)],
        [("conv12", 16), ("conv11", 3)],
    ),
)

# Ours: as narrow, with more channels where they cost least, at an eighth of the size.
BUILTIN_ENCODER = _encoder(_NAMES, (16, 16, 32, 32, 64, 64, 64, 64, 192))
BUILTIN_DECODER = _decoder(
    192,
    (
        [("conv42", 128), ("conv41", 96)],
        [("conv33", 64), ("conv32", 64), ("conv31", 48)],
        [("conv22", 32), ("conv21", 24)],
        [("conv12", 16), ("conv11", 3)],
    ),
)

TAPS = ("conv11", "conv21", "conv31", "conv41")  # relu1_1 … relu4_1, where styles are compared


def convolutions(layers: Sequence[Layer]) -> list[Conv]:
    return [layer for layer in layers if isinstance(layer, Conv)]


def weight_shapes(layers: Sequence[Layer]) -> dict[str, tuple[int, ...]]:
    """What a weights file must hold for these layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for conv in convolutions(layers):
        shapes[f"{conv.name}.weight"] = (conv.outputs, conv.inputs, conv.size, conv.size)
        shapes[f"{conv.name}.bias"] = (conv.outputs,)
    return shapes
