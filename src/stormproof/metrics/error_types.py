"""Error types (TIDE, Bolya et al. 2020): why a detection is wrong, and how much AP50 each type costs.

Every wrong detection has one type; an object that no repaired detection would find is missed:

- Loc: right class, IoU 0.1 to 0.5 with an object
- Cls: IoU 0.5 or more with an object of another class
- Dupe: IoU 0.5 or more with an object of its class that a better detection found
- Bkg: IoU 0.1 or less with every object
- Both: the rest, badly placed and of a wrong class
- Miss: an object that no detection found and that no Loc or Cls error refers to

The cost of a type (dAP) is the AP50 gained when it alone is repaired: a Loc or Cls error becomes right if its
object has no better detection, otherwise it is dropped; Dupe, Bkg and Both are dropped; missed objects no
longer count. dAP FP is the gain without any false positive, dAP FN the gain with every object found. Gains do
not add up to 1 − AP50, since one repair changes what another would gain. The rules are those of tidecv 1.0.1
(docs/metrics.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.metrics.cocomatching import box_overlaps, mask_overlaps
from stormproof.metrics.matching import Groups, by_image
from stormproof.metrics.metric import (
    ByClass,
    Calibrated,
    Measure,
    Scored,
    Weights,
    mean_of_known,
    metric,
    ratio,
    weighted_ratios,
)
from stormproof.metrics.optimism import class_optimism
from stormproof.metrics.ordering import by_number, places, starts
from stormproof.metrics.precision import COCO_POINTS, in_lanes, interpolate
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

# A box is on an object from the first IoU on, on background up to the second.
FOREGROUND, BACKGROUND = 0.5, 0.1
MAX_DETECTIONS = 100  # the best detections of an image
_CALIBRATED: dict[str, Calibrated] = {
    "dAP Cls": ((8, 100),),
    "dAP Loc": ((80, 50),),
    "dAP Bkg": ((80, 50),),
    "dAP Miss": ((1, 50), (8, 100)),
    "dAP FP": ((1, 50), (8, 300)),
    "dAP FN": ((8, 50),),
    "Loc share": ((80, 50),),
    "Miss share": ((8, 50),),
    "Cls per image": ((80, 50),),
    "Loc per image": ((8, 50), (80, 100)),
    "Both per image": ((80, 50),),
    "Dupe per image": ((80, 50),),
    "Bkg per image": ((80, 50),),
    "Miss per image": ((80, 50),),
    "FP per image": ((80, 50),),
    "FN per image": ((80, 50),),
}
_POWER = 0.5  # of the number of images, with which the bias of costs falls

RIGHT, CLS, LOC, BOTH, DUPE, BKG = range(6)  # types of detections; as repairs, RIGHT means none
_REPAIRED = BKG + 1  # the number of those repairs
# Entries of a class's curve that a repair makes right. Until then, the first is a Loc error, the second is
# excused by a crowd, the third belongs to another class.
LOC_REPAIRED, LOC_EXCUSED, CLS_REPAIRED = 6, 7, 8
_MISS, _FP, _FN = 6, 7, 8  # the other repairs: missed objects, all false positives, all objects not found
TYPES = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
SPECIAL = ("FP", "FN")
_REPAIRS = (*TYPES, *SPECIAL)
_Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTypes:
    """The type of every detection, and whether each object that counts was found or missed.

    `repairs[d]` is the object that detection d would find once repaired, −1 for none. A detection excused by
    a crowd has a type and may be repaired, but it is not an error.
    """

    image: Ints
    labels: Ints
    scores: Floats
    order: Ints  # the detections by falling score
    kinds: _Codes  # RIGHT to BKG
    excused: Bools
    repairs: Ints
    truth_image: Ints
    truth_labels: Ints
    found: Bools
    missed: Bools
    images: int
    classes: int

    @property
    def counts(self) -> dict[str, int]:
        """The number of errors of each type, of false positives and of objects not found."""
        return {name: int(table.sum()) for name, table in self.per_image().items()}

    def per_image(self) -> dict[str, Ints]:
        """The number of errors of each type, by image."""
        wrong = ~self.excused & (self.kinds != RIGHT)
        owners = {name: self.image[wrong & (self.kinds == code)] for code, name in enumerate(TYPES[:-1], 1)}
        owners["Miss"] = self.truth_image[self.missed]
        owners["FP"], owners["FN"] = self.image[wrong], self.truth_image[~self.found]
        return {name: np.bincount(owner, minlength=self.images) for name, owner in owners.items()}

    def repaired(self, weights: Weights) -> Floats:
        """AP50 of each class without and with each repair: replicates × (1 + 8) × classes.

        The order of repairs is Cls, Loc, Both, Dupe, Bkg, Miss, FP, FN.
        """
        # Entries and objects are sorted by class, the entries of a class by falling score.
        repaired = self.repairs >= 0
        kinds = self.kinds.copy()
        loc = repaired & (kinds == LOC)
        kinds[loc] = np.where(self.excused[loc], LOC_EXCUSED, LOC_REPAIRED)
        falling = self.order
        shown = falling[(~self.excused | loc)[falling]]
        # Repairing a detection of a wrong class makes it an entry of its object's class.
        renamed = falling[(repaired & (kinds == CLS))[falling]]
        entry = np.concatenate([shown, renamed])
        label = np.concatenate([self.labels[shown], self.truth_labels[self.repairs[renamed]]])
        kind = np.concatenate([kinds[shown], np.full(len(renamed), CLS_REPAIRED, np.uint8)])
        # Both halves are sorted already; a stable sort merges them in one pass.
        order = by_number(label, self.classes, np.argsort(-self.scores[entry], kind="stable"))
        truths = np.argsort(self.truth_labels, kind="stable")
        state = self.found.astype(np.uint8) + 2 * self.missed.astype(np.uint8)
        return in_lanes(
            weights, _average, (len(_REPAIRS) + 1, self.classes),
            self.image[entry[order]].astype(np.int32), kind[order], starts(label, self.classes),
            self.truth_image[truths].astype(np.int32), state[truths],
            starts(self.truth_labels, self.classes),
        )  # fmt: skip

    def scored(self, weights: Weights, prefix: str = "") -> Scored:
        """The cost of each type, its share of the cost of all six, and how often it occurs."""
        by_class = ByClass(self.repaired(weights), partial(_costs, prefix=prefix))
        one = np.ones(self.images)
        counts = {f"{prefix}{name} per image": (count, one) for name, count in self.per_image().items()}
        numbers = {**by_class.numbers(by_class.values), **weighted_ratios(weights, counts)}
        optimism = self._optimism(by_class.values, weights, prefix) if len(weights) > 1 else {}
        return Scored(numbers, optimism=optimism, by_class=by_class)

    def _optimism(self, repaired: Floats, weights: Weights, prefix: str) -> dict[str, Floats]:
        """How much too high the costs and shares are: what they are less their optimism, taken from them."""
        too_high = np.stack(
            [
                class_optimism(values - repaired[:, 0], self.truth_image, self.truth_labels, weights, _POWER)
                for values in repaired[:, 1:].transpose(1, 0, 2)
            ]
        )
        corrected = repaired[:1].copy()
        corrected[0, 1:] -= np.nan_to_num(too_high)
        now, then = (_costs(values, prefix) for values in (repaired[:1], corrected))
        return {name: now[name] - then[name] for name in now}


def _costs(repaired: Floats, prefix: str) -> dict[str, Floats]:
    """The cost of each type and its share, from some classes of `ErrorTypes.repaired`.

    If a repair shifts the points of a curve so that AP falls, the cost of the type is 0.
    """
    means = mean_of_known(repaired)
    gained = means[:, 1:] - means[:, :1]
    gained[:, : len(TYPES)] = np.maximum(gained[:, : len(TYPES)], 0.0)
    whole = gained[:, : len(TYPES)].sum(axis=1)
    costs = {f"{prefix}dAP {name}": gained[:, k] for k, name in enumerate(_REPAIRS)}
    return costs | {f"{prefix}{name} share": ratio(gained[:, k], whole) for k, name in enumerate(TYPES)}


def box_error_types(truth: DetectionTruth, predictions: Predictions) -> ErrorTypes:
    """The error types of boxes.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9], [50, 0, 60, 9]], [0, 0]))], ["cat", "dog"])
    >>> boxes = [[0, 0, 9, 9], [0, 0, 9, 8], [70, 0, 80, 9]]
    >>> found = {"a": Prediction(boxes, scores=[0.9, 0.8, 0.7], labels=[0, 0, 1])}
    >>> {name: count for name, count in box_error_types(truth, found).counts.items() if count}
    {'Dupe': 1, 'Bkg': 1, 'Miss': 1, 'FP': 2, 'FN': 1}
    """
    detections = lay_out(predictions, truth)
    groups = by_image(truth, detections, MAX_DETECTIONS)
    return _type_errors(truth, detections, groups, box_overlaps(truth, detections, groups))


def mask_error_types(truth: DetectionTruth, predictions: Predictions) -> ErrorTypes:
    """The error types of masks."""
    detections = lay_out(predictions, truth)
    groups = by_image(truth, detections, MAX_DETECTIONS)
    return _type_errors(truth, detections, groups, mask_overlaps(truth, detections, groups))


def _type_errors(
    truth: DetectionTruth, predicted: Detections, groups: Groups, overlaps: Floats
) -> ErrorTypes:
    detections, truths = groups.detections, groups.truths
    kinds = np.zeros(len(detections), np.uint8)
    excused = np.zeros(len(detections), np.bool_)
    repairs = np.full(len(detections), -1)
    taken, repairable = (np.zeros(len(truths), np.bool_) for _ in range(2))
    _judge(
        groups.starts, groups.offsets, overlaps, predicted.labels[detections], truth.labels[truths],
        truth.excused[truths], kinds, excused, repairs, taken, repairable,
    )  # fmt: skip
    counting = np.flatnonzero(~truth.excused[truths])
    place = places(counting, len(truths) + 1)  # the last entry stands for no object: `repairs` is −1 then
    own = truths[counting]
    falling = places(detections, len(predicted))[predicted.order]
    return ErrorTypes(
        predicted.image[detections], predicted.labels[detections], predicted.scores[detections],
        falling[falling >= 0], kinds, excused,
        place[repairs], truth.image[own], truth.labels[own], taken[counting],
        ~taken[counting] & ~repairable[counting], len(truth.ids), len(truth.classes),
    )  # fmt: skip


def _declare(section: str, prefix: str) -> list[Measure]:
    words = {
        "Cls": "objects under a wrong class", "Loc": "badly placed detections",
        "Both": "badly placed detections of a wrong class", "Dupe": "duplicate detections",
        "Bkg": "detections of nothing", "Miss": "missed objects", "FP": "all false positives",
        "FN": "all objects not found",
    }  # fmt: skip
    what = f" ({section})" if prefix else ""
    declared = [
        Measure(f"{prefix}dAP {name}", f"AP50 lost to {words[name]}{what}", "errors", False, share=True)
        for name in _REPAIRS
    ]
    declared += [
        Measure(
            f"{prefix}{name} share", f"share of {words[name]} in all costs{what}", "errors", False, share=True
        )
        for name in TYPES
    ]
    declared += [
        Measure(f"{prefix}{name} per image", f"{words[name]}, per image{what}", "errors", False, False)
        for name in _REPAIRS
    ]
    return declared


@metric("boxes", *_declare("boxes", ""), calibrated=_CALIBRATED)
def _boxes(objects: Objects, weights: Weights) -> Scored:
    return box_error_types(objects.truth, objects.named_boxes).scored(weights)


@metric(
    "masks",
    *_declare("masks", "mask "),
    calibrated={f"mask {name}": known for name, known in _CALIBRATED.items()},
)
def _masks(objects: Objects, weights: Weights) -> Scored:
    return mask_error_types(objects.truth, objects.named).scored(weights, "mask ")


@kernel
def _judge(
    starts: Any, offsets: Any, overlaps: Any, labels: Any, truth_labels: Any, crowd: Any, kinds: Any,
    excused: Any, repairs: Any, taken: Any, repairable: Any,
) -> None:  # fmt: skip
    """The type of every detection; the detections of an image are sorted by falling score."""
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        width = t1 - t0
        for d in range(d0, d1):
            row = offsets[g] + (d - d0) * width - t0
            best, at = 0.0, -1
            for t in range(t0, t1):
                if truth_labels[t] != labels[d]:
                    continue
                if crowd[t]:
                    excused[d] = excused[d] or overlaps[row + t] > FOREGROUND
                elif not taken[t] and overlaps[row + t] > best:
                    best, at = overlaps[row + t], t
            if at >= 0 and best >= FOREGROUND:
                taken[at], excused[d] = True, False
                kinds[d] = RIGHT
            else:
                kinds[d] = BKG
        # The second pass needs to know which objects are taken.
        for d in range(d0, d1):
            if kinds[d] == RIGHT:
                continue
            row = offsets[g] + (d - d0) * width - t0
            own, other, mine, theirs = 0.0, 0.0, -1, -1
            for t in range(t0, t1):
                common = overlaps[row + t]
                if crowd[t]:
                    continue
                if truth_labels[t] == labels[d]:
                    if common > own:
                        own, mine = common, t
                elif common > other:
                    other, theirs = common, t
            target = -1
            if BACKGROUND <= own <= FOREGROUND:
                kinds[d], target = LOC, mine
            elif other >= FOREGROUND:
                kinds[d], target = CLS, theirs
            elif own >= FOREGROUND:
                kinds[d] = DUPE
            elif max(own, other) > BACKGROUND:
                kinds[d] = BOTH
            if target >= 0 and not taken[target] and not repairable[target]:
                repairable[target] = True
                repairs[d] = target


@kernel(inline=True)
def _sum_objects(
    image: Any, state: Any, first: Any, end: Any, weights: Any, side_by_side: Any, positives: Any,
    noticed: Any, found: Any,
) -> None:  # fmt: skip
    """The total weight of the objects from `first` to `end`, of those that are not missed, and of those that
    are found, lane by lane."""
    positives[:], noticed[:], found[:] = 0.0, 0.0, 0.0
    for i in range(first, end):
        for lane in range(len(side_by_side)):
            w = np.float64(weights[image[i], lane])
            positives[lane] += w
            noticed[lane] += w * (1 - (state[i] >> 1))
            found[lane] += w * (state[i] & 1)


@kernel
def _right_under(code: Any) -> Any:
    """The first repair under which an entry is right, and the one after the last."""
    if code == RIGHT:
        return 0, _REPAIRED
    if code in (LOC_REPAIRED, LOC_EXCUSED):
        return LOC, LOC + 1
    if code == CLS_REPAIRED:
        return CLS, CLS + 1
    return 0, 0


@kernel
def _average(
    image: Any, kind: Any, starts: Any, truth_image: Any, state: Any, truth_starts: Any, weights: Any,
    side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    """AP50 by repair and class for a block of replicates, in one pass over the entries of each class.

    Each repair of false positives drops one kind of them, so one sum per kind serves all repairs.
    """
    width = len(side_by_side)
    most = 0
    for k in range(len(starts) - 1):
        most = max(most, starts[k + 1] - starts[k])
    right, counted = np.empty((_REPAIRED, most, width)), np.empty((_REPAIRED, most, width))
    hits, wrong = np.empty((_REPAIRED, width)), np.empty((_REPAIRED, width))
    total, events = np.empty(width), np.empty(_REPAIRED, np.int64)
    positives, noticed, found = np.empty(width), np.empty(width), np.empty(width)
    reached, best = np.zeros((most + 1, width)), np.empty((2, width))
    for k in range(len(starts) - 1):
        _sum_objects(
            truth_image, state, truth_starts[k], truth_starts[k + 1], weights, side_by_side, positives,
            noticed, found,
        )  # fmt: skip
        hits[:], wrong[:], total[:], events[:] = 0.0, 0.0, 0.0, 0
        for i in range(starts[k], starts[k + 1]):
            code, owner = kind[i], image[i]
            first, last = _right_under(code)
            false = LOC if code == LOC_REPAIRED else code if code <= BKG else 0
            for lane in range(width):
                w = np.float64(weights[owner, lane])
                if false:
                    wrong[false, lane] += w
                    total[lane] += w
                for v in range(first, last):
                    hits[v, lane] += w
                    right[v, events[v], lane] = hits[v, lane]
                    counted[v, events[v], lane] = hits[v, lane] + total[lane] - wrong[v, lane]
            for v in range(first, last):
                events[v] += 1
        for v in range(_REPAIRED + 3):
            objects = noticed if v == _MISS else found if v == _FN else positives
            row = v if v < _REPAIRED else 0
            judged = right[row] if v == _FP else counted[row]
            interpolate(  # not rounded: as in tidecv, a recall of k/100 reaches the k-th point
                right[row], judged, events[row], objects, COCO_POINTS, False, side_by_side, reached, best,
                out[v, k],
            )  # fmt: skip
        for v, objects in ((_MISS, noticed), (_FN, found)):
            for lane in range(width):
                # No object is left: AP is 0 if there is a detection, which must be wrong, else NaN.
                if positives[lane] > 0 and objects[lane] == 0 and total[lane] > 0:
                    out[v, k, lane] = 0.0
