"""Augmentations that mix an image with changed versions of itself: Cutout, AugMix, OA-Mix.

Truth does not move. None of the operations is a corruption that networks are tested under: brightness,
contrast, colour and sharpness are left out, as in AugMix. Every image has its own random numbers, but the
order of operations is fixed, so that a step can be one CUDA graph: the batch is shuffled, and each part of it
goes through another operation.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from training.boxes import inside

HOLES, HOLE = 3, 0.25  # Cutout (DeVries and Taylor 2017): squares per image, of this share of its height
CHAINS, DEPTH = 3, 3  # AugMix (Hendrycks et al. 2020): chains mixed, operations in each at most
SEVERITY = {"augmix": 3.0, "oamix": 10.0}  # of 10, as their authors have it
REGIONS = 4  # OA-Mix (Lee et al. 2024): random boxes per image that get an operation of their own
REGION_AREA, REGION_RATIO = (0.01, 0.1), 3.0  # share of the image; longest side ratio
OBJECT_SHARE = 0.5  # most of a changed version that is mixed into an object's box, so that it stays visible
CELL = 4  # pixels of a cell in which OA-Mix draws its masks


def mixed(name: str, images: Tensor, boxes: Tensor, valid: Tensor) -> Tensor:
    """Images B×3×H×W from -1 to 1 after an augmentation by name; `boxes` and `valid` as in `Batch`."""
    unit = (images + 1) / 2
    made = {"cutout": _cutout, "augmix": _augmix, "oamix": _oamix}[name](unit, boxes, valid != 0)
    return made.clamp(0, 1) * 2 - 1


def _cutout(images: Tensor, _boxes: Tensor, _real: Tensor) -> Tensor:
    count, _, height, width = images.shape
    side = HOLE * height
    corner = (
        _rand(images, count, HOLES, 2) * torch.stack([_full(images, width), _full(images, height)]) - side / 2
    )
    holes = inside(torch.cat([corner, corner + side], -1), height, width).any(1)
    return torch.where(holes[:, None], 0.5, images)


def _augmix(images: Tensor, _boxes: Tensor, _real: Tensor) -> Tensor:
    changed = _chains(images, lambda x: _operation(x, SEVERITY["augmix"]))
    return torch.lerp(images, changed, _rand(images, len(images), 1, 1, 1))


def _oamix(images: Tensor, boxes: Tensor, real: Tensor) -> Tensor:
    """Other operations inside random regions and objects than outside; objects keep more of the original."""
    objects = _drawn(images, boxes, real)
    some = real & (_rand(images, *real.shape) < 0.5)
    regions = torch.maximum(_drawn(images, *_regions(images)), _drawn(images, boxes, some))

    def level(x: Tensor) -> Tensor:
        outside, within = (_operation(x, SEVERITY["oamix"]) for _ in range(2))
        return torch.lerp(outside, within, regions)

    background, foreground = _rand(images, 2, len(images), 1, 1, 1)
    share = torch.lerp(background, OBJECT_SHARE * foreground, objects)
    return torch.lerp(images, _chains(images, level), share)


def _chains(images: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Chains of one to DEPTH changes, mixed by weights drawn from a flat Dirichlet distribution."""
    count = len(images)
    weights = -_rand(images, CHAINS, count).clamp(min=1e-6).log()
    weights = (weights / weights.sum(0))[..., None, None, None]
    total = torch.zeros_like(images)
    for chain in range(CHAINS):
        one, depth = images, 1 + DEPTH * _rand(images, count, 1, 1, 1)
        for k in range(1, DEPTH + 1):
            one = torch.where(depth > k, change(one), one)
        total += weights[chain] * one
    return total


def _operation(images: Tensor, severity: float) -> Tensor:
    """A random operation on every image, at a level drawn up to the severity."""
    order = _rand(images, len(images)).argsort()
    levels = (0.1 + (severity - 0.1) * _rand(images, len(images), 1, 1, 1)) / 10
    parts = [
        operation(part, level)
        for operation, part, level in zip(
            OPERATIONS,
            images[order].tensor_split(len(OPERATIONS)),
            levels.tensor_split(len(OPERATIONS)),
            strict=True,
        )
        if len(part)
    ]
    return torch.cat(parts)[order.argsort()]


def _autocontrast(images: Tensor, _level: Tensor) -> Tensor:
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return (images - low) / (high - low).clamp(min=1 / 255)


def _equalize(images: Tensor, _level: Tensor) -> Tensor:
    """Every channel's histogram made flat."""
    values = (images * 255).round().clamp(0, 255).long().flatten(2)
    counts = torch.zeros(*values.shape[:2], 256, device=images.device)
    counts.scatter_add_(2, values, torch.ones_like(values, dtype=torch.float32))
    below = counts.cumsum(2)
    first = below.gather(2, values.amin(2, keepdim=True))
    table = (below - first) / (values.shape[2] - first).clamp(min=1)
    return table.clamp(0, 1).gather(2, values).view_as(images)


def _posterize(images: Tensor, level: Tensor) -> Tensor:
    step = torch.exp2(4 + torch.floor(4 * level).clamp(max=3))
    return torch.floor(images * 255 / step) * step / 255


def _solarize(images: Tensor, level: Tensor) -> Tensor:
    return torch.where(images < 1 - level, images, 1 - images)


def _moved(images: Tensor, entries: tuple[tuple[int, int, Tensor], ...]) -> Tensor:
    """Images after an affine map, the identity but for some entries; what comes from outside is black."""
    theta = torch.zeros(len(images), 2, 3, device=images.device)
    theta[:, 0, 0] = theta[:, 1, 1] = 1
    for row, column, value in entries:
        theta[:, row, column] = value
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def _signed(level: Tensor) -> Tensor:
    """Levels with random signs, one per image."""
    return torch.where(torch.rand_like(level) < 0.5, -level, level)[:, 0, 0, 0]


def _rotate(images: Tensor, level: Tensor) -> Tensor:
    angle = _signed(level) * (torch.pi / 6)
    height, width = images.shape[2:]
    cosine, sine = angle.cos(), angle.sin()
    return _moved(
        images,
        ((0, 0, cosine), (0, 1, -sine * height / width), (1, 0, sine * width / height), (1, 1, cosine)),
    )


def _shear(images: Tensor, level: Tensor) -> Tensor:
    return _moved(images, ((0, 1, 0.3 * _signed(level)), (1, 0, 0.3 * _signed(level))))


def _translate(images: Tensor, level: Tensor) -> Tensor:
    return _moved(images, ((0, 2, 2 / 3 * _signed(level)), (1, 2, 2 / 3 * _signed(level))))


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    _autocontrast, _equalize, _posterize, _solarize, _rotate, _shear, _translate,
)  # fmt: skip


def _regions(images: Tensor) -> tuple[Tensor, Tensor]:
    """Random boxes of an image, B×REGIONS×4, all of them real."""
    count, _, height, width = images.shape
    chance = _rand(images, 4, count, REGIONS)
    low, high = REGION_AREA
    area = (low + (high - low) * chance[0]) * height * width
    ratio = REGION_RATIO ** (2 * chance[1] - 1)
    half = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()], -1) / 2
    middle = torch.stack([chance[2] * width, chance[3] * height], -1)
    boxes = torch.cat([middle - half, middle + half], -1)
    return boxes, torch.ones_like(area, dtype=torch.bool)


def _drawn(images: Tensor, boxes: Tensor, real: Tensor) -> Tensor:
    """Where any of the boxes is, B×1×H×W, with soft edges: drawn in cells and enlarged."""
    height, width = images.shape[2] // CELL, images.shape[3] // CELL
    cells = (inside(boxes / CELL, height, width) & real[..., None, None]).any(1)[:, None].float()
    return functional.interpolate(cells, size=list(images.shape[2:]), mode="bilinear", align_corners=False)


def _rand(images: Tensor, *shape: int) -> Tensor:
    return torch.rand(*shape, device=images.device)


def _full(images: Tensor, value: float) -> Tensor:
    return torch.full((), float(value), device=images.device)
