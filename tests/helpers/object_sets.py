"""Small random sets of objects and detections, with many cases that are hard to match."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from stormproof.core.sample import RLE
from stormproof.metrics.records import Detections, DetectionTruth

SIDE = 48


@st.composite
def scenes(draw):
    """A few images with boxes on a coarse lattice, so that overlaps, duplicates and score ties abound."""
    classes = draw(st.integers(1, 4))
    images = draw(st.integers(1, 4))
    corner = st.integers(0, 5).map(lambda k: 4 * k)
    length = st.sampled_from([0, 3, 4, 8, 12])

    def column(count, strategy):
        return draw(st.lists(strategy, min_size=count, max_size=count))

    def objects(count):
        xy = np.array(column(count, st.tuples(corner, corner)), float).reshape(-1, 2)
        wh = np.array(column(count, st.tuples(length, length)), float).reshape(-1, 2)
        image = np.sort(np.array(column(count, st.integers(0, images - 1)), int))
        return np.concatenate([xy, xy + wh], axis=1), image

    n, m = draw(st.integers(0, 8)), draw(st.integers(0, 14))
    boxes, image = objects(n)
    # The last of several classes is one that only predictions know.
    labels = np.array(column(n, st.integers(0, max(0, classes - 2))), int)
    crowd = np.array(column(n, st.booleans()), bool) & np.array(column(n, st.booleans()), bool)
    area = np.array(column(n, st.sampled_from([0.0, 500.0, 1024.0, 5000.0, 9216.0, 20000.0])))
    truth = DetectionTruth(
        tuple("abcd"[:images]),
        tuple("wxyz"[:classes]),
        image,
        boxes,
        labels,
        crowd,
        np.zeros(n, bool),
        area,
        tuple(mask_of(box) for box in boxes),
    )
    boxes, image = objects(m)
    scores = np.array(column(m, st.sampled_from([0.0, 0.25, 0.5, 0.5, 0.9, 1.0])))
    labels = np.array(column(m, st.integers(0, classes - 1)), int)
    return truth, Detections(image, boxes, scores, labels, tuple(mask_of(box) for box in boxes))


def mask_of(box: np.ndarray, side: int = SIDE) -> RLE:
    x1, y1, x2, y2 = box.astype(int)
    mask = np.zeros((side, side), bool)
    mask[y1:y2, x1:x2] = True
    mask[y1, x1:x2:2] = False  # no rectangle, so that box and mask disagree
    return RLE.from_mask(mask)
