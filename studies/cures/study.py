"""What helps against the storm, against what, at what price?

    python studies/cures/study.py            renews tables and figure of README.md from the kept scores
    python studies/cures/study.py --check    only compares them, and fails if they differ

`python -m training storm` wrote the scores; README.md says how the networks are trained.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.corruptions.suites import BENCHMARK_15, HOLDOUT, KAMANN, MICHAELIS, SUITES

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parents[1] / "docs")]
import storms
from parts import renew, table
from storms import Trained, Value, grid

from trainings import CORRUPTED, CURES, SEEDS, Cure

PAGE, KEPT = HERE / "README.md", HERE / "scores.npz"
# Camera faults at severity 3 only and no haze, since it takes a third of a second per image; with a control
# of its own, because the standard networks were trained again for it.
NLM = HERE / "nlm.npz"
NETWORKS = {"grid": ("detector", "AP"), "plain": ("segmenter", "mIoU")}
REMEDIES = {  # without training, before or in a trained network
    "bn": "normalised by the test images",
    "restyled": "test images painted in the look of clean ones",
    "rebuilt": "test images through the style network, not painted",
    "clahe": "CLAHE",
    "nlm": "non-local means",
}
LABELS = {name: cure.label for name, cure in CURES.items()} | {
    f"{name}+{remedy}": f"{CURES[name].label}, {label}"
    for remedy, label in REMEDIES.items()
    for name in ("standard", "combined", "corrupted")
}
SEVERITIES = range(1, 6)
CAMERA_SEVERITIES = (1, 3, 5)
HAZE = ("haze[beta=0.004]", "haze[beta=0.012]", "haze[beta=0.04]")


Networks = dict[tuple[str, str, int], Trained]  # by architecture, cure and seed


def read(path: Path, measure: str | None = None) -> Networks:
    """The networks of a file, in their headline measure unless another is named."""
    found = {}
    for network, (_, headline) in NETWORKS.items():
        for name, trained in storms.read(path, measure or headline).items():
            kind, *cure, seed = name.partition("+")[0].split("-")
            if kind == network:
                remedy = name.removeprefix(name.partition("+")[0])
                found[network, "-".join(cure) + remedy, int(seed)] = trained
    return found


def _camera() -> list[str]:
    return grid(list(SUITES["camera"].corruptions), CAMERA_SEVERITIES)


NOISE = MICHAELIS["noise"]
COLUMNS: dict[str, Callable[[Trained], Value]] = {
    "P": lambda one: one.per_condition["clean"],
    "mPC": lambda one: one.mean(grid(BENCHMARK_15)),
    "mPC without noise": lambda one: one.mean(grid([n for n in BENCHMARK_15 if n not in NOISE])),
    "rPC": lambda one: one.relative(grid(BENCHMARK_15)),
    **{group: lambda one, names=names: one.mean(grid(names)) for group, names in MICHAELIS.items()},  # type: ignore[misc]
    "camera faults": lambda one: one.mean(_camera()),
    "haze": lambda one: one.mean(HAZE),
}


def training(cure: str) -> Cure:
    return CURES[cure.partition("+")[0]]


def named(cure: str) -> str:
    """The label of a cure, marked if it has seen corruptions of the test."""
    return LABELS[cure] + (" †" if training(cure).seen else "")


def control(cure: str) -> str:
    """The standard training with as many steps; for the longer one, the shorter."""
    return "longer" if training(cure).steps == 2 and cure != "longer" else "standard"


def seeds_of(found: Networks, network: str, cure: str) -> list[int]:
    return [seed for seed in SEEDS if (network, cure, seed) in found]


def cures_of(found: Networks, network: str) -> list[str]:
    return [cure for cure in LABELS if seeds_of(found, network, cure)]


Column = Callable[[Trained], Value]


def each_gain(found: Networks, network: str, cure: str, column: Column) -> list[Value]:
    """What a cure has over its control, by seed."""
    return [
        column(found[network, cure, seed]) - column(found[network, control(cure), seed])
        for seed in seeds_of(found, network, cure)
    ]


def gain(found: Networks, network: str, cure: str, column: Column) -> Value:
    """The mean over seeds; its interval is for new scenes and these trainings."""
    return storms.mean(each_gain(found, network, cure, column))


def over(conditions: Sequence[str]) -> Column:
    return lambda one: one.mean(conditions)


def scores(found: Networks, network: str) -> str:
    """Every network: its scores, with intervals for P, mPC and rPC."""
    rows = []
    for cure in cures_of(found, network):
        for seed in seeds_of(found, network, cure):
            values = {name: column(found[network, cure, seed]) for name, column in COLUMNS.items()}
            sure = ("P", "mPC", "rPC")
            cells = [str(v) if name in sure else f"{v.estimate:.1f}" for name, v in values.items()]
            rows.append([named(cure), str(seed), *cells])
    return table(["training", "seed", *COLUMNS], rows)


def gains(found: Networks, nlm: Networks, network: str) -> str:
    """What each cure has over the standard training of as many steps and the same seed."""
    shown = ("P", "mPC", "mPC without noise", "rPC", "camera faults", "haze")
    rows = []
    for source, left_out in ((found, ()), (nlm, ("camera faults", "haze"))):
        for cure in cures_of(source, network):
            if cure != "standard":
                seeds = each_gain(source, network, cure, COLUMNS["mPC"])
                cells = [
                    "" if name in left_out else gain(source, network, cure, COLUMNS[name]).signed
                    for name in shown
                ]
                cells.insert(2, ", ".join(f"{one.estimate:+.1f}" for one in seeds))
                rows.append([named(cure), *cells])
    return table(["", *shown[:2], "mPC by seed", *shown[2:]], rows)


def carried(found: Networks) -> str:
    """What training on corruptions gains under every corruption: on four, and on one of them alone."""
    group = {name: label for label, members in KAMANN.items() for name in members}
    seen = {Condition.parse(text).corruption for text in CORRUPTED.values()}
    alone = [f"corrupted-{name}" for name in CORRUPTED]
    shown = [("grid", "corrupted"), ("plain", "corrupted"), *(("plain", cure) for cure in alone)]
    rows = []
    for name in (*BENCHMARK_15, *HOLDOUT):
        held = [text for text in grid([name]) if text in found["grid", "longer", 1].per_condition]
        cells = [gain(found, network, cure, over(held)).signed for network, cure in shown]
        for place, network in ((0, "grid"), (2, "plain")):
            cells.insert(place, f"{found[network, 'longer', 1].mean(held).estimate:.1f}")
        rows.append([name.replace("_", " ") + (" †" if name in seen else ""), group.get(name, ""), *cells])
    heads = [f"{label}: {what}" for label, _ in NETWORKS.values() for what in ("longer", "all four")]
    heads += [f"segmenter: {condition} alone" for condition in CORRUPTED.values()]
    return table(["corruption", "category of *kamann*", *heads], rows)


def alone(found: Networks) -> str:
    """What training on one corruption gains in every category of *kamann* that `imagenet-c` has."""
    held = {label: [n for n in names if n in BENCHMARK_15] for label, names in KAMANN.items()}
    categories = {label: names for label, names in held.items() if names}
    rows = [
        [
            condition,
            *(
                gain(found, network, f"corrupted-{name}", over(grid(members))).signed
                for network in NETWORKS
                for members in categories.values()
            ),
        ]
        for name, condition in CORRUPTED.items()
    ]
    heads = [f"{label}: {category}" for label, _ in NETWORKS.values() for category in categories]
    return table(["trained on", *heads], rows)


def sizes(path: Path) -> str:
    """The detector's gain from stylized images by the size of objects."""
    labels = {"APs": "small, below 32² pixels", "APm": "medium", "APl": "large, from 96² pixels"}
    rows = []
    for measure, label in labels.items():
        found = read(path, measure)
        cells = [label]
        for name in ("P", "mPC"):
            base = storms.mean(COLUMNS[name](found["grid", "longer", seed]) for seed in SEEDS)
            cells += [f"{base.estimate:.1f}", gain(found, "grid", "combined", COLUMNS[name]).signed]
        rows.append(cells)
    return table(["objects", "P: longer", "combined − longer", "mPC: longer", "combined − longer"], rows)


def severities(found: Networks) -> str:
    rows = []
    for severity in SEVERITIES:
        column = over(grid(BENCHMARK_15, [severity]))
        row = [str(severity)]
        for network in NETWORKS:
            base = storms.mean(column(found[network, "longer", seed]) for seed in SEEDS)
            row.append(f"{base.estimate:.1f}")
            row += [gain(found, network, cure, column).signed for cure in ("combined", "corrupted")]
        rows.append(row)
    heads = [
        f"{label}: {what}" for label, _ in NETWORKS.values() for what in ("longer", "combined", "corrupted †")
    ]
    return table(["severity", *heads], rows)


def at_three(found: Networks, nlm: Networks, names: Sequence[str]) -> str:
    """What changing the test images gains under each corruption at severity 3."""
    rows = [["clean", *_changed(found, nlm, ["clean"])]]
    rows += [[name.replace("_", " "), *_changed(found, nlm, [f"{name}@3"])] for name in names]
    rows.append(["mean without clean", *_changed(found, nlm, grid(names, [3]))])
    short = ("standard", "CLAHE", "NLM", "painted", "not painted")
    return table(["", *(f"{label}: {what}" for label, _ in NETWORKS.values() for what in short)], rows)


def _changed(found: Networks, nlm: Networks, conditions: Sequence[str]) -> list[str]:
    sources = {"clahe": found, "nlm": nlm, "restyled": found, "rebuilt": found}
    cells = []
    for network in NETWORKS:
        cells.append(f"{found[network, 'standard', 1].mean(conditions).estimate:.1f}")
        cells += [
            gain(source, network, f"standard+{remedy}", over(conditions)).signed
            for remedy, source in sources.items()
        ]
    return cells


def parts(path: Path) -> dict[str, str]:
    found, nlm = read(path), read(NLM)
    return {
        "detector": scores(found, "grid"),
        "detector gains": gains(found, nlm, "grid"),
        "segmenter": scores(found, "plain"),
        "segmenter gains": gains(found, nlm, "plain"),
        "sizes": sizes(path),
        "severities": severities(found),
        "carried": carried(found),
        "alone": alone(found),
        "corruptions at three": at_three(found, nlm, BENCHMARK_15),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scores", type=Path, default=KEPT)
    parser.add_argument("--page", type=Path, default=PAGE, help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    renew(options.page, parts(options.scores), check=options.check)
    if not options.check:
        import figures

        found = read(options.scores)
        figures.every_gain(found).save(options.page.with_name("gains.svg"))
        figures.growing(found).save(options.page.with_name("severities.svg"))
        figures.radar(found).save(options.page.with_name("radar.svg"))


if __name__ == "__main__":
    main()
