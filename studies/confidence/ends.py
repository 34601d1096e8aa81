"""Average precision near 0 and near 100: how often its interval misses the true value, above and below.

    python studies/confidence/ends.py --sets 200

The worlds of `false_passes.py`, with detectors that find nearly everything or nearly nothing. Prints a line
of a Markdown table for each: sets whose interval is above the truth / below it, in %, and the mean width in
points.
At most 2.5 / 2.5 is promised; an interval above the truth is what lets a gate pass wrongly.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from false_passes import REPLICATES, WORLDS, Found, World, detections, images_like

from stormproof.metrics.cocomatching import IOUS
from stormproof.metrics.metric import mean_of_known
from stormproof.metrics.optimism import ap_optimism
from stormproof.metrics.precision import COCO_POINTS, VOC07_POINTS, Judged, average_precision
from stormproof.results.interval import draws, interval_around

DETECTORS = {"nearly all": (0, -4.5), "most": (0, -3.5), "few": (6, 0.0), "nearly nothing": (8, 0.0)}
PLACES = (("street", 8), ("photos", 80))
IMAGES = (50, 100, 300)
TRUTH_IMAGES = 30_000


def judged(world: World, found: Found) -> tuple[Judged, Any]:
    order = np.lexsort((-found.score, found.label))
    hit = found.hit[order, None]
    return Judged(
        found.image[order], found.label[order], hit, np.zeros_like(hit), np.ones(hit.shape, bool),
        np.zeros(len(hit), np.int64), world.image, world.label, np.ones((1, len(world.image)), bool),
        world.classes, len(IOUS),
    ), found.score[order]  # fmt: skip


def measured(world: World, found: Found, weights: Any) -> dict[str, tuple[Any, float]]:
    """AP and VOC's AP50 of 2007 under every row of weights, and the optimism of each."""
    matches, scores = judged(world, found)
    precision, _ = average_precision(matches, weights, COCO_POINTS, VOC07_POINTS)
    values = {"AP": precision[:, 0, 0].mean(axis=2), "VOC07 AP50": precision[:, 1, 0, :, 0]}
    optimism = dict.fromkeys(values, np.zeros(1))
    if len(weights) > 1:
        optimism["AP"] = ap_optimism(matches, scores)[0].mean(axis=1)
        optimism["VOC07 AP50"] = ap_optimism(matches, scores, points=VOC07_POINTS)[0, :, 0]
    return {
        name: (mean_of_known(column), float(mean_of_known(optimism[name]))) for name, column in values.items()
    }


def line(
    scene: str, classes: int, detector: str, images: int, truth: list[dict[str, float]], sets: int
) -> str:
    severity, weaker = DETECTORS[detector]
    missed: dict[str, list[tuple[bool, bool, float]]] = {}
    for number in range(sets):
        rng, place = np.random.default_rng([31, images, number]), number % WORLDS
        world = images_like(rng, scene, classes, place, images)
        halves = rng.integers(0, 2, (REPLICATES, images))
        weights = np.concatenate([np.ones((1, images)), halves]).astype(np.uint8)
        found = measured(world, detections(rng, world, severity, weaker), weights)
        for name, (values, optimism) in found.items():
            one = interval_around(float(values[0]), draws(values, optimism), images=images).of_fraction()
            at = truth[place][name]
            missed.setdefault(name, []).append((one.low > at, one.high < at, one.high - one.low))
    cells = []
    for name, each in missed.items():
        above, below, width = 100 * np.mean(np.array(each, float), axis=0)
        at = 100 * np.mean([row[name] for row in truth])
        cells.append(f"{at:.1f} | {above:.1f} / {below:.1f} | {width:.1f}")
    return f"| {scene} | {classes} | {detector} | {images} | {sets} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    given = parser.parse_args()
    print("| scene | classes | finds | images | sets | AP | missed | width | VOC07 AP50 | missed | width |")
    print("|---" * 11 + "|")
    for scene, classes in PLACES:
        for detector, (severity, weaker) in DETECTORS.items():
            truth = []
            for place in range(WORLDS):
                rng = np.random.default_rng([9, place])
                world = images_like(rng, scene, classes, place, TRUTH_IMAGES)
                found = measured(world, detections(rng, world, severity, weaker), np.ones((1, TRUTH_IMAGES)))
                truth.append({name: float(values[0]) for name, (values, _) in found.items()})
            for images in IMAGES:
                print(line(scene, classes, detector, images, truth, given.sets), flush=True)


if __name__ == "__main__":
    main()
