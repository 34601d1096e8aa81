"""Oriented boxes: COCO's numbers and VOC's AP50 (DOTA's devkit) by the overlap of the polygons.

A polygon's own area decides the size of a detection. DOTA's difficult objects are excused, as VOC's are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.oriented import oriented_overlap, polygon_areas, shared_area
from stormproof.core.sample import Bools, Floats
from stormproof.metrics.cocomatching import Matches, match_groups
from stormproof.metrics.matching import Groups, by_class_and_image
from stormproof.metrics.precision import Judged
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.voc import judged_voc

ORIENTED = "oriented "  # the prefix of measures


def match_corners(
    truth: DetectionTruth, found: Detections, corners: Floats, found_corners: Floats
) -> Matches:
    """COCO's matches of oriented boxes, given by the corners of objects and detections (n×4×2)."""
    groups = by_class_and_image(truth, found)
    overlaps = corner_overlaps(groups, corners, found_corners, truth.excused)
    return match_groups(truth, found, groups, overlaps, polygon_areas(found_corners[groups.detections]))


def judge_corners(truth: DetectionTruth, found: Detections, corners: Floats, found_corners: Floats) -> Judged:
    """The verdicts of DOTA's devkit at IoU 0.5."""
    groups = by_class_and_image(truth, found)
    nothing = np.zeros(len(truth), np.bool_)
    return judged_voc(truth, found, overlaps=corner_overlaps(groups, corners, found_corners, nothing))


def corner_overlaps(groups: Groups, corners: Floats, found_corners: Floats, crowd: Bools) -> Floats:
    """IoU of each group's polygons, detections × objects, flat; for a crowd, the detection's share in it."""
    overlaps = np.empty(groups.offsets[-1])
    truths, detections = corners[groups.truths], found_corners[groups.detections]
    _overlaps(groups.starts, detections, truths, crowd[groups.truths], overlaps)
    return overlaps


@kernel
def _overlaps(starts: Any, detections: Any, truths: Any, crowd: Any, out: Any) -> None:
    at = 0
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for d in range(d0, d1):
            own = polygon_areas(detections[d : d + 1])[0]
            for t in range(t0, t1):
                if crowd[t]:
                    out[at] = shared_area(detections[d], truths[t]) / own if own > 0 else 0.0
                else:
                    out[at] = oriented_overlap(detections[d], truths[t])
                at += 1
