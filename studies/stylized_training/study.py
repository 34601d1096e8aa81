"""Does stylized training make a detector of the street robust, as *michaelis* found on photographs?

    python studies/stylized_training/study.py --runs DIR

Runs the detectors in weights/ (one network, three trainings, several seeds) over imagenet-c on scenes of
`world:test`, which none of them was trained on or chosen by; a stopped study goes on. Then it renews the
tables of README.md beside it, and its figure. README.md says how the detectors are trained.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stormproof as sp
from stormproof.confidence.grids import aggregated
from stormproof.confidence.interval import Interval, around, percentile
from stormproof.confidence.resample import resample
from stormproof.groups import BENCHMARK_15, MICHAELIS
from stormproof.scoring.score import score_run

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "docs"))
DATA, SUITE = "world:test", "imagenet-c"
TRAININGS = ("standard", "stylized", "combined")
COLOURS = {"standard": "#5b6470", "stylized": "#c2571a", "combined": "#17407d"}
MEASURES = ("AP", "AP50")
SIZES = {"APs": "small, below 32² pixels", "APm": "medium", "APl": "large, from 96² pixels"}
TOTALS = ("P", "mPC", "rPC")
PAPER = {"Pascal VOC": "pascal_voc", "COCO": "coco", "Cityscapes": "cityscapes"}  # as published() names them
COLUMNS = {"P": "clean_p", "mPC": "mpc", "rPC": "rpc_percent"}


class Value(NamedTuple):
    """A number in points, and its replicates over images."""

    estimate: float
    replicates: np.ndarray

    def less(self, other: Value) -> Value:
        """Paired: the same images weigh alike in both."""
        return Value(self.estimate - other.estimate, self.replicates - other.replicates)


Values = Mapping[str, Value]  # by the aggregate's flat name: rPC, by_severity/3 …
Trained = Mapping[tuple[str, int], Mapping[str, Values]]  # training and seed → measure → values


def measured(run: Path) -> dict[str, dict[str, Value]]:
    """Every aggregate of a run."""
    scores, spread = score_run(run), resample(run)
    found = {}
    for measure in (*MEASURES, *SIZES):
        cells = {text: np.array([score]) for text, score in scores.by_measure[measure].items()}
        point, drawn = aggregated(measure, cells), aggregated(measure, spread.by_measure[measure])
        found[measure] = {name: Value(100 * float(point[name][0]), 100 * drawn[name]) for name in point}
    return found


def mean(values: Sequence[Value]) -> Value:
    """Over seeds, whose replicates weigh the same images alike."""
    estimates, replicates = zip(*values, strict=True)
    return Value(float(np.mean(estimates)), np.mean(replicates, axis=0))


def seeds_of(found: Trained) -> list[int]:
    return sorted({seed for _, seed in found})


def pooled(found: Trained, training: str, measure: str, name: str) -> Value:
    return mean([found[training, seed][measure][name] for seed in seeds_of(found)])


def gain(found: Trained, training: str, seeds: Sequence[int], measure: str, name: str) -> Value:
    """What a training has over the standard one of the same seed, the mean over seeds."""
    return mean([found[training, s][measure][name].less(found["standard", s][measure][name]) for s in seeds])


def plus_minus(value: Value) -> str:
    interval = around(*value)
    return f"{interval.estimate:.1f} ± {interval.half_width:.1f}"


def from_to(value: Value) -> str:
    interval = percentile(*value)
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
            verdict = agreement(theirs, percentile(*ours))
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
    for path in sorted(folder.glob("*.json")):
        log = json.loads(path.read_text())
        clean = log.get("clean", {"scores": {}, "images": 0})
        scores = ", ".join(f"{name} {100 * value:.1f}" for name, value in clean["scores"].items())
        told = log["training"]
        rows.append([
            path.stem, told["kind"], str(told["seed"]), f"{log['scenes']:,}", f"{log['curve'][-1]['step']:,}",
            scores or "not taken",
        ])  # fmt: skip
    return table(["network", "training", "seed", "scenes", "steps", "clean, `world:test`"], rows)


def draw(found: Trained, path: Path) -> None:
    """AP by severity, 0 for clean, and relative to clean by corruption; bars are intervals of the mean."""
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=(2, 3)
    )
    seeds = seeds_of(found)
    levels = range(6)
    for step, training in enumerate(TRAININGS):
        look = {"color": COLOURS[training], "label": training}
        names = ["P", *(f"by_severity/{level}" for level in levels[1:])]
        values = [pooled(found, training, "AP", name) for name in names]
        halves = [around(*value).half_width for value in values]
        at = np.array(levels) + 0.06 * (step - 1)
        left.errorbar(at, [v.estimate for v in values], halves, marker="o", markersize=4, **look)
        shown = [relative(found, training, name) for name in BENCHMARK_15]
        halves = [around(*value).half_width for value in shown]
        across = np.arange(len(BENCHMARK_15)) + 0.22 * (step - 1)
        right.errorbar(across, [v.estimate for v in shown], halves, fmt="o", markersize=4, **look)
    left.set(xlabel="severity, 0 for clean", ylabel="AP", xticks=list(levels), ylim=(0, None))
    left.legend(frameon=False)
    names = [name.replace("_", " ") for name in BENCHMARK_15]
    right.set_xticks(range(len(names)), names, rotation=50, ha="right", rotation_mode="anchor", fontsize=8)
    right.set(ylim=(0, None), ylabel="AP, % of clean, mean over severities")
    edge = -0.5
    for group, members in MICHAELIS.items():
        middle = edge + len(members) / 2
        right.text(middle, 1.01, group, transform=right.get_xaxis_transform(), ha="center", fontsize=9)
        edge += len(members)
        if edge < len(names) - 0.5:
            right.axvline(edge, color="#cccccc", linewidth=0.8)
    figure.suptitle(f"{len(seeds)} seeds each" if len(seeds) > 1 else "one seed each", fontsize=9)
    figure.savefig(path, dpi=110)


def relative(found: Trained, training: str, corruption: str) -> Value:
    """AP under a corruption in % of clean, the mean over seeds."""
    each = []
    for seed in seeds_of(found):
        cells = found[training, seed]["AP"]
        under, clean = cells[f"by_corruption/{corruption}"], cells["P"]
        each.append(Value(100 * under.estimate / clean.estimate, 100 * under.replicates / clean.replicates))
    return mean(each)


def networks(folder: Path) -> dict[tuple[str, int], Path]:
    """The networks by training and seed; a seed counts if all three trainings have it."""
    held = {
        (training, int(path.stem.rpartition("-")[2])): path
        for training in TRAININGS
        for path in folder.glob(f"grid-{training}-[0-9].onnx")
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
    parser.add_argument("--weights", type=Path, default=HERE / "weights")
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="whose tables are renewed")
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    options = parser.parse_args()
    found = {}
    for key, path in networks(options.weights).items():
        run = sp.run(
            f"onnx:{path}", DATA, conditions=SUITE, limit=options.scenes, out=options.runs / path.stem,
            workers=options.workers,
        )  # fmt: skip
        found[key] = measured(run.folder)
    groups = {g: (f"by_group_michaelis/{g}", f"rPC_by_group_michaelis/{g}") for g in MICHAELIS}
    levels = {f"severity {k}": (f"by_severity/{k}", f"rPC_by_severity/{k}") for k in range(1, 6)}
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
