"""The losses of each kind of network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from training.assignment import Assigned, assign
from training.augment import VOID, Batch
from training.boxes import cells, constant, from_edges, from_rows, giou, inside
from training.networks import OBJECTS, STRIDES

Outputs = dict[str, Tensor]
Terms = dict[str, Tensor]
MASKED = 24  # cells per image whose masks are penalised
# Rare classes weigh a little more: (share of pixels) ^ -1/4, of the semantic classes of the world.
SEMANTIC_WEIGHTS = (1.3, 2.2, 1.6, 3.3, 3.3, 1.7, 1.6, 3.1, 1.9, 2.3, 2.1, 4.5)


def grid(outputs: Outputs, batch: Batch) -> Terms:
    """Objectness (quality focal loss), class of the cells with an object, and GIoU."""
    rows = outputs["rows"].float()
    places, steps = cells((batch.images.shape[2], batch.images.shape[3]), rows.device)
    boxes = from_rows(rows, places, steps)
    objectness, classes = rows[..., 4], rows[..., 5 : 5 + OBJECTS]
    scores = objectness.sigmoid()[..., None] * classes.sigmoid()
    found = assign(boxes.detach(), scores.detach(), places, steps, batch.boxes, batch.labels, batch.valid)
    target = torch.where(found.positive, found.quality, 0)
    total = target.sum().clamp(min=1)
    focus = (target - objectness.sigmoid()).abs().detach() ** 2
    miss = functional.binary_cross_entropy_with_logits(objectness, target, reduction="none")
    truth = batch.boxes.gather(1, found.which[..., None].expand(-1, -1, 4))
    classes_there = torch.arange(OBJECTS, device=rows.device)
    labels = (batch.labels.gather(1, found.which)[..., None] == classes_there).float()
    wrong = functional.binary_cross_entropy_with_logits(classes, labels, reduction="none").sum(-1)
    terms = {
        "objectness": 2 * (focus * miss * ~found.unsure).sum() / total,
        "class": (wrong * target).sum() / total,
        "box": 2 * ((1 - giou(boxes, truth)) * target).sum() / total,
    }
    if "prototypes" in outputs:
        terms["mask"] = _masks(rows[..., 5 + OBJECTS :], outputs["prototypes"], found, truth, batch)
    return terms


def _masks(mix: Tensor, prototypes: Tensor, found: Assigned, truth: Tensor, batch: Batch) -> Tensor:
    """Cross entropy inside the object's box, and dice, for some of the cells that have an object."""
    assert batch.instance is not None
    chance = torch.where(found.positive, torch.rand_like(found.quality), -1.0)
    drawn, picked = chance.topk(MASKED, 1)
    real = (drawn >= 0).float()
    height, width = prototypes.shape[2:]
    mixed = mix.gather(1, picked[..., None].expand(-1, -1, mix.shape[2]))
    planes = torch.einsum("bnk,bkhw->bnhw", mixed, prototypes.float())
    step = batch.images.shape[2] // height
    # Instead of the mean over the pixels of a prototype's cell, one random pixel: right on average.
    down, across = torch.randint(step, (2,)).tolist()
    seen = batch.instance[:, down::step, across::step]
    number = found.which.gather(1, picked) + 1
    target = (seen[:, None] == number[..., None, None]).float()
    box = truth.gather(1, picked[..., None].expand(-1, -1, 4)) / step
    within = inside(box, height, width).float()
    wrong = functional.binary_cross_entropy_with_logits(planes, target, reduction="none") * within
    size = within.sum((2, 3)).clamp(min=1)
    chance_map = planes.sigmoid() * within
    target = target * within
    both = (chance_map * target).sum((2, 3))
    dice = 1 - (2 * both + 1) / ((chance_map**2).sum((2, 3)) + target.sum((2, 3)) + 1)
    each = wrong.sum((2, 3)) / size + dice
    return 2 * (each * real).sum() / real.sum().clamp(min=1)


def centre(outputs: Outputs, batch: Batch) -> Terms:
    """The penalty-reduced focal loss of CornerNet on the heat map, and GIoU where an object is near."""
    heat, edges = outputs["heat"].float(), outputs["edges"].float()
    height, width = heat.shape[2:]
    stride = STRIDES[0]
    bumps = _bumps(batch, height, width, stride)  # B×M×h×w
    counts = (batch.valid > 0)[..., None, None]
    bumps = torch.where(counts, bumps, 0)
    target = torch.stack(
        [torch.where((batch.labels == c)[..., None, None], bumps, 0).amax(1) for c in range(OBJECTS)], 1
    )
    chance = heat.sigmoid()
    found, missed = functional.logsigmoid(heat), functional.logsigmoid(-heat)
    penalised = torch.where(target >= 1, -found * (1 - chance) ** 2, -missed * chance**2 * (1 - target) ** 4)
    objects = counts.sum().clamp(min=1)
    nearness, which = bumps.flatten(2).max(1)
    weight = torch.where(nearness > 0.6, nearness, 0)
    truth = batch.boxes.gather(1, which[..., None].expand(-1, -1, 4))
    places, _ = cells((height * stride, width * stride), heat.device, (stride,))
    boxes = from_edges(edges.flatten(2).transpose(1, 2), places, stride)
    return {
        "heat": penalised.sum() / objects,
        "box": 2 * ((1 - giou(boxes, truth)) * weight).sum() / weight.sum().clamp(min=1),
    }


def _bumps(batch: Batch, height: int, width: int, stride: int) -> Tensor:
    """A Gaussian for every object, 1 at the cell that holds its centre, 0.12 of its sides wide."""
    middle = (batch.boxes[..., :2] + batch.boxes[..., 2:]) / 2 / stride
    middle = torch.stack(
        [middle[..., 0].clamp(0, width - 1), middle[..., 1].clamp(0, height - 1)], -1
    ).floor()
    sigma = (0.12 * (batch.boxes[..., 2:] - batch.boxes[..., :2])).clamp(min=2.0) / stride
    x = torch.arange(width, device=middle.device)
    y = torch.arange(height, device=middle.device)
    across = (-((x - middle[..., 0:1]) ** 2) / (2 * sigma[..., 0:1] ** 2)).exp()
    down = (-((y - middle[..., 1:2]) ** 2) / (2 * sigma[..., 1:2] ** 2)).exp()
    return down[..., :, None] * across[..., None, :]


def semantic(outputs: Outputs, batch: Batch) -> Terms:
    """Cross entropy of every pixel; scores are enlarged as in evaluation."""
    assert batch.semantic is not None
    size = list(batch.semantic.shape[1:])
    scores = functional.interpolate(
        outputs["logits"].float(), size=size, mode="bilinear", align_corners=False
    )
    weights = constant(SEMANTIC_WEIGHTS, scores.device)
    return {"pixels": functional.cross_entropy(scores, batch.semantic, weights, ignore_index=VOID)}


LOSSES: dict[str, Callable[[Outputs, Batch], Terms]] = {
    "grid": grid,
    "masks": grid,
    "centre": centre,
    "semantic": semantic,
}
# The truth that each network needs besides objects.
TRUTHS: dict[str, tuple[str, ...]] = {
    "grid": (),
    "masks": ("instance",),
    "centre": (),
    "semantic": ("semantic",),
}
