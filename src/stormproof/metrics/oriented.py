"""Oriented boxes: COCO's numbers and VOC's AP50, as DOTA's devkit, by the overlap of the polygons.

A polygon's own area decides the size of a detection. DOTA's difficult objects are excused, as VOC's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.oriented import oriented_overlap, polygon_areas, shared_area
from stormproof.core.sample import Bools, Floats
from stormproof.core.threads import cached
from stormproof.metrics.coco import CALIBRATED, NUMBERS, coco_scored, image_precision, shown_classes
from stormproof.metrics.cocomatching import Matches, match_groups
from stormproof.metrics.corners import CORNERS
from stormproof.metrics.inputs import Objects
from stormproof.metrics.lrp import TAU, Located, locate
from stormproof.metrics.matching import Groups, by_class_and_image
from stormproof.metrics.metric import Measure, Scored, Weights, metric
from stormproof.metrics.precision import Judged
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.task import Task, task
from stormproof.metrics.voc import CALIBRATED as VOC_CALIBRATED
from stormproof.metrics.voc import NUMBERS as VOC_NUMBERS
from stormproof.metrics.voc import judge_by_devkit, voc_scored

ORIENTED = "oriented "  # the prefix of measures


def match_corners(truth: DetectionTruth, found: Detections) -> Matches:
    """COCO's matches of oriented boxes."""
    groups, corners = by_class_and_image(truth, found), _corners(found)
    overlaps = _overlaps_of(truth, found, groups, truth.excused)
    return match_groups(truth, found, groups, overlaps, polygon_areas(corners[groups.detections]))


def judge_corners(truth: DetectionTruth, found: Detections) -> Judged:
    """The verdicts of DOTA's devkit at IoU 0.5."""
    groups = by_class_and_image(truth, found)
    nothing = np.zeros(len(truth), np.bool_)
    return judge_by_devkit(truth, found, overlaps=_overlaps_of(truth, found, groups, nothing))


def _corners(held: DetectionTruth | Detections) -> Floats:
    """The corners of all entries; NaN, which overlaps nothing, where there are none."""
    return held.data.get("corners", np.full((len(held), 4, 2), np.nan)).reshape(-1, 4, 2)


def _overlaps_of(truth: DetectionTruth, found: Detections, groups: Groups, crowd: Bools) -> Floats:
    """IoU of each group's polygons, detections × objects, flat; for a crowd, the detection's share in it."""
    overlaps = np.empty(groups.offsets[-1])
    objects, detections = _corners(truth)[groups.truths], _corners(found)[groups.detections]
    _overlaps(groups.starts, detections, objects, crowd[groups.truths], overlaps)
    return overlaps


@kernel
def _overlaps(starts: Any, detections: Any, truths: Any, crowd: Any, out: Any) -> None:
    at, areas = 0, polygon_areas(detections)
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            for t in range(t0, t1):
                if crowd[t]:
                    out[at] = shared_area(detections[d], truths[t]) / areas[d] if areas[d] > 0 else 0.0
                else:
                    out[at] = oriented_overlap(detections[d], truths[t])
                at += 1


@dataclass(frozen=True, eq=False)
class Oriented(Objects):
    """Objects and detections with corners."""

    @cached
    def polygons(self) -> Matches:
        """COCO's matches."""
        return match_corners(self.truth, self.named_boxes)

    @cached
    def located(self) -> Located:
        """Oriented boxes matched to objects at IoU 0.5 or more."""
        groups = by_class_and_image(self.truth, self.named_boxes)
        overlaps = _overlaps_of(self.truth, self.named_boxes, groups, self.truth.excused)
        return locate(self.truth, self.named_boxes, TAU, overlaps)

    @property
    def kinds(self) -> tuple[str, ...]:
        return CORNERS.inputs


@metric(
    "oriented",
    *(
        Measure(ORIENTED + name, f"COCO {name} of oriented boxes", "oriented", fading=1.25)
        for name in NUMBERS
    ),
    *(
        Measure(ORIENTED + name, f"{words} of oriented boxes, as DOTA's devkit", "oriented", fading=1.25)
        for name, words in VOC_NUMBERS.items()
    ),
    calibrated={ORIENTED + name: known for name, known in (CALIBRATED | VOC_CALIBRATED).items()},
)
def score_corners(oriented: Oriented, weights: Weights) -> Scored:
    """COCO's twelve numbers and AP50 by both of VOC's rules."""
    judged = judge_corners(oriented.truth, oriented.named_boxes)
    scored = coco_scored(oriented.polygons, weights, ORIENTED)
    return scored | voc_scored(judged, weights, oriented.polygons, ORIENTED)


task(
    Task(
        "oriented detection", 27, CORNERS, headline=f"{ORIENTED}AP", per_class=f"{ORIENTED}AP",
        section="oriented", fits=lambda given: "oriented" in given.kinds,
        image_errors=lambda oriented: 1 - image_precision(oriented.polygons), shown=shown_classes,
        objects=Oriented, carried=("corners",), alike="oriented IoU",
    ),
    __name__,
)  # fmt: skip
