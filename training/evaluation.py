"""Scores on held-out scenes during training: plain AP at one overlap, and mIoU.

They are for training curves only and need only PyTorch. Published scores come from the exported networks,
by `stormproof run` and `stormproof score`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.augment import VOID, Batch, as_batch
from training.boxes import iou
from training.decoding import Found, found
from training.networks import OBJECTS, SEMANTIC
from training.scenes import Scenes

LEAST = 0.02  # predictions with lower scores are ignored
BATCH = 20
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Matched:
    """One image: every prediction's score, class and overlap with every true object."""

    scores: Array
    labels: Array
    overlaps: Array  # predictions × objects
    truth: Array  # classes of the objects
    counts: npt.NDArray[np.bool_]  # objects that count


@torch.no_grad()
def evaluate(network: nn.Module, kind: str, scenes: Scenes, limit: int) -> dict[str, float]:
    """Scores of a network on the first scenes of a pool."""
    network.eval()
    boxes: list[Matched] = []
    masks: list[Matched] = []
    confusion = np.zeros((SEMANTIC, SEMANTIC))
    for start in range(0, min(limit, scenes.count), BATCH):
        rows = torch.arange(start, min(start + BATCH, limit, scenes.count), device=scenes.device)
        batch = as_batch(scenes.take(rows))
        size = (batch.images.shape[2], batch.images.shape[3])
        images = batch.images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(scenes.device.type, torch.bfloat16, enabled=scenes.device.type == "cuda"):
            outputs = network(images)
        if kind == "semantic":
            confusion += _confusion(outputs["logits"].float(), batch)
            continue
        for i, one in enumerate(found(kind, outputs, size)):
            real = batch.valid[i] != 0
            boxes.append(_match(one, iou(one.boxes[:, None], batch.boxes[i][None, real]), batch, i))
            if one.masks is not None:
                masks.append(_match(one, _mask_overlaps(one.masks, batch, i), batch, i))
    if kind == "semantic":
        return {"mIoU": mean_iou(confusion)}
    scores = {"AP50": average_precision(boxes, 0.5), "AP75": average_precision(boxes, 0.75)}
    return scores | ({"mask AP50": average_precision(masks, 0.5)} if masks else {})


def _match(one: Found, overlaps: Tensor, batch: Batch, i: int) -> Matched:
    real = batch.valid[i] != 0
    arrays = [one.scores, one.labels, overlaps, batch.labels[i][real]]
    scores, labels, table, truth = (a.float().cpu().numpy().astype(np.float64) for a in arrays)
    return Matched(scores, labels, table, truth, (batch.valid[i][real] > 0).cpu().numpy())


def _mask_overlaps(masks: Tensor, batch: Batch, i: int) -> Tensor:
    assert batch.instance is not None
    step = batch.images.shape[2] // masks.shape[1]
    seen = batch.instance[i, step // 2 :: step, step // 2 :: step]
    numbers = torch.nonzero(batch.valid[i] != 0)[:, 0] + 1
    truth = (seen[None] == numbers[:, None, None]).flatten(1).float()
    predicted = masks.flatten(1).float()
    shared = predicted @ truth.T
    return shared / (predicted.sum(1)[:, None] + truth.sum(1)[None] - shared).clamp(min=1)


def average_precision(images: Sequence[Matched], threshold: float) -> float:
    """The mean over classes of the area under precision over recall, at 101 recalls."""
    values = []
    for label in range(OBJECTS):
        total = sum(int((one.counts & (one.truth == label)).sum()) for one in images)
        if total:
            values.append(_one_class(images, label, threshold, total))
    return float(np.mean(values)) if values else 0.0


def _one_class(images: Sequence[Matched], label: int, threshold: float, total: int) -> float:
    scores: list[float] = []
    hits: list[bool] = []
    for one in images:
        mine = np.flatnonzero((one.labels == label) & (one.scores > LEAST))
        theirs = np.flatnonzero(one.truth == label)
        free = np.ones(len(theirs), bool)
        for row in mine:  # best first
            overlaps = np.where(free, one.overlaps[row, theirs], 0)
            counted = np.where(one.counts[theirs], overlaps, 0)
            best = int(counted.argmax()) if len(theirs) else -1
            if best >= 0 and counted[best] >= threshold:
                free[best] = False
            elif len(theirs) and overlaps.max() >= threshold:
                continue  # on an object that neither counts nor is penalised
            else:
                best = -1
            scores.append(float(one.scores[row]))
            hits.append(best >= 0)
    order = np.argsort(-np.asarray(scores), kind="stable")
    hit = np.asarray(hits, np.float64)[order].cumsum()
    if not len(hit):
        return 0.0
    recall, precision = hit / total, hit / np.arange(1, len(hit) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, np.linspace(0, 1, 101))
    return float(np.append(precision, 0.0)[at].mean())


def _confusion(logits: Tensor, batch: Batch) -> Array:
    assert batch.semantic is not None
    size = list(batch.semantic.shape[1:])
    labels = functional.interpolate(logits, size=size, mode="bilinear", align_corners=False).argmax(1)
    real = batch.semantic != VOID
    pairs = batch.semantic[real] * SEMANTIC + labels[real]
    table = torch.bincount(pairs, minlength=SEMANTIC**2).reshape(SEMANTIC, SEMANTIC)
    return table.cpu().numpy().astype(np.float64)


def mean_iou(confusion: Array) -> float:
    """mIoU from a confusion matrix whose rows are the truth."""
    union = confusion.sum(0) + confusion.sum(1) - confusion.diagonal()
    return float((confusion.diagonal()[union > 0] / union[union > 0]).mean())
