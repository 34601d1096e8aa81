"""Localisation-recall-precision error (Oksuz et al. 2018, 2021): one number for missed objects, false
positives and badly fitting boxes, at one score threshold.

    LRP = (Σ over hits (1 − IoU) / (1 − τ) + false positives + misses) / (hits + false positives + misses)

with τ = 0.5. Its parts are the mean of 1 − IoU over hits (Loc), 1 − precision (FP) and 1 − recall (FN). oLRP
is the lowest LRP of a class over all score thresholds, under each condition separately. `LRP` uses the
thresholds that are best on the clean images, as a deployed detector does. Both are means over classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.core.threads import cached, remember
from stormproof.metrics.cocomatching import class_overlaps
from stormproof.metrics.matching import Groups, by_class_and_image
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, mean_of_known, metric
from stormproof.metrics.optimism import class_optimisms
from stormproof.metrics.ordering import by_falling_score, places, starts
from stormproof.metrics.precision import MAX_DETECTIONS, in_lanes, sum_weights
from stormproof.metrics.records import Detections, DetectionTruth, entries_of

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

TAU = 0.5
_CALIBRATED: dict[str, Calibrated] = {
    "oLRP": ((8, 50), (80, 100)),
    "oLRP Loc": ((8, 50), (80, 100)),
    "oLRP FN": ((8, 50), (80, 100)),
    "LRP": ((8, 50), (80, 100)),
    "LRP Loc": ((8, 50),),
    "LRP FP": ((1, 50),),
    "LRP FN": ((8, 50), (80, 100)),
}
_POWER = 0.5  # of the number of images, with which the bias of the best threshold falls
PARTS = ("", " Loc", " FP", " FN")


@dataclass(frozen=True, eq=False)
class Located:
    """Detections with the IoU of the objects they found, sorted by class, then by falling score.

    Best score first, a detection takes the free object of its class that it overlaps most, if their IoU is
    above 0 and at least `tau`. `overlap` is that IoU, 0 for a detection that found no object. Detections that
    found only a crowd or an ignored object are left out.
    """

    image: Ints
    label: Ints
    score: Floats
    overlap: Floats
    truth_image: Ints  # one entry per object that counts, as in the next and the last two
    truth_label: Ints
    falling: Ints  # the detections by falling score over all classes
    classes: int
    tau: float
    found_at: Floats  # the score of the detection that found the object, or −1
    found_box: Floats  # the box of that detection, or NaN

    @property
    def hit(self) -> Bools:
        return self.overlap > 0

    @cached
    def tables(self) -> tuple[Any, ...]:
        """The input of the compiled loops: detections and objects, with the start of each class."""
        order = np.argsort(self.truth_label, kind="stable")
        return (
            self.image.astype(np.int32), self.score, self.overlap, starts(self.label, self.classes),
            self.truth_image[order].astype(np.int32), starts(self.truth_label, self.classes),
        )  # fmt: skip

    def of_images(self, chosen: Ints, images: int) -> Located:
        """The detections and objects of the chosen images, renumbered; an image may be chosen twice."""
        kept, image = entries_of(self.image, chosen, images)
        order = np.argsort(kept, kind="stable")  # by class and falling score, as before
        kept, image = kept[order], image[order]
        objects, truth_image = entries_of(self.truth_image, chosen, images)
        return Located(
            image, self.label[kept], self.score[kept], self.overlap[kept], truth_image,
            self.truth_label[objects], by_falling_score(self.score[kept]), self.classes, self.tau,
            self.found_at[objects], self.found_box[objects],
        )  # fmt: skip

    def optimal(self, weights: Weights) -> Floats:
        """oLRP, its three parts and its threshold: replicates × 5 × classes.

        For a class without a hit, oLRP and FN are 1 and the rest is NaN; without an object all are NaN.
        """
        shape = (5, self.classes)
        # Every condition of a run asks for the best thresholds of the clean images, with the same weights.
        return remember(
            self, "_best", weights, lambda: in_lanes(weights, _optimal, shape, *self.tables, self.tau)
        )

    def thresholds(self, images: int) -> Floats:
        """The score threshold of each class at which LRP over all `images` is lowest."""
        ones = np.ones((1, images), np.uint8)
        best: Floats = in_lanes(ones, _optimal, (5, self.classes), *self.tables, self.tau)[0, 4]
        return best

    def at(self, thresholds: Floats, weights: Weights) -> Floats:
        """LRP and its three parts at given thresholds (replicates × classes): replicates × 4 × classes.

        A class without a threshold (NaN) has no detections.
        """
        shape = (4, self.classes)
        return in_lanes(weights, _at, shape, *self.tables, self.tau, thresholds=thresholds)


def locate(
    truth: DetectionTruth, detections: Detections, tau: float, overlaps: Floats | None = None
) -> Located:
    """Match detections to objects at IoU `tau` or more, or by another similarity of each group's detections ×
    objects."""
    groups = by_class_and_image(truth, detections)
    alike = class_overlaps(truth, detections) if overlaps is None else overlaps
    overlap, excused, finder = locate_groups(groups, alike, truth.excused, tau)
    found_at, found_box = np.full(len(truth), -1.0), np.full((len(truth), 4), np.nan)
    hit = finder >= 0
    found_at[groups.truths[hit]] = detections.scores[groups.detections[finder[hit]]]
    found_box[groups.truths[hit]] = detections.boxes[groups.detections[finder[hit]]]
    order = places(groups.detections, len(detections))[groups.by_class]
    order = order[~excused[order]]
    source, counting = groups.detections[order], np.flatnonzero(~truth.excused)
    falling = places(source, len(detections))[detections.order]
    return Located(
        detections.image[source], detections.labels[source], detections.scores[source], overlap[order],
        truth.image[counting], truth.labels[counting], falling[falling >= 0], len(truth.classes), tau,
        found_at[counting], found_box[counting],
    )  # fmt: skip


def locate_groups(groups: Groups, overlaps: Floats, excused: Bools, tau: float) -> tuple[Floats, Bools, Ints]:
    """Match groups by any similarity: that of each grouped detection with the object it found, whether it is
    excused, and the place of the detection that found each grouped object (−1 for none)."""
    overlap, crossed = np.zeros(len(groups.detections)), np.zeros(len(groups.detections), np.bool_)
    finder = np.full(len(groups.truths), -1)
    crowd = excused[groups.truths]
    _locate(groups.starts, groups.offsets, overlaps, crowd, tau, overlap, crossed, finder)
    return overlap, crossed, finder


_WORDS = {
    "": "localisation-recall-precision error", " Loc": "mean 1 − IoU of hits", " FP": "1 − precision",
    " FN": "1 − recall",
}  # fmt: skip


@metric(
    "boxes",
    *(Measure(f"oLRP{part}", f"{_WORDS[part]}, best threshold", "errors", False) for part in PARTS),
    *(Measure(f"LRP{part}", f"{_WORDS[part]}, clean threshold", "errors", False) for part in PARTS),
    calibrated=_CALIBRATED,
)
def _lrp(objects: Objects, weights: Weights) -> Scored:
    best = objects.located.optimal(weights)
    fixed = objects.located.at(objects.tuning.located.optimal(weights)[:, 4], weights)
    by_class = {f"oLRP{part}": best[:, k] for k, part in enumerate(PARTS)}
    by_class |= {f"LRP{part}": fixed[:, k] for k, part in enumerate(PARTS)}
    numbers = {name: mean_of_known(values) for name, values in by_class.items()}
    at = objects.located
    optimism = class_optimisms(by_class, at.truth_image, at.truth_label, weights, _POWER)
    return Scored(numbers, {"oLRP": best[:, 0]}, by_class, optimism)


@kernel
def _locate(
    starts: Any, offsets: Any, overlaps: Any, crowd: Any, tau: Any, out: Any, excused: Any, finder: Any
) -> None:  # fmt: skip
    """COCO's rule at one threshold: first the objects that count; a crowd excuses what is left."""
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            if d - d0 >= MAX_DETECTIONS:
                excused[d] = True
                continue
            row = offsets[g] + (d - d0) * (t1 - t0) - t0
            best, at = 0.0, -1
            for t in range(t0, t1):
                common = overlaps[row + t]
                if not crowd[t] and finder[t] < 0 and common > 0 and common >= tau and common >= best:
                    best, at = common, t
            if at >= 0:
                finder[at] = d
                out[d] = best
                continue
            for t in range(t0, t1):
                if crowd[t] and overlaps[row + t] > 0 and overlaps[row + t] >= tau:
                    excused[d] = True


@kernel
def _optimal(
    image: Any, score: Any, overlap: Any, starts: Any, truth_image: Any, truth_starts: Any, tau: Any,
    weights: Any, side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    """`Located.optimal` for a block of replicates; `misfit` is the sum of 1 − IoU over hits."""
    width = len(side_by_side)
    objects, hits, misfit, false = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    for k in range(len(starts) - 1):
        sum_weights(truth_image, truth_starts[k], truth_starts[k + 1], weights, side_by_side, objects)
        hits[:], misfit[:], false[:] = 0.0, 0.0, 0.0
        out[:, k, :] = np.nan
        for lane in range(width):
            if objects[lane] > 0:
                out[0, k, lane], out[3, k, lane] = 1.0, 1.0
        for i in range(starts[k], starts[k + 1]):
            # A threshold never separates equal scores.
            last = i + 1 == starts[k + 1] or score[i + 1] != score[i]
            for lane in range(width):
                w = np.float64(weights[image[i], lane])
                if overlap[i] > 0:
                    hits[lane] += w
                    misfit[lane] += w * (1 - overlap[i])
                else:
                    false[lane] += w
                if not last or hits[lane] == 0:
                    continue
                lrp = (misfit[lane] / (1 - tau) + false[lane] + objects[lane] - hits[lane]) / (
                    objects[lane] + false[lane]
                )
                if lrp < out[0, k, lane] or np.isnan(out[4, k, lane]):
                    out[0, k, lane] = lrp
                    out[1, k, lane] = misfit[lane] / hits[lane]
                    out[2, k, lane] = false[lane] / (hits[lane] + false[lane])
                    out[3, k, lane] = 1 - hits[lane] / objects[lane]
                    out[4, k, lane] = score[i]


@kernel
def _at(
    image: Any, score: Any, overlap: Any, starts: Any, truth_image: Any, truth_starts: Any, tau: Any,
    thresholds: Any, weights: Any, side_by_side: Any, out: Any,
) -> None:  # fmt: skip
    """`Located.at` for a block of replicates."""
    width = len(side_by_side)
    objects, hits, misfit, false = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    for k in range(len(starts) - 1):
        sum_weights(truth_image, truth_starts[k], truth_starts[k + 1], weights, side_by_side, objects)
        hits[:], misfit[:], false[:] = 0.0, 0.0, 0.0
        for i in range(starts[k], starts[k + 1]):
            for lane in range(width):
                if score[i] >= thresholds[k, lane]:
                    w = np.float64(weights[image[i], lane])
                    if overlap[i] > 0:
                        hits[lane] += w
                        misfit[lane] += w * (1 - overlap[i])
                    else:
                        false[lane] += w
        for lane in range(width):
            out[:, k, lane] = np.nan
            if objects[lane] == 0:
                continue
            lost = objects[lane] - hits[lane]
            out[0, k, lane] = (misfit[lane] / (1 - tau) + false[lane] + lost) / (objects[lane] + false[lane])
            out[3, k, lane] = lost / objects[lane]
            if hits[lane] > 0:
                out[1, k, lane] = misfit[lane] / hits[lane]
            if hits[lane] + false[lane] > 0:
                out[2, k, lane] = false[lane] / (hits[lane] + false[lane])
