"""From a decoder's candidates to a prediction: threshold, suppress, map back to the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stormproof.core.boxes import shared, union
from stormproof.core.errors import CardChange, ModelError
from stormproof.core.forms import Array
from stormproof.core.kernels import kernel
from stormproof.core.object_arrays import STRIDE
from stormproof.core.oriented import oriented_overlap
from stormproof.core.sample import RLE, Bools, Ints, Prediction
from stormproof.models.geometry import Fit

# Suppression takes quadratic time, and the surviving boxes are among the best 3000 candidates.
CONSIDERED = 3000
_NO_LOGIT = 60.0  # e⁶⁰ to one: no network is that certain


@dataclass(frozen=True, eq=False)
class Candidates:
    """Boxes in input pixels, before thresholds.

    `scores` are n×classes without `labels`, or one per box with `labels`. Masks cover the whole input, either
    as n `masks` of probabilities or as `coefficients` (n×k) of k `prototypes` of logits. `data` holds further
    arrays of the boxes by name (`core.forms`), whose last axis begins with x and y. Boxes with `polygons`
    (n×4×2) are suppressed by the overlap of these.
    """

    boxes: Array
    scores: Array
    labels: Array | None = None
    masks: Array | None = None
    coefficients: Array | None = None
    prototypes: Array | None = None
    polygons: Array | None = None
    data: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """The lowest score kept; the most boxes per image; the IoU above which the weaker of two boxes of a class
    is suppressed, or None if the network suppresses boxes itself."""

    score: float = 0.01
    keep: int = 100
    iou: float | None = None


def to_prediction(
    found: Candidates, fit: Fit, limits: Limits, *, offset: int = 0, background: Sequence[int] = ()
) -> Prediction:
    """The best candidates, in image pixels.

    `offset` is added to labels; labels below 0 and those of `background` are dropped before the best are
    taken, since they would crowd out objects. Boxes are suppressed as the network outputs them and cut at
    the image's border afterwards, as in the networks' own code.
    """
    rows, labels, scores = _above(found, limits.score)
    labels = labels + offset
    real = has_area(found.boxes[rows]) & (labels >= 0) & ~np.isin(labels, background)
    rows, labels, scores = rows[real], labels[real], scores[real]
    best = _best(scores)
    rows, labels, scores = rows[best], labels[best], scores[best]
    if limits.iou is None:
        stay = np.arange(min(len(rows), limits.keep))
    else:
        shapes = None if found.polygons is None else found.polygons[rows]
        stay = nms(found.boxes[rows], scores, labels, iou=limits.iou, keep=limits.keep, polygons=shapes)
    boxes = fit.boxes_to_image(found.boxes[rows[stay]])
    seen = has_area(boxes)
    stay, boxes = stay[seen], boxes[seen]
    data = {name: fit.points_to_image(values[rows[stay]]) for name, values in found.data.items()}
    return Prediction(boxes, scores[stay], labels[stay], _masks(found, rows[stay], fit, boxes), data=data)


def option_missing(problem: str, **options: Any) -> CardChange:
    """The error of a decoder that needs other options, and where to set them."""
    given = "".join(f",options.{key}={str(value).lower()}" for key, value in options.items())
    inside = ", ".join(f"{key}: {str(value).lower()}" for key, value in options.items())
    return CardChange(
        f"{problem}; add {given} to the model, or set options: {{{inside}}} in its card.",
        {"options": options},
    )


def has_area(boxes: Any) -> Any:
    """Which boxes, arrays or tensors … × 4, are not empty."""
    return (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])


def _best(scores: Array) -> Ints:
    """Positions of the best few thousand scores, best first; equal scores keep their order."""
    among = np.arange(len(scores))
    if len(scores) > CONSIDERED:
        among = np.flatnonzero(scores >= np.partition(scores, -CONSIDERED)[-CONSIDERED])
    return among[np.argsort(-scores[among], kind="stable")][:CONSIDERED]


def _above(found: Candidates, least: float) -> tuple[Ints, Ints, Array]:
    """Rows, labels and scores of every (box, class) whose score is at least `least`."""
    scores = np.asarray(found.scores, np.float64)
    _require_finite(scores, found.boxes)
    if scores.size and (scores.max() > 1.001 or scores.min() < -0.001):
        said = f"Scores range from {scores.min():.3g} to {scores.max():.3g}, not 0 to 1"
        if scores.max() > _NO_LOGIT:
            raise ModelError(f"{said}; these are coordinates, not scores: another decoder's output.")
        raise option_missing(f"{said}: they are logits, or another decoder's", logits=True)
    scores = np.clip(scores, 0, 1)
    if found.labels is not None:
        rows = np.flatnonzero(scores >= least)
        return rows, found.labels[rows].astype(np.int64), scores[rows]
    rows, labels = np.nonzero(scores >= least)
    return rows, labels, scores[rows, labels]


def _require_finite(*outputs: Array, what: str = "output is") -> None:
    if not all(np.isfinite(output).all() for output in outputs):
        raise ModelError(f"The network's {what} NaN or infinite; check the input's mean and std in its card.")


def nms(
    boxes: Array, scores: Array, labels: Array, *, iou: float, keep: int, polygons: Array | None = None
) -> Ints:
    """Greedy suppression within each class: the surviving rows, at most `keep`, best first. With `polygons`
    (n×4×2), the overlap is theirs.

    >>> boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10]], float)
    >>> nms(boxes, np.array([0.9, 0.8, 0.7]), np.array([0, 0, 1]), iou=0.5, keep=100).tolist()
    [0, 2]
    """
    order = np.argsort(-scores, kind="stable")
    shapes = np.zeros((0, 4, 2)) if polygons is None else polygons[order].astype(np.float64)
    stay = _suppress(boxes[order].astype(np.float64), shapes, labels[order].astype(np.int64), iou, keep)
    kept: Ints = order[stay]
    return kept


@kernel
def _suppress(boxes: Any, polygons: Any, labels: Any, iou: float, keep: int) -> Any:
    # A box is compared only with survivors, until there are enough: thousands of candidates take less than a
    # millisecond.
    stay = np.empty(keep, np.int64)
    count = 0
    for i in range(len(boxes)):
        good = True
        for k in range(count):
            j = stay[k]
            if labels[j] != labels[i]:
                continue
            common = shared(boxes[i], boxes[j])
            if common > 0 and (
                common > iou * union(boxes[i], boxes[j])
                if not len(polygons)
                else oriented_overlap(polygons[i], polygons[j]) > iou
            ):
                good = False
                break
        if good:
            stay[count] = i
            count += 1
            if count == keep:
                break
    return stay[:count]


def _masks(found: Candidates, rows: Ints, fit: Fit, boxes: Array) -> tuple[RLE, ...] | None:
    if found.coefficients is not None and found.prototypes is not None:
        count, height, width = found.prototypes.shape
        flat = found.coefficients[rows] @ found.prototypes.reshape(count, -1)
        planes, threshold, crop = flat.reshape(-1, height, width), 0.0, True
    elif found.masks is not None:
        planes, threshold, crop = found.masks[rows], 0.5, False
    else:
        return None
    _require_finite(planes, what="masks are")
    masks = [fit.plane_to_image(np.asarray(plane, np.float32)) > threshold for plane in planes]
    if crop:  # all objects share the prototypes, which therefore extend beyond the box
        masks = [mask & _inside(mask, box) for mask, box in zip(masks, boxes, strict=True)]
    return tuple(RLE.from_mask(mask) for mask in masks)


def _inside(mask: Bools, box: Array) -> Bools:
    x, y = np.arange(mask.shape[1]) + 0.5, np.arange(mask.shape[0]) + 0.5
    across: Bools = (x >= box[0]) & (x <= box[2])
    down: Bools = (y >= box[1]) & (y <= box[3])
    return down[:, None] & across[None, :]


def to_semantic(plane: Array, fit: Fit) -> Prediction:
    """A semantic prediction from an h×w map of classes or c×h×w scores over the whole input."""
    if plane.ndim == 2:
        wide = np.uint8 if plane.max(initial=0) < 256 else np.uint16
        return Prediction(semantic=fit.plane_to_image(plane.astype(wide), "nearest"))
    _require_finite(plane)
    if len(plane) == 1:  # one channel: foreground against background
        return Prediction(semantic=(fit.plane_to_image(plane[0].astype(np.float32)) > 0).astype(np.uint8))
    labels, confidence = _arg_max(plane, fit)
    return Prediction(semantic=labels, confidence=confidence)


def _arg_max(scores: Array, fit: Fit) -> tuple[Array, Array]:
    """The best class of each image pixel, and its probability where confidence is kept.

    Planes are resized one at a time, which keeps memory low. Scores that are not probabilities already are
    taken for logits.
    """
    best = fit.plane_to_image(scores[0].astype(np.float32))
    labels = np.zeros(fit.image, np.uint8 if len(scores) <= 256 else np.uint16)
    total = np.ones_like(best[::STRIDE, ::STRIDE])  # Σ exp(score − best)
    for label, plane in enumerate(scores[1:], start=1):
        resized = fit.plane_to_image(plane.astype(np.float32))
        ahead = resized[::STRIDE, ::STRIDE] - best[::STRIDE, ::STRIDE]
        less = np.exp(-np.abs(ahead))
        total = np.where(ahead > 0, total * less + 1, total + less)
        better = resized > best
        labels[better], best[better] = label, resized[better]
    shares = 0 <= scores.min() <= scores.max() <= 1  # of 1, if those of every pixel add up to it
    if shares and np.abs(scores.sum(axis=0, dtype=np.float32) - 1).max() < 0.01:
        return labels, best[::STRIDE, ::STRIDE].clip(0, 1)
    return labels, 1 / total
