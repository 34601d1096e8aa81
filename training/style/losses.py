"""The losses of the style networks, measured by the judge, which is the distilled encoder (huang2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from student import Student
from torch import Tensor
from torch.nn import functional

from stormproof.style.layers import TAPS
from stormproof.style.torchnet import Network, statistics

Statistics = tuple[Tensor, Tensor]
CELL = 8  # pixels; features are an eighth of the image, so a lattice has this period
WINDOW = 32  # pixels over which a lattice is looked for
BORDER = 16  # pixels of a painting that its edge influences
FLAT = 0.002  # variance of fine detail above which a window does not count as flat


@dataclass(frozen=True, slots=True)
class Balance:
    """The weight of each term."""

    content: float = 1.0
    style: float = 0.8
    pixels: float = 120.0
    edges: float = 50.0
    perceptual: float = 8.0
    lattice: float = 1000.0
    shift: float = 1000.0
    kept: float = 0.5
    range: float = 10.0


@torch.no_grad()
def level_units(judge: Network, styles: Tensor) -> list[Tensor]:
    """The usual variance of a style's features at each level, by which levels are given equal weight."""
    return [statistics(f)[1].square().mean() for f in judge.taps(styles, TAPS)]


def mixed(features: Tensor, own: Statistics, style: Statistics, alpha: Tensor) -> Tensor:
    """(1−α)·f + α·AdaIN(f, s), with one α per sample."""
    scale = style[1] / own[1]
    return features * ((1 - alpha) + alpha * scale) + alpha * (style[0] - own[0] * scale)


def between(a: Statistics, b: Statistics, share: Tensor) -> Statistics:
    return torch.lerp(a[0], b[0], share), torch.lerp(a[1], b[1], share)


def distance(a: Statistics, b: Statistics) -> Tensor:
    """Sum over channels of squared differences of means and deviations, by sample."""
    return sum((x - y).square().sum((1, 2, 3)) for x, y in zip(a, b, strict=True))


def distance_left(network: Network, output: Tensor, content: Tensor, style: Tensor) -> Tensor:
    """The remaining distance to the style, summed over channels and levels: output ÷ content."""
    got, had, wanted = (
        [statistics(f) for f in network.taps(image, TAPS)] for image in (output.clamp(0, 1), content, style)
    )
    left, first = (sum(distance(a, b) for a, b in zip(s, wanted, strict=True)) for s in (got, had))
    return left / first


def style_loss(output: Sequence[Statistics], wanted: Sequence[Statistics], apart: Sequence[Tensor]) -> Tensor:
    """The remaining share of the distance to the style, per sample.

    Dividing by the pair's own distance gives every pair the same weight. One half gives every level the same
    weight; the other is the plain sum over all channels, by which styles are judged.
    """
    left = [distance(a, b) for a, b in zip(output, wanted, strict=True)]
    floor = [first.mean().detach() * 0.1 for first in apart]
    by_level = sum(
        here / (first + least) for here, first, least in zip(left, apart, floor, strict=True)
    ) / len(left)
    return (by_level + sum(left) / (sum(apart) + sum(floor))) / 2


def detail(image: Tensor) -> Tensor:
    """The image minus the mean of each pixel's surroundings."""
    around = functional.avg_pool2d(image, CELL + 1, 1, CELL // 2, count_include_pad=False)
    return image - around


def flatness(content: Tensor) -> Tensor:
    """How flat the content is, window by window: 1 where it has no fine detail, near 0 where it has much."""
    return torch.exp(-functional.avg_pool2d(detail(content).square().mean(1), WINDOW) / FLAT)


def lattice(output: Tensor, content: Tensor) -> Tensor:
    """The energy of a pattern that repeats every eight pixels, where the content is flat."""
    height, width = (length // WINDOW * WINDOW for length in output.shape[2:])
    cells = WINDOW // CELL
    drawn = detail(output)[:, :, :height, :width]
    n = len(drawn)
    folded = drawn.reshape(n, 3, height // WINDOW, cells, CELL, width // WINDOW, cells, CELL).mean((3, 6))
    energy = folded.square().mean((1, 3, 5))
    flat = flatness(content)
    return (energy * flat).sum() / (flat.sum() + 1)


def edges(image: Tensor) -> tuple[Tensor, Tensor]:
    return image.diff(dim=2), image.diff(dim=3)


def moved(output: Tensor, other: Tensor, content: Tensor, shift: tuple[int, int]) -> Tensor:
    """How much a painting of flat content changes as the content moves by `shift` pixels (down, right).

    Strokes move along with the content. A weave stays where the cells are: it repeats every two cells, with
    harmonics, so `lattice` does not see it.
    """
    down, right = shift
    here = output[:, :, down:, right:]
    there = other[:, :, : here.shape[2], : here.shape[3]]
    inside = (slice(None), slice(None), slice(BORDER, -BORDER), slice(BORDER, -BORDER))
    energy = functional.avg_pool2d((here - there)[inside].square().mean(1), WINDOW)
    flat = flatness(content[:, :, down:, right:][inside])
    return (energy * flat).sum() / (flat.sum() + 1)


def losses(
    student: Student, judge: Network, units: Sequence[Tensor], content: Tensor, style: Tensor,
    alpha: Tensor, share: Tensor, shift: tuple[int, int], balance: Balance,
) -> dict[str, Tensor]:  # fmt: skip
    """All terms, weighted: the first contents are painted in their styles at α, the others reconstructed.

    Contents are a cell larger than the output, so that they can move by `shift`; `share` blends each style
    with the one before it.
    """
    n, painted = len(content), len(style)
    height, width = (length - CELL for length in content.shape[2:])
    other = content[:painted, :, shift[0] : shift[0] + height, shift[1] : shift[1] + width]
    content = content[:, :, :height, :width]
    with torch.no_grad():
        seen = judge.taps(torch.cat((content, style)), TAPS)
    every = student.encoder(torch.cat((content, style, other)))
    features = every[: n + painted]
    own, looks = statistics(features[:n]), statistics(features[n:])
    looks = between(looks, tuple(part.roll(1, 0) for part in looks), share)
    plain = torch.cat((alpha, torch.zeros(n - painted, 1, 1, 1, device=alpha.device)))
    again = mixed(every[n + painted :].float(), statistics(every[n + painted :]), looks, alpha)
    looks = tuple(torch.cat((part, mine[painted:])) for part, mine in zip(looks, own, strict=True))
    first = mixed(features[:n].float(), own, looks, plain)
    drawn = student.decoder(torch.cat((first, again))).float()[:, :, :height, :width]
    output, elsewhere = drawn[:n], drawn[n:]

    shown = judge.taps(output, TAPS)
    had = [statistics(f[:painted]) for f in seen]
    styles = [statistics(f[n:]) for f in seen]
    styles = [between(s, tuple(part.roll(1, 0) for part in s), share) for s in styles]
    apart = [distance(a, b).detach() for a, b in zip(had, styles, strict=True)]
    wanted = [between(a, b, alpha) for a, b in zip(had, styles, strict=True)]
    target = mixed(seen[-1][:painted].float(), had[-1], styles[-1], alpha)
    perceptual = sum(
        functional.mse_loss(got[painted:].float(), want[painted:n].float()) / unit
        for got, want, unit in zip(shown, seen, units, strict=True)
    )
    again, original = output[painted:], content[painted:]
    terms = {
        "content": functional.mse_loss(shown[-1][:painted].float(), target) / units[-1],
        "style": style_loss([statistics(f[:painted]) for f in shown], wanted, apart).mean(),
        "pixels": functional.mse_loss(again, original),
        "edges": sum(functional.l1_loss(a, b) for a, b in zip(edges(again), edges(original), strict=True))
        / 2,
        "perceptual": perceptual / len(units),
        "lattice": lattice(output[:painted], content[:painted]),
        "shift": moved(output[:painted], elsewhere, content[:painted], shift),
        "range": (output - output.clamp(0, 1)).square().mean(),
    }
    # The encoder's first channels keep the values of the distilled encoder.
    first = features[:, : seen[-1].shape[1]].float()
    terms["kept"] = functional.mse_loss(first, seen[-1].float()) / units[-1]
    return {name: getattr(balance, name) * value for name, value in terms.items()}
