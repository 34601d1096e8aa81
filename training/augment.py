"""Augmentation: scenes flipped, zoomed and recoloured on the device, their truth moved along."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from training.boxes import constant
from training.config import Augment

VOID = 255
LEAST_VISIBLE = 0.3  # share of a box that must remain in the frame for its object to count
LEAST_SIDE = 2.0  # pixels
CHANCES = 11  # random numbers that `varied` needs for each image


@dataclass(frozen=True, slots=True)
class Batch:
    """Images as network input, and the truth; boxes are x1 y1 x2 y2 in pixels."""

    images: Tensor  # B×3×H×W, mean 0
    boxes: Tensor  # B×M×4
    labels: Tensor  # B×M
    valid: Tensor  # B×M, 1 counts, -1 neither counts nor is penalised, 0 no object
    semantic: Tensor | None  # B×H×W
    instance: Tensor | None  # B×H×W, 0 or 1 + position among the boxes


def normalised(images: Tensor) -> Tensor:
    """uint8 B×H×W×3 → float B×3×H×W from -1 to 1."""
    return images.permute(0, 3, 1, 2).float().sub_(127.5).div_(127.5)


def as_batch(scenes: dict[str, Tensor]) -> Batch:
    """Scenes without augmentation."""
    objects, semantic = scenes["objects"], scenes.get("semantic")
    return Batch(
        normalised(scenes["images"]),
        objects[..., :4].float(),
        objects[..., 4].long(),
        objects[..., 5].long(),
        None if semantic is None else semantic.long(),
        scenes.get("instance"),
    )


def varied(scenes: dict[str, Tensor], settings: Augment, chance: Tensor) -> Batch:
    """Scenes with random augmentation; `chance` is CHANCES×B, from 0 to 1."""
    batch = as_batch(scenes)
    _, _, height, width = batch.images.shape
    low, high = settings.zoom
    zoom = torch.where(chance[0] < settings.zoomed, low * (high / low) ** chance[1], 1.0)
    left, top = chance[2] * (width - width / zoom), chance[3] * (height - height / zoom)
    mirror = torch.where(chance[4] < settings.flip, -1.0, 1.0)
    grid = _grid(zoom, left, top, mirror, (height, width))
    images = functional.grid_sample(batch.images, grid, align_corners=False)
    semantic, instance = _planes(batch, grid)
    boxes, valid = _boxes(batch, zoom, left, top, mirror, (height, width))
    return Batch(_recoloured(images, settings, chance[5:]), boxes, batch.labels, valid, semantic, instance)


def _grid(zoom: Tensor, left: Tensor, top: Tensor, mirror: Tensor, size: tuple[int, int]) -> Tensor:
    """Where every pixel of the new image lies in the old one, from -1 to 1."""
    height, width = size
    theta = torch.zeros(len(zoom), 2, 3, device=zoom.device)
    theta[:, 0, 0], theta[:, 1, 1] = mirror / zoom, 1 / zoom
    theta[:, 0, 2] = 2 * (left + width / (2 * zoom)) / width - 1
    theta[:, 1, 2] = 2 * (top + height / (2 * zoom)) / height - 1
    return functional.affine_grid(theta, [len(zoom), 3, height, width], align_corners=False)


def _planes(batch: Batch, grid: Tensor) -> tuple[Tensor | None, Tensor | None]:
    def moved(plane: Tensor) -> Tensor:
        raised = plane[:, None].float() + 1  # 0 marks pixels outside the old image
        return functional.grid_sample(raised, grid, mode="nearest", align_corners=False)[:, 0].long() - 1

    semantic = None if batch.semantic is None else moved(batch.semantic)
    instance = None if batch.instance is None else moved(batch.instance).clamp_(min=0)
    return None if semantic is None else torch.where(semantic < 0, VOID, semantic), instance


def _boxes(
    batch: Batch, zoom: Tensor, left: Tensor, top: Tensor, mirror: Tensor, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    height, width = size
    shift = torch.stack([left, top, left, top], -1)[:, None]
    moved = (batch.boxes - shift) * zoom[:, None, None]
    flipped = torch.stack([width - moved[..., 2], moved[..., 1], width - moved[..., 0], moved[..., 3]], -1)
    moved = torch.where(mirror[:, None, None] < 0, flipped, moved)
    limit = constant((width, height, width, height), moved.device)
    seen = torch.minimum(moved.clamp(min=0), limit)
    whole = (moved[..., 2:] - moved[..., :2]).prod(-1)
    sides = (seen[..., 2:] - seen[..., :2]).clamp(min=0)
    enough = (sides.prod(-1) >= LEAST_VISIBLE * whole) & (sides.amin(-1) >= LEAST_SIDE)
    gone = sides.amin(-1) <= 0
    valid = torch.where(enough, batch.valid, torch.where(gone, 0, -batch.valid.abs()))
    return seen, valid


def _recoloured(images: Tensor, settings: Augment, chance: Tensor) -> Tensor:
    """Saturation, contrast, brightness and channels' gains; images run from -1 to 1."""

    def factor(amount: float, row: int) -> Tensor:
        return (1 + amount * (2 * chance[row] - 1))[:, None, None, None]

    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * factor(settings.saturation, 0)
    images = images * factor(settings.contrast, 1) + (factor(settings.brightness, 2) - 1)
    gains = 1 + settings.hue * (2 * chance[3:6] - 1)
    return ((images + 1) * gains.T[:, :, None, None] - 1).clamp_(-1, 1)
