"""How often the interval of each measure misses the true value, above and below, where the truth is known.

    python studies/confidence/interval_errors.py all runs/errors      # every cell, hours on one core
    python studies/confidence/interval_errors.py sets --scene street --classes 8 --images 100 > FILE
    python studies/confidence/interval_errors.py count FILE… [--add]  # rewrites interval_errors.csv
    python studies/confidence/interval_errors.py page [--check]       # rewrites docs/calibrated.md

A population of 20,000 images (4,000 clips) has a true value of every measure. Sets of images are drawn from
it, scored by the product's own metrics, and asked for their intervals. An interval may lie above the truth in
2.5 % of the sets, and below it in 2.5 %. Objects, maps and segments are simulated separately; those of
`street` and `photos` are distributed as in `false_passes.py`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from annotated import federated, posed
from false_passes import World, images_like

from stormproof.metrics.calibration import Tuned
from stormproof.metrics.inputs import Maps, MetricInput, Objects, Segments
from stormproof.metrics.map_calibration import BINS, SUMS
from stormproof.metrics.metric import Scored, measures, metrics_of
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.timing import Timings
from stormproof.results.origin import ScoreOrigin
from stormproof.results.scores import Replicates, Scores
from stormproof.results.scoring import drawn_under, fewest_units

POPULATION, CLIPS, FRAMES, REPLICATES = 20_000, 4_000, 8, 200
CONDITIONS = {"clean": 0, "fog@5": 5}
CLASSES, IMAGES, FEW_CLASSES = (1, 8, 80), (50, 100, 300), 8  # photos have more classes than a street
KINDS = ("objects", "maps", "segments", "clips", "points", "lvis", "timings")
LARGEST = {"points": 8}  # classes that a kind was simulated with; 80 else
JUDGED = (2, 3)  # seeds of the worlds of the table; the intervals were chosen on world 1
LIMIT, ROUNDING = 0.05, 1e-9
TABLE = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "calibrated.md"
_SPACING = 400.0  # pixels between objects, so that none overlaps another


class Population(NamedTuple):
    """Cells by condition, the clip of each frame, and the true value of each measure and condition."""

    cells: dict[str, dict[str, MetricInput]]  # by kind and condition
    units: Any
    truth: dict[str, dict[str, float]]


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def objects_of(world: World, rng: np.random.Generator) -> DetectionTruth:
    """The objects of a world side by side, of all three of COCO's sizes."""
    images, count = len(world.hardness), len(world.image)
    side = np.clip(np.exp(rng.normal(np.log(50), 0.7, count)), 8, 300)
    left = _SPACING * (1 + np.arange(count) - np.searchsorted(world.image, world.image))
    boxes = np.stack([left, np.zeros(count), left + side, side], axis=1)
    return _truth(world, [str(k) for k in range(images)], boxes)


def _truth(world: World, ids: list[str], boxes: Any, **columns: Any) -> DetectionTruth:
    nothing, names = np.zeros(len(boxes), bool), ("person", *(f"class {k}" for k in range(1, world.classes)))
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return DetectionTruth(
        tuple(ids), names, world.image, boxes, world.label, nothing, nothing, area, (None,) * len(boxes),
        **columns,
    )  # fmt: skip


def detected(
    world: World, truth: DetectionTruth, severity: int, rng: np.random.Generator, steady: Any = 0.0
) -> Detections:
    """What a detector finds: fewer objects of a hard image, with smaller scores and looser boxes; one in
    twelve as another class, one in sixteen twice, and false alarms."""
    count = len(truth)
    skill = 0.6 - 0.35 * severity - world.hardness[world.image] - world.own + steady
    skill = skill + rng.normal(0, 0.4, count)
    seen = np.flatnonzero(rng.random(count) < logistic(2 * (skill + 0.8)))
    again = seen[rng.random(len(seen)) < 1 / 16]
    of = np.concatenate([seen, again])
    overlap = np.clip(logistic(skill[of] + 0.6), 0.03, 0.97) * np.repeat([1, 0.9], [len(seen), len(again)])
    score = logistic(skill[of] + rng.normal(0, 0.7, len(of)) - np.repeat([0, 1], [len(seen), len(again)]))
    label = world.label[of].copy()
    wrong = (rng.random(len(of)) < 1 / 12) & (world.classes > 1)
    label[wrong] = (label[wrong] + rng.integers(1, max(2, world.classes), wrong.sum())) % world.classes
    width = truth.boxes[of, 2] - truth.boxes[of, 0]
    # A box of the same size, shifted by s sides, has an IoU of (1 − s) / (1 + s).
    shift = (width * (1 - overlap) / (1 + overlap) * rng.choice([-1, 1], len(of)))[:, None]
    boxes = truth.boxes[of] + shift * np.array([1, 0, 1, 0])
    rate, level, shares = world.alarms
    alarm = np.repeat(np.arange(len(world.hardness)), rng.poisson(rate, len(world.hardness)))
    false = logistic(rng.normal(level, 0.9, len(alarm)) + 0.2 * world.hardness[alarm])
    place = -_SPACING * (1 + np.arange(len(alarm)) - np.searchsorted(alarm, alarm))
    side = np.clip(np.exp(rng.normal(np.log(50), 0.7, len(alarm))), 8, 300)
    image = np.concatenate([truth.image[of], alarm])
    order = np.argsort(image, kind="stable")
    return Detections(
        image[order],
        np.concatenate([boxes, np.stack([place, 0 * place, place + side, side], axis=1)])[order],
        np.concatenate([score, false])[order],
        np.concatenate([label, rng.choice(world.classes, len(alarm), p=shares)])[order],
    )


def objects(scene: str, classes: int, seed: int, kind: str = "objects") -> dict[str, Objects]:
    rng = np.random.default_rng([seed, classes, 1 if kind == "objects" else 4 + len(kind)])
    world = images_like(rng, scene, classes, seed, POPULATION)
    truth = objects_of(world, rng)
    found = {text: detected(world, truth, s, rng) for text, s in CONDITIONS.items()}
    if kind == "points":
        return {**posed(world, truth, found, rng)}
    cells = _conditions(truth, found)
    return federated(world, cells, rng) if kind == "lvis" else cells


def _conditions(truth: DetectionTruth, found: dict[str, Detections]) -> dict[str, Objects]:
    cells = {text: Objects(truth, each, person=0) for text, each in found.items()}
    clean, tuned = cells["clean"].people, Tuned(cells["clean"].located, cells["clean"].touching)
    return {text: replace(cell, clean=clean, tuned=tuned) for text, cell in cells.items()}


def clips(scene: str, classes: int, seed: int) -> tuple[dict[str, Objects], Any]:
    """Clips whose objects stay, with errors that persist in part from frame to frame."""
    rng = np.random.default_rng([seed, classes, 2])
    still = images_like(rng, scene, classes, seed, CLIPS)
    count, frames = len(still.image), np.arange(FRAMES)
    image = (still.image[None] * FRAMES + frames[:, None]).ravel()
    order = np.argsort(image, kind="stable")
    track = np.tile(np.arange(count), FRAMES)[order]
    world = still._replace(
        hardness=np.repeat(still.hardness, FRAMES), image=image[order], label=still.label[track],
        own=still.own[track],
    )  # fmt: skip
    side = np.clip(np.exp(rng.normal(np.log(50), 0.7, count)), 8, 300)[track]
    left = _SPACING * (1 + track - np.searchsorted(still.image, still.image)[track])
    boxes = np.stack([left, 0 * left, left + side, side], axis=1)
    clip = np.repeat(np.arange(CLIPS), FRAMES)
    truth = _truth(
        world, [str(k) for k in range(len(clip))], boxes, track=track, clip=clip, step=np.tile(frames, CLIPS)
    )
    cells = _conditions(truth, {text: detected(world, truth, s, rng) for text, s in CONDITIONS.items()})
    return cells, clip


def maps(classes: int, seed: int) -> dict[str, Maps]:
    """Label maps: classes of uneven area, each right to a share of its own; two classes at least."""
    rng, classes = np.random.default_rng([seed, classes, 3]), max(2, classes)
    hardness = rng.normal(0, 0.6, POPULATION)
    often = 0.9 * 0.75 ** (7 * np.arange(classes) / (classes - 1)) + 0.05  # 0.95 to 0.17 of the images
    skill = rng.normal(0, 0.5, classes)
    shown = rng.random((POPULATION, classes)) < often
    image, place = np.nonzero(shown)
    area = np.exp(rng.normal(6, 1, len(image)))
    cells = {}
    for text, severity in CONDITIONS.items():
        logit = 2 - 0.35 * severity - hardness[image] + skill[place] + rng.normal(0, 0.8, len(image))
        right = area * logistic(logit)
        left = area - right
        other = (place + rng.integers(1, classes, len(image))) % classes
        sums = np.zeros((POPULATION, BINS, SUMS))
        sure = np.clip(logistic(logit + 0.4 + rng.normal(0, 0.5, len(image))), 0.01, 0.99)
        bins = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
        for k, column in enumerate((area, area * sure, right, area * sure**2, right * sure)):
            np.add.at(sums[:, :, k], (image, bins), column)
        cells[text] = Maps.of(
            np.tile(image, 2), np.tile(place, 2), np.concatenate([place, other]),
            np.round(np.concatenate([right, left])),
            images=POPULATION, classes=[str(k) for k in range(classes)], kept=range(classes),
            confidences=sums.reshape(POPULATION, -1),
        )  # fmt: skip
    return cells


def segments(scene: str, classes: int, seed: int) -> dict[str, Segments]:
    """Panoptic maps: every other class is of things, the others have one segment an image at most."""
    rng = np.random.default_rng([seed, classes, 4])
    world = images_like(rng, scene, max(2, classes), seed, POPULATION)
    things = np.arange(world.classes) % 2 == 0
    _, first = np.unique(world.image * world.classes + world.label, return_index=True)
    kept = things[world.label]
    kept[first] = True
    image, label, own = world.image[kept], world.label[kept], world.own[kept]
    cells = {}
    for text, severity in CONDITIONS.items():
        skill = 1.2 - 0.35 * severity - world.hardness[image] - own + rng.normal(0, 0.4, len(image))
        iou = logistic(skill)
        hit, false = iou > 0.5, (iou <= 0.5) & (iou > 0.2)
        table = np.zeros((POPULATION, 4, world.classes))
        for k, (chosen, value) in enumerate(((hit, iou), (hit, 1), (false, 1), (~hit, 1))):
            np.add.at(table[:, k], (image[chosen], label[chosen]), value[chosen] if k == 0 else 1)
        rate, _, shares = world.alarms
        alarm = np.repeat(np.arange(POPULATION), rng.poisson(rate / 6, POPULATION))
        np.add.at(table[:, 2], (alarm, rng.choice(world.classes, len(alarm), p=shares)), 1)
        names = tuple(str(k) for k in range(world.classes))
        cells[text] = Segments(table, names, tuple(range(world.classes)), things)
    return cells


def timings(classes: int, seed: int) -> dict[str, Timings]:
    """Milliseconds: a network of even speed, suppression that doubles or halves with what an image shows and
    is slower under corruption, and a hiccup of the machine in one call of a hundred."""
    rng = np.random.default_rng([seed, classes, 6])
    cells = {}
    for text, severity in CONDITIONS.items():
        network = rng.normal(8, 0.3, POPULATION)
        suppression = (1 + 2 * severity) * np.exp(rng.normal(0, 0.7, POPULATION))
        hiccup = (rng.random(POPULATION) < 1 / 100) * rng.exponential(15, POPULATION)
        cells[text] = Timings((network + suppression + hiccup)[:, None])
    return cells


def population(scene: str, classes: int, seed: int, kinds: Sequence[str] = KINDS) -> Population:
    makers: dict[str, Callable[[], Any]] = {
        **{k: lambda k=k: objects(scene, classes, seed, k) for k in ("objects", "points", "lvis")},
        "maps": lambda: maps(classes, seed), "segments": lambda: segments(scene, classes, seed),
        "timings": lambda: timings(classes, seed),
    }  # fmt: skip
    cells = {kind: makers[kind]() for kind in kinds if kind in makers}
    units: Any = ()
    if "clips" in kinds:
        cells["clips"], units = clips(scene, classes, seed)
    truth: dict[str, dict[str, float]] = {}
    for kind, by_condition in cells.items():
        for text, cell in by_condition.items():
            images = len(units) if kind == "clips" else POPULATION
            for name, value in scored(kind, cell, np.ones((1, images), np.uint8)).scores.items():
                truth.setdefault(name, {})[text] = value
    return Population(cells, units, truth)


def scored(kind: str, cell: MetricInput, weights: Any) -> Scored:
    """Every measure of a cell; of clips and of LVIS only those that need them."""
    only = {"clips": "clips", "lvis": "federated"}.get(kind)
    if only is None:
        kinds = tuple(each for each in cell.kinds if each != "clips")
        total = Scored({})
        for declared in metrics_of(*kinds):
            total |= declared.score(cell, weights)
        return total
    (declared,) = metrics_of(only)
    return declared.score(cell, weights)


def intervals(people: Population, kind: str, chosen: Any, rng: np.random.Generator) -> Iterator[Any]:
    """(measure, condition, interval) of a set of units, as scores of a run give them."""
    halves = np.concatenate([np.ones((1, len(chosen))), rng.integers(0, 2, (REPLICATES, len(chosen)))])
    weights, images, clip_count = halves.astype(np.uint8), chosen, None
    if kind == "clips":
        images = (chosen[:, None] * FRAMES + np.arange(FRAMES)).ravel()
        weights, clip_count = np.repeat(weights, FRAMES, axis=1), len(chosen)
    found = {}
    clean = tuned = None
    for text, cell in people.cells[kind].items():
        part = cell
        if kind in ("objects", "clips"):
            assert isinstance(cell, Objects)
            part = replace(cell, clean=None, tuned=None).of_images(images)
            if text == "clean":
                clean, tuned = part.people, Tuned(part.located, part.touching)
            part = replace(part, clean=clean, tuned=tuned)
        else:
            part = cell.of_images(images)
        found[text] = scored(kind, part, weights)
    names = [name for name in measures() if any(name in each.numbers for each in found.values())]
    cells = {
        name: {t: float(s.numbers[name][0]) for t, s in found.items() if name in s.numbers} for name in names
    }
    drawn = {
        name: {t: drawn_under(t, s, name) for t, s in found.items() if name in s.numbers} for name in names
    }
    scores = Scores(
        "simulated", "simulated", len(images), cells, tuple(CONDITIONS),
        replicates=Replicates(drawn, {}, fewest_units(found.values())),
        origin=ScoreOrigin(clips=clip_count),
    )  # fmt: skip
    for name in names:
        by_name = scores.intervals(name)
        yield from ((name, text, by_name[text]) for text in CONDITIONS if text in by_name)


def sets(scene: str, classes: int, images: int, numbers: range, seed: int, kinds: list[str]) -> None:
    kinds = [kind for kind in kinds if classes <= LARGEST.get(kind, classes)]
    whole = population(scene, classes, seed, kinds)
    for number in numbers:
        rng = np.random.default_rng([seed, images, classes, number])
        rows = {}
        for kind in kinds:
            size = CLIPS if kind == "clips" else POPULATION
            chosen = np.sort(rng.choice(size, images, replace=False))
            for name, text, i in intervals(whole, kind, chosen, rng):
                rows[f"{name}|{text}"] = [
                    whole.truth[name][text],
                    i.estimate,
                    i.low,
                    i.high,
                    i.se,
                    i.optimism,
                ]
        key = {"scene": scene, "classes": classes, "images": images, "seed": seed, "number": number}
        print(json.dumps({**key, "found": rows}), flush=True)


def draw_all(folder: Path, number: int) -> None:
    """Every cell of the table from every world, each into a file of its own; then count."""
    folder.mkdir(parents=True, exist_ok=True)
    for classes in CLASSES:
        for images in IMAGES:
            for seed in JUDGED:
                out = folder / f"{classes}-{images}-{seed}.jsonl"
                with out.open("w") as file, redirect_stdout(file):
                    scene = "photos" if classes > FEW_CLASSES else "street"
                    sets(scene, classes, images, range(number), seed, list(KINDS))
    count(sorted(folder.glob("*.jsonl")))


class Row(NamedTuple):
    """How many sets of a cell have an interval of a measure, and in how many it misses the truth."""

    measure: str
    condition: str
    classes: int
    images: int
    sets: int
    above: int
    below: int
    unknown: int = 0  # further sets, which have no interval

    @property
    def misses(self) -> bool:
        """Whether a side misses in more than 5 % of the sets by more than a standard error, or a tenth of the
        sets has no interval."""
        limit = LIMIT * self.sets + np.sqrt(LIMIT * (1 - LIMIT) * self.sets)
        return max(self.above, self.below) > limit or self.unknown > self.sets / 9


def count(files: list[Path], *, add: bool = False) -> None:
    """Count the errors of the sets in some files, each set once, and keep the counts; with `add`, together
    with those that are kept, which must be of other sets."""
    drawn: dict[tuple[int, int, int, int], dict[str, list[float]]] = {}
    for row in (json.loads(line) for file in files for line in file.read_text().splitlines()):
        key = row["classes"], row["images"], row["seed"], row["number"]
        drawn.setdefault(key, {}).update(row["found"])  # kinds may be in files of their own
    tally: dict[tuple[str, str, int, int], list[tuple[bool, bool, bool]]] = {}
    for (classes, images, *_), found in drawn.items():
        for name, (true, _, low, high, *_) in found.items():
            if abs(true) < ROUNDING:
                continue  # nothing to miss: a single class is never taken for another
            measure, condition = name.split("|")
            each = tally.setdefault((measure, condition, classes, images), [])
            if np.isfinite(low):
                # Equal numbers may differ in their last digits: sums over many images are rounded.
                each.append((low > true + ROUNDING, high < true - ROUNDING, False))
            else:
                each.append((False, False, True))
    totals = {cell: np.array([len(each), *np.sum(each, axis=0)]) for cell, each in tally.items()}
    for row in (row for rows in kept_rows().values() for row in rows) if add else ():
        cell = (row.measure, row.condition, row.classes, row.images)
        counts = np.array([row.sets + row.unknown, row.above, row.below, row.unknown])
        totals[cell] = totals.get(cell, 0) + counts
    order = {name: place for place, name in enumerate(measures())}
    with TABLE.open("w", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(Row._fields)
        for cell in sorted(totals, key=lambda cell: (order[cell[0]], *cell[1:])):
            sets, above, below, unknown = totals[cell].tolist()
            lines.writerow((*cell, sets - unknown, above, below, unknown))


def kept_rows() -> dict[str, list[Row]]:
    """The counts that are kept, by measure."""
    found: dict[str, list[Row]] = {}
    with TABLE.open() as file:
        for row in csv.DictReader(file):
            numbers = (int(row[name]) for name in Row._fields[2:])
            found.setdefault(row["measure"], []).append(Row(row["measure"], row["condition"], *numbers))
    return found


def calibrated(rows: list[Row]) -> tuple[tuple[int, int], ...]:
    """What a measure may declare (`Measure.calibrated`): for up to so many classes, from so many images on.

    A number of classes and images holds only with all fewer classes and all more images that were simulated.
    """
    declared: list[tuple[int, int]] = []
    least = 0
    for classes in sorted({row.classes for row in rows}):
        fitting: int | None = None
        for images in sorted(IMAGES, reverse=True):
            cells = [row for row in rows if (row.classes, row.images) == (classes, images)]
            if not cells or any(row.misses for row in cells):
                break
            fitting = images
        if fitting is None:
            break
        least = max(least, fitting)
        if declared and declared[-1][1] == least:
            declared.pop()
        declared.append((classes, least))
    return tuple(declared)


def lines_of_page() -> list[str]:
    """A line per measure: errors above / below in % by classes and images, the larger of both conditions."""
    sizes = [(classes, images) for classes in CLASSES for images in IMAGES]
    head = ("measure", *(f"{c} / {n}" for c, n in sizes), "calibrated")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for measure, rows in kept_rows().items():
        cells = []
        for size in sizes:
            here = [row for row in rows if (row.classes, row.images) == size and row.sets]
            sides = [max(100 * side / row.sets for row, side in each) for each in (
                [(row, row.above) for row in here], [(row, row.below) for row in here]
            )] if here else []  # fmt: skip
            text = " / ".join(f"{side:.0f}" for side in sides) or "–"
            cells.append(f"**{text}**" if any(row.misses for row in here) else text)
        lines.append(f"| {measure} | {' | '.join(cells)} | {_words(calibrated(rows))} |")
    return lines


def _words(declared: tuple[tuple[int, int], ...]) -> str:
    if not declared:
        return "no"
    return ", ".join(f"up to {classes}: from {images}" for classes, images in declared)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawn = verbs.add_parser("sets")
    drawn.add_argument("--scene", choices=("street", "photos"), required=True)
    drawn.add_argument("--classes", type=int, required=True)
    drawn.add_argument("--images", type=int, required=True)
    drawn.add_argument("--sets", type=int, default=100)
    drawn.add_argument("--first", type=int, default=0)
    drawn.add_argument("--seed", type=int, default=1)
    drawn.add_argument("--kinds", default=",".join(KINDS))
    counting = verbs.add_parser("count")
    counting.add_argument("files", type=Path, nargs="+")
    counting.add_argument("--add", action="store_true", help="to the counts that are kept")
    verbs.add_parser("page").add_argument("--check", action="store_true")
    whole = verbs.add_parser("all")
    whole.add_argument("folder", type=Path)
    whole.add_argument("--sets", type=int, default=100)
    given = parser.parse_args()
    if given.verb == "sets":
        numbers = range(given.first, given.first + given.sets)
        sets(given.scene, given.classes, given.images, numbers, given.seed, given.kinds.split(","))
    elif given.verb == "all":
        draw_all(given.folder, given.sets)
    elif given.verb == "count":
        count(given.files, add=given.add)
    else:
        sys.path.append(str(PAGE.parent))
        from parts import renew

        renew(PAGE, {"interval errors": "\n".join(lines_of_page())}, check=given.check)


if __name__ == "__main__":
    main()
