"""Boxes that need no suppression, a batch at a time: DETR's queries and torchvision's lists.

The device leaves out candidates that cannot be among the best, so that few numbers are copied. Scores and
boxes are computed by the host's own functions, so they are the same bits. What is unusual is left to
`to_prediction`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from stormproof.core.prediction_batch import JoinedBoxes
from stormproof.models.candidates import CONSIDERED, has_area
from stormproof.models.card import Card
from stormproof.models.decoding import corners_of_centred, in_pixels, sigmoid
from stormproof.models.geometry import Fit

_SPARE = 2  # how many times as many candidates are fetched as boxes are kept: some have no area


class _Lists(NamedTuple):
    """Candidates of N images in the host's order; those that are not `there` fill up rows."""

    boxes: npt.NDArray[Any]  # N×M×4, in input pixels
    scores: npt.NDArray[Any]
    labels: npt.NDArray[np.int64]
    there: npt.NDArray[np.bool_]
    left_out: npt.NDArray[Any]  # N: no candidate that was left out has a higher score; −1 if none was


def decode_lists(
    outputs: Sequence[Any], fits: Sequence[Fit], card: Card, background: Sequence[int]
) -> JoinedBoxes | None:
    """The boxes of a batch, in image pixels; None if the host must decode each image by itself."""
    limits, fetch = card.limits, _FETCH.get(card.decoder)
    if fetch is None or card.options or limits.iou is not None or limits.keep > CONSIDERED:
        return None
    found = fetch(outputs, fits[0].canvas, _SPARE * limits.keep)
    if found is None or not np.isfinite(found.boxes).all():
        return None
    if not ((found.scores >= 0) & (found.scores <= 1)).all():
        return None
    scores, labels = np.clip(found.scores.astype(np.float64), 0, 1), found.labels + card.label_offset
    real = found.there & (scores >= limits.score) & has_area(found.boxes) & (labels >= 0)
    real &= ~np.isin(labels, background)
    certain = (real & (scores > found.left_out[:, None])).sum(1) >= limits.keep
    if not (certain | (found.left_out < limits.score)).all():
        return None
    order = np.argsort(np.where(real, -scores, np.inf), axis=1, kind="stable")[:, : limits.keep]
    boxes = np.take_along_axis(found.boxes, order[..., None], 1).astype(np.float64)
    scores, labels, real = (np.take_along_axis(each, order, 1) for each in (scores, labels, real))
    return join_in_images(boxes, scores, labels, real, fits)


def join_in_images(
    boxes: npt.NDArray[np.float64], scores: npt.NDArray[np.float64], labels: npt.NDArray[np.int64],
    real: npt.NDArray[np.bool_], fits: Sequence[Fit],
) -> JoinedBoxes:  # fmt: skip
    """The `real` ones of N×M boxes in input pixels, converted as `Fit.boxes_to_image` does."""
    shift, scale, limit = np.stack([fit.sides for fit in fits], axis=1)[:, :, None]
    boxes = np.clip((boxes - shift) / scale, 0, limit)
    seen = real & has_area(boxes)
    corners = boxes[seen]
    sides = corners[:, 2:] - corners[:, :2]
    return JoinedBoxes(seen.sum(1), corners, scores[seen], labels[seen], sides)


def _queries(outputs: Sequence[Any], size: tuple[int, int], count: int) -> _Lists | None:
    """The best of queries × classes, by their logits."""
    if len(outputs) != 2 or not all(isinstance(one, torch.Tensor) for one in outputs):
        return None
    if any(one.ndim != 3 or one.dtype != torch.float32 for one in outputs):
        return None
    logits, boxes = outputs
    if boxes.shape != (*logits.shape[:2], 4) or not logits.numel():
        return None
    classes, flat = logits.shape[2], logits.flatten(1)
    places = flat.topk(min(count, flat.shape[1])).indices.sort(1).values
    rows = boxes.gather(1, (places // classes)[..., None].expand(-1, -1, 4)).double()
    best = flat.gather(1, places).double()[..., None]
    usual = logits.isfinite().all() & boxes.isfinite().all()
    table = torch.cat([torch.where(usual, rows, torch.nan), best, places.double()[..., None]], -1)
    held = table.cpu().numpy()
    corners = in_pixels(corners_of_centred(held[..., :4].astype(np.float32)), size)
    scores, at = sigmoid(held[..., 4].astype(np.float32)), held[..., 5].astype(np.int64)
    left_out = scores.min(1) if at.shape[1] < flat.shape[1] else np.full(len(at), -1.0)
    return _Lists(corners, scores, at % classes, np.ones(at.shape, np.bool_), left_out)


def _detections(outputs: Sequence[Any], size: tuple[int, int], count: int) -> _Lists | None:
    """Detections as a list of tensors for each image; all of them."""
    if len(outputs) != 3 or not all(isinstance(one, list) for one in outputs):  # with masks
        return None
    boxes, labels, scores = outputs
    counts = np.array([len(own) for own in scores])
    if [len(own) for own in labels] != counts.tolist() or any(
        own.shape != (n, 4) for own, n in zip(boxes, counts.tolist(), strict=True)
    ):
        return None
    columns = torch.cat(boxes).double(), *(torch.cat(each).double()[:, None] for each in (labels, scores))
    there = np.arange(counts.max(initial=1)) < counts[:, None]
    table = np.zeros((*there.shape, 6))
    table[there] = torch.cat(columns, 1).cpu().numpy()
    return _Lists(
        table[..., :4], table[..., 5], table[..., 4].astype(np.int64), there, np.full(len(counts), -1.0)
    )


_FETCH: dict[str, Callable[[Sequence[Any], tuple[int, int], int], _Lists | None]] = {
    "rtdetr": _queries,
    "torchvision": _detections,
}
