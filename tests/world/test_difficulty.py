"""The scenes are not trivial by colour: a detector that only knows colours fails on them."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from stormproof.core.sample import Prediction, Sample
from stormproof.metrics.coco import coco_scored
from stormproof.metrics.cocomatching import match_boxes
from stormproof.metrics.records import DetectionTruth, lay_out
from stormproof.world.classes import OBJECTS
from stormproof.world.samples import render

BINS = 16  # per channel
THRESHOLDS = (0.15, 0.3, 0.5, 0.7, 0.85)
CLOSINGS = (0, 3, 7)  # pixels
Odds = npt.NDArray[np.float64]


def scene(split: str, index: int) -> Sample:
    return render(0, split, index).sample


def coded(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Each pixel's colour cell."""
    r, g, b = (image[..., k].astype(np.int64) * BINS // 256 for k in range(3))
    return (r * BINS + g) * BINS + b


def learn(samples: list[Sample]) -> Odds:
    """For every class and colour, how often a pixel of that colour belongs to that class."""
    seen = np.ones(BINS**3) * 5
    hits = np.zeros((len(OBJECTS), BINS**3))
    for sample in samples:
        cells, objects = coded(sample.image), sample.truth.instances
        assert objects is not None
        assert objects.masks is not None
        seen += np.bincount(cells.ravel(), minlength=BINS**3)
        for label, mask in zip(objects.labels, objects.masks, strict=True):
            hits[label] += np.bincount(cells[mask.to_mask()], minlength=BINS**3)
    return hits / seen


def detect(sample: Sample, odds: Odds, settings: list[tuple[float, int]]) -> Prediction:
    """Connected regions of colours typical of a class; the threshold is relative to its best colour."""
    boxes, scores, labels = [], [], []
    cells = coded(sample.image)
    for label, (share, closing) in enumerate(settings):
        likely = odds[label][cells]
        mask = (likely > share * np.quantile(odds[label][odds[label] > 0], 0.98)).astype(np.uint8)
        if closing:
            mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((closing, closing), np.uint8))
        count, regions, facts, _ = cv2.connectedComponentsWithStats(mask)
        sums = np.bincount(regions.ravel(), weights=likely.ravel(), minlength=count)
        for k in range(1, count):
            x, y, w, h, area = facts[k]
            if area >= 12:
                boxes.append((x, y, x + w, y + h))
                scores.append(sums[k] / (area + 200))  # the mean, less of it the smaller the region
                labels.append(label)
    best = np.argsort(scores)[::-1][:100]
    return Prediction(
        np.array(boxes).reshape(-1, 4)[best], np.clip(scores, 0, 1)[best], np.array(labels, np.int64)[best]
    )


def ap50(samples: list[Sample], odds: Odds, settings: list[tuple[float, int]]) -> tuple[float, list[float]]:
    truth = DetectionTruth.of(
        [(s.id, s.truth.instances) for s in samples if s.truth.instances is not None], OBJECTS
    )
    found = {s.id: detect(s, odds, settings) for s in samples}
    scored = coco_scored(match_boxes(truth, lay_out(found, truth)), np.ones((1, len(samples))))
    return float(scored.numbers["AP50"][0]), scored.parts["AP50"][0].tolist()


@pytest.mark.slow
def test_colour_alone_finds_little() -> None:
    train, val = [scene("train", k) for k in range(24)], [scene("val", k) for k in range(16)]
    odds = learn(train)
    trials = [(share, closing) for share in THRESHOLDS for closing in CLOSINGS]
    tuning = train[:8]
    results = np.array([ap50(tuning, odds, [trial] * len(OBJECTS))[1] for trial in trials])
    chosen = [trials[k] for k in np.nan_to_num(results).argmax(axis=0)]
    score, _ = ap50(val, odds, chosen)
    print(f"colour baseline AP50 {score:.3f}")
    assert 0.0 <= score < 0.2
