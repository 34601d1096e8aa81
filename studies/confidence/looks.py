"""Repeated looks at a growing run: how often any of them passes a model that is not good enough.

    python studies/confidence/looks.py spending
    python studies/confidence/looks.py sets --scene street --classes 8 >> runs/looks.jsonl
    python studies/confidence/looks.py sets --scene street --classes 8 --images 200 --looks 4 >> plan.jsonl
    python studies/confidence/looks.py table runs/looks.jsonl truth.jsonl

`spending` compares ways to spend the chance of a wrong pass, on a Brownian motion. `sets` draws sets of 500
images from the worlds of `false_passes.py`, judges each at 50, 100 … 500 images, and keeps how far from the
estimate each interval ends: as if every look were the only one, and at the level of `results.looks`. With
`--images 200`, that is a plan of 200 images, of however large a dataset. `table` reads them with the lines
that `false_passes.py truth` printed: false passes at the true value, and passes of models that are better
than required, by any look and by a single look at all images.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from false_passes import (
    REPLICATES,
    SEVERITIES,
    WORLDS,
    Found,
    Place,
    World,
    detections,
    images_like,
    scored,
    with_loss,
)
from scipy.special import ndtr, ndtri

from stormproof.results.interval import WRONG, interval_around
from stormproof.results.looks import levels

LOOKS, IMAGES = 10, 500
BETTER = (0.0, 0.03, 0.06)  # than required
AT_MOST = ("loss",)
_PATHS = 200_000
SPENDING: dict[str, Callable[[float], float]] = {
    "α t (linear)": lambda t: WRONG * t,
    "α t²": lambda t: WRONG * t**2,
    "α t³": lambda t: WRONG * t**3,
    "O'Brien–Fleming type": lambda t: float(2 * ndtr(ndtri(WRONG / 2) / math.sqrt(t))),
    "Pocock type": lambda t: WRONG * math.log(1 + (math.e - 1) * t),
}


def spending() -> None:
    """False passes of ten looks, power for models that one look passes in 50, 80 and 95 %, and what a first
    look at a tenth of the images asks for."""
    shares = np.arange(1, LOOKS + 1) / LOOKS
    paths = np.random.default_rng(0).normal(0, math.sqrt(1 / LOOKS), (_PATHS, LOOKS)).cumsum(axis=1)
    print("| spending | false passes, % | power 50 | 80 | 95 | first look at 10 %: s.e. | at 50 %: s.e. |")
    print("|---" * 7 + "|")
    every = {"none (each look at 2.5 %)": [WRONG] * LOOKS}
    every |= {name: levels(shares.tolist(), spend) for name, spend in SPENDING.items()}
    for name, found in every.items():
        bounds = -ndtri(found) * np.sqrt(shares)
        passes = [
            100 * (paths + drift * shares >= bounds).any(axis=1).mean()
            for drift in (0.0, *(ndtri(power) - ndtri(WRONG) for power in (0.5, 0.8, 0.95)))
        ]
        first = [-ndtri(SPENDING[name](t) if name in SPENDING else WRONG) for t in (0.1, 0.5)]
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in (*passes, *first))} |")


def first_images(world: World, found: Found, images: int) -> tuple[World, Found]:
    """A world and what was found in it, as far as its first images."""
    objects, boxes = world.image < images, found.image < images
    return (
        world._replace(
            hardness=world.hardness[:images], image=world.image[objects], label=world.label[objects],
            own=world.own[objects],
        ),
        Found(*(column[boxes] for column in found)),
    )  # fmt: skip


def sets(place: Place, numbers: range, images: int, looks: int) -> None:
    counts = [images * k // looks for k in range(1, looks + 1)]
    strict = levels([count / images for count in counts])
    for number in numbers:
        rng = np.random.default_rng([23, place.classes, number])
        world = images_like(rng, place.scene, place.classes, number % WORLDS, images)
        seen = {severity: detections(rng, world, severity) for severity in SEVERITIES}
        halves = rng.integers(0, 2, (REPLICATES, images))
        weights = np.concatenate([np.ones((1, images)), halves]).astype(np.uint8)
        ends: dict[str, dict[str, list[list[float]]]] = {"plain": {}, "spent": {}}
        for count, level in zip(counts, strict, strict=True):
            cells = {
                s: scored(*first_images(world, found, count), weights[:, :count], clean=s == 0)
                for s, found in seen.items()
            }
            for name, values in with_loss(cells).items():
                for kind, wrong in (("plain", WRONG), ("spent", level)):
                    one = interval_around(float(values[0]), values[1:], images=count, wrong=wrong)
                    ends[kind].setdefault(name, []).append([one.low, one.high])
        row = {"scene": place.scene, "classes": place.classes, "world": number % WORLDS, "looks": ends}
        print(json.dumps(row), flush=True)


def table(files: list[Path]) -> None:
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    true = {(r["scene"], r["classes"], r["world"]): r["truth"] for r in rows if "truth" in r}
    groups: dict[tuple[str, int], list[Any]] = {}
    for row in (row for row in rows if "looks" in row):
        groups.setdefault((row["scene"], row["classes"]), []).append(row)
    names = list(next(iter(groups.values()))[0]["looks"]["plain"])
    print(f"| passes, %: scene | classes | sets | better by | judged | {' | '.join(names)} |")
    print("|---" * (len(names) + 5) + "|")
    for (scene, classes), drawn in groups.items():
        for better in BETTER:
            for words, kind, from_ in (
                ("all looks, each at 2.5 %", "plain", 0),
                ("all looks, as `check`", "spent", 0),
                ("one look at the end", "plain", -1),
            ):
                rates = []
                for name in names:
                    passed = []
                    for row in drawn:
                        ends = np.array(row["looks"][kind][name][from_:])
                        at = true[scene, classes, row["world"]][name]
                        good = ends[:, 1] <= at + better if name in AT_MOST else ends[:, 0] >= at - better
                        passed.append(bool(good.any()))
                    rates.append(f"{100 * np.mean(passed):.1f}")
                cells = (scene, str(classes), str(len(drawn)), f"{100 * better:g}", words, *rates)
                print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("spending")
    drawn = verbs.add_parser("sets")
    drawn.add_argument("--scene", choices=("street", "photos"), required=True)
    drawn.add_argument("--classes", type=int, required=True)
    drawn.add_argument("--sets", type=int, default=400)
    drawn.add_argument("--first", type=int, default=0)
    drawn.add_argument("--images", type=int, default=IMAGES)
    drawn.add_argument("--looks", type=int, default=LOOKS)
    verbs.add_parser("table").add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.verb == "spending":
        spending()
    elif given.verb == "sets":
        numbers = range(given.first, given.first + given.sets)
        sets(Place(given.scene, given.classes, alone=True), numbers, given.images, given.looks)
    else:
        table(given.files)


if __name__ == "__main__":
    main()
