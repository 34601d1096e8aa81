"""What the style networks are penalised for, as the teacher sees it (huang2017)."""

from __future__ import annotations

import torch
from data import Atlas
from student import Student
from torch import Tensor, nn
from torch.nn import functional

from stormproof.style.layers import TAPS
from stormproof.style.torchnet import Network, adain, statistics

CONTENT, RECONSTRUCTION, PERCEPTUAL, DISTILLATION, RANGE = 1.0, 300.0, 2.0, 1.0, 10.0


@torch.no_grad()
def level_units(teacher: Network, atlas: Atlas) -> list[Tensor]:
    """The usual variance of a style's features at each level, so that levels count alike."""
    return [statistics(f)[1].square().mean() for f in teacher.taps(atlas.batch(32)[1], TAPS)]


def standard(features: Tensor) -> Tensor:
    """Every channel with mean 0 and variance 1 over the batch; channels that never fire stay 0."""
    mean = features.mean((0, 2, 3), keepdim=True)
    variance = features.var((0, 2, 3), keepdim=True)
    return (features - mean) / (variance + 1e-2).sqrt()


def style_loss(
    output: list[Tensor], content: list[Tensor], style: list[Tensor], units: list[Tensor]
) -> Tensor:
    """How much of the distance to the style is left: channel means and deviations, output ÷ content.

    Dividing by the content's own distance lets every pair count alike, however far apart the two are. Half
    of it counts all levels alike, half is the plain sum over all channels that styles are judged by.
    """
    total, plain, whole = (torch.zeros((), device=units[0].device) for _ in range(3))
    for got, had, want, unit in zip(output, content, style, units, strict=True):
        wanted = statistics(want)
        left, first = (
            sum(
                (mine - theirs).square().mean((1, 2, 3))
                for mine, theirs in zip(statistics(f), wanted, strict=True)
            )
            for f in (got, had)
        )
        total = total + (left / (first + 0.3 * unit)).mean()
        plain, whole = plain + left * got.shape[1], whole + (first + 0.1 * unit) * got.shape[1]
    return total / len(units) / 2 + (plain / whole).mean() / 2


def distance_left(teacher: Network, output: Tensor, content: Tensor, style: Tensor) -> Tensor:
    """What is left of the distance to the style, plain sum over channels and levels, output ÷ content."""

    def distance(image: Tensor) -> Tensor:
        total = torch.zeros(len(image), device=image.device)
        for got, want in zip(teacher.taps(image, TAPS), wanted, strict=True):
            (m, s), (wm, ws) = statistics(got), statistics(want)
            total += ((m - wm).square() + (s - ws).square()).sum((1, 2, 3))
        return total

    wanted = teacher.taps(style, TAPS)
    return distance(output.clamp(0, 1)) / distance(content)


def losses(
    student: Student, heads: nn.ModuleList, teacher: Network, units: list[Tensor],
    content: Tensor, style: Tensor, weight: float,
) -> dict[str, Tensor]:  # fmt: skip
    both = torch.cat((content, style))
    with torch.no_grad():
        seen = teacher.taps(both, TAPS)
    own = student.encoder.taps(both, TAPS)
    n, half = len(content), len(content) // 2
    distillation = torch.zeros((), device=content.device)
    for head, got, want in zip(heads, own, seen, strict=True):
        distillation = distillation + functional.mse_loss(head(got).float(), standard(want.float()))
    # The encoder learns from the teacher and from reconstruction; painting is the decoder's business.
    features = own[-1]
    stylized = adain(features[:half].detach(), statistics(features[n : n + half].detach()))
    output = student.decoder(torch.cat((stylized, features[half:n].float()))).float()

    painted = teacher.taps(output, TAPS)
    target = adain(seen[-1][:half], statistics(seen[-1][n : n + half]))
    perceptual = torch.zeros((), device=content.device)
    for got, want, unit in zip(painted, seen, units, strict=True):
        perceptual = perceptual + functional.mse_loss(got[half:].float(), want[half:n].float()) / unit
    return {
        "content": CONTENT
        * min(weight, 1.0)
        * functional.mse_loss(painted[-1][:half].float(), target)
        / units[-1],
        "style": weight
        * style_loss(
            [p[:half] for p in painted], [s[:half] for s in seen], [s[n : n + half] for s in seen], units
        ),
        "reconstruction": RECONSTRUCTION * functional.mse_loss(output[half:], content[half:]),
        "perceptual": PERCEPTUAL * perceptual / len(units),
        "distillation": DISTILLATION * distillation,
        "range": RANGE * (output - output.clamp(0, 1)).square().mean(),
    }
