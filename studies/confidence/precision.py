"""`run --precision` on simulated grids whose full score is known: where it stops, and whether it is right.

    python studies/confidence/precision.py --rotations 20

Images are those of `false_passes.py`, under 10 corruptions at 3 severities. Each rotation chooses the images
of each condition as another seed would. Prints a line of a Markdown table per world: the full mPC, images per
condition and share of the inferences at which it stops, rotations within the precision, the share of
intervals that contain the full mPC, and what is possible: the fewest images per condition, of a few tried,
with which 19 of 20 estimates are within the precision, whatever their intervals say.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from estimator import Full
from false_passes import Found, World, detections, images_like

from stormproof.metrics.cocomatching import IOUS
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import measures, metrics_of
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.results.estimate import EstimatedCondition
from stormproof.results.sets import sets_of
from stormproof.results.weights import poisson_weights

CORRUPTIONS = (
    "fog", "snow", "frost", "contrast", "brightness", "gaussian_noise", "shot_noise", "pixelate",
    "defocus_blur", "motion_blur",
)  # fmt: skip
SEVERITIES = (1, 3, 5)
# By world: scene, classes, images, skill beyond that of `false_passes.py`, and how much a severity takes.
WORLDS = {
    "middle": ("street", 8, 300, 0.0, 1.0),
    "near 100": ("street", 8, 300, 4.5, 0.2),
    "near 0": ("street", 8, 300, -2.0, 1.0),
    "80 classes": ("photos", 80, 300, 0.0, 1.0),
}
SIZES = (10, 15, 25, 40, 60, 100, 150, 200, 250)
REPLICATES = 40
_SIDE, _SPACING = 100.0, 400.0  # of objects, in pixels: none overlaps another


def truth_of(world: World) -> DetectionTruth:
    count = len(world.image)
    left = _SPACING * (1 + np.arange(count) - np.searchsorted(world.image, world.image))
    boxes = np.stack([left, np.zeros(count), left + _SIDE, np.full(count, _SIDE)], axis=1)
    nothing = np.zeros(count, bool)
    return DetectionTruth(
        tuple(str(k) for k in range(len(world.hardness))), tuple(f"class {k}" for k in range(world.classes)),
        world.image, boxes, world.label, nothing, nothing, np.full(count, _SIDE**2), (None,) * count,
    )  # fmt: skip


def cell_of(world: World, truth: DetectionTruth, found: Found, seen: np.ndarray) -> EstimatedCondition:
    """A cell with a box for every detection: on its object, as wide as its IoU asks for, or on nothing."""
    reached = np.array([bin(int(bits)).count("1") for bits in found.hit])
    overlap = np.where(reached > 0, IOUS[np.maximum(reached, 1) - 1] + 0.02, 0.4)
    count = len(seen)
    boxes = np.zeros((len(found.image), 4))
    boxes[:count] = truth.boxes[seen]
    boxes[:count, 2] = boxes[:count, 0] + _SIDE * overlap[:count]
    alarms = len(boxes) - count
    boxes[count:] = np.array([0, 1000, 50, 1050]) + 60 * np.arange(alarms)[:, None] * np.array([0, 1, 0, 1])
    order = np.argsort(found.image, kind="stable")
    placed = Detections(found.image[order], boxes[order], found.score[order], found.label[order])
    measure = measures()["AP"]
    metric = next(each for each in metrics_of("boxes") if measure in each.measures)
    return EstimatedCondition(Objects(truth, placed), metric, measure)


def full(name: str, seed: int) -> Full:
    scene, classes, images, skill, fall = WORLDS[name]
    rng = np.random.default_rng([41, seed])
    world = images_like(rng, scene, classes, 0, images)
    truth = truth_of(world)
    strength = dict(zip(CORRUPTIONS, rng.uniform(0.7, 1.3, len(CORRUPTIONS)), strict=True))
    cells: dict[str, EstimatedCondition] = {}
    for text in ("clean", *(f"{c}@{s}" for c in CORRUPTIONS for s in SEVERITIES)):
        severity = 0.0 if text == "clean" else fall * strength[text[:-2]] * int(text[-1])
        found, seen = detected(rng, world, severity, -skill)
        cells[text] = cell_of(world, truth, found, seen)
    clean = cells.pop("clean")
    weights = poisson_weights(truth.ids, replicates=REPLICATES)
    return Full(name, images, clean, cells, sets_of(tuple(cells))[0], weights)


def detected(
    rng: np.random.Generator, world: World, severity: float, weaker: float
) -> tuple[Found, np.ndarray]:
    """As `false_passes.detections`, and which objects its first detections are on."""
    found = detections(rng, numbered(world), 0, weaker + 0.35 * severity)
    seen = found.label[found.label >= world.classes] - world.classes
    label = found.label.copy()
    label[: len(seen)] = world.label[seen]
    return found._replace(label=label), seen


def numbered(world: World) -> World:
    """The world with each object's number, beyond the classes, as its label: detections keep it."""
    return world._replace(label=world.classes + np.arange(len(world.image)))


def line(name: str, rotations: int, precision: float, sizes: Sequence[int]) -> str:
    made = full(name, seed=0)
    true = made.estimate(made.images, seed=0).mpc.estimate
    stopped = [made.stopped(precision, seed) for seed in range(rotations)]
    off = 100 * np.array([one.mpc.estimate - true for one in stopped])
    covered = [one.mpc.low <= true <= one.mpc.high for one in stopped]
    enough = made.images
    for size in (size for size in sizes if size < made.images):
        errors = [100 * abs(made.estimate(size, seed).mpc.estimate - true) for seed in range(rotations)]
        if np.mean(np.array(errors) <= precision) >= 0.95:
            enough = size
            break
    shares, done = (np.mean([getattr(one, key) for one in stopped]) for key in ("shares", "inferences"))
    return (
        f"| {name} | {made.images} | {100 * true:.2f} | {shares:.0f} | {100 * done:.0f} % | "
        f"{off.mean():+.2f} | "
        f"{(abs(off) <= precision).sum()} of {rotations} | {100 * np.mean(covered):.0f} % | {enough} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rotations", type=int, default=20)
    parser.add_argument("--precision", type=float, default=0.5)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    given = parser.parse_args()
    print("| world | images | mPC | stops at | inferences | bias | within | covered | allowed |")
    print("|---" * 9 + "|")
    for name in given.worlds:
        print(line(name, given.rotations, given.precision, SIZES), flush=True)


if __name__ == "__main__":
    main()
