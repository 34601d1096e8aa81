"""Does stylized training make a detector of the street robust, as *michaelis* found on photographs?

    python studies/stylized_training/study.py --runs DIR

Runs the detectors in weights/ and two of the package (one network, three trainings, several seeds) over
imagenet-c on scenes of `world:test`, which none of them was trained on or chosen by; a stopped study goes on.
Then it renews the tables of README.md beside it, which says how the detectors are trained, and its figure.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from values import TRAININGS, Trained, Value, gain, mean, measured, pooled, seeds_of

import stormproof as sp
from stormproof.corruptions.groups import MICHAELIS
from stormproof.models.builtin import folder as networks_folder
from stormproof.results.interval import Interval, around

HERE = Path(__file__).parent
WEIGHTS = HERE / "weights"
PACKAGED = {f"grid-{training}-1": f"street-grid-{training}" for training in ("stylized", "combined")}
sys.path.append(str(HERE.parents[1] / "docs"))
DATA, SUITE = "world:test", "imagenet-c"
MEASURES = ("AP", "AP50")
SIZES = {"APs": "small, below 32² pixels", "APm": "medium", "APl": "large, from 96² pixels"}
TOTALS = ("P", "mPC", "rPC")
PAPER = {"Pascal VOC": "pascal_voc", "COCO": "coco", "Cityscapes": "cityscapes"}  # as published() names them
COLUMNS = {"P": "clean_p", "mPC": "mpc", "rPC": "rpc_percent"}


def plus_minus(value: Value) -> str:
    interval = around(*value)
    return f"{interval.estimate:.1f} ± {interval.half_width:.1f}"


def from_to(value: Value) -> str:
    interval = around(*value)
    return f"{interval.estimate:+.1f} ({interval.low:+.1f} to {interval.high:+.1f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_training(found: Trained) -> str:
    """P, mPC and rPC of every network; of each training the mean, and how far its seeds are apart."""
    seeds, rows = seeds_of(found), []
    columns = [(measure, name) for measure in MEASURES for name in TOTALS]
    for training in TRAININGS:
        for seed in seeds:
            cells = found[training, seed]
            rows.append([training, str(seed), *(plus_minus(cells[m][n]) for m, n in columns)])
        if len(seeds) > 1:
            means, apart = [], []
            for m, n in columns:
                values = [found[training, seed][m][n].estimate for seed in seeds]
                means.append(f"**{np.mean(values):.1f}**")
                apart.append(f"{max(values) - min(values):.1f}")
            rows += [[f"**{training}**", "mean", *means], [training, "apart", *apart]]
    return table(["training", "seed", *(f"{n} ({m})" for m, n in columns)], rows)


def by_gain(found: Trained) -> str:
    """What stylized and combined training have over the standard one."""
    seeds, rows = seeds_of(found), []
    for training in TRAININGS[1:]:
        sets = [[seed] for seed in seeds] + ([seeds] if len(seeds) > 1 else [])
        for chosen in sets:
            label = str(chosen[0]) if len(chosen) == 1 else "all"
            columns = [*(("AP", name) for name in TOTALS), ("AP50", "mPC"), ("AP50", "rPC")]
            values = [from_to(gain(found, training, chosen, *column)) for column in columns]
            rows.append([f"{training} − standard", label, *values])
    return table(["", "seed", *(f"{name} (AP)" for name in TOTALS), "mPC (AP50)", "rPC (AP50)"], rows)


def by_part(found: Trained, parts: Mapping[str, tuple[str, str]]) -> str:
    """AP and AP relative to clean in parts of the grid (label → names of both), mean over seeds."""
    seeds = seeds_of(found)
    rows = []
    for label, (score, relative) in parts.items():
        row = [label]
        for name in (score, relative):
            row += [f"{pooled(found, training, 'AP', name).estimate:.1f}" for training in TRAININGS]
            row.append(from_to(gain(found, "combined", seeds, "AP", name)))
        rows.append(row)
    heads = [f"{kind}: {one}" for kind in ("AP", "% of clean") for one in (*TRAININGS, "combined − standard")]
    return table(["", *heads], rows)


def by_size(found: Trained) -> str:
    """AP of small, medium and large objects on clean scenes and under corruption, mean over seeds."""
    seeds, rows = seeds_of(found), []
    for measure, label in SIZES.items():
        row = [label]
        for name in ("P", "mPC"):
            row += [f"{pooled(found, training, measure, name).estimate:.1f}" for training in TRAININGS]
            row.append(from_to(gain(found, "combined", seeds, measure, name)))
        rows.append(row)
    heads = [f"{name}: {one}" for name in ("P", "mPC") for one in (*TRAININGS, "combined − standard")]
    return table(["objects", *heads], rows)


def beside_the_paper(found: Trained) -> str:
    rows = []
    for training in TRAININGS:
        for label, dataset in PAPER.items():
            row = published_row(dataset, training)
            of = "AP50" if dataset == "pascal_voc" else "AP"
            rows.append([training, label, of, *(f"{row[COLUMNS[name]]:.1f}" for name in TOTALS)])
        for measure in MEASURES:
            values = [f"{pooled(found, training, measure, name).estimate:.1f}" for name in TOTALS]
            rows.append([training, "**the street, here**", measure, *values])
    return table(["training", "on", "measure", *TOTALS], rows)


def published_row(dataset: str, training: str) -> Mapping[str, Any]:
    rows = sp.published("michaelis").tables["stylized_training"]
    wanted = {"task": "detection", "dataset": dataset, "train_data": training}
    return next(row for row in rows if wanted.items() <= row.items())


def findings(found: Trained) -> str:
    """Every difference of the paper's Table 2 beside ours, and whether they point the same way."""
    pairs = [("stylized", "standard"), ("combined", "standard"), ("combined", "stylized")]
    seeds, rows = seeds_of(found), []
    for one, other in pairs:
        for name in TOTALS:
            theirs = [
                float(published_row(d, one)[COLUMNS[name]]) - float(published_row(d, other)[COLUMNS[name]])
                for d in PAPER.values()
            ]
            ours = mean([found[one, s]["AP"][name].less(found[other, s]["AP"][name]) for s in seeds])
            verdict = agreement(theirs, around(*ours))
            rows.append([f"{one} − {other}", name, *(f"{t:+.1f}" for t in theirs), from_to(ours), verdict])
    return table(["", "", *PAPER, "the street, here", "the same way?"], rows)


def agreement(theirs: Sequence[float], ours: Interval) -> str:
    """Whether a difference has the sign that the paper's have, as far as ours is known, and their size."""
    if len({np.sign(value) for value in theirs}) > 1:
        return "the paper's differ"
    if ours.low <= 0 <= ours.high:
        return "not clear here"
    if np.sign(ours.estimate) != np.sign(theirs[0]):
        return "**no**"
    least, most = sorted(map(abs, (ours.low, ours.high)))
    if least > max(map(abs, theirs)):
        return "yes, but larger"
    return "yes, but smaller" if most < min(map(abs, theirs)) else "yes"


def trainings(folder: Path) -> str:
    """How each network was trained, as its log tells."""
    rows = []
    for name, path in sorted(files(folder, ".json").items()):
        log = json.loads(path.read_text())
        clean = log.get("clean", {"scores": {}, "images": 0})
        scores = ", ".join(f"{measure} {100 * value:.1f}" for measure, value in clean["scores"].items())
        told = log["training"]
        rows.append([
            name, told["kind"], str(told["seed"]), f"{log['scenes']:,}", f"{log['curve'][-1]['step']:,}",
            scores or "not taken",
        ])  # fmt: skip
    return table(["network", "training", "seed", "scenes", "steps", "clean, `world:test`"], rows)


def files(folder: Path, suffix: str) -> dict[str, Path]:
    """The networks' files of a kind by network; of those in weights/, two come with the package."""
    own = {path.stem: path for path in folder.glob(f"grid-*{suffix}")}
    packaged = PACKAGED if folder.resolve() == WEIGHTS.resolve() else {}
    return {name: networks_folder() / f"{there}{suffix}" for name, there in packaged.items()} | own


def networks(folder: Path) -> dict[tuple[str, int], Path]:
    """The networks by training and seed; a seed counts if all three trainings have it."""
    named = files(folder, ".onnx")
    held = {
        (training, seed): named[name]
        for training in TRAININGS
        for seed in range(10)
        if (name := f"grid-{training}-{seed}") in named
    }
    whole = {seed for _, seed in held if all((training, seed) in held for training in TRAININGS)}
    if not whole:
        raise SystemExit(
            f"{folder} has no seed with all of {', '.join(TRAININGS)}; README.md says how to train."
        )
    return {key: path for key, path in held.items() if key[1] in whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go")
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="whose tables are renewed")
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    options = parser.parse_args()
    found = {}
    for (training, seed), path in networks(options.weights).items():
        run = sp.run(
            f"onnx:{path}", DATA, conditions=SUITE, limit=options.scenes,
            out=options.runs / f"grid-{training}-{seed}", workers=options.workers,
        )  # fmt: skip
        found[training, seed] = measured(run.folder, (*MEASURES, *SIZES))
    groups = {g: (f"by_group_michaelis/{g}", f"rPC_by_group_michaelis/{g}") for g in MICHAELIS}
    levels = {f"severity {k}": (f"by_severity/{k}", f"rPC_by_severity/{k}") for k in range(1, 6)}
    from figure import draw
    from parts import write_part

    parts = {
        "trainings": trainings(options.weights),
        "networks": by_training(found),
        "gains": by_gain(found),
        "groups": by_part(found, groups),
        "severities": by_part(found, levels),
        "sizes": by_size(found),
        "paper": beside_the_paper(found),
        "findings": findings(found),
    }
    for name, made in parts.items():
        write_part(options.page, name, made)
    draw(found, options.page.with_name("figure.png"))


if __name__ == "__main__":
    main()
