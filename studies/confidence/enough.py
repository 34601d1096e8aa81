"""How often the number of images that is said to decide does decide.

    python studies/confidence/false_passes.py truth --scene street --classes 8 --alone >> runs/truth.jsonl
    python studies/confidence/enough.py sets runs/truth.jsonl --sets 400 >> runs/enough.jsonl
    python studies/confidence/enough.py table runs/enough.jsonl

`sets` draws sets of 4,000 images from the worlds of `false_passes.py`. The first 100 of them are asked
whether the clean AP is above a threshold; thresholds are spread evenly over three standard errors around the
true value. Where that is inconclusive, `results.enough` names a number, and as many images of the set are
asked, half as many and twice as many.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from false_passes import REPLICATES, WORLDS, Found, World, detections, images_like, scored
from looks import first_images

from stormproof.results.enough import images_to_decide
from stormproof.results.interval import Interval, interval_around

IMAGES, FIRST, REACH = 4000, 100, 3.0


def interval_of(world: World, found: Found, weights: np.ndarray, images: int) -> Interval:
    values = scored(*first_images(world, found, images), weights[:, :images], clean=True)
    return interval_around(float(values[0]), values[1:], images=images).of_fraction()


def sets(truth: Path, numbers: range, most: int = IMAGES) -> None:
    true = {row["world"]: row["truth"]["P"] for row in map(json.loads, truth.read_text().splitlines())}
    for number in numbers:
        rng = np.random.default_rng([29, number])
        world = images_like(rng, "street", 8, number % WORLDS, most)
        found = detections(rng, world, 0)
        halves = rng.integers(0, 2, (REPLICATES, most))
        weights = np.concatenate([np.ones((1, most)), halves]).astype(np.uint8)
        seen = interval_of(world, found, weights, FIRST)
        threshold = true[number % WORLDS] + rng.uniform(-REACH, REACH) * seen.se
        row: dict[str, object] = {"open": bool(seen.low < threshold < seen.high)}
        if row["open"]:
            named = images_to_decide(seen, threshold, FIRST)
            row["named"] = named
            decided = {}
            for times in (0.5, 1.0, 2.0):
                count = None if named is None or named > most else round(times * named)
                if count is not None and FIRST < count <= most:
                    later = interval_of(world, found, weights, count)
                    decided[str(times)] = bool(not later.low < threshold < later.high)
            row["decided"] = decided
        print(json.dumps(row), flush=True)


def table(files: list[Path]) -> None:
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    inconclusive = [row for row in rows if row["open"]]
    named = [row["named"] for row in inconclusive if row["named"] is not None]
    print(f"{len(rows)} sets, {len(inconclusive)} inconclusive, {len(named)} with a number", end="")
    print(f" (median {np.median(named):.0f})" if named else "")
    print("| images | sets | decided, % |\n|---|---|---|")
    for times, words in (("0.5", "half as many as named"), ("1.0", "as named"), ("2.0", "twice as many")):
        decided = [row["decided"][times] for row in inconclusive if times in row["decided"]]
        share = f"{100 * np.mean(decided):.0f}" if decided else ""
        print(f"| {words} | {len(decided)} | {share} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawn = verbs.add_parser("sets")
    drawn.add_argument("truth", type=Path)
    drawn.add_argument("--sets", type=int, default=400)
    drawn.add_argument("--first", type=int, default=0)
    verbs.add_parser("table").add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.verb == "sets":
        sets(given.truth, range(given.first, given.first + given.sets))
    else:
        table(given.files)


if __name__ == "__main__":
    main()
