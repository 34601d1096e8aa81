"""Decodes network outputs to the objects of each image, on the device, for scores during training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from training.boxes import area, cells, from_edges, from_rows, inside, iou
from training.networks import OBJECTS, STRIDES

KEEP = 100
CONSIDERED = 300
OVERLAP = 0.65


@dataclass(frozen=True, slots=True)
class Found:
    boxes: Tensor  # n×4
    scores: Tensor
    labels: Tensor
    masks: Tensor | None = None  # n×h×w, of half the image's sides


def found(kind: str, outputs: dict[str, Tensor], size: tuple[int, int]) -> list[Found]:
    """The objects of every image, best first."""
    reader = _from_heat if kind == "centre" else _from_grid
    return reader(outputs, size)


def _from_grid(outputs: dict[str, Tensor], size: tuple[int, int]) -> list[Found]:
    rows = outputs["rows"].float()
    boxes = from_rows(rows, *cells(size, rows.device))
    scores = rows[..., 4:5].sigmoid() * rows[..., 5 : 5 + OBJECTS].sigmoid()
    every, index = scores.flatten(1).topk(CONSIDERED, 1)
    places, labels = index // OBJECTS, index % OBJECTS
    kept = remaining(boxes.gather(1, places[..., None].expand(-1, -1, 4)), labels)
    results = []
    for i in range(len(rows)):
        stay = kept[i].nonzero()[:KEEP, 0]
        row, label, best = places[i, stay], labels[i, stay], every[i, stay]
        masks = None
        if "prototypes" in outputs:
            planes = outputs["prototypes"][i].float()
            mixed = torch.einsum("nk,khw->nhw", rows[i, row, 5 + OBJECTS :], planes)
            masks = (mixed > 0) & inside(boxes[i, row] * planes.shape[1] / size[0], *planes.shape[1:])
        results.append(Found(boxes[i, row], best, label, masks))
    return results


def remaining(boxes: Tensor, labels: Tensor) -> Tensor:
    """Greedy non-maximum suppression within each class: which of B×n boxes, best first, remain.

    As a fixed point for the whole batch: a box remains unless an earlier one that remains covers it.
    """
    same = labels[:, :, None] == labels[:, None]
    covers = ((iou(boxes[:, :, None], boxes[:, None]) > OVERLAP) & same).tril(-1)  # later × earlier
    real = area(boxes) > 0
    before, remain = torch.zeros_like(real), real
    while not torch.equal(before, remain):
        before, remain = remain, real & ~(covers & remain[:, None]).any(2)
    return remain


def _from_heat(outputs: dict[str, Tensor], size: tuple[int, int]) -> list[Found]:
    heat, edges = outputs["heat"].float().sigmoid(), outputs["edges"].float()
    peaks = torch.where(heat >= functional.max_pool2d(heat, 3, 1, 1), heat, 0)
    places, _ = cells(size, heat.device, STRIDES[:1])
    boxes = from_edges(edges.flatten(2).transpose(1, 2), places)
    area_of_map = heat.shape[2] * heat.shape[3]
    results = []
    for i in range(len(heat)):
        best, index = peaks[i].flatten().topk(KEEP)
        results.append(Found(boxes[i, index % area_of_map], best, index // area_of_map))
    return results
