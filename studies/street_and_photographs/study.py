"""Does the built-in street rank corruptions as photographs do?

    python studies/street_and_photographs/study.py --models DIR --coco instances.json --images DIR --runs DIR

Runs every ONNX detector of a folder under imagenet-c at severity 3, on photographs and on scenes of
`world:test`, and a detector that was trained on the street; a stopped study goes on. Then it compares the
relative performance under the fifteen corruptions: Spearman's ρ for each detector, its interval from
replicates over images. It renews the tables of README.md beside it, and its figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import pyplot
from matplotlib.transforms import Bbox
from scipy.stats import rankdata

import stormproof as sp
from stormproof.core.condition import Condition

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "docs"))
CONDITIONS = "imagenet-c@3"
STREET = "world:test,size=768x480"  # as large as photographs, which the detectors were trained on
TRAINED_HERE = "builtin:street-grid"
MEASURE = "AP"
# What a file does not tell of itself.
OPTIONS = dict.fromkeys(("efficientdet_lite0_coco_qdq", "ssd_mobilenet_v1_300_coco_qdq"), ",classes=coco91")
# Where a label may stand, the best first: its alignment, and points from the mark.
SIDES = [
    (side, (across, up))
    for up in (5, -6, 0, 14, -14, 23, -23)
    for side, across in (("left", 5), ("right", -5))
]


class Relative(NamedTuple):
    """Performance relative to clean, by corruption: the estimate, and replicates × corruptions."""

    clean: float
    estimate: np.ndarray
    replicates: np.ndarray


def relative(run: sp.Run, corruptions: Sequence[str]) -> Relative:
    scores = run.score(interval=True)
    cells, spread = scores.per_condition[MEASURE], scores.spread(MEASURE)
    by_name = {Condition.parse(text).corruption: text for text in cells}
    estimate = np.array([cells[by_name[name]] / cells["clean"] for name in corruptions])
    halves = {text: drawn[1:] for text, drawn in spread.items()}  # the first is the score less its optimism
    replicates = np.stack([halves[by_name[name]] / halves["clean"] for name in corruptions], axis=1)
    return Relative(cells["clean"], estimate, replicates)


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of ranks."""
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def with_interval(a: Relative, b: Relative) -> str:
    """ρ, and from the 2.5 % to the 97.5 % quantile of its replicates.

    Noise in either set lowers a rank correlation, so the replicates lie below the estimate.
    """
    drawn = [spearman(x, y) for x, y in zip(a.replicates, b.replicates, strict=True)]
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return f"{spearman(a.estimate, b.estimate):.2f} ({low:.2f} to {high:.2f})"


def by_detector(photographs: Mapping[str, Relative], street: Mapping[str, Relative], here: Relative) -> str:
    rows = [
        "| detector | AP on photographs | AP on the street | ρ: itself on both | ρ: on photographs, and "
        "the one trained on the street |",
        "|---|---|---|---|---|",
    ]
    for name, seen in photographs.items():
        there = street[name]
        rows.append(
            f"| {name} | {100 * seen.clean:.1f} | {100 * there.clean:.1f} | {with_interval(seen, there)} | "
            f"{with_interval(seen, here)} |"
        )
    every = [mean(sets.values()) for sets in (photographs, street)]
    rows.append(f"| mean of all | | | {with_interval(*every)} | {with_interval(every[0], here)} |")
    return "\n".join(rows)


def mean(sets: Sequence[Relative]) -> Relative:
    clean, estimate, replicates = zip(*sets, strict=True)
    return Relative(float(np.mean(clean)), np.mean(estimate, 0), np.mean(replicates, 0))


def by_corruption(corruptions: Sequence[str], columns: Mapping[str, Relative]) -> str:
    rows = [f"| corruption | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for k in np.argsort(-next(iter(columns.values())).estimate):
        values = " | ".join(f"{100 * column.estimate[k]:.0f}" for column in columns.values())
        rows.append(f"| {corruptions[k]} | {values} |")
    return "\n".join(rows)


def draw(corruptions: Sequence[str], photographs: Relative, street: Relative, path: Path) -> None:
    figure, ax = pyplot.subplots(figsize=(6, 5), layout="constrained")
    errors = [100 * np.nanstd(found.replicates, 0) for found in (photographs, street)]
    x, y = 100 * photographs.estimate, 100 * street.estimate
    ax.errorbar(x, y, errors[1], errors[0], "o", color="#17407d", ecolor="#aec7e8", markersize=5)
    top = 1.08 * max(x.max(), y.max())
    ax.plot((0, top), (0, top), color="grey", linewidth=0.8, linestyle="--")
    ax.set(xlim=(0, top), ylim=(0, top), xlabel="AP on photographs, % of clean")
    ax.set_ylabel("AP on the street, % of clean")
    label(ax, [name.replace("_", " ") for name in corruptions], x, y)
    figure.savefig(path, dpi=110)


def label(ax: Any, names: Sequence[str], x: np.ndarray, y: np.ndarray) -> None:
    """Names beside their marks, each at the first side where it meets no mark and no other name."""
    ax.figure.draw_without_rendering()  # settles the axes, so that places on the page are known
    marks = ax.transData.transform(np.stack([x, y], axis=1))
    taken = [Bbox.from_bounds(across - 4, up - 4, 8, 8) for across, up in marks]
    for name, a, b in zip(names, x, y, strict=True):
        for side, at in SIDES:
            note = ax.annotate(
                name, (a, b), xytext=at, textcoords="offset points", fontsize=8, ha=side, va="center"
            )
            box = note.get_window_extent()
            inside = ax.bbox.x0 < box.x0 and box.x1 < ax.bbox.x1
            if inside and not any(box.overlaps(other) for other in taken):
                break
            note.remove()
        else:
            raise RuntimeError(f"No place for the label {name!r}; enlarge the figure.")
        taken.append(box)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="a folder of ONNX detectors of COCO")
    parser.add_argument("--only", nargs="*", default=[], help="names of models, instead of all")
    parser.add_argument("--coco", type=Path, required=True, help="annotations of photographs")
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go")
    parser.add_argument("--scenes", type=int, default=160)
    options = parser.parse_args()
    names = options.only or sorted(path.stem for path in options.models.glob("*_coco*.onnx"))
    sets = {
        "photos": (f"coco:{options.coco},images={options.images}", None),
        "street": (STREET, options.scenes),
    }
    found: dict[str, dict[str, sp.Run]] = {kind: {} for kind in sets}
    for name in names:
        for kind, (data, limit) in sets.items():
            out = options.runs / kind / name
            model = f"onnx:{options.models / name}.onnx{OPTIONS.get(name, '')}"
            found[kind][name] = sp.run(model, data, conditions=CONDITIONS, limit=limit, out=out, workers=1)
    here = sp.run(
        TRAINED_HERE, "world:test", conditions=CONDITIONS, limit=options.scenes,
        out=options.runs / "street" / "street-grid", workers=1,
    )  # fmt: skip
    parsed = [Condition.parse(text) for text in here.conditions]
    corruptions = [c.corruption for c in parsed if c.corruption is not None]
    photographs, street = (
        {name: relative(run, corruptions) for name, run in runs.items()} for runs in found.values()
    )
    trained = relative(here, corruptions)
    from parts import write_part

    write_part(HERE / "README.md", "detectors", by_detector(photographs, street, trained))
    columns = {
        "photographs, mean of all": mean(list(photographs.values())),
        "street, mean of all": mean(list(street.values())),
        "street, street-grid": trained,
    }
    write_part(HERE / "README.md", "corruptions", by_corruption(corruptions, columns))
    draw(corruptions, *list(columns.values())[:2], HERE / "figure.png")


if __name__ == "__main__":
    main()
