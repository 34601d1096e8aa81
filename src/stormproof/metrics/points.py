"""Key points as a form of truth and predictions: n×k×3 of x, y and visibility or confidence, and their σ.

In truth, the third number is COCO's flag: 0 not labelled, 1 labelled but hidden, 2 visible. In a prediction,
it is a confidence. `sigmas` (n×k) belong to truth: how far annotators disagree about each joint.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.forms import Form, Motion, form

if TYPE_CHECKING:
    from stormproof.core.sample import Floats
    from stormproof.metrics.keypoints import Posed

# The bones between COCO's joints, as chains of joints.
_CHAINS = ((15, 13, 11, 12, 14, 16), (11, 5, 6, 12), (9, 7, 5), (6, 8, 10), (3, 1, 0, 2, 4))
_JOINTS = 17
_LEAST = 0.3  # confidence of a predicted joint that is drawn


def _move(points: Floats, motion: Motion) -> Floats:
    """Points go with the pixels; one that leaves the image is no longer labelled."""
    moved = points.copy()
    known = points[..., 2] > 0
    moved[known, :2] = motion.points(points[known, :2])
    height, width = motion.size
    inside = ((moved[..., :2] >= 0) & (moved[..., :2] <= (width, height))).all(axis=-1)
    moved[known & ~inside] = 0
    return moved


def _lines(points: Floats) -> Iterator[Floats]:
    """A skeleton for COCO's joints, crosses for other points; points that are not labelled are left out."""
    drawn = points[:, 2] >= _LEAST
    if len(points) == _JOINTS:
        for chain in _CHAINS:
            for first, second in pairwise(chain):
                if drawn[first] and drawn[second]:
                    yield points[[first, second], :2]
        return
    for x, y, _ in points[drawn]:
        yield np.array([[x - 2, y], [x + 2, y]])
        yield np.array([[x, y - 2], [x, y + 2]])


def _collect(reader: Any) -> Iterator[tuple[str, Posed]]:
    from stormproof.metrics.keypoints import Posed  # late: a run needs no input of metrics

    for text, truth, found in reader.objects(forms=("points", "sigmas")):
        yield text, Posed(truth, found, reader.rule)


SIGMAS = form(Form("sigmas", "spreads of key points", shape=(-1,)), __name__)
POINTS = form(
    Form("points", "key points", shape=(-1, 3), move=_move, lines=_lines, inputs=("keypoints", "joints"),
         collect=_collect),
    __name__,
)  # fmt: skip
