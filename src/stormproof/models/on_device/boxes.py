"""YOLO's tables decoded where they lie: thresholds, suppression and the way back to the image, by batch.

The arithmetic is that of `to_prediction`, operation by operation and in double precision, so boxes, scores
and labels are the same bits. What is unusual is left to the host, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.models.candidates import CONSIDERED, has_area
from stormproof.models.card import Card
from stormproof.models.geometry import Fit
from stormproof.models.on_device.lists import join_in_images

_BLOCK = 512  # candidates that are compared with each other at once


def decode_tables(
    kept: list[Any], fits: Sequence[Fit], card: Card, background: Sequence[int]
) -> JoinedBoxes | None:
    """The boxes of a batch, in image pixels, from a table that `keep_candidates` made; None if the host must
    decode it."""
    if len(kept) > 1:  # masks
        return None
    rows, first = (kept[0], 5) if card.decoder == "yolov5" else (kept[0].transpose(1, 2), 4)
    scores = rows[..., first:] * rows[..., 4:5] if first == 5 else rows[..., first:]
    middle, half = rows[..., :2], rows[..., 2:4].abs() / 2
    boxes = torch.cat([middle - half, middle + half], -1)
    named = torch.arange(scores.shape[2], device=rows.device) + card.label_offset
    usable = (named >= 0) & ~torch.isin(
        named, torch.tensor(background, device=rows.device, dtype=named.dtype)
    )
    passing = (scores.double() >= card.limits.score) & has_area(boxes)[..., None] & usable
    passed = torch.where(passing, scores, -1).flatten(1)
    values, places = _in_order(passed, int(passing.sum((1, 2)).amax()))
    labels = places % len(named) + card.label_offset
    corners = _rows(boxes, places // len(named)).double()
    best = _survivors(corners, labels, values >= 0, card.limits.iou, card.limits.keep)
    filled, best = best >= 0, best.clamp(min=0)
    columns = values.gather(1, best), labels.gather(1, best), filled
    table = torch.cat([_rows(corners, best), *(column.double()[..., None] for column in columns)], -1)
    held = table.cpu().numpy()
    return join_in_images(held[..., :4], held[..., 4], held[..., 5].astype(np.int64), held[..., 6] > 0, fits)


def _rows(boxes: Tensor, places: Tensor) -> Tensor:
    return boxes.gather(1, places[..., None].expand(-1, -1, 4))


def _in_order(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best scores of each image and their places, best first, equal ones as they come; at most `count`
    of an image are not negative."""
    top = scores.topk(min(max(count, 1), CONSIDERED + 1))
    places = top.indices[:, :CONSIDERED].sort(1).values
    if count > CONSIDERED and bool((top.values[:, -2] == top.values[:, -1]).any()):
        # Equal scores straddle the number that is considered: of these, the first ones count.
        last = top.values[:, CONSIDERED - 1 : CONSIDERED]
        above, equal = scores > last, scores == last
        spare = CONSIDERED - above.sum(1, keepdim=True)
        places = (above | (equal & (equal.cumsum(1) <= spare))).nonzero()[:, 1].reshape(len(scores), -1)
    values, order = scores.gather(1, places).sort(dim=1, descending=True, stable=True)
    return values, places.gather(1, order)


def _survivors(boxes: Tensor, labels: Tensor, valid: Tensor, iou: float | None, keep: int) -> Tensor:
    """Greedy suppression within each class: N × `keep` places of the survivors, best first, then −1.

    Candidates are taken in blocks. Those that earlier survivors leave are compared with each other: one stays
    unless one that stays and is better overlaps it, which is repeated until nothing changes.
    """
    count, size = labels.shape
    slots = labels.new_full((count, keep + 1), -1)  # the last takes what is too much
    taken = labels.new_zeros((count, 1))
    for start in range(0, size if iou is not None else min(size, keep), _BLOCK):
        part = slice(start, start + _BLOCK)
        mine, own, alive = boxes[:, part], labels[:, part], valid[:, part]
        if iou is not None:
            known = slots[:, :keep].clamp(min=0)
            over = _overlap(_rows(boxes, known), labels.gather(1, known), mine, own, iou)
            alive = alive & ~(over & (slots[:, :keep] >= 0)[..., None]).any(1)
            among = _overlap(mine, own, mine, own, iou).triu(1).to(torch.float32)
            stay, before = alive, None
            while before is None or not torch.equal(stay, before):
                before, stay = stay, alive & (torch.bmm(stay[:, None].float(), among)[:, 0] == 0)
            alive = stay
        rank = (taken + alive.cumsum(1) - 1).clamp(max=keep)
        at = torch.arange(start, start + alive.shape[1], device=boxes.device).expand(count, -1)
        slots.scatter_(1, torch.where(alive, rank, keep), at)
        taken = taken + alive.sum(1, keepdim=True)
        if bool((taken >= keep).all()):
            break
    return slots[:, :keep]


def _overlap(a: Tensor, a_labels: Tensor, b: Tensor, b_labels: Tensor, iou: float) -> Tensor:
    """N×I×K: whether boxes of one class overlap by more than `iou`."""
    a, b = a[:, :, None], b[:, None]
    sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
    common = sides[..., 0] * sides[..., 1]
    meet = (sides > 0).all(-1) & (common > 0) & (a_labels[:, :, None] == b_labels[:, None])
    return meet & (common > iou * (_area(a) + _area(b) - common))


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def keep_candidates(outputs: list[Any], card: Card) -> list[Any]:
    """Of tables of boxes, those rows that can pass the card's least score: the others need not be copied to
    the host. Tables that the decoder would refuse are left as they are."""
    if card.decoder not in ("yolov5", "yolov8") or outputs[0].ndim != 3 or card.options:
        return outputs
    rows = outputs[0] if card.decoder == "yolov5" else outputs[0].transpose(1, 2)
    last = rows.shape[2] - (outputs[1].shape[1] if len(outputs) > 1 else 0)
    first = 5 if card.decoder == "yolov5" else 4
    if not first < last or not rows.shape[1]:
        return outputs
    scores, sure = rows[..., first:last], rows[..., 4] if first == 5 else rows.new_ones(())
    best = scores.amax(2) * sure
    usual = rows.isfinite().all() & (scores >= 0).all() & (best <= 1).all() & (sure >= 0).all()
    count = int(usual * (best >= card.limits.score).sum(1).amax() + usual.long())
    if count == 0:
        return outputs
    places = best.topk(min(count, rows.shape[1])).indices.sort().values
    kept = rows.gather(1, places[..., None].expand(-1, -1, rows.shape[2]))
    return [kept if card.decoder == "yolov5" else kept.transpose(1, 2), *outputs[1:]]
