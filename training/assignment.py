"""Which cell of a grid learns which object: task-aligned assignment (Feng et al. 2021).

Each object is assigned to the cells near it that already predict it best, by class and box together. All
shapes are fixed, so that the host never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training.boxes import area

CELLS = 9  # at most per object
REACH = 1.5  # strides from an object's centre within which a cell may take it, however small it is
SCORE_POWER, OVERLAP_POWER = 0.5, 4.0


@dataclass(frozen=True, slots=True)
class Assigned:
    positive: Tensor  # B×A: the cell has an object
    which: Tensor  # B×A: its position among the objects
    quality: Tensor  # B×A: the target of the cell's objectness, 0 to 1
    unsure: Tensor  # B×A: the cell lies in an object that does not count


@torch.no_grad()
def assign(
    boxes: Tensor, scores: Tensor, places: Tensor, steps: Tensor, truth: Tensor, labels: Tensor, valid: Tensor
) -> Assigned:
    """Assign objects to cells; `boxes` B×A×4 and `scores` B×A×classes are predictions, `truth` is B×M×4."""
    points, step = (places + 0.5) * steps, steps[:, 0]
    candidate, inside = _near(points, step, truth)
    candidate &= (valid > 0)[..., None]
    overlap = torch.where(candidate, _overlap(boxes, truth), 0)
    index = labels.clamp(min=0)[:, None].expand(-1, scores.shape[1], -1)
    likely = scores.gather(2, index).transpose(1, 2)
    worth = likely.clamp(min=1e-6) ** SCORE_POWER * overlap**OVERLAP_POWER
    worth = torch.where(candidate, worth + 1e-9, 0)
    best = worth.topk(CELLS, -1).values[..., -1:]
    chosen = candidate & (worth >= best)
    # A cell wanted by several objects goes to the one its box covers best.
    claim = torch.where(chosen, overlap + 1e-6, 0)
    strength, which = claim.max(1)
    positive = strength > 0
    mine = chosen & (which[:, None] == torch.arange(truth.shape[1], device=truth.device)[:, None])
    kept = torch.where(mine, worth, 0)
    top_worth = kept.amax(-1, keepdim=True).clamp(min=1e-9)
    top_overlap = torch.where(mine, overlap, 0).amax(-1, keepdim=True)
    quality = (kept / top_worth * top_overlap).amax(1)
    unsure = (inside & (valid < 0)[..., None]).any(1) & ~positive
    return Assigned(positive, which, quality, unsure)


def _near(points: Tensor, step: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """B×M×A: cells that may take an object, and those inside it. Axis by axis: these tables are large."""
    x, y = points.T
    x1, y1, x2, y2 = truth[..., None].unbind(2)
    inside = (x > x1) & (x < x2) & (y > y1) & (y < y2)
    reach = REACH * step
    close = ((x - (x1 + x2) / 2).abs() < reach) & ((y - (y1 + y2) / 2).abs() < reach)
    small = torch.minimum(x2 - x1, y2 - y1) < 2 * reach
    return inside | (small & close), inside


def _overlap(boxes: Tensor, truth: Tensor) -> Tensor:
    """B×M×A: the IoU of every object with every cell's box."""
    x1, y1, x2, y2 = truth[..., None].unbind(2)
    left, top, right, bottom = boxes[:, None].unbind(3)
    across = (torch.minimum(x2, right) - torch.maximum(x1, left)).clamp_(min=0)
    down = (torch.minimum(y2, bottom) - torch.maximum(y1, top)).clamp_(min=0)
    shared = across.mul_(down)
    return shared / (area(truth)[..., None] + area(boxes)[:, None] - shared).clamp_(min=1e-6)
