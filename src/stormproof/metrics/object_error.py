"""Object error and flaw symptoms (*liu*): how wrong a detector is about each object, and in what way.

The paper defines the error but not the matching. The default rule (docs/adr/0019) is the one that reproduces
the paper's levels. Only predictions scored 0.4 or more count. Each object is judged by the prediction of its
own class that overlaps it most, or else by one of another class with an IoU of at least 0.1; an object with
neither has error 1. False positives do not count, and images without countable objects are left out. A
`MatchingRule` can change all of this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.boxes import Overlap, iou
from stormproof.core.errors import InvalidOption
from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.matching import Groups, ious_of
from stormproof.metrics.metric import (
    Calibrated,
    Measure,
    Scored,
    Weights,
    metric,
    ratio,
    weighted_ratios,
    weighted_sums,
)
from stormproof.metrics.records import DetectionTruth, Predictions, lay_out

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

_CALIBRATED: dict[str, Calibrated] = {
    "E": ((80, 50),),
    "flaws CBWO": ((80, 50),),
    "flaws WBCO": ((80, 50),),
    "flaws WBWO": ((80, 50),),
    "flaws PMD": ((80, 50),),
    "flaws MD": ((8, 50), (80, 300)),
    "images PMD": ((80, 50),),
    "images MD": ((80, 50),),
}


class Symptom(StrEnum):
    """What is wrong with one object (*liu*, section 3.5)."""

    CORRECT = "correct"
    CBWO = "CBWO"  # correct box, wrong object: well placed, wrong class
    WBCO = "WBCO"  # wrong box, correct object: right class, badly placed
    WBWO = "WBWO"  # wrong box, wrong object
    PMD = "PMD"  # partial missed detection: this object is missed, others in the image are not
    MD = "MD"  # missed detection: every object in the image is missed


SYMPTOMS = tuple(Symptom)
FLAWS = (Symptom.CBWO, Symptom.WBCO, Symptom.WBWO, Symptom.PMD, Symptom.MD)


class ClassMatching(StrEnum):
    """Which predictions may match an object, by their class."""

    OWN_FIRST = "own-first"  # those of the object's class; if there is none, those of others
    ANY = "any"  # those of any class
    OWN = "own"  # only those of the object's class


@dataclass(frozen=True, slots=True)
class MatchingRule:
    """Which prediction matches which object.

    `overlap` measures agreement (`boxes.enclosing_overlap` is Eq. 2 as printed). Predictions scored below
    `min_score` are ignored. `classes` says which classes may match; a prediction of another class must
    overlap by `min_overlap` or more, since a box that barely touches an object belongs to its neighbour. With
    `one_to_one`, each prediction matches at most one object, best pairs first. Among equal overlaps, the
    object's own class comes first, then the higher score. A box is correct if its error 1 − overlap is
    strictly below `tolerance`, as in the paper.
    """

    overlap: Overlap = iou
    classes: ClassMatching = ClassMatching.OWN_FIRST
    one_to_one: bool = False
    min_score: float = 0.4
    min_overlap: float = 0.1
    tolerance: float = 0.5

    def as_dict(self) -> dict[str, Any]:
        """The rule as JSON, for the key under which scores are kept."""
        return {
            "overlap": f"{self.overlap.__module__}.{self.overlap.__qualname__}",
            "matching": str(self.classes),
            "one_to_one": self.one_to_one, "min_score": self.min_score, "min_overlap": self.min_overlap,
            "tolerance": self.tolerance,
        }  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("min_score", "min_overlap", "tolerance"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InvalidOption(f"{name} is {value}; give a number from 0 to 1.")


@dataclass(frozen=True, slots=True, eq=False)
class ObjectErrors:
    """One entry per countable object: its image, class, error in [0, 1] and symptom."""

    image: Ints
    labels: Ints
    errors: Floats
    codes: Ints  # indices into `SYMPTOMS`
    classes: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def error(self) -> float:
        """E (*liu*, section 3.3): the mean over images of the mean over their objects."""
        return self.scored(np.ones((1, len(self.ids)))).scores["E"]

    @property
    def per_image(self) -> Floats:
        """Each image's mean error over its objects; NaN for an image without any."""
        counts = np.bincount(self.image, minlength=len(self.ids))
        means: Floats = ratio(np.bincount(self.image, self.errors, minlength=len(self.ids)), counts)
        return means

    @property
    def symptoms(self) -> tuple[Symptom, ...]:
        return tuple(SYMPTOMS[code] for code in self.codes)

    def scored(self, weights: Weights) -> Scored:
        """E, the share of objects with each flaw, and of images with some or all objects missed."""
        objects = np.bincount(self.image, minlength=len(self.ids))
        flaws = {
            flaw: np.bincount(self.image[self.codes == SYMPTOMS.index(flaw)], minlength=len(self.ids))
            for flaw in FLAWS
        }
        shares: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {
            "E": (np.nan_to_num(self.per_image), objects > 0),
            **{f"flaws {flaw}": (count, objects) for flaw, count in flaws.items()},
            **{f"images {flaw}": (flaws[flaw] > 0, objects > 0) for flaw in (Symptom.PMD, Symptom.MD)},
        }
        return Scored(weighted_ratios(weights, shares), {"E": self._by_class(weights)})

    def _by_class(self, weights: Weights) -> Floats:
        """The mean error of each class's objects: replicates × classes."""
        classes, images = len(self.classes), len(self.ids)
        cell = self.image * classes + self.labels
        sums, counts = (
            np.bincount(cell, values, minlength=images * classes).reshape(images, classes).astype(float)
            for values in (self.errors, np.ones(len(cell)))
        )
        means: Floats = ratio(weighted_sums(weights, sums), weighted_sums(weights, counts))
        return means


def object_errors(
    truth: DetectionTruth, predictions: Predictions, *, rule: MatchingRule | None = None
) -> ObjectErrors:
    """The error and the symptom of every countable object of a set under one condition.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 10], [50, 0, 60, 9]], [0, 0]))], ["cat", "dog"])
    >>> judged = object_errors(truth, {"a": Prediction([[0, 0, 9, 8]], [0.9], [1])})
    >>> round(judged.error, 2), [str(s) for s in judged.symptoms]
    (0.6, ['CBWO', 'PMD'])
    """
    rule = rule or MatchingRule()
    detections = lay_out(predictions, truth)
    counted = np.flatnonzero(~truth.excused)
    counted = counted[np.argsort(truth.image[counted], kind="stable")]
    kept = np.flatnonzero(detections.scores >= rule.min_score)
    kept = kept[np.argsort(detections.image[kept], kind="stable")]
    images = np.unique(truth.image[counted])
    owners = (truth.image[counted], detections.image[kept])
    bounds = np.stack(
        [np.searchsorted(o, images, side) for o in owners for side in ("left", "right")], axis=1
    )
    groups = Groups(counted, kept, bounds)
    overlap, same = np.zeros(len(counted)), np.zeros(len(counted), np.bool_)
    _judge(
        bounds, groups.offsets, _overlaps(groups, truth.boxes, detections.boxes, rule.overlap),
        truth.labels[counted], detections.labels[kept], detections.scores[kept],
        rule.classes is ClassMatching.OWN, rule.classes is ClassMatching.OWN_FIRST, rule.min_overlap,
        rule.one_to_one, overlap, same,
    )  # fmt: skip
    codes = _symptoms(overlap, same, bounds, rule.tolerance)
    return ObjectErrors(
        truth.image[counted], truth.labels[counted], 1 - overlap, codes, truth.classes, truth.ids
    )


@metric(
    "boxes",
    Measure("E", "mean object error, 1 − IoU with the matching box", section="objects", higher=False),
    *(
        Measure(f"flaws {flaw}", f"share of objects that are {flaw}", "flaws", False, share=True)
        for flaw in FLAWS
    ),
    Measure("images PMD", "share of images in which some objects are missed", "flaws", False, share=True),
    Measure("images MD", "share of images in which every object is missed", "flaws", False, share=True),
    calibrated=_CALIBRATED,
)
def _objects(objects: Objects, weights: Weights) -> Scored:
    scored = objects.errors.scored(weights)
    known = len(objects.truth.classes)  # the errors have one more class, for those that the dataset lacks
    return replace(scored, per_class={"E": scored.per_class["E"][:, :known]})


def _overlaps(groups: Groups, truths: Floats, boxes: Floats, measure: Overlap) -> Floats:
    """The overlap of each image's boxes, predictions × objects, flat."""
    if measure is iou:
        return ious_of(groups, truths, boxes)
    tables = [
        measure(truths[groups.truths[t0:t1]], boxes[groups.detections[d0:d1]]).T.ravel()
        for t0, t1, d0, d1 in groups.starts.tolist()
    ]
    return np.concatenate([np.zeros(0), *tables])


@kernel
def _judge(
    starts: Any, offsets: Any, overlaps: Any, truth_labels: Any, labels: Any, scores: Any, own: Any,
    own_first: Any, min_overlap: Any, one_to_one: Any, out: Any, agrees: Any,
) -> None:  # fmt: skip
    """For each object the overlap with its prediction, and whether their classes agree."""
    done, used = np.zeros(len(truth_labels), np.bool_), np.zeros(len(labels), np.bool_)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for k in range(t0, t1):
            first, end = (t0, t1) if one_to_one else (k, k + 1)  # the best pair of all, or of object k
            best, at, by = (0.0, 0.0, 0.0, 0.0), -1, -1
            for t in range(first, end):
                for d in range(d0, d1):
                    common = overlaps[offsets[g] + (d - d0) * (t1 - t0) + t - t0]
                    same = truth_labels[t] == labels[d]
                    if done[t] or used[d] or common == 0 or (not same and (own or common < min_overlap)):
                        continue  # may not match
                    rank = np.float64(own_first and same), common, np.float64(same), scores[d]
                    if rank > best:
                        best, at, by = rank, t, d
            if at >= 0:
                done[at], used[by] = True, one_to_one
                out[at], agrees[at] = best[1], best[2] > 0


def _symptoms(overlap: Floats, same: Bools, bounds: Ints, tolerance: float) -> Ints:
    """The index of each object's symptom; the first two columns of `bounds` bound each image's objects."""
    correct, cbwo, wbco, wbwo, pmd, md = range(len(SYMPTOMS))
    placed = 1 - overlap < tolerance
    codes = np.where(placed, np.where(same, correct, cbwo), np.where(same, wbco, wbwo))
    if len(bounds):
        any_found = np.repeat(np.add.reduceat(overlap > 0, bounds[:, 0]) > 0, bounds[:, 1] - bounds[:, 0])
        codes = np.where(overlap > 0, codes, np.where(any_found, pmd, md))
    return codes
