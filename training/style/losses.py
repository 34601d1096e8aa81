"""The losses of the style network, measured by the encoder it has, which stays as it is (huang2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from student import Critic, Student
from torch import Tensor
from torch.nn import functional
from torchnet import statistics

Statistics = tuple[Tensor, ...]
CELL = 8  # pixels; features are an eighth of the image, so a lattice has this period
WINDOW = 32  # pixels over which a lattice is looked for
FLAT = 0.002  # variance of fine detail above which a window does not count as flat


@dataclass(frozen=True, slots=True)
class Balance:
    """The weight of each term."""

    content: float = 2.0
    shapes: float = 1.0
    style: float = 4.0
    coarse: float = 3.0
    pixels: float = 300.0
    edges: float = 60.0
    perceptual: float = 2.0
    lattice: float = 300.0
    critic: float = 0.0
    range: float = 10.0


@torch.no_grad()
def level_units(student: Student, styles: Tensor) -> list[Tensor]:
    """The usual variance of a style's features at each level, by which levels are given equal weight."""
    return [statistics(f)[1].square().mean() for f in student.levels(styles)]


def mixed(features: Tensor, own: Statistics, style: Statistics, alpha: Tensor) -> Tensor:
    """(1−α)·f + α·AdaIN(f, s), with one α per sample."""
    scale = style[1] / own[1]
    return features * ((1 - alpha) + alpha * scale) + alpha * (style[0] - own[0] * scale)


def between(a: Statistics, b: Statistics, share: Tensor) -> Statistics:
    return tuple(torch.lerp(x, y, share) for x, y in zip(a, b, strict=True))


def moments(features: Tensor) -> Statistics:
    """Mean, deviation and covariances of the channels, as N×C×1×1, the same and N×1×C×C."""
    mean, deviation = statistics(features)
    with torch.autocast(features.device.type, enabled=False):
        centred = (features.float() - mean).flatten(2)
        covariances = centred @ centred.transpose(1, 2) / centred.shape[2]
    return mean, deviation, covariances[:, None]


def distances(a: Statistics, b: Statistics) -> Tensor:
    """Squared distances by sample: of means and deviations, and of covariances."""
    plain = sum((x - y).square().sum((1, 2, 3)) for x, y in zip(a[:2], b[:2], strict=True))
    return torch.stack((plain, (a[2] - b[2]).square().sum((1, 2, 3))))


def distance_left(student: Student, output: Tensor, content: Tensor, style: Tensor) -> Tensor:
    """The remaining distance to the style (means and deviations, not squared): output ÷ content."""
    got, had, wanted = (
        [moments(f) for f in student.levels(image)] for image in (output.clamp(0, 1), content, style)
    )
    left, first = (sum(distances(a, b)[0] for a, b in zip(s, wanted, strict=True)) for s in (got, had))
    return (left / first).sqrt()


def style_loss(output: Sequence[Statistics], had: Sequence[Statistics], styles: Sequence[Statistics],
               alpha: Tensor) -> Tensor:  # fmt: skip
    """The remaining share of the distance to the α-mixture of content's and style's moments.

    Dividing by the pair's own distance gives every pair and every level the same weight.
    """
    total = 0.0
    for got, own, style in zip(output, had, styles, strict=True):
        apart = distances(own, style).detach()
        least = 0.1 * apart.mean(1, keepdim=True)
        total = total + distances(got, between(own, style, alpha)) / (apart + least)
    return total.mean() / len(output)


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


def normalised(features: Tensor) -> Tensor:
    """Features without their statistics: where things are, whatever they look like."""
    mean, deviation = statistics(features)
    return (features.float() - mean) / deviation


def judged(student: Student, images: Tensor) -> tuple[list[Statistics], list[Tensor]]:
    """The moments of images at every level, the colours themselves included, and the features."""
    levels = student.levels(images)
    return [moments(features) for features in (images, *levels)], levels


def split(groups: Sequence[Statistics], size: int) -> tuple[list[Statistics], list[Statistics]]:
    """The moments of the first `size` images and of the others."""
    first = [tuple(part[:size] for part in level) for level in groups]
    return first, [tuple(part[size:] for part in level) for level in groups]


def losses(
    student: Student, units: Sequence[Tensor], content: Tensor, style: Tensor, alpha: Tensor,
    reduced: int, balance: Balance, critic: Critic | None = None,
) -> tuple[dict[str, Tensor], Tensor, Tensor]:  # fmt: skip
    """All terms, weighted: the first contents are painted in their styles at α, the others reconstructed.

    Styles are also compared in images reduced by `reduced`, where strokes are judged as a whole. Returns the
    painted images and the looks of their styles too.
    """
    n, painted = len(content), len(style)
    with torch.no_grad():
        known, seen = judged(student, torch.cat((content[:painted], style)))
        rest = student.levels(content[painted:])
        seen = [torch.cat((a[:painted], b)) for a, b in zip(seen, rest, strict=True)]
        had, wanted = split(known, painted)
        small = [functional.avg_pool2d(image, reduced) for image in (content[:painted], style)]
        small_had, small_wanted = split(judged(student, torch.cat(small))[0], painted)
        own = statistics(seen[-1])
        looks = wanted[-1][:2]
    plain = torch.cat((alpha, torch.zeros(n - painted, 1, 1, 1, device=alpha.device)))
    target = tuple(torch.cat((part, mine[painted:])) for part, mine in zip(looks, own, strict=True))
    first = mixed(seen[-1].float(), own, target, plain)
    output = student.decode(first, seen, plain).float()

    shown, features = judged(student, output[:painted])
    small_shown, _ = judged(student, functional.avg_pool2d(output[:painted], reduced))
    again, original = output[painted:], content[painted:]
    perceptual = sum(
        functional.mse_loss(got.float(), want.float()) / unit
        for got, want, unit in zip(student.levels(again), rest, units, strict=True)
    )
    terms = {
        "content": functional.mse_loss(features[-1].float(), first[:painted]) / units[-1],
        "shapes": functional.mse_loss(normalised(features[-2]), normalised(seen[-2][:painted])),
        "style": style_loss(shown, had, wanted, alpha),
        "coarse": style_loss(small_shown, small_had, small_wanted, alpha),
        "pixels": functional.mse_loss(again, original),
        "edges": sum(functional.l1_loss(a, b) for a, b in zip(edges(again), edges(original), strict=True))
        / 2,
        "perceptual": perceptual / len(units),
        "lattice": lattice(output[:painted], content[:painted]),
        "range": (output - output.clamp(0, 1)).square().mean(),
    }
    look = torch.cat(looks, 1).flatten(1) / units[-1].sqrt()
    if critic is not None:
        full = (alpha.flatten() > 0.8).float()
        terms["critic"] = -(critic(output[:painted], look).mean((1, 2, 3)) * full).sum() / (full.sum() + 1)
    return {name: getattr(balance, name) * value for name, value in terms.items()}, output[:painted], look
