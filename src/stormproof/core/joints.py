"""COCO's seventeen joints of people, and how far annotators disagree about each: the σ of OKS."""

from __future__ import annotations

import numpy as np

from stormproof.core.sample import Floats

COCO_JOINTS = (
    "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee",
    "left_ankle", "right_ankle",
)  # fmt: skip
COCO_SIGMAS: Floats = np.array(
    [.26, .25, .25, .35, .35, .79, .79, .72, .72, .62, .62, 1.07, 1.07, .87, .87, .89, .89]
) / 10.0  # fmt: skip  # as pycocotools computes them


def usual_sigmas(points: int) -> Floats:
    """COCO's σ for its 17 joints; for other sets of points without their own, 1 / number of points each, as
    Ultralytics' validation assumes.

    >>> usual_sigmas(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return COCO_SIGMAS.copy() if points == len(COCO_SIGMAS) else np.full(points, 1 / max(points, 1))
