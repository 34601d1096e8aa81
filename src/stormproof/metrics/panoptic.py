"""Panoptic quality: segments of one class that share more than half of their union are one another's match.

PQ = SQ × RQ of each class, then the mean over classes (Kirillov et al. 2019, *Panoptic Segmentation*). The
rules for pixels without truth and for crowds are those of panopticapi:

- pixels without truth do not count in the union of a match;
- a crowd matches nothing and is not missed;
- an unmatched segment is not an error if more than half of it is without truth or on crowds of its class.

A class of stuff has one segment in an image: several that are predicted count as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidTruth
from stormproof.core.sample import SEGMENTS, Bools, Floats, Ints, Truth, panoptic_map
from stormproof.metrics.metric import (
    Measure,
    Scored,
    Weights,
    mean_of_known,
    metric,
    ratio,
    weighted_sums,
)

if TYPE_CHECKING:
    from stormproof.metrics.cells import Segments

Overlaps = tuple[Ints, Ints, Ints]  # true segment, predicted segment, pixels
_KEY = 1 << 31  # more than any number of a segment


def overlaps(truth: Truth, predicted: npt.NDArray[np.int32], *, name: str = "image") -> Overlaps:
    """The pixels that each true and each predicted segment of an image share, one entry for each pair.

    Segments have the numbers that `panoptic_map` gives, 0 where there is none; those of crowds are negative.
    """
    assert truth.panoptic is not None
    assert truth.semantic is not None
    planes = [np.ravel(plane) for plane in (truth.panoptic, truth.semantic.labels, predicted)]
    turns = np.any([plane[1:] != plane[:-1] for plane in planes], axis=0)
    starts = np.concatenate(([0], np.flatnonzero(turns) + 1))
    pixels = np.diff(starts, append=planes[0].size)
    ids, labels, found = (plane[starts].astype(np.int64) for plane in planes)
    ids[labels == truth.semantic.ignore] = 0
    true = _numbered(ids, labels, truth.crowds, name)
    pairs, places = np.unique((true + _KEY) * _KEY + found, return_inverse=True)
    shared = np.bincount(places, pixels, len(pairs)).astype(np.int64)
    return pairs // _KEY - _KEY, pairs % _KEY, shared


def _numbered(ids: Ints, labels: Ints, crowds: tuple[int, ...], name: str) -> Ints:
    """The segments' own ids as numbers that hold their classes, negative for crowds."""
    known, first, places = np.unique(ids, return_index=True, return_inverse=True)
    mixed = (labels != labels[first][places]) & (ids != 0)
    if mixed.any():
        bad = int(ids[mixed][0])
        several = sorted({*labels[ids == bad].tolist()})
        raise InvalidTruth(f"{name}: segment {bad} of the truth has pixels of the classes {several}.")
    classes = {int(k): int(c) for k, c in zip(known, labels[first], strict=True) if k != 0}
    numbers = panoptic_map(known, classes).astype(np.int64)
    numbers[np.isin(known, crowds)] *= -1
    return numbers[places]


def match_segments(
    image: Ints, found: Overlaps, *, labels: Ints, things: Bools, images: int
) -> npt.NDArray[np.float64]:
    """What PQ is made of, from the overlaps of many images: images × (sum of IoU, TP, FP, FN) × classes.

    `image` is the image of each entry. `labels` are the dataset's class of each class that the model
    predicts, −1 where it has none: such segments count as not predicted. `things` says of each of the
    dataset's classes whether it has objects to count.
    """
    true, predicted, pixels = found
    true_class = np.where(true == 0, -1, np.abs(true) // SEGMENTS - 1)
    known = np.append(labels, -1)  # the last is for 0, which is not a segment
    said_class = known[np.where(predicted == 0, -1, predicted // SEGMENTS - 1)]
    stuff = np.append(~things, False)
    true = np.where(stuff[true_class], np.sign(true) * (true_class + 1), true)  # a crowd stays one
    said = np.where(stuff[said_class], said_class + 1, np.where(said_class < 0, 0, predicted))
    truth, t = _segments(image, true, true_class)
    claim, p = _segments(image, said, said_class)
    area, size = (np.bincount(at, pixels, len(held[0])) for at, held in ((t, truth), (p, claim)))
    crowd = truth[1] < 0
    void = np.bincount(p, np.where(truth[1][t] == 0, pixels, 0), len(size))
    excused = crowd[t] & (true_class == said_class)
    on_crowd = np.bincount(p, np.where(excused, pixels, 0), len(size))

    pairs, at = np.unique(t.astype(np.int64) * len(size) + p, return_inverse=True)
    t, p = np.divmod(pairs, len(size))
    shared = np.bincount(at, pixels, len(pairs))
    iou = shared / np.maximum(area[t] + size[p] - shared - void[p], 1)
    match = (truth[2][t] == claim[2][p]) & (truth[1][t] > 0) & (claim[1][p] != 0) & (iou > 0.5)
    missed, wrong = truth[1] > 0, (claim[1] != 0) & (void + on_crowd <= 0.5 * size)
    missed[t[match]], wrong[p[match]] = False, False

    table = np.zeros((4, images * len(things)))
    hit = truth[0][t[match]] * len(things) + truth[2][t[match]]
    np.add.at(table[0], hit, iou[match])
    np.add.at(table[1], hit, 1)
    np.add.at(table[2], claim[0][wrong] * len(things) + claim[2][wrong], 1)
    np.add.at(table[3], truth[0][missed] * len(things) + truth[2][missed], 1)
    return table.reshape(4, images, len(things)).transpose(1, 0, 2).copy()


def _segments(image: Ints, number: Ints, label: Ints) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    """Every segment once, as image, number and class; and the place of each entry's segment among them."""
    _, first, places = np.unique(image * 2 * _KEY + number + _KEY, return_index=True, return_inverse=True)
    return (image[first], number[first], label[first]), places


def quality(sums: npt.NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """PQ, SQ and RQ from (sum of IoU, TP, FP, FN) along the first axis; NaN where nothing was to be found or
    found. SQ is 0 where nothing matched, as in panopticapi.

    >>> [float(part) for part in quality(np.array([1.5, 2, 1, 1]))]
    [0.5, 0.75, 0.6666666666666666]
    """
    iou, tp, fp, fn = sums
    seen = tp + (fp + fn) / 2
    sq = np.where(seen > 0, np.nan_to_num(ratio(iou, tp)), np.nan)
    return ratio(iou, seen), sq, ratio(tp, seen)


_WORDS = {"PQ": "panoptic quality", "SQ": "mean IoU of matched segments", "RQ": "F1 of segments"}
_OVER = {"": "", " things": ", classes of things", " stuff": ", classes of stuff"}


@metric(
    "segments",
    *(Measure(f"{name}{over}", f"{_WORDS[name]}{words}", section="panoptic")
      for over, words in _OVER.items() for name in _WORDS),
)  # fmt: skip
def _panoptic(segments: Segments, weights: Weights) -> Scored:
    """Means are over the classes that occur in the truth or are predicted."""
    images, _, classes = segments.table.shape
    sums = weighted_sums(weights, segments.table.reshape(images, -1)).reshape(len(weights), 4, classes)
    parts = dict(zip(_WORDS, quality(sums.transpose(1, 0, 2)), strict=True))
    kept = np.zeros(classes, np.bool_)
    kept[list(segments.kept)] = True
    chosen = {"": kept, " things": kept & segments.things, " stuff": kept & ~segments.things}
    by_class = {
        f"{name}{over}": values[:, which] for over, which in chosen.items() for name, values in parts.items()
    }
    numbers = {name: mean_of_known(values) for name, values in by_class.items()}
    return Scored(numbers, {"PQ": by_class["PQ"]}, by_class)


def image_errors(segments: Segments) -> Floats:
    """1 − PQ of each image over the classes that it shows or that are predicted in it."""
    pq, _, _ = quality(segments.table.transpose(1, 0, 2))
    errors: Floats = 1 - mean_of_known(pq[:, list(segments.kept)])
    return errors
