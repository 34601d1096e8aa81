"""The networks: one encoder, one neck, and a head for each kind of output.

Plain 3×3 convolutions and ReLU, which run fast on a CPU. Networks share these architectures, not weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

OBJECTS, SEMANTIC = 7, 12  # classes of the world
STRIDES = (4, 8, 16, 32)
WIDTHS = (32, 48, 96, 128, 160)
DEPTHS = (1, 2, 2, 1)
RARE = -math.log(99)  # the logit of a probability of 1 %: most cells are empty


def conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (size // 2)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding, dilation, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Block(nn.Module):
    """A residual block, half as wide inside."""

    def __init__(self, width: int, dilation: int = 1) -> None:
        super().__init__()
        half = width // 2
        self.inner = nn.Sequential(conv(width, half, dilation=dilation), conv(half, width, dilation=dilation))

    def forward(self, x: Tensor) -> Tensor:
        residue: Tensor = self.inner(x)
        return x + residue


class Encoder(nn.Module):
    """Features at strides 4, 8, 16 and 32.

    With `dilation`, the last stage stays at stride 16 and its convolutions have that dilation, as in DeepLab:
    2 sees as far as stride 32 would, 1 is the same network without atrous convolutions.
    """

    def __init__(
        self, widths: Sequence[int] = WIDTHS, depths: Sequence[int] = DEPTHS, dilation: int = 0
    ) -> None:
        super().__init__()
        self.stem = conv(3, widths[0], stride=2)
        steps = [(2, 1)] * (len(depths) - 1) + [(1, dilation) if dilation else (2, 1)]
        rows = zip(widths, widths[1:], depths, steps, strict=False)
        self.stages = nn.ModuleList(
            nn.Sequential(conv(a, b, stride=stride, dilation=wide), *(Block(b, wide) for _ in range(depth)))
            for a, b, depth, (stride, wide) in rows
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        x = self.stem(x)
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features


class GlobalContext(nn.Module):
    """Adds the image's mean feature everywhere."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.here, self.everywhere = conv(inputs, outputs, 1), nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        here: Tensor = self.here(x)
        whole: Tensor = self.everywhere(x.mean((2, 3), keepdim=True))
        return here + whole


class AtrousContext(nn.Module):
    """Atrous pooling as in DeepLab: the same place seen at several widths, and the whole image."""

    def __init__(
        self, inputs: int, outputs: int, *, rates: Sequence[int] = (2, 4), everywhere: bool = True
    ) -> None:
        super().__init__()
        self.views = nn.ModuleList([
            conv(inputs, outputs, 1), *(conv(inputs, outputs, dilation=rate) for rate in rates)
        ])  # fmt: skip
        self.everywhere = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.ReLU(inplace=True)) if everywhere else None
        )
        self.join = conv(outputs * (len(self.views) + everywhere), outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        seen = [view(x) for view in self.views]
        if self.everywhere is not None:
            seen.append(self.everywhere(x.mean((2, 3), keepdim=True)).expand_as(seen[0]))
        joined: Tensor = self.join(torch.cat(seen, 1))
        return joined


class DensePredictionCell(nn.Module):
    """The cell that an architecture search found for Cityscapes (Chen et al. 2018a, Fig. 5).

    Five atrous convolutions, most of which see what the first one saw; all are joined. Rates are a third of
    the published ones, because our feature maps are smaller; so are those of "aspp".
    """

    BRANCHES = ((-1, (1, 2)), (0, (6, 5)), (1, (2, 1)), (0, (1, 1)), (0, (2, 7)))  # input, rates down, across

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(inputs if source < 0 else outputs, outputs, 3, 1, rate, rate, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            )
            for source, rate in self.BRANCHES
        )
        self.join = conv(outputs * len(self.BRANCHES), outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        for branch, (source, _) in zip(self.branches, self.BRANCHES, strict=True):
            seen.append(branch(x if source < 0 else seen[source]))
        joined: Tensor = self.join(torch.cat(seen, 1))
        return joined


CONTEXTS: dict[str, Callable[[int, int], nn.Module]] = {
    "aspp": partial(AtrousContext, rates=(2, 4, 6), everywhere=False),
    "aspp-mean": partial(AtrousContext, rates=(2, 4, 6)),
    "dpc": DensePredictionCell,
    "global": GlobalContext,
    "atrous": AtrousContext,
    "atrous-local": partial(AtrousContext, everywhere=False),
    "plain": lambda inputs, outputs: conv(inputs, outputs, 1),
}


class Neck(nn.Module):
    """Context at the coarsest level, then a top-down sum; the `levels` finest maps are smoothed.

    The encoder's features join the sum through `links`; with fewer than 3, the coarsest do.
    """

    def __init__(
        self, context: str, width: int, levels: int, widths: Sequence[int] = WIDTHS, links: int = 3
    ) -> None:
        super().__init__()
        self.context = CONTEXTS[context](widths[-1], width)
        self.sides = nn.ModuleList(nn.Conv2d(w, width, 1) for w in widths[1:-1][3 - links :])
        self.smooth = nn.ModuleList(conv(width, width) for _ in range(levels))

    def forward(self, features: list[Tensor]) -> list[Tensor]:
        maps = [self.context(features[-1])]
        sides = [None] * (len(features) - 1 - len(self.sides)) + list(self.sides)
        for side, feature in zip(reversed(sides), reversed(features[:-1]), strict=True):
            same = maps[0].shape[2:] == feature.shape[2:]  # after a last stage with stride 1
            finer = maps[0] if same else functional.interpolate(maps[0], scale_factor=2.0)
            maps.insert(0, finer if side is None else side(feature) + finer)
        return [smooth(level) for smooth, level in zip(self.smooth, maps, strict=False)]


class Grid(nn.Module):
    """As YOLOX: every cell of every level predicts box, objectness and class; duplicates are suppressed.

    With `prototypes`, every cell also predicts how to mix that many maps into its object's mask.
    """

    def __init__(self, context: str = "global", width: int = 64, head: int = 48, prototypes: int = 0) -> None:
        super().__init__()
        self.encoder, self.neck = Encoder(), Neck(context, width, len(STRIDES))
        self.what, self.where = conv(width, head), conv(width, head)
        self.classes = nn.Conv2d(head, OBJECTS, 1)
        self.box = nn.Conv2d(head, 5, 1)  # centre, log sides in strides; objectness
        self.mix = nn.Conv2d(head, prototypes, 1) if prototypes else None
        if prototypes:
            self.fine = conv(width, head)
            self.finer = nn.Sequential(conv(head, 32), nn.Conv2d(32, prototypes, 1))
        with torch.no_grad():
            self.box.weight.mul_(0.1)
            self.box.bias.copy_(torch.tensor([0.5, 0.5, 1.0, 1.0, RARE]))  # type: ignore[union-attr]

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """`rows` B×A×(5 + classes + prototypes), finest level first, all raw; `prototypes` B×k×H/2×W/2."""
        maps = self.neck(self.encoder(x))
        rows = []
        for level in maps:
            what, where = self.what(level), self.where(level)
            parts = [self.box(where), self.classes(what)]
            if self.mix is not None:
                parts.append(self.mix(where))
            rows.append(torch.cat(parts, 1).flatten(2))
        found = {"rows": torch.cat(rows, 2).transpose(1, 2)}
        if self.mix is not None:
            found["prototypes"] = self.finer(functional.interpolate(self.fine(maps[0]), scale_factor=2.0))
        return found


class Centre(nn.Module):
    """As CenterNet: objects are peaks of a heat map at stride 4, without suppression."""

    def __init__(self, context: str = "global", width: int = 64) -> None:
        super().__init__()
        self.encoder, self.neck = Encoder(), Neck(context, width, 1)
        self.what, self.where = conv(width, width), conv(width, width)
        self.heat, self.edges = nn.Conv2d(width, OBJECTS, 1), nn.Conv2d(width, 4, 1)
        with torch.no_grad():
            self.heat.bias.fill_(RARE)  # type: ignore[union-attr]
            self.edges.bias.fill_(0.7)  # type: ignore[union-attr]
            self.edges.weight.mul_(0.1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """`heat` B×classes×h×w, logits; `edges` B×4×h×w, logs of distances left, up, right, down in cells."""
        (level,) = self.neck(self.encoder(x))
        return {"heat": self.heat(self.what(level)), "edges": self.edges(self.where(level))}


class Semantic(nn.Module):
    """A class per pixel, at stride 4; the two built-in networks differ in `context`.

    `widths` are the encoder's channels at strides 2 to 32, `depths` its blocks after that, `dilation` that of
    its last stage, `links` how many of its maps join the decoder.
    """

    def __init__(
        self, context: str = "atrous", width: int = 64, widths: Sequence[int] = WIDTHS, links: int = 3,
        depths: Sequence[int] = DEPTHS, dilation: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder = Encoder(widths, depths, dilation)
        self.neck = Neck(context, width, 1, widths, links)
        self.classes = nn.Conv2d(width, SEMANTIC, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """`logits` B×classes×h×w."""
        (level,) = self.neck(self.encoder(x))
        return {"logits": self.classes(level)}


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "grid": Grid,
    "masks": lambda **options: Grid(**{"prototypes": 24, **options}),
    "centre": Centre,
    "semantic": Semantic,
}


def build(name: str, options: dict[str, Any], seed: int) -> nn.Module:
    """A network with fresh weights, the same for the same seed."""
    torch.manual_seed(seed)
    network = NETWORKS[name](**options)
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
