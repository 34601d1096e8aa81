"""How often 95 % intervals cover the truth: by simulation, where it is known, and by splitting real runs.

    python studies/confidence/interval_coverage.py simulate --images 300 --trials 200 [--first 0]
    python studies/confidence/interval_coverage.py split RUN [RUN2] --trials 200

`simulate` makes a population of 30,000 images with detections of two models and label maps of one, under 9
conditions and clean; its values on the whole population are the truth. Each trial draws a set of images and
asks whether the intervals of that set contain it. `split` halves the images of a run at random: the gap
between the halves should lie within the root of the sum of their squared half-widths in 95 % of the splits.
With two runs of the same images, so for their difference. A split does not see a bias that both halves share.
One line of JSON per trial goes to standard output, so that pieces can be joined; `table` reads them.

    python studies/confidence/interval_coverage.py table FILE…

CLASSES=80 in the environment simulates as many classes, most of them in few images.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from estimator import first_images, whole_images
from scipy import sparse

from stormproof.core.condition import Condition
from stormproof.metrics.cells import Maps
from stormproof.metrics.cocomatching import IOUS, Matches
from stormproof.metrics.metric import mean_of_known, ratio
from stormproof.metrics.precision import COCO_POINTS, average_precision, curves_of
from stormproof.results.aggregates import MEAN, aggregates
from stormproof.results.estimate import estimated_cells, score
from stormproof.results.interval import around, percentile
from stormproof.results.run import Run
from stormproof.results.sets import sets_of

POPULATION, REPLICATES = 30_000, 200
CLASSES = int(os.environ.get("CLASSES", "8"))
CONDITIONS = ("clean", *(f"{name}@{s}" for name in ("fog", "snow", "gaussian_noise") for s in (1, 3, 5)))
MAP_CLASSES = 8
FREQUENCY = 0.75 ** (7 * np.arange(CLASSES) / (CLASSES - 1))  # of classes, commonest first


def population(model: int) -> dict[str, Matches]:
    """Detections of a model: objects of a hard image are found more rarely, and with smaller scores."""
    rng = np.random.default_rng(7)  # the images are the same for both models
    hardness = rng.normal(0, 0.7, POPULATION)
    image = np.repeat(np.arange(POPULATION), rng.poisson(4, POPULATION))
    label = rng.choice(CLASSES, len(image), p=FREQUENCY / FREQUENCY.sum())
    own = rng.normal(0, 0.8, len(image))  # how hard the object is by itself
    said = np.random.default_rng(100 + model)
    found = {}
    for text in CONDITIONS:
        severity = 0 if text == "clean" else Condition.parse(text).severity or 0
        skill = 1.1 - 0.35 * severity - 0.15 * model - hardness[image] - own + said.normal(0, 0.4, len(image))
        overlap = 1 / (1 + np.exp(-(skill + 0.6)))
        seen = said.random(len(image)) < 1 / (1 + np.exp(-2 * (skill + 0.8)))
        bits = (overlap[:, None] >= IOUS).astype(np.uint16) @ (1 << np.arange(len(IOUS))).astype(np.uint16)
        right = 1 / (1 + np.exp(-(skill + said.normal(0, 0.7, len(image)))))
        noise_image = np.repeat(np.arange(POPULATION), said.poisson(6, POPULATION))
        wrong = 1 / (1 + np.exp(-(said.normal(-1.6, 0.9, len(noise_image)) + 0.2 * hardness[noise_image])))
        labels = np.concatenate([label[seen], said.integers(0, CLASSES, len(noise_image))])
        scores = np.concatenate([right[seen], wrong])
        where = np.concatenate([image[seen], noise_image])
        hit = np.concatenate([bits[seen], np.zeros(len(noise_image), np.uint16)])
        order = np.lexsort((-scores, labels))
        plain = np.ones((len(order), 1), bool)
        first = np.zeros(len(order), np.int64)  # places matter to AR, which is not looked at
        found[text] = Matches(
            POPULATION, CLASSES, where[order], labels[order], scores[order], hit[order][:, None],
            np.zeros((len(order), 1), np.uint16), plain, first, image, label, np.ones((1, len(image)), bool),
        )  # fmt: skip
    return found


def precision(matches: Matches, weights: np.ndarray) -> np.ndarray:
    """AP by replicate."""
    found, _ = average_precision(curves_of(matches.judged), weights, CLASSES, COCO_POINTS)
    return mean_of_known(found.reshape(len(weights), -1))


def some_of(matches: Matches, chosen: np.ndarray) -> Matches:
    """The matches of some images, numbered as chosen."""
    place = np.full(POPULATION, -1)
    place[chosen] = np.arange(len(chosen))
    said, there = place[matches.image] >= 0, place[matches.truth_image] >= 0
    return Matches(
        len(chosen), CLASSES, place[matches.image[said]], matches.label[said], matches.score[said],
        matches.hit[said], matches.excused[said], matches.inside[said], matches.place[said],
        place[matches.truth_image[there]], matches.truth_label[there], matches.counts[:, there],
    )  # fmt: skip


def map_population() -> dict[str, Maps]:
    """Per image a confusion matrix: a few classes of uneven area, each right to a share of its own."""
    rng = np.random.default_rng(11)
    hardness = rng.normal(0, 0.6, POPULATION)
    shown = rng.random((POPULATION, MAP_CLASSES)) < 0.9 * 0.75 ** np.arange(MAP_CLASSES) + 0.05
    area = shown * np.exp(rng.normal(0, 1, (POPULATION, MAP_CLASSES)))
    found = {}
    for text in CONDITIONS:
        severity = 0 if text == "clean" else Condition.parse(text).severity or 0
        logit = 2 - 0.35 * severity - hardness[:, None] + rng.normal(0, 0.8, (POPULATION, MAP_CLASSES))
        right = area / (1 + np.exp(-logit))
        counts = np.zeros((POPULATION, MAP_CLASSES + 1, MAP_CLASSES + 1))
        place = np.arange(MAP_CLASSES)
        counts[:, place, place] = right
        counts[:, place, (place + 1) % MAP_CLASSES] += 0.7 * (area - right)
        counts[:, place, (place + 3) % MAP_CLASSES] += 0.3 * (area - right)
        table = sparse.csr_array(np.round(1000 * counts).reshape(POPULATION, -1))
        found[text] = Maps(table, tuple(map(str, place)), tuple(place))
    return found


def simulate(images: int, trials: range) -> None:
    models = [population(0), population(1)]
    maps = map_population()
    everything = np.ones((1, POPULATION), np.uint8)
    truth = _values(
        [{t: precision(m, everything) for t, m in model.items()} for model in models],
        {t: m.scored(everything).numbers["mIoU"] for t, m in maps.items()},
    )
    for trial in trials:
        rng = np.random.default_rng([images, trial])
        chosen = rng.choice(POPULATION, images, replace=False)
        weights = np.concatenate([np.ones((1, images)), rng.poisson(1, (REPLICATES, images))]).astype(
            np.uint8
        )
        boxes = [{t: precision(some_of(m, chosen), weights) for t, m in model.items()} for model in models]
        drawn = {t: m.of_images(chosen).scored(weights).numbers["mIoU"] for t, m in maps.items()}
        row = {}
        for name, values in _values(boxes, drawn).items():
            make = percentile if name.startswith("Δ") else around
            row[name] = make(float(values[0]), values[1:]).as_dict() | {"truth": float(truth[name][0])}
        print(
            json.dumps({"run": f"{CLASSES} classes", "images": images, "trial": trial, "found": row}),
            flush=True,
        )


def totals(cells: dict[str, Any]) -> dict[str, Any]:
    """P, the mean under corruption and their ratio, by replicate."""
    found = aggregates("AP", cells, sets_of(tuple(cells))[0])
    mean = found.get("mPC", found.get(MEAN))
    return {"P": found["P"], "mPC": mean, "rPC": ratio(mean, found["P"])}


def _values(boxes: list[dict[str, Any]], maps: dict[str, Any]) -> dict[str, Any]:
    first, second, semantic = (totals(cells) for cells in (*boxes, maps))
    return {
        "P": first["P"], "mPC": first["mPC"], "rPC": first["rPC"], "ΔP": first["P"] - second["P"],
        "ΔmPC": first["mPC"] - second["mPC"], "ΔrPC": first["rPC"] - second["rPC"],
        "mIoU, clean": semantic["P"], "mIoU, mPC": semantic["mPC"], "mIoU, rPC": semantic["rPC"],
    }  # fmt: skip


def split(runs: list[Path], trials: range) -> None:
    """Halves of the images that every run has under every condition, of a fifth of the grid."""
    images = min(whole_images(Run(run)) for run in runs)
    held = [first_images(run, images) for run in runs]
    cells = [
        estimated_cells(run, [text for text in run.conditions if text == "clean" or text.endswith("@3")])
        for run in held
    ]
    half = images // 2
    name = " − ".join(run.record.model.name for run in held) + f", {held[0].record.dataset.name}"
    for trial in trials:
        rng = np.random.default_rng([half, trial])
        order = rng.permutation(images)
        found = []
        for part in (order[:half], order[half : 2 * half]):
            weights = np.concatenate([np.ones((1, half)), rng.poisson(1, (100, half))]).astype(np.uint8)
            each = [totals({t: score(c, part, weights) for t, c in of.items()}) for of in cells]
            found.append({k: each[0][k] - sum(one[k] for one in each[1:]) for k in ("P", "mPC", "rPC")})
        row = {}
        for key in found[0]:
            make = percentile if len(runs) > 1 else around
            one, two = (make(float(f[key][0]), f[key][1:]) for f in found)
            gap, wide = one.estimate - two.estimate, float(np.hypot(one.half_width, two.half_width))
            row["Δ" * (len(runs) > 1) + key] = {
                "estimate": gap, "low": gap - wide, "high": gap + wide, "se": float(np.hypot(one.se, two.se)),
                "bias": 0.0, "truth": 0.0,
            }  # fmt: skip
        print(json.dumps({"run": name, "images": half, "trial": trial, "found": row}), flush=True)


def table(files: list[Path]) -> None:
    """How often each interval covers, by set and number of images, and the bias and error of mPC."""
    groups: dict[tuple[str, int], list[dict[str, dict[str, float]]]] = {}
    for row in (json.loads(line) for file in files for line in file.read_text().splitlines()):
        groups.setdefault((row["run"], row["images"]), []).append(row["found"])
    names = list(dict.fromkeys(name for found in groups.values() for name in found[0]))
    print(f"| set | images | trials | {' | '.join(names)} | bias of mPC | s.e. of mPC |")
    print("|---" * (len(names) + 5) + "|")
    for (run, images), found in sorted(groups.items()):
        covered = []
        for name in names:
            if name not in found[0]:
                covered.append("")
                continue
            low, high, truth = (np.array([row[name][k] for row in found]) for k in ("low", "high", "truth"))
            covered.append(f"{100 * np.mean((low <= truth) & (truth <= high)):.1f}")
        mean = "mPC" if "mPC" in found[0] else "ΔmPC"
        estimate, se, truth = (np.array([row[mean][k] for row in found]) for k in ("estimate", "se", "truth"))
        spread = (f"{100 * (estimate - truth).mean():+.2f}", f"{100 * se.mean():.2f}")
        cells = (run, f"{images:,}", str(len(found)), *covered, *spread)
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("simulate")
    one.add_argument("--images", type=int, required=True)
    two = verbs.add_parser("split")
    two.add_argument("runs", type=Path, nargs="+")
    for verb in (one, two):
        verb.add_argument("--trials", type=int, default=100)
        verb.add_argument("--first", type=int, default=0)
    verbs.add_parser("table").add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.verb == "table":
        table(given.files)
        return
    trials = range(given.first, given.first + given.trials)
    if given.verb == "simulate":
        simulate(given.images, trials)
    else:
        split(given.runs, trials)


if __name__ == "__main__":
    main()
