"""Does training on clean and stylized scenes help, beside a control of as many steps? (*michaelis*, Table 2)

    python studies/combined/study.py            renews the tables and the figure of README.md from scores.npz
    python studies/combined/study.py --check    only compares the tables, and fails if they differ

`python -m training storm` wrote the scores; README.md says how the networks are trained.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import altair

from stormproof.corruptions.suites import BENCHMARK_15, MICHAELIS
from stormproof.metrics.published import published

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Trained, Value, grid, mean, read

PAGE, KEPT = HERE / "README.md", HERE / "scores.npz"
PRESENT = HERE / "present.npz"  # the segmenter, with copies by the present style network
SEEDS = (1, 2)
TRAININGS = {
    "standard": "standard",
    "longer": "standard, twice the steps",
    "stylized": "stylized",
    "combined": "clean and stylized",
}
MEASURES = {
    "detector, AP": ("grid", "AP"),
    "detector, AP50": ("grid", "AP50"),
    "segmenter, mIoU": ("plain", "mIoU"),
}
COMPARED = {  # training, and what it is compared with
    "clean and stylized − standard of as many steps": ("combined", "longer"),
    "clean and stylized − standard of as many clean images": ("combined", "standard"),
    "stylized − standard of as many steps": ("stylized", "standard"),
    "standard of twice the steps − standard": ("longer", "standard"),
}
Column = Callable[[Trained], Value]
Networks = Mapping[str, Trained]  # by name, such as grid-combined-1
QUIET = [name for name in BENCHMARK_15 if name not in MICHAELIS["noise"]]


def over(names: list[str], severities: range = range(1, 6)) -> Column:
    conditions = grid(names, severities)
    return lambda one: one.mean(conditions)


COLUMNS: dict[str, Column] = {
    "P": lambda one: one.per_condition["clean"],
    "mPC": over(list(BENCHMARK_15)),
    "mPC without noise": over(QUIET),
    "rPC": lambda one: one.relative(grid(BENCHMARK_15)),
    **{group: over(list(names)) for group, names in MICHAELIS.items()},
}


def each(found: Networks, network: str, pair: tuple[str, str], column: Column) -> list[Value]:
    """The difference between two trainings, by seed."""
    one, other = pair
    return [column(found[f"{network}-{one}-{s}"]) - column(found[f"{network}-{other}-{s}"]) for s in SEEDS]


def scores(path: Path) -> str:
    rows = []
    for label, (network, measure) in MEASURES.items():
        found = read(path, measure)
        for training, words in TRAININGS.items():
            for seed in SEEDS:
                values = [column(found[f"{network}-{training}-{seed}"]) for column in COLUMNS.values()]
                shown = [str(v) if k < 4 and k != 2 else f"{v.estimate:.1f}" for k, v in enumerate(values)]
                rows.append([label, words, str(seed), *shown])
    return table(["", "training", "seed", *COLUMNS], rows)


def differences(path: Path) -> str:
    rows = []
    for label, (network, measure) in MEASURES.items():
        found = read(path, measure)
        for words, pair in COMPARED.items():
            cells = []
            for name in ("P", "mPC", "mPC without noise", "rPC"):
                by_seed = each(found, network, pair, COLUMNS[name])
                seeds = ", ".join(f"{one.estimate:+.1f}" for one in by_seed)
                cells.append(f"{mean(by_seed).signed}; seeds {seeds}")
            rows.append([label, words, *cells])
    return table(["", "difference", "P", "mPC", "mPC without noise", "rPC"], rows)


def severities(path: Path) -> str:
    rows = []
    for severity in range(1, 6):
        column = over(list(BENCHMARK_15), range(severity, severity + 1))
        row = [str(severity)]
        for network, measure in MEASURES.values():
            found = read(path, measure)
            base = mean(column(found[f"{network}-longer-{seed}"]) for seed in SEEDS)
            row += [f"{base.estimate:.1f}", mean(each(found, network, ("combined", "longer"), column)).signed]
        rows.append(row)
    heads = [f"{label}{what}" for label in MEASURES for what in (": standard", ": difference")]
    return table(["severity", *heads], rows)


def sizes(path: Path) -> str:
    labels = {"APs": "small, below 32² pixels", "APm": "medium", "APl": "large, from 96² pixels"}
    rows = []
    for measure, label in labels.items():
        found = read(path, measure)
        row = [label]
        for name in ("P", "mPC"):
            base = mean(COLUMNS[name](found[f"grid-longer-{seed}"]) for seed in SEEDS)
            apart = mean(each(found, "grid", ("combined", "longer"), COLUMNS[name]))
            row += [f"{base.estimate:.1f}", apart.signed]
        rows.append(row)
    return table(["objects", "P: standard", "difference", "mPC: standard", "difference"], rows)


def present(path: Path) -> str:
    """The segmenter trained with copies by the present style network, where it was scored."""
    earlier, now = read(path, "mIoU"), read(PRESENT, "mIoU")
    conditions = list(now["plain-combined-1"].per_condition)
    rows = []
    corrupted = [c for c in conditions if c != "clean"]
    for label, chosen in {**{c: [c] for c in conditions}, "mean without clean": corrupted}.items():
        row = [label]
        for training in ("longer", "combined"):
            others = [earlier[f"plain-{training}-{s}"].mean(chosen) for s in SEEDS]
            apart = [
                now[f"plain-combined-{s}"].mean(chosen) - other
                for s, other in zip(SEEDS, others, strict=True)
            ]
            row += [f"{mean(others).estimate:.1f}", mean(apart).signed]
            row += [", ".join(f"{one.estimate:+.1f}" for one in apart)]
        rows.append(row)
    heads = [
        f"{name}{what}"
        for name in ("standard", "earlier copies")
        for what in ("", ": difference", ": by seed")
    ]
    return table(["segmenter, mIoU", *heads], rows)


def paper() -> str:
    """The paper's differences between combined and standard training."""
    held = {
        (row["task"], row["dataset"], row["train_data"]): row
        for row in published("michaelis").tables["stylized_training"]
    }
    rows = []
    for task, dataset, training in held:
        if training == "combined":
            one, other = held[task, dataset, training], held[task, dataset, "standard"]
            cells = [f"{one[k] - other[k]:+.1f}" for k in ("clean_p", "mpc", "rpc_percent")]  # type: ignore[operator]
            rows.append([f"{task}, {dataset}", *cells])
    return table(["*michaelis*, combined − standard", "P", "mPC", "rPC"], rows)


def by_corruption(path: Path) -> list[dict[str, Any]]:
    """What clean and stylized training changes under every corruption, for the figure."""
    rows = []
    for label, (network, measure) in MEASURES.items():
        if measure == "AP50":
            continue
        found = read(path, measure)
        for group, names in MICHAELIS.items():
            for name in names:
                apart = mean(each(found, network, ("combined", "longer"), over([name])))
                low, high = apart.interval
                rows.append({
                    "network": label, "group": group, "corruption": name.replace("_", " "),
                    "difference": apart.estimate, "low": low, "high": high,
                })  # fmt: skip
    return rows


def figure(path: Path) -> Any:
    rows = by_corruption(path)
    colours = altair.Scale(domain=list(MICHAELIS), range=["#8a94a3", "#17407d", "#2f8f8b", "#c2703d"])
    panels = []
    for label in dict.fromkeys(row["network"] for row in rows):
        base = altair.Chart(altair.Data(values=[row for row in rows if row["network"] == label])).encode(
            y=altair.Y("corruption:N", sort=None, title=None),
            color=altair.Color("group:N", scale=colours, title=None),
        )
        title = "points more than the standard training of as many steps"
        zero = altair.Chart(altair.Data(values=[{"zero": 0}])).mark_rule(color="#bbbbbb").encode(x="zero:Q")
        panels.append(
            altair.layer(
                zero,
                base.mark_rule(strokeWidth=2).encode(x=altair.X("low:Q", title=title), x2="high:Q"),
                base.mark_point(filled=True, size=50, opacity=1).encode(x="difference:Q"),
            ).properties(width=300, height=300, title=label)
        )
    return altair.hconcat(*panels).configure_view(stroke="#dddddd").configure(font="sans-serif")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scores", type=Path, default=KEPT)
    parser.add_argument("--page", type=Path, default=PAGE, help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    made = {
        "scores": scores(options.scores), "differences": differences(options.scores),
        "severities": severities(options.scores), "sizes": sizes(options.scores), "paper": paper(),
        "present": present(options.scores),
    }  # fmt: skip
    renew(options.page, made, check=options.check)
    if not options.check:
        figure(options.scores).save(options.page.with_name("corruptions.svg"))


if __name__ == "__main__":
    main()
