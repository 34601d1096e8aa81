"""Keypoints: COCO's ten numbers by object keypoint similarity, and the share of joints in their place (PCK).

An object without labelled points is excused, at most 20 detections count per image, and the size of a
detection is that of its box, all as in pycocotools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from stormproof.core.errors import InvalidPrediction
from stormproof.core.joints import COCO_JOINTS, usual_sigmas
from stormproof.core.sample import Bools, Floats, Ints
from stormproof.core.threads import cached
from stormproof.metrics.coco import coco_scored, image_precision, shown_classes
from stormproof.metrics.cocomatching import Matches, box_areas, match_groups
from stormproof.metrics.inputs import Objects
from stormproof.metrics.lrp import Located, locate, locate_groups
from stormproof.metrics.matching import ClassGroups, by_class_and_image
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, metric, weighted_ratios
from stormproof.metrics.oks import is_labelled, point_similarities
from stormproof.metrics.points import POINTS
from stormproof.metrics.records import Detections, DetectionTruth, select
from stormproof.metrics.task import Task, task

OKS = "OKS "  # the prefix of the measures by similarity
_ALL, _HALF, _THREE_QUARTERS = slice(None), slice(0, 1), slice(5, 6)
_PRECISIONS = {
    "AP": (_ALL, 0),
    "AP50": (_HALF, 0),
    "AP75": (_THREE_QUARTERS, 0),
    "APm": (_ALL, 2),
    "APl": (_ALL, 3),
}
_RECALLS = {
    "AR": (_ALL, 0, 2), "AR50": (_HALF, 0, 2), "AR75": (_THREE_QUARTERS, 0, 2), "ARm": (_ALL, 2, 2),
    "ARl": (_ALL, 3, 2),
}  # fmt: skip
NUMBERS = tuple(OKS + name for name in (*_PRECISIONS, *_RECALLS))
_FEW_CLASSES: Calibrated = ((8, 50),)
_MORE_IMAGES: dict[str, Calibrated] = {
    "OKS AR50": ((1, 50), (8, 300)),
    "OKS ARm": ((1, 50), (8, 300)),
    "OKS ARl": ((1, 50), (8, 100)),
}
MOST = 20  # detections per class and image that count
_FOUND = 0.5  # the similarity from which on a person is found
OFFSET = "joint offset"
_FOUND_ONLY = "in the longer side of the box, of people found"
NEAR = 0.1  # of the longer side of a person's box: a joint as near as this is in its place


@dataclass(frozen=True, eq=False)
class Poses:
    """How detections match objects by their points: COCO's matches, and how far each joint is off.

    `distance` is objects × joints, in units of the longer side of the object's box: NaN for a joint that is
    not labelled or an object that does not count, infinite in an object that no detection finds (OKS ≥ 0.5).
    `side` is that side, in pixels.
    """

    matches: Matches
    image: Ints
    distance: Floats
    side: Floats


def compare_points(
    truth: DetectionTruth, found: Detections
) -> tuple[DetectionTruth, Detections, ClassGroups, Floats]:
    """OKS of each group's detections × objects, flat; both carry `points`, objects also the `sigmas` of
    joints.

    Objects without labelled points are marked as ignored, and only detections that count are left.
    """
    points = _points_of(truth)
    joints = points.shape[1]
    found_points = found.data.get("points", np.full((len(found), joints, 3), np.nan))
    if len(found) and len(truth) and found_points.shape[1] != joints:
        raise InvalidPrediction(
            f"The model predicts {found_points.shape[1]} points per object, but the truth has {joints}; "
            "score a model of the dataset's points."
        )
    sigmas = truth.data.get("sigmas", np.tile(usual_sigmas(joints), (len(truth), 1)))
    truth = replace(truth, ignore=~counting_points(truth))
    found = replace(found, data={"points": found_points.reshape(len(found), joints, 3)})
    found = _best(truth, found)
    groups, found_points = by_class_and_image(truth, found), found.data["points"]
    overlaps = point_similarities(points, sigmas, truth.area, truth.boxes, truth.sides, found_points, groups)
    return truth, found, groups, overlaps


def _points_of(truth: DetectionTruth) -> Floats:
    return truth.data.get("points", np.zeros((len(truth), 0, 3)))


def counting_points(truth: DetectionTruth) -> Bools:
    """The objects that are judged by their points: those with labelled ones, unless they are excused."""
    return ~truth.excused & is_labelled(_points_of(truth)).any(axis=1)


def match_points(truth: DetectionTruth, found: Detections) -> Poses:
    """Match detections to objects by OKS."""
    shared = truth.excused
    truth, found, groups, overlaps = compare_points(truth, found)
    matches = match_groups(truth, found, groups, overlaps, box_areas(found, groups), shared)
    return Poses(matches, truth.image, *_distances(truth, found, groups, overlaps))


def _best(truth: DetectionTruth, found: Detections) -> Detections:
    """The detections with the highest scores of each class and image, as many as count."""
    groups = by_class_and_image(truth, found)
    counting = groups.place < MOST
    return found if counting.all() else select(found, np.sort(groups.detections[counting]))


def _distances(
    truth: DetectionTruth, found: Detections, groups: ClassGroups, overlaps: Floats
) -> tuple[Floats, Floats]:
    """How far each joint is off, in the longer side of its object's box; and these sides, in pixels."""
    points = _points_of(truth)
    found_points, sides = found.data["points"], np.maximum(truth.sides.max(axis=1, initial=0), 1e-9)
    finder = locate_groups(groups, overlaps, truth.excused, _FOUND)[2]
    distance = np.full(points.shape[:2], np.inf)
    hit = finder >= 0
    objects, detections = groups.truths[hit], groups.detections[finder[hit]]
    apart = np.linalg.norm(found_points[detections, :, :2] - points[objects, :, :2], axis=2)
    distance[objects] = apart / sides[objects, None]
    distance[~is_labelled(points) | truth.excused[:, None]] = np.nan
    return distance, sides


PAIRS: dict[str, list[int]] = {}  # the places of COCO's joints by the pair: nose, eyes, ears, shoulders …
for _place, _joint in enumerate(COCO_JOINTS):
    _side, _, _part = _joint.rpartition("_")
    PAIRS.setdefault(f"{_part}s" if _side else _part, []).append(_place)


@dataclass(frozen=True, eq=False)
class Posed(Objects):
    """Objects and detections with points."""

    @cached
    def poses(self) -> Poses:
        """Matches by OKS."""
        return match_points(self.truth, self.named_boxes)

    @cached
    def located(self) -> Located:
        """Detections matched to objects at an OKS of 0.5 or more."""
        truth, found, _, overlaps = compare_points(self.truth, self.named_boxes)
        return locate(truth, found, _FOUND, overlaps)

    @staticmethod
    def counting(truth: DetectionTruth) -> Bools:
        return counting_points(truth)

    @property
    def kinds(self) -> tuple[str, ...]:
        return POINTS.inputs


@metric(
    "keypoints",
    *(
        Measure(name, f"COCO {name.removeprefix(OKS)} by key points", "keypoints", fading=1.25)
        for name in NUMBERS
    ),
    Measure("PCK", "labelled joints within 0.1 of the longer side of the box", "keypoints", share=True),
    Measure(OFFSET, f"mean distance of joints from their place, {_FOUND_ONLY}", "keypoints", higher=False),
    Measure(
        f"{OFFSET} px",
        f"{OFFSET} in pixels of the image",
        "keypoints",
        higher=False,
        fraction=False,
        unbounded=True,
    ),
    calibrated=dict.fromkeys((*NUMBERS, "PCK"), _FEW_CLASSES) | _MORE_IMAGES,
)
def score_points(posed: Posed, weights: Weights) -> Scored:
    """COCO's ten numbers by replicate, AP by class, PCK, and the distances of joints."""
    scored, every = coco_scored(posed.poses.matches, weights, OKS, _PRECISIONS, _RECALLS), {"": slice(None)}
    return scored | Scored(_share_placed(posed.poses, weights, every) | _offsets(posed.poses, weights, every))


@metric(
    "joints",
    *(Measure(f"PCK {name}", f"PCK of {name}", "joints", share=True) for name in PAIRS),
    *(Measure(f"{OFFSET} {name}", f"{OFFSET} of {name}", "joints", higher=False) for name in PAIRS),
    *(
        Measure(
            f"{OFFSET} {name} px",
            f"{OFFSET} of {name}, in pixels",
            "joints",
            higher=False,
            fraction=False,
            unbounded=True,
        )
        for name in PAIRS
    ),
    calibrated={f"PCK {name}": _FEW_CLASSES for name in PAIRS},
)
def score_joints(posed: Posed, weights: Weights) -> Scored:
    """PCK and distance of each pair of COCO's joints; NaN for other sets of points."""
    known = posed.poses.distance.shape[1] == len(COCO_JOINTS)
    places: dict[str, slice | list[int]] = {f" {name}": at if known else [] for name, at in PAIRS.items()}
    return Scored(_share_placed(posed.poses, weights, places) | _offsets(posed.poses, weights, places))


def _share_placed(
    poses: Poses, weights: Weights, chosen: Mapping[str, slice | list[int]]
) -> dict[str, Floats]:
    """The share of labelled joints that a detection puts in their place, by replicate."""
    columns = {}
    for name, places in chosen.items():
        apart = poses.distance[:, places]
        every = _by_image(poses, ~np.isnan(apart), weights)
        columns[f"PCK{name}"] = _by_image(poses, apart <= NEAR, weights), every
    return weighted_ratios(weights, columns)


def _offsets(poses: Poses, weights: Weights, chosen: Mapping[str, slice | list[int]]) -> dict[str, Floats]:
    """The mean distance of labelled joints of objects that are found, in their box's longer side and in
    pixels, by replicate. Farther than that side counts as that far."""
    columns = {}
    for name, places in chosen.items():
        apart = poses.distance[:, places]
        known = np.isfinite(apart)
        off = np.where(known, np.minimum(apart, 1), 0.0)
        count = _by_image(poses, known, weights)
        columns[f"{OFFSET}{name}"] = _by_image(poses, off, weights), count
        columns[f"{OFFSET}{name} px"] = _by_image(poses, off * poses.side[:, None], weights), count
    return weighted_ratios(weights, columns)


def _by_image(poses: Poses, values: Bools | Floats, weights: Weights) -> Floats:
    return np.bincount(poses.image, values.sum(axis=1), minlength=weights.shape[1]).astype(np.float64)


task(
    Task(
        "keypoints", 25, POINTS, headline=f"{OKS}AP", per_class=f"{OKS}AP", section="keypoints",
        fits=lambda given: "keypoints" in given.kinds,
        image_errors=lambda posed: 1 - image_precision(posed.poses.matches), shown=shown_classes,
        objects=Posed, carried=("points", "sigmas"), alike="OKS",
    ),
    __name__,
)  # fmt: skip
