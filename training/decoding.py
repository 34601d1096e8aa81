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
    places, steps = cells(size, rows.device)
    boxes = from_rows(rows, places, steps)
    scores = rows[..., 4:5].sigmoid() * rows[..., 5 : 5 + OBJECTS].sigmoid()
    results = []
    for i in range(len(rows)):
        best, index = scores[i].flatten().topk(CONSIDERED)
        row, label = index // OBJECTS, index % OBJECTS
        stay = suppressed(boxes[i, row], label)[:KEEP]
        row, label, best = row[stay], label[stay], best[stay]
        masks = None
        if "prototypes" in outputs:
            planes = outputs["prototypes"][i].float()
            mixed = torch.einsum("nk,khw->nhw", rows[i, row, 5 + OBJECTS :], planes)
            masks = (mixed > 0) & inside(boxes[i, row] * planes.shape[1] / size[0], *planes.shape[1:])
        results.append(Found(boxes[i, row], best, label, masks))
    return results


def suppressed(boxes: Tensor, labels: Tensor) -> list[int]:
    """Greedy non-maximum suppression within each class: positions that stay. Boxes come best first."""
    same = labels[:, None] == labels[None]
    covers = ((iou(boxes[:, None], boxes[None]) > OVERLAP) & same).cpu().numpy()
    real = (area(boxes) > 0).tolist()
    stay: list[int] = []
    for i in range(len(boxes)):
        if real[i] and not covers[i, stay].any():
            stay.append(i)
    return stay


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
