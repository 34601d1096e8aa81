"""Keypoints: COCO's ten numbers by object keypoint similarity, and the share of joints in their place (PCK).

An object without labelled points is excused, at most 20 detections count per image, and the size of a
detection is that of its box, all as in pycocotools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stormproof.core.errors import InvalidPrediction
from stormproof.core.sample import Floats, Ints
from stormproof.metrics.coco import coco_scored
from stormproof.metrics.cocomatching import Matches, box_areas, match_groups
from stormproof.metrics.lrp import locate_groups
from stormproof.metrics.matching import ClassGroups, by_class_and_image
from stormproof.metrics.metric import Scored, Weights, weighted_ratios
from stormproof.metrics.oks import COCO_JOINTS, labelled, point_similarities
from stormproof.metrics.records import Detections, DetectionTruth, select

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
MOST = 20  # detections per class and image that count
_FOUND = 0.5  # the similarity from which on a person is found
NEAR = 0.1  # of the longer side of a person's box: a joint as near as this is in its place


@dataclass(frozen=True, eq=False)
class Poses:
    """How detections match objects by their points: COCO's matches, and how far each joint is off.

    `distance` is objects × joints, in units of the longer side of the object's box: NaN for a joint that is
    not labelled or an object that does not count, infinite in an object that no detection finds (OKS ≥ 0.5).
    """

    matches: Matches
    image: Ints
    distance: Floats


def match_points(
    truth: DetectionTruth, found: Detections, points: Floats, sigmas: Floats, found_points: Floats
) -> Poses:
    """Match detections to objects by OKS. Points are objects × joints × 3, and `sigmas` objects × joints."""
    if len(found) and found_points.shape[1:] != points.shape[1:] and len(points):
        raise InvalidPrediction(
            f"The model predicts {found_points.shape[1]} points per object, the truth has {points.shape[1]}; "
            "score a model of the dataset's points."
        )
    shared = truth.excused
    truth = replace(truth, ignore=truth.ignore | ~labelled(points).any(axis=1))
    found, found_points = _best(truth, found, found_points)
    groups = by_class_and_image(truth, found)
    overlaps = point_similarities(points, sigmas, truth.area, truth.boxes, truth.sides, found_points, groups)
    matches = match_groups(truth, found, groups, overlaps, box_areas(found, groups), shared)
    return Poses(matches, truth.image, _distances(truth, points, found_points, groups, overlaps))


def _best(truth: DetectionTruth, found: Detections, points: Floats) -> tuple[Detections, Floats]:
    """The detections with the highest scores of each class and image, as many as count."""
    groups = by_class_and_image(truth, found)
    first, end = groups.starts[:, 2], groups.starts[:, 3]
    place = np.arange(len(groups.detections)) - np.repeat(first, end - first)
    if (place < MOST).all():
        return found, points
    kept = np.sort(groups.detections[place < MOST])
    return select(found, kept), points[kept]


def _distances(
    truth: DetectionTruth, points: Floats, found_points: Floats, groups: ClassGroups, overlaps: Floats
) -> Floats:
    finder = locate_groups(groups, overlaps, truth.excused, _FOUND)[2]
    distance = np.full(points.shape[:2], np.inf)
    hit = finder >= 0
    objects, detections = groups.truths[hit], groups.detections[finder[hit]]
    apart = np.linalg.norm(found_points[detections, :, :2] - points[objects, :, :2], axis=2)
    distance[objects] = apart / np.maximum(truth.sides[objects].max(axis=1), 1e-9)[:, None]
    distance[~labelled(points) | truth.excused[:, None]] = np.nan
    return distance


def score_poses(poses: Poses, weights: Weights) -> Scored:
    """COCO's ten numbers by replicate, AP by class, and PCK."""
    scored = coco_scored(poses.matches, weights, OKS, _PRECISIONS, _RECALLS)
    return scored | Scored(_placed(poses, weights, {"PCK": slice(None)}))


def score_joints(poses: Poses, weights: Weights) -> Scored:
    """PCK of each pair of COCO's joints; NaN for other sets of points."""
    own = poses.distance.shape[1] == len(COCO_JOINTS)
    if own:
        return Scored(_placed(poses, weights, {f"PCK {name}": places for name, places in PAIRS.items()}))
    return Scored({f"PCK {name}": np.full(len(weights), np.nan) for name in PAIRS})


def _pairs() -> dict[str, list[int]]:
    """The places of COCO's joints by the name of the pair: nose, eyes, ears, shoulders …"""
    pairs: dict[str, list[int]] = {}
    for place, name in enumerate(COCO_JOINTS):
        side, _, part = name.rpartition(" ")
        pairs.setdefault(f"{part}s" if side else part, []).append(place)
    return pairs


PAIRS = _pairs()


def _placed(poses: Poses, weights: Weights, chosen: dict[str, slice | list[int]]) -> dict[str, Floats]:
    """The share of labelled joints that a detection puts in their place, by replicate."""
    images = weights.shape[1]

    def by_image(flags: Floats) -> Floats:
        return np.bincount(poses.image, flags.sum(axis=1), minlength=images)

    columns = {
        name: (by_image(poses.distance[:, places] <= NEAR), by_image(~np.isnan(poses.distance[:, places])))
        for name, places in chosen.items()
    }
    return weighted_ratios(weights, columns)
