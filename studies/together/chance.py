"""How often something is called worse together by chance, by simulation, where nothing is.

    python studies/together/chance.py --sets 400

Sums: 84 pairs of 15 corruptions, as in the suite common-pairs. Each corruption takes points from every image,
more from some than from others; a pair takes what both take, and luck of its own. The score is the mean over
images, as for a measure such as mIoU on maps of similar size.

AP: 16 pairs of four corruptions that hurt and four that do nothing, of detectors whose detections are drawn
anew under every condition (studies/confidence/false_passes.py): the pair is then truly as bad as its worse
part, so that neither the sum nor the product of the parts is exceeded.

A family is all composed conditions of a run. Printed is the share of families in which any sentence would be
printed, with the intervals that hold together and, for comparison, with 95 % intervals one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.corruptions.suites import SUITES
from stormproof.metrics.metric import mean_of_known
from stormproof.results.interaction import PREDICTIONS, interactions
from stormproof.results.interval import draws
from stormproof.results.scores import Replicates, Scores
from stormproof.results.weights import half_weights

sys.path.append(str(Path(__file__).resolve().parents[1] / "confidence"))
Simulated = Callable[[np.random.Generator, int], Scores]
HURTS, IDLE = ("fog@3", "snow@3", "frost@3", "contrast@3"), ("pixelate@1", "saturate@1", "fog@1", "snow@1")


def sums(rng: np.random.Generator, images: int) -> Scores:
    """Scores that add up, by their own halves."""
    single = [str(c) for c in SUITES["common-pairs"] if not c.is_composed]
    hard = rng.normal(0.75, 0.08, images)
    taken = {text: rng.gamma(2.0, 0.01 * rng.uniform(1, 8), images) for text in single}
    values = {"clean": hard, **{text: hard - lost for text, lost in taken.items()}}
    for pair in (c for c in SUITES["common-pairs"] if c.is_composed):
        values[str(pair)] = hard - sum(taken[str(part)] for part in pair.parts)
    halves = half_weights([f"{k}.png" for k in range(images)]).astype(float)
    rows = np.concatenate([np.ones((1, images)), halves])
    rows /= rows.sum(axis=1, keepdims=True)
    return _scores(
        "mIoU", {t: rows @ (each + rng.normal(0, 0.03, images)) for t, each in values.items()}, images
    )


def precisions(rng: np.random.Generator, images: int) -> Scores:
    """AP under corruptions of which every second does nothing."""
    import false_passes

    world = false_passes.images_like(rng, "street", 7, int(rng.integers(4)), images)
    halves = half_weights([f"{k}.png" for k in range(images)])
    rows = np.concatenate([np.ones((1, images), np.uint8), halves])
    levels = dict(zip(HURTS, (1, 3, 3, 5), strict=True))
    texts = {"clean": 0, **levels, **dict.fromkeys(IDLE, 0)}
    texts |= {f"{a}+{b}": levels[a] for a, b in product(HURTS, IDLE)}
    return _scores(
        "AP",
        {
            text: false_passes.scored(world, false_passes.detections(rng, world, s), rows)
            for text, s in texts.items()
        },
        images,
        drawn=True,
    )


def _scores(measure: str, values: dict[str, Any], images: int, *, drawn: bool = False) -> Scores:
    """`values` by condition: a score, then those of halves, or its draws."""
    cells = {text: float(row[0]) for text, row in values.items()}
    spread = {text: row[1:] if drawn else draws(row) for text, row in values.items()}
    return Scores(
        "net", "street", images, {measure: cells}, tuple(cells), metric=measure,
        replicates=Replicates({measure: spread}, {}),
    )  # fmt: skip


def shares(simulated: Simulated, images: int, sets: int) -> tuple[float, ...]:
    """The share of families with a pair that is said to be worse than the sum of its parts, than the product,
    and than the sum by 95 % intervals one by one."""
    counts = []
    for number in range(sets):
        scores = simulated(np.random.default_rng([images, number]), images)
        found = list(interactions(scores, scores.headline).values())
        alone = (one.beyond["sum"] for one in found)
        counts.append((
            *(any(one.worse(by) for one in found) for by in PREDICTIONS),
            any(each.estimate - max(0.0, each.optimism) > 1.96 * each.se for each in alone),
        ))  # fmt: skip
    return tuple(float(mean_of_known(np.array(column, float))) for column in zip(*counts, strict=True))


def rows(sets: int, of: dict[str, Simulated]) -> Iterator[str]:
    yield "| simulated | images | families | sum | product | sum, one by one |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, simulated in of.items():
        for images in (50, 100, 200):
            found = [f"{100 * share:.1f} %" for share in shares(simulated, images, sets)]
            if simulated is sums:
                found[1] = "–"  # where parts add up, the product is truly exceeded
            numbers = " | ".join(found)
            yield f"| {name} | {images} | {sets} | {numbers} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--of", choices=("sums", "AP"), nargs="+", default=["sums", "AP"])
    given = parser.parse_args()
    every: dict[str, Simulated] = {"sums": sums, "AP": precisions}
    for line in rows(given.sets, {name: every[name] for name in given.of}):
        print(line, flush=True)
