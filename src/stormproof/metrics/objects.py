"""Object error and flaw symptoms (*liu*): how wrong a detector is about each object, and in what way.

The paper defines the error but not the matching. The rule here (docs/adr/0022) is the one that gives the
paper's levels: of predictions scored 0.4 or more, each truth is judged by the one of its own class that
overlaps it most, else by one of another class with an IoU of at least 0.1; a truth without either has
error 1; false positives do not count; images without countable truths are left out. `MatchingRule` changes
any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.boxes import Overlap, iou, overlap
from stormproof.core.errors import InvalidOption
from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.measure import Measure, Scored, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out


class Symptom(StrEnum):
    """What is wrong with one object (*liu*, section 3.5)."""

    CORRECT = "correct"
    CBWO = "CBWO"  # correct box, wrong object: well placed, wrong class
    WBCO = "WBCO"  # wrong box, correct object: right class, ill placed
    WBWO = "WBWO"  # wrong box, wrong object
    PMD = "PMD"  # partial missed detection: this object is missed, others in the image are not
    MD = "MD"  # missed detection: every object in the image is missed


SYMPTOMS = tuple(Symptom)
FLAWS = (Symptom.CBWO, Symptom.WBCO, Symptom.WBWO, Symptom.PMD, Symptom.MD)


class Speaks(StrEnum):
    """Whose predictions may speak for a truth."""

    OWN_FIRST = "own-first"  # those of its class; of another one only where there is none
    ANY = "any"  # of any class, the largest overlap
    OWN = "own"  # of its class alone


@dataclass(frozen=True, slots=True)
class MatchingRule:
    """Which prediction speaks for which truth.

    `overlap` measures agreement (`boxes.enclosing_overlap` is Eq. 2 as printed). Predictions scored below
    `min_score` are silent; `speaks` says which classes are heard, and one of another class only where it
    overlaps by `min_overlap` or more: what merely touches an object is about its neighbour. `one_to_one` lets
    each prediction speak once, best pairs first. Equal overlaps: own class first, then higher score.
    A box is correct when its error 1 − overlap is below `tolerance`, strictly, as the paper has it.
    """

    overlap: Overlap = iou
    speaks: Speaks = Speaks.OWN_FIRST
    one_to_one: bool = False
    min_score: float = 0.4
    min_overlap: float = 0.1
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        for name in ("min_score", "min_overlap", "tolerance"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InvalidOption(f"{name} is {value}; give a number from 0 to 1.")


@dataclass(frozen=True, slots=True, eq=False)
class ObjectErrors:
    """One entry per countable truth: its image, class, error in [0, 1] and symptom."""

    image: Ints
    labels: Ints
    errors: Floats
    codes: Ints  # places in `SYMPTOMS`
    classes: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def error(self) -> float:
        """E (*liu*, Eq. 3): the mean over images of the mean over their objects."""
        per_image = self.per_image()
        return float(np.mean(list(per_image.values()))) if per_image else float("nan")

    def per_image(self) -> dict[str, float]:
        """Each image's mean error over its objects."""
        return _means(self.image, self.errors, self.ids)

    def per_class(self) -> dict[str, float]:
        """Each class's mean error over its objects."""
        return _means(self.labels, self.errors, self.classes)

    @property
    def symptoms(self) -> tuple[Symptom, ...]:
        return tuple(SYMPTOMS[code] for code in self.codes)

    def flaws(self) -> dict[Symptom, int]:
        """Flawed objects by symptom."""
        counted = np.bincount(self.codes, minlength=len(SYMPTOMS)).tolist()
        return {flaw: counted[SYMPTOMS.index(flaw)] for flaw in FLAWS}

    def flaw_shares(self) -> dict[Symptom, float]:
        """The share of objects that have each symptom."""
        total = len(self.codes)
        return {flaw: count / total if total else float("nan") for flaw, count in self.flaws().items()}

    def missed_images(self) -> dict[Symptom, float]:
        """The share of images in which some objects are missed (PMD), and in which all are (MD).

        This is how the paper words the two: a detector fails on some, or on all, of the objects of an image.
        """
        images = np.unique(self.image)
        shares = {}
        for symptom in (Symptom.PMD, Symptom.MD):
            hit = self.codes == SYMPTOMS.index(symptom)
            shares[symptom] = len(np.unique(self.image[hit])) / len(images) if len(images) else float("nan")
        return shares

    def flaws_per_class(self) -> dict[str, dict[Symptom, int]]:
        """The same for each class that occurs."""
        return self._tabulate(self.labels, self.classes)

    def flaws_per_image(self) -> dict[str, dict[Symptom, int]]:
        """The same for each image; one with any PMD is partially missed, one with any MD wholly."""
        return self._tabulate(self.image, self.ids)

    def _tabulate(self, column: Ints, names: tuple[str, ...]) -> dict[str, dict[Symptom, int]]:
        table = {names[k]: dict.fromkeys(FLAWS, 0) for k in np.unique(column).tolist()}
        for k, symptom in zip(column.tolist(), self.symptoms, strict=True):
            if symptom is not Symptom.CORRECT:
                table[names[k]][symptom] += 1
        return table


def object_errors(
    truth: DetectionTruth, predictions: Predictions, *, rule: MatchingRule | None = None
) -> ObjectErrors:
    """Judge every countable truth of a set under one condition.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 10], [50, 0, 60, 9]], [0, 0]))], ["cat", "dog"])
    >>> judged = object_errors(truth, {"a": Prediction([[0, 0, 9, 8]], [0.9], [1])})
    >>> round(judged.error, 2), [str(s) for s in judged.symptoms]
    (0.6, ['CBWO', 'PMD'])
    """
    rule = rule or MatchingRule()
    found = lay_out(predictions, truth)
    counted = np.flatnonzero(~truth.excused)
    counted = counted[np.argsort(truth.image[counted], kind="stable")]
    loud = np.flatnonzero(found.scores >= rule.min_score)
    loud = loud[np.argsort(found.image[loud], kind="stable")]
    images = np.unique(truth.image[counted])
    owners = (truth.image[counted], found.image[loud])
    bounds = np.stack(
        [np.searchsorted(o, images, side) for o in owners for side in ("left", "right")], axis=1
    )
    overlap, same = np.zeros(len(counted)), np.zeros(len(counted), np.bool_)
    if rule.overlap is iou and not rule.one_to_one:
        _judge(
            bounds, truth.boxes[counted], truth.labels[counted], np.take(found.boxes, loud, axis=0),
            found.labels[loud],
            found.scores[loud], rule.speaks is Speaks.OWN, rule.speaks is Speaks.OWN_FIRST, rule.min_overlap,
            overlap, same,
        )  # fmt: skip
    else:
        for t0, t1, d0, d1 in bounds.tolist():
            overlap[t0:t1], same[t0:t1] = _judge_image(truth, found, counted[t0:t1], loud[d0:d1], rule)
    codes = _symptoms(overlap, same, bounds, rule.tolerance)
    return ObjectErrors(
        truth.image[counted], truth.labels[counted], 1 - overlap, codes, truth.classes, truth.ids
    )


@measured(
    "every box",
    Measure("E", "mean object error, 1 − IoU with the box that speaks", section="objects", higher=False),
    *(
        Measure(f"flaws {flaw.value}", f"share of objects that are {flaw.value}", "flaws", False)
        for flaw in FLAWS
    ),
    Measure("images PMD", "share of images in which some objects are missed", "flaws", False),
    Measure("images MD", "share of images in which every object is missed", "flaws", False),
)
def _score_objects(truth: DetectionTruth, found: Detections, rule: MatchingRule) -> Scored:
    judged = object_errors(truth, found, rule=rule)
    flaws = {f"flaws {flaw.value}": share for flaw, share in judged.flaw_shares().items()}
    missed = {f"images {flaw.value}": share for flaw, share in judged.missed_images().items()}
    mean = judged.per_image()
    images = np.array([mean.get(name, np.nan) for name in truth.ids])
    return Scored({"E": judged.error, **flaws, **missed}, {"E": judged.per_class()}, {"E": images})


@kernel
def _judge(
    bounds: Any, truths: Any, labels: Any, boxes: Any, said: Any, scores: Any, own: Any, own_first: Any,
    least: Any, out: Any, agrees: Any,
) -> None:  # fmt: skip
    """`_judge_image` of every image, for overlaps by IoU: half of all that scoring a run does."""
    for g in range(len(bounds)):
        t0, t1, d0, d1 = bounds[g]
        for t in range(t0, t1):
            preferred, score = False, -1.0
            for d in range(d0, d1):
                common, same = overlap(truths[t], boxes[d]), labels[t] == said[d]
                if common == 0 or (not same and (own or common < least)):
                    continue  # says nothing about this object
                first = own_first and same
                better = score < 0 or first > preferred
                if not better and first == preferred:
                    better = common > out[t] or (common == out[t] and same > agrees[t])
                    better = better or (common == out[t] and same == agrees[t] and scores[d] > score)
                if better:
                    preferred, out[t], agrees[t], score = first, common, same, scores[d]


def _judge_image(
    truth: DetectionTruth, found: Detections, own: Ints, said: Ints, rule: MatchingRule
) -> tuple[Floats, Bools]:
    """For each truth the overlap with its prediction, and whether the classes agree."""
    if not said.size:
        return np.zeros(len(own)), np.zeros(len(own), bool)
    overlap = rule.overlap(truth.boxes[own], found.boxes[said])
    same = truth.labels[own][:, None] == found.labels[said][None, :]
    if rule.speaks is Speaks.OWN:
        overlap = np.where(same, overlap, 0.0)
    overlap = np.where(same | (overlap >= rule.min_overlap), overlap, 0.0)
    preferred = same & (overlap > 0) if rule.speaks is Speaks.OWN_FIRST else np.zeros(same.shape, bool)
    # np.lexsort's last key counts first; what overlaps by nothing comes last, whatever its class.
    ranks = (-np.broadcast_to(found.scores[said], overlap.shape), ~same, -overlap, ~preferred)
    choose = _one_to_one if rule.one_to_one else _best
    chosen = choose(overlap, ranks)
    rows = np.arange(len(own))
    kept = chosen >= 0
    return (np.where(kept, overlap[rows, chosen], 0.0), np.where(kept, same[rows, chosen], False))


Ranks = tuple[npt.NDArray[Any], ...]


def _best(overlap: Floats, ranks: Ranks) -> Ints:
    ranked: Ints = np.lexsort(ranks, axis=1)
    return ranked[:, 0]


def _one_to_one(overlap: Floats, ranks: Ranks) -> Ints:
    chosen = np.full(len(overlap), -1)
    spoken = np.zeros(overlap.shape[1], bool)
    for flat in np.lexsort([rank.ravel() for rank in ranks]):
        row, column = divmod(int(flat), overlap.shape[1])
        if overlap[row, column] > 0 and chosen[row] < 0 and not spoken[column]:
            chosen[row] = column
            spoken[column] = True
    return chosen


def _symptoms(overlap: Floats, same: Bools, bounds: Ints, tolerance: float) -> Ints:
    """What is wrong with each object, as places in `SYMPTOMS`; `bounds` begin with each image's objects."""
    correct, well, right, neither, partly, wholly = range(len(SYMPTOMS))
    placed = 1 - overlap < tolerance
    codes = np.where(placed, np.where(same, correct, well), np.where(same, right, neither))
    if len(bounds):
        anything = np.repeat(np.add.reduceat(overlap > 0, bounds[:, 0]) > 0, bounds[:, 1] - bounds[:, 0])
        codes = np.where(overlap > 0, codes, np.where(anything, partly, wholly))
    return codes


def _means(column: Ints, values: Floats, names: tuple[str, ...]) -> dict[str, float]:
    keys, inverse = np.unique(column, return_inverse=True)
    means = np.bincount(inverse, values) / np.bincount(inverse) if len(keys) else np.zeros(0)
    return {names[k]: mean for k, mean in zip(keys.tolist(), means.tolist(), strict=True)}
