"""Panoptic quality: a true and a predicted segment of one class match if their IoU is above 0.5.

PQ = SQ × RQ of each class, then the mean over classes (Kirillov et al. 2019, *Panoptic Segmentation*). The
rules for unlabelled pixels and for crowds are those of panopticapi:

- unlabelled pixels are left out of the union;
- a crowd matches nothing and does not count as missed;
- an unmatched segment is not an error if more than half of it is unlabelled or on crowds of its class.

A class of stuff has one segment per image: several predicted segments are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidPrediction, InvalidTruth
from stormproof.core.forms import Column, Comparison, Form, form, map_of_runs, run_lengths
from stormproof.core.sample import SEGMENTS, Bools, Floats, Ints, Truth, panoptic_map
from stormproof.metrics.metric import (
    Calibrated,
    Measure,
    Scored,
    Weights,
    mean_of_known,
    metric,
    ratio,
    weighted_sums,
)
from stormproof.metrics.optimism import class_optimisms
from stormproof.metrics.task import Task, task

if TYPE_CHECKING:
    from stormproof.metrics.inputs import RunReader, Segments

Overlaps = tuple[Ints, Ints, Ints]  # true segment, predicted segment, pixels
_CALIBRATED: dict[str, Calibrated] = {
    "PQ": ((8, 50), (80, 300)),
    "SQ": ((8, 100),),
    "RQ": ((80, 300),),
    "PQ things": ((8, 50), (80, 100)),
    "SQ things": ((1, 50), (8, 100)),
    "RQ things": ((8, 50), (80, 100)),
    "PQ stuff": ((80, 300),),
    "SQ stuff": ((8, 100),),
    "RQ stuff": ((80, 300),),
}
_POWER = 1.0  # of the number of images, with which the bias falls
_KEY = 1 << 31  # above the number of any segment


def overlaps(truth: Truth, predicted: npt.NDArray[np.int32], *, name: str = "image") -> Overlaps:
    """The number of pixels shared by each pair of a true and a predicted segment of an image.

    Segments are numbered as in `panoptic_map`; 0 means no segment, and the numbers of crowds are negative.
    """
    assert truth.panoptic is not None
    assert truth.semantic is not None
    planes = [np.ravel(plane) for plane in (truth.panoptic, truth.semantic.labels, predicted)]
    changes = np.any([plane[1:] != plane[:-1] for plane in planes], axis=0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    pixels = np.diff(starts, append=planes[0].size)
    ids, labels, guessed = (plane[starts].astype(np.int64) for plane in planes)
    ids[labels == truth.semantic.ignore] = 0
    true = _number_segments(ids, labels, truth.crowds, name)
    pairs, places = np.unique((true + _KEY) * _KEY + guessed, return_inverse=True)
    shared = np.bincount(places, pixels, len(pairs)).astype(np.int64)
    return pairs // _KEY - _KEY, pairs % _KEY, shared


def _number_segments(ids: Ints, labels: Ints, crowds: tuple[int, ...], name: str) -> Ints:
    """The segments' numbers, which encode their classes, from their ids; negative for crowds."""
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
    image: Ints, shared_pixels: Overlaps, *, labels: Ints, things: Bools, images: int
) -> npt.NDArray[np.float64]:
    """The terms of PQ, from the overlaps of many images: images × (sum of IoU, TP, FP, FN) × classes.

    `image` is the image of each overlap. `labels` maps the model's classes to the dataset's, −1 for a class
    that the dataset lacks: its segments count as not predicted. `things` marks the classes with countable
    objects.
    """
    true, predicted, pixels = shared_pixels
    true_class = np.where(true == 0, -1, np.abs(true) // SEGMENTS - 1)
    known = np.append(labels, -1)  # the last entry is for 0, which is not a segment
    predicted_class = known[np.where(predicted == 0, -1, predicted // SEGMENTS - 1)]
    stuff = np.append(~things, False)
    true = np.where(stuff[true_class], np.sign(true) * (true_class + 1), true)  # the sign marks a crowd
    joined = np.where(predicted_class < 0, 0, predicted)
    joined = np.where(stuff[predicted_class], predicted_class + 1, joined)
    truth, t = _segments(image, true, true_class)
    guess, p = _segments(image, joined, predicted_class)
    area, size = np.bincount(t, pixels, len(truth.image)), np.bincount(p, pixels, len(guess.image))
    void = np.bincount(p, np.where(truth.number[t] == 0, pixels, 0), len(size))
    excused = (truth.number[t] < 0) & (true_class == predicted_class)
    on_crowd = np.bincount(p, np.where(excused, pixels, 0), len(size))

    pairs, at = np.unique(t.astype(np.int64) * len(size) + p, return_inverse=True)
    t, p = np.divmod(pairs, len(size))
    shared = np.bincount(at, pixels, len(pairs))
    iou = shared / np.maximum(area[t] + size[p] - shared - void[p], 1)
    match = (truth.label[t] == guess.label[p]) & (truth.number[t] > 0) & (guess.number[p] != 0) & (iou > 0.5)
    missed, wrong = truth.number > 0, (guess.number != 0) & (void + on_crowd <= 0.5 * size)
    missed[t[match]], wrong[p[match]] = False, False

    table = np.zeros((4, images * len(things)))
    hit = truth.image[t[match]] * len(things) + truth.label[t[match]]
    np.add.at(table[0], hit, iou[match])
    np.add.at(table[1], hit, 1)
    np.add.at(table[2], guess.image[wrong] * len(things) + guess.label[wrong], 1)
    np.add.at(table[3], truth.image[missed] * len(things) + truth.label[missed], 1)
    return table.reshape(4, images, len(things)).transpose(1, 0, 2).copy()


class _Segments(NamedTuple):
    image: Ints
    number: Ints
    label: Ints


def _segments(image: Ints, number: Ints, label: Ints) -> tuple[_Segments, Ints]:
    """The distinct segments, and for each entry the index of its segment."""
    _, first, places = np.unique(image * 2 * _KEY + number + _KEY, return_index=True, return_inverse=True)
    return _Segments(image[first], number[first], label[first]), places


def quality(sums: npt.NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """PQ, SQ and RQ from (sum of IoU, TP, FP, FN) along the first axis; NaN without any segment.

    SQ is 0 if no segment matched, as in panopticapi.

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
    calibrated=_CALIBRATED,
)  # fmt: skip
def _panoptic(segments: Segments, weights: Weights) -> Scored:
    """Means are over the classes that occur in the ground truth or are predicted."""
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
    optimism: dict[str, Floats] = {}
    for over, which in chosen.items():
        image, label = np.nonzero(segments.table[:, :, which].any(axis=1))
        measured = {f"{name}{over}": by_class[f"{name}{over}"] for name in parts}
        optimism |= class_optimisms(measured, image, label, weights, _POWER)
    return Scored(numbers, {"PQ": by_class["PQ"]}, by_class, optimism)


def image_errors(segments: Segments) -> Floats:
    """1 − PQ of each image, over the classes that it shows or that are predicted in it."""
    pq, _, _ = quality(segments.table.transpose(1, 0, 2))
    errors: Floats = 1 - mean_of_known(pq[:, list(segments.kept)])
    return errors


def _shows_class(segments: Segments) -> Bools:
    """Images × scored classes: whether the truth shows a segment of the class."""
    true_segments = segments.table[:, 1] + segments.table[:, 3]  # matched and missed
    shown: Bools = true_segments[:, list(segments.kept)] > 0
    return shown


PANOPTIC = ("panoptic_values", "panoptic_runs")
OVERLAP = ("overlap_truth", "overlap_predicted", "overlap_pixels")
NO_CLASS = 65535  # of a pixel that is drawn as none


def check_map(plane: npt.NDArray[np.int32], size: tuple[int, int], classes: int) -> None:
    """Refuse a predicted map that does not fit its image or the classes."""
    if plane.dtype != np.int32 or plane.shape != size:
        raise InvalidPrediction(f"the panoptic map is {plane.dtype} {plane.shape}, not int32 {size}")
    bad = (plane != 0) & (plane < SEGMENTS)
    if bad.any():
        raise InvalidPrediction(f"the panoptic map holds {plane[bad][0]}; make it with panoptic_map")
    top = int(plane.max()) // SEGMENTS - 1
    if classes and top >= classes:
        raise InvalidPrediction(f"the panoptic map holds class {top}, but there are {classes} classes")


def class_map(panoptic: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16]:
    """The class of each pixel of a panoptic map; `NO_CLASS` in no segment and along edges of segments."""
    labels = np.where(panoptic == 0, NO_CLASS, panoptic // SEGMENTS - 1).astype(np.uint16)
    labels[:, 1:][panoptic[:, 1:] != panoptic[:, :-1]] = NO_CLASS
    labels[1:][panoptic[1:] != panoptic[:-1]] = NO_CLASS
    return labels


def _derive(cell: Comparison) -> dict[str, Any]:
    """The pixels that true and predicted segments share; nothing if the truth names no classes."""
    predicted = cell.prediction.panoptic
    assert predicted is not None
    if cell.truth.semantic is None:
        return {}
    return dict(zip(OVERLAP, overlaps(cell.truth, predicted, name=cell.name), strict=True))


def _collect(reader: RunReader) -> Iterator[tuple[str, Segments]]:
    from stormproof.metrics.inputs import Segments  # late: a run needs no input of metrics

    things = reader.things
    for text, shared, image in reader.pixel_counts(OVERLAP):
        table = match_segments(image, shared, labels=reader.map_labels, things=things, images=reader.images)
        yield text, Segments(table, reader.map_classes, reader.scored_maps, things)


PANOPTIC_MAPS = form(
    Form(
        "panoptic", "panoptic maps", of_objects=False,
        columns=(
            Column(PANOPTIC[0], "int32", holds="segment", later=True),
            Column(PANOPTIC[1], "uint32", bulky=True, holds="runs", later=True),
        ),
        pack=run_lengths, unpack=lambda row: map_of_runs(row, PANOPTIC, np.int32), check=check_map,
        derived=(
            Column(OVERLAP[0], "int32", holds="true segment", later=True),
            Column(OVERLAP[1], "int32", holds="segment", later=True),
            Column(OVERLAP[2], "int64", holds="pixels", later=True),
        ),
        derive=_derive, paint=lambda plane: (class_map(plane), NO_CLASS),
        inputs=("segments",), collect=_collect, scored_by=OVERLAP[2],
    ),
    __name__,
)  # fmt: skip
task(
    Task(
        "panoptic segmentation", 10, PANOPTIC_MAPS, headline="PQ", per_class="PQ", section="panoptic",
        fits=lambda given: "segments" in given.kinds, image_errors=image_errors, shown=_shows_class,
    ),
    __name__,
)  # fmt: skip
