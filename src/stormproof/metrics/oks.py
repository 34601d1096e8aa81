"""Object keypoint similarity (COCO): how near the points of a detection lie to those of a person.

    OKS = mean over labelled points of exp(−d² / (2 · area · (2σ)²))

d is the distance in pixels, `area` the object's, and σ how far annotators disagree about a joint
(docs/adr/0036). Points are x, y and a third number: in truth the visibility (0 not labelled, 1 hidden, 2
visible), in a prediction the confidence, which the similarity ignores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.kernels import kernel
from stormproof.core.sample import Bools, Floats
from stormproof.metrics.matching import Groups


def is_labelled(points: Floats) -> Bools:
    """Which of n×k×3 points are labelled."""
    shown: Bools = points[..., 2] > 0
    return shown


def point_similarities(
    truth_points: Floats, sigmas: Floats, areas: Floats, boxes: Floats, sides: Floats, found_points: Floats,
    groups: Groups,
) -> Floats:  # fmt: skip
    """OKS of each group's detections × objects, flat, as pycocotools computes it.

    An object without labelled points is compared by its box: points within it or its own side away count as
    near. A joint whose σ is NaN does not exist for the object.
    """
    truths, chosen = groups.truths, groups.detections
    found = np.empty(groups.offsets[-1])
    _similarities(
        groups.starts, groups.offsets, truth_points[truths], sigmas[truths], areas[truths], boxes[truths],
        sides[truths], found_points[chosen], found,
    )  # fmt: skip
    return found


@kernel
def _similarities(
    starts: Any, offsets: Any, truths: Any, sigmas: Any, areas: Any, boxes: Any, sides: Any, found: Any,
    out: Any,
) -> None:  # fmt: skip
    joints, tiny = truths.shape[1], np.spacing(np.float64(1.0))
    for g in range(len(starts)):
        t0, t1, d0, d1 = starts[g]
        for t in range(t0, t1):
            any_labelled = False
            for k in range(joints):
                any_labelled |= truths[t, k, 2] > 0
            x0, x1 = boxes[t, 0] - sides[t, 0], boxes[t, 0] + 2 * sides[t, 0]
            y0, y1 = boxes[t, 1] - sides[t, 1], boxes[t, 1] + 2 * sides[t, 1]
            for d in range(d0, d1):
                total, count = 0.0, 0
                for k in range(joints):
                    if np.isnan(sigmas[t, k]) or (any_labelled and not truths[t, k, 2] > 0):
                        continue
                    x, y = found[d, k, 0], found[d, k, 1]
                    if any_labelled:
                        dx, dy = x - truths[t, k, 0], y - truths[t, k, 1]
                    else:
                        dx = max(0.0, x0 - x) + max(0.0, x - x1)
                        dy = max(0.0, y0 - y) + max(0.0, y - y1)
                    spread = (sigmas[t, k] * 2) ** 2
                    total += np.exp(-((dx**2 + dy**2) / spread / (areas[t] + tiny) / 2))
                    count += 1
                # A detection without points has NaN for them, and no similarity with anything.
                out[offsets[g] + (d - d0) * (t1 - t0) + t - t0] = total / count if total > 0 else 0.0
