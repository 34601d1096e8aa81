"""What does each part of the segmenter do for its robustness? (*kamann*, Sections 4.2 and 5.3)

python studies/ablations/study.py            renews the tables of README.md from the kept scores
python studies/ablations/study.py --check    only compares them, and fails if they differ
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from stormproof.core.condition import Condition
from stormproof.corruptions.suites import KAMANN, ONE_DATASET_ONLY
from stormproof.metrics.degradation import Degradation, category_spreads, cd, degradation, mean_over, rcd
from stormproof.metrics.grid import Grid
from stormproof.metrics.published import published

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Trained, Value, mean, read

LABELS = {
    "reference": "reference: atrous context, global mean, long link, width 48",
    "noatrous": "without atrous context",
    "nomean": "without the global mean",
    "nolink": "without the long link",
    "narrow": "two thirds of the width",
    "wide": "one and a half times the width",
}
SEEDS = (1, 2)
# Spatter was not run at severities 1 to 3; geometric distortion moves labels, which the storm does not.
LEFT_OUT = {"spatter", "geometric_distortion"}
CATEGORIES = {
    category: counted
    for category, members in KAMANN.items()
    if (counted := [name for name in members if name not in LEFT_OUT])
}
COUNTED = {name for members in CATEGORIES.values() for name in members}
Rule = Callable[..., dict[str, float]]


def held(one: Trained) -> list[str]:
    """The conditions that the paper counts, and the clean images."""
    return [text for text in one.cells if text == "clean" or Condition.parse(text).corruption in COUNTED]


def by_category(found: Mapping[str, float]) -> dict[str, float]:
    """CD or rCD in per cent: the mean over corruptions and those of the categories."""
    categories = {name: spread.mean for name, spread in category_spreads(found).items()}
    values = {"all": mean_over(found, without=ONE_DATASET_ONLY), **categories}
    return {name: 100 * value for name, value in values.items()}


def numbers(one: Mapping[str, float], reference: Mapping[str, float], rule: Rule) -> dict[str, float]:
    return by_category(rule(*(degradation(Grid.of(scores)) for scores in (one, reference))))


def against(one: Trained, reference: Trained, rule: Rule) -> dict[str, Value]:
    """The same with intervals: the rule applied to every draw."""
    texts = held(one)

    def at(trained: Trained, row: int | None) -> dict[str, float]:
        cells = ((text, trained.cells[text]) for text in texts)
        return {text: (v.estimate if row is None else float(v.drawn[row])) / 100 for text, v in cells}

    first = one.cells["clean"]
    rows = [numbers(at(one, k), at(reference, k), rule) for k in (None, *range(len(first.drawn)))]
    return {
        name: Value(rows[0][name], np.array([row[name] for row in rows[1:]]), first.images)
        for name in rows[0]
    }


def compared(found: Mapping[str, Trained], rule: Rule) -> str:
    """Every network against the reference of its seed: the mean over seeds, and the seeds."""
    lines, head = [], []
    for name, label in LABELS.items():
        if name == "reference":
            continue
        seeds = [
            against(found[f"{name}-standard-{s}"], found[f"reference-standard-{s}"], rule) for s in SEEDS
        ]
        head = list(seeds[0])
        cells = [str(mean(each[column] for each in seeds)) for column in head]
        cells.insert(1, ", ".join(f"{each['all'].estimate:.1f}" for each in seeds))
        lines.append([label, *cells])
    return table(["", head[0], "by seed", *head[1:]], lines)


def of_the_paper() -> str:
    """The paper's own ablations (Table 2, Cityscapes) under the same corruptions."""
    rows = published("kamann").tables["ablation_xception71"]
    lost = {}
    for row in rows:
        scores = {name: 1 - float(row[name]) / 100 for name in ("clean", *COUNTED)}
        lost[row["architecture"]] = Degradation(scores.pop("clean"), scores)
    reference = rows[0]["architecture"]
    lines, head = [], []
    for name, one in lost.items():
        if name != reference:
            each = [by_category(rule(one, lost[reference])) for rule in (cd, rcd)]
            head = [f"{which} {column}" for which in ("CD", "rCD") for column in each[0]]
            lines.append([name, *(f"{value:.1f}" for found in each for value in found.values())])
    return table(["Xception-71", *head], lines)


def scores(found: Mapping[str, Trained]) -> str:
    lines = []
    for name, label in LABELS.items():
        each = [found[f"{name}-standard-{seed}"] for seed in SEEDS]
        clean = mean(one.cells["clean"] for one in each)
        groups = [
            mean(one.mean([t for t in held(one) if t.split("@")[0] in members]) for one in each)
            for members in CATEGORIES.values()
        ]
        by_seed = ", ".join(f"{one.cells['clean'].estimate:.1f}" for one in each)
        lines.append([label, str(clean), by_seed, *(f"{group.estimate:.1f}" for group in groups)])
    return table(["", "clean", "by seed", *CATEGORIES], lines)


def parts(path: Path) -> dict[str, str]:
    found = read(path, "mIoU")
    return {
        "scores": scores(found),
        "CD": compared(found, cd),
        "rCD": compared(found, rcd),
        "paper": of_the_paper(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    renew(HERE / "README.md", parts(HERE / "scores.npz"), check=parser.parse_args().check)


if __name__ == "__main__":
    main()
