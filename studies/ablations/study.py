"""What does each part of the segmenter do for its robustness? (*kamann*, Sections 4.2 and 5.3)

python studies/ablations/study.py            renews the tables of README.md from the kept scores
python studies/ablations/study.py --check    only compares them, and fails if they differ
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from stormproof.corruptions.suites import KAMANN, KAMANN_19, ONE_DATASET_ONLY
from stormproof.metrics.degradation import Degradation, category_spreads, cd, degradation, mean_over, rcd
from stormproof.metrics.grid import Grid
from stormproof.metrics.published import published

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Spread, Trained, Value, by_name, half_width, mean_network, read

LABELS = {
    "reference": "reference: atrous backbone, ASPP, long link",
    "noaspp": "without ASPP",
    "noac": "without atrous convolutions in the backbone",
    "dpc": "DPC instead of ASPP",
    "nolink": "without the long link",
    "mean": "with a global mean",
    "wide": "one and a half times the width",
    "deepreference": "twice as deep",
    "deepnoac": "twice as deep, without atrous convolutions",
    "deepdpc": "twice as deep, DPC instead of ASPP",
}
DEEP = "deep"
Rule = Callable[..., dict[str, float]]


def reference_of(name: str) -> str:
    """The network that another is compared with: that of its backbone; the deep one, with the first."""
    deep = name.startswith(DEEP) and name != f"{DEEP}reference"
    return f"{DEEP}reference" if deep else "reference"


def by_category(found: Mapping[str, float]) -> dict[str, float]:
    """CD or rCD in per cent: the mean over corruptions and those of the categories."""
    categories = {name: spread.mean for name, spread in category_spreads(found).items()}
    values = {"all": mean_over(found, without=ONE_DATASET_ONLY), **categories}
    return {name: 100 * value for name, value in values.items()}


def numbers(one: Mapping[str, float], reference: Mapping[str, float], rule: Rule) -> dict[str, float]:
    return by_category(rule(*(degradation(Grid.of(scores)) for scores in (one, reference))))


def against(one: Trained, reference: Trained, rule: Rule) -> dict[str, Value]:
    """CD or rCD with its draws: the rule applied to every one."""

    def at(trained: Trained, row: int | None) -> dict[str, float]:
        return {
            text: (v.estimate if row is None else float(v.drawn[row])) / 100
            for text, v in trained.per_condition.items()
        }

    first = one.per_condition["clean"]
    rows = [numbers(at(one, k), at(reference, k), rule) for k in (None, *range(len(first.drawn)))]
    return {
        name: Value(rows[0][name], np.array([row[name] for row in rows[1:]]), first.images)
        for name in rows[0]
    }


def compared(found: Mapping[str, Sequence[Trained]], rule: Rule) -> str:
    """Every network against its reference, means over seeds, with intervals for new scenes and seeds."""
    plain = {
        name: [
            numbers(
                *({t: v.estimate / 100 for t, v in each.per_condition.items()} for each in (one, reference)),
                rule,
            )
            for one in seeds
        ]
        for name, seeds in found.items()
        for reference in [mean_network(found[reference_of(name)])]
    }
    head = list(plain["reference"][0])
    spreads = {column: Spread.of([[s[column] for s in seeds] for seeds in plain.values()]) for column in head}
    lines = []
    for name, label in LABELS.items():
        if name == "reference":
            continue
        other = found[reference_of(name)]
        values = against(mean_network(found[name]), mean_network(other), rule)
        counts = len(found[name]), len(other)
        cells = [
            f"{value.estimate:.1f} ± {half_width(value, spreads[column], *counts):.1f}"
            for column, value in values.items()
        ]
        cells.insert(1, ", ".join(f"{seed['all']:.1f}" for seed in plain[name]))
        lines.append([label, *cells])
    lines.append(
        ["*standard deviation of one seed*", f"{spreads['all'].deviation:.1f}", "",
         *(f"{spreads[column].deviation:.1f}" for column in head[1:])]
    )  # fmt: skip
    return table(["", head[0], "by seed", *head[1:]], lines)


def of_the_paper() -> str:
    """The paper's own ablations (Table 2, Cityscapes) under the same corruptions."""
    rows = published("kamann").tables["ablation_xception71"]
    lost = {}
    for row in rows:
        scores = {name: 1 - float(row[name]) / 100 for name in ("clean", *KAMANN_19)}
        lost[row["architecture"]] = Degradation(scores.pop("clean"), scores)
    reference = rows[0]["architecture"]
    lines, head = [], []
    for name, one in lost.items():
        if name != reference:
            each = [by_category(rule(one, lost[reference])) for rule in (cd, rcd)]
            head = [f"{which} {column}" for which in ("CD", "rCD") for column in each[0]]
            lines.append([name, *(f"{value:.1f}" for found in each for value in found.values())])
    return table(["Xception-71", *head], lines)


def scores(found: Mapping[str, Sequence[Trained]]) -> str:
    clean = {name: [one.per_condition["clean"].estimate for one in seeds] for name, seeds in found.items()}
    spread = Spread.of(clean.values())
    lines = []
    for name, label in LABELS.items():
        one = mean_network(found[name])
        groups = [
            one.mean([t for t in one.per_condition if t != "clean" and t.split("@")[0] in members])
            for members in KAMANN.values()
        ]
        value = one.per_condition["clean"]
        by_seed = ", ".join(f"{v:.1f}" for v in clean[name])
        whole = f"{value.estimate:.1f} ± {half_width(value, spread, len(found[name])):.1f}"
        lines.append([label, whole, by_seed, *(f"{group.estimate:.1f}" for group in groups)])
    return table(["", "clean", "by seed", *KAMANN], lines)


def parts(path: Path) -> dict[str, str]:
    found = by_name(read(path, "mIoU"))
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
