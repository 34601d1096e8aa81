"""Encoders and decoders of AdaIN as data: a tuple of layers and the weights by name.

One description serves the ONNX graph (`onnx.py`) and the torch network that is trained
(`training/style/torchnet.py`). All convolutions pad by reflection, pooling halves and rounds up. The original
decoder doubles by nearest neighbour (huang2017); the built-in one doubles smoothly, and more enters it than
the features: see `Join`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]
Levels = dict[str, Field]  # what a decoder may join, by name
Encode = Callable[[Field], tuple[Field, Levels]]  # an image's features, and the levels on the way to them
Decode = Callable[[Field, Levels, float], Field]  # features, levels and strength as an image
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
class MaxPool:
    """2×2 maximum, stride 2; an odd last row or column gets its own windows."""


@dataclass(frozen=True, slots=True)
class Up:
    """Twice the size: every value twice in both directions or, if `smooth`, bilinear."""

    smooth: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Adds a 1×1 convolution of another input, `source`, times 1−s or, if it `grows`, times s.

    An encoder's level brings a content's detail: all of it at α = 0, 6 % at α = 1, where the features
    have the style's statistics. Noise brings irregularity to what the style paints on flat areas.
    The strength s is that of `strength`.
    """

    name: str
    source: str
    inputs: int
    outputs: int
    grows: bool = False


Layer = Conv | MaxPool | Up | Join


def _blocks(
    names: Sequence[str], widths: Sequence[int], sizes: Sequence[int], between: Layer
) -> Iterator[Layer]:
    """Convolutions by name, `widths` their channels in and out, in blocks with `between` between them."""
    convs = (Conv(name, *sides) for name, sides in zip(names, pairwise(widths), strict=True))
    for k, size in enumerate(sizes):
        yield from (*([between] if k else ()), *islice(convs, size))


def _encoder(names: str, widths: Sequence[int]) -> tuple[Layer, ...]:
    """VGG-19 to relu4_1: two, two, four and one convolutions, after one that changes the colours."""
    first, *others = names.split()
    colours = Conv(first, 3, 3, size=1, relu=False)
    return (colours, *_blocks(others, (3, *widths), (2, 2, 4, 1), MaxPool()))


def _decoder(names: str, widths: Sequence[int]) -> tuple[Layer, ...]:
    """The encoder's mirror image. Its last convolution outputs colours, so it has no ReLU."""
    *before, last = names.split()
    return (*_blocks(before, widths, (1, 4, 2, 1), Up()), Conv(last, widths[-1], 3, relu=False))


_NAMES = "conv11 conv12 conv21 conv22 conv31 conv32 conv33 conv34 conv41"
_BACK = "conv41 conv34 conv33 conv32 conv31 conv22 conv21 conv12 conv11"

# The original files are torch Sequentials, so their layers are named by position.
VGG_ENCODER = _encoder("0 2 5 9 12 16 19 22 25 29", (64, 64, 128, 128, 256, 256, 256, 256, 512))
VGG_DECODER = _decoder("1 5 8 11 14 18 21 25 28", (512, 256, 256, 256, 256, 128, 128, 64, 64))

# Collaborative Distillation's 16× smaller pair (wang2020).
DISTILLED_ENCODER = _encoder(f"conv0 {_NAMES}", (16, 16, 32, 32, 64, 64, 64, 64, 128))
DISTILLED_DECODER = _decoder(_BACK, (128, 64, 64, 64, 64, 32, 32, 16, 16))

# The built-in pair: the distilled encoder as it is, and a decoder of our own.
CELL = 8  # pixels per side that share a feature
NOISE, NOISE_CHANNELS = "noise", 8  # an input at the size of the features
NEIGHBOUR = 0.35  # how much of each neighbouring cell's noise a cell gets too
FADED = 0.94  # of the content's detail that is gone at α = 1; without the rest, objects dissolve
BUILTIN_ENCODER = DISTILLED_ENCODER
BUILTIN_DECODER = (
    Conv("conv42", 128, 160), Join("join4", NOISE, NOISE_CHANNELS, 160, grows=True), Conv("conv41", 160, 160),
    Up(smooth=True),
    Conv("conv34", 160, 96), Join("join3", "conv31", 64, 96),
    Conv("conv33", 96, 96), Conv("conv32", 96, 96), Conv("conv31", 96, 56),
    Up(smooth=True),
    Conv("conv22", 56, 56), Join("join2", "conv21", 32, 56), Conv("conv21", 56, 24),
    Up(smooth=True),
    Conv("conv13", 24, 24), Join("join1", "conv11", 16, 24), Conv("conv12", 24, 24),
    Conv("conv11", 24, 3, relu=False),
)  # fmt: skip

TAPS = ("conv11", "conv21", "conv31", "conv41")  # relu1_1 … relu4_1, where styles are compared


def strength(alpha: float) -> float:
    """How far detail has faded and noise has grown: 0.94·(1−(1−α)³).

    The content's detail hides a style, so it fades faster than features are blended: at α = 0.5 a sixth
    of it is left, and an image keeps less structure than if its pixels were blended, as in theodoridis.

    >>> [round(strength(alpha), 2) for alpha in (0, 0.5, 1)]
    [0.0, 0.82, 0.94]
    """
    return FADED * (1 - (1 - alpha) ** 3)


def share_noise(cells: Any) -> Any:
    """Noise of unit variance that neighbouring cells share, one cell smaller on every side than `cells`.

    A decoder paints one stroke per cell where neighbours have nothing in common, so large areas would look
    like a lattice. Works on arrays and tensors.
    """
    rows = cells[..., 1:-1, :] + NEIGHBOUR * (cells[..., :-2, :] + cells[..., 2:, :])
    both = rows[..., 1:-1] + NEIGHBOUR * (rows[..., :-2] + rows[..., 2:])
    return both / (1 + 2 * NEIGHBOUR**2)


def convolutions(layers: Sequence[Layer]) -> list[Conv]:
    return [layer for layer in layers if isinstance(layer, Conv)]


def joins(layers: Sequence[Layer]) -> list[Join]:
    return [layer for layer in layers if isinstance(layer, Join)]


def level_names(encoder: Sequence[Layer], joined: Sequence[str]) -> tuple[str, ...]:
    """Those of the joined inputs that are levels of an encoder, in its order."""
    return tuple(conv.name for conv in convolutions(encoder) if conv.name in joined)


def weight_shapes(layers: Sequence[Layer]) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the arrays that a weights file must contain for these layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for conv in convolutions(layers):
        shapes[f"{conv.name}.weight"] = (conv.outputs, conv.inputs, conv.size, conv.size)
        shapes[f"{conv.name}.bias"] = (conv.outputs,)
    for join in joins(layers):
        shapes[f"{join.name}.weight"] = (join.outputs, join.inputs, 1, 1)
    return shapes
