"""What helps against the storm, against what, at what price?

    python studies/cures/study.py            renews tables and figure of README.md from the kept scores
    python studies/cures/study.py --check    only compares them, and fails if they differ

`python -m training storm` wrote the scores; README.md says how the networks are trained.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import altair
import numpy as np
import numpy.typing as npt

from stormproof.core.condition import Condition
from stormproof.corruptions.groups import BENCHMARK_15, KAMANN, MICHAELIS
from stormproof.corruptions.suites import HOLDOUT, SUITES
from stormproof.results.interval import around, draws

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[1] / "docs")]
from parts import from_to, renew, table

from trainings import CORRUPTED, CURES, SEEDS

PAGE, KEPT = HERE / "README.md", HERE / "scores.npz"
ENHANCED = HERE / "enhanced.npz"  # scores at severity 3 only
NETWORKS = {"grid": ("detector", "AP"), "plain": ("segmenter", "mIoU")}
LABELS = {name: cure.label for name, cure in CURES.items()} | {
    "standard+bn": "standard, normalised by the test images",
    "standard+clahe": "CLAHE before the standard network",
    "standard+nlm": "non-local means before the standard network",
}
SEVERITIES = range(1, 6)
CAMERA_SEVERITIES = (1, 3, 5)
HAZE = ("haze[beta=0.004]", "haze[beta=0.012]", "haze[beta=0.04]")
Drawn = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """A number in points, and its draws, from which its interval follows (`results.interval`)."""

    estimate: float
    drawn: Drawn
    images: int

    def __sub__(self, other: Value) -> Value:
        return Value(self.estimate - other.estimate, self.drawn - other.drawn, self.images)

    @cached_property
    def interval(self) -> tuple[float, float]:
        found = around(self.estimate, self.drawn, images=self.images)
        return found.low, found.high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.estimate:.1f} ± {(high - low) / 2:.1f}"

    @property
    def signed(self) -> str:
        return from_to(self.estimate, *self.interval)


@dataclass(frozen=True)
class Trained:
    """One trained network: its score under every condition."""

    cells: dict[str, Value]

    def mean(self, conditions: Sequence[str]) -> Value:
        chosen = [self.cells[condition] for condition in conditions]
        return Value(
            float(np.mean([v.estimate for v in chosen])),
            np.mean([v.drawn for v in chosen], axis=0),
            chosen[0].images,
        )

    def relative(self, conditions: Sequence[str]) -> Value:
        """The mean in % of the clean score."""
        mean, clean = self.mean(conditions), self.cells["clean"]
        ratio = 100 * mean.drawn / clean.drawn
        return Value(100 * mean.estimate / clean.estimate, ratio, mean.images)


def read(path: Path, measure_of: str | None = None) -> dict[tuple[str, str, int], Trained]:
    """Networks by architecture, cure and seed; in the headline measure unless another is named."""
    found = {}
    with np.load(path) as kept:
        conditions, images = kept["conditions"].tolist(), len(kept["ids"])
        for network, (_, headline) in NETWORKS.items():
            for key in kept.files:
                name, _, measure = key.partition("/")
                if not name.startswith(f"{network}-") or measure != (measure_of or headline):
                    continue
                trained, plus, remedy = name.partition("+")
                _, *cure, seed = trained.split("-")
                scores, rest = kept[key].astype(float), kept[f"{key}/drawn"].astype(float)
                cells = {
                    condition: Value(
                        100 * score,
                        100 * draws(np.array([score, *halves[1:]]), halves[0], clean=condition == "clean"),
                        images,
                    )
                    for condition, score, halves in zip(conditions, scores, rest, strict=True)
                }
                found[network, "-".join(cure) + plus + remedy, int(seed)] = Trained(cells)
    return found


def grid(names: Sequence[str], severities: Sequence[int] = SEVERITIES) -> list[str]:
    return [f"{name}@{severity}" for name in names for severity in severities]


def _camera() -> list[str]:
    return grid(list(SUITES["camera"].corruptions), CAMERA_SEVERITIES)


NOISE = MICHAELIS["noise"]
COLUMNS: dict[str, Callable[[Trained], Value]] = {
    "P": lambda one: one.cells["clean"],
    "mPC": lambda one: one.mean(grid(BENCHMARK_15)),
    "mPC without noise": lambda one: one.mean(grid([n for n in BENCHMARK_15 if n not in NOISE])),
    "rPC": lambda one: one.relative(grid(BENCHMARK_15)),
    **{group: lambda one, names=names: one.mean(grid(names)) for group, names in MICHAELIS.items()},  # type: ignore[misc]
    "camera faults": lambda one: one.mean(_camera()),
    "haze": lambda one: one.mean(HAZE),
}


def named(cure: str) -> str:
    """The label of a cure, marked if it has seen corruptions of the test."""
    return LABELS[cure] + (" †" if cure in CURES and CURES[cure].seen else "")


def control(cure: str) -> str:
    """The standard training with as many steps."""
    return "longer" if cure in CURES and CURES[cure].steps == 2 else "standard"


def seeds_of(found: dict[tuple[str, str, int], Trained], network: str, cure: str) -> list[int]:
    return [seed for seed in SEEDS if (network, cure, seed) in found]


def cures_of(found: dict[tuple[str, str, int], Trained], network: str) -> list[str]:
    return [cure for cure in LABELS if seeds_of(found, network, cure)]


def scores(found: dict[tuple[str, str, int], Trained], network: str) -> str:
    """Every network: its scores, with intervals for P, mPC and rPC."""
    rows = []
    for cure in cures_of(found, network):
        for seed in seeds_of(found, network, cure):
            values = {name: column(found[network, cure, seed]) for name, column in COLUMNS.items()}
            sure = ("P", "mPC", "rPC")
            cells = [str(v) if name in sure else f"{v.estimate:.1f}" for name, v in values.items()]
            rows.append([named(cure), str(seed), *cells])
    return table(["training", "seed", *COLUMNS], rows)


def gains(found: dict[tuple[str, str, int], Trained], network: str) -> str:
    """What each cure has over the standard training of as many steps and the same seed."""
    shown, rows = ("P", "mPC", "mPC without noise", "rPC", "camera faults", "haze"), []
    for cure in cures_of(found, network):
        if cure == "standard":
            continue
        against = "standard" if cure == "longer" else control(cure)
        for seed in seeds_of(found, network, cure):
            if (network, against, seed) in found:
                one, other = found[network, cure, seed], found[network, against, seed]
                cells = [(COLUMNS[name](one) - COLUMNS[name](other)).signed for name in shown]
                rows.append([f"{named(cure)} − {LABELS[against]}", str(seed), *cells])
    return table(["", "seed", *shown], rows)


def carried(found: dict[tuple[str, str, int], Trained]) -> str:
    """What training on four corruptions gains under every corruption, for both networks."""
    names = [*BENCHMARK_15, *HOLDOUT]
    group = {name: label for label, members in KAMANN.items() for name in members}
    seen = {Condition.parse(text).corruption for text in CORRUPTED.values()}
    rows = []
    for name in names:
        row = [name.replace("_", " ") + (" †" if name in seen else ""), group.get(name, "")]
        for network in NETWORKS:
            one, other = found[network, "corrupted", 1], found[network, "longer", 1]
            held = [text for text in grid([name]) if text in one.cells]
            row += [f"{other.mean(held).estimate:.1f}", (one.mean(held) - other.mean(held)).signed]
        rows.append(row)
    heads = [f"{label}: {what}" for label, _ in NETWORKS.values() for what in ("longer", "gain")]
    return table(["corruption", "category of *kamann*", *heads], rows)


def sizes(path: Path) -> str:
    """The detector's gain from stylized images by the size of objects."""
    rows = []
    for measure, label in {
        "APs": "small, below 32² pixels", "APm": "medium", "APl": "large, from 96² pixels"
    }.items():  # fmt: skip
        found = read(path, measure)
        one, other = found["grid", "combined", 1], found["grid", "longer", 1]
        cells = [
            cell
            for name in ("P", "mPC")
            for cell in (
                f"{COLUMNS[name](other).estimate:.1f}", (COLUMNS[name](one) - COLUMNS[name](other)).signed
            )
        ]  # fmt: skip
        rows.append([label, *cells])
    return table(["objects", "P: longer", "combined − longer", "mPC: longer", "combined − longer"], rows)


def severities(found: dict[tuple[str, str, int], Trained]) -> str:
    rows = []
    for severity in SEVERITIES:
        row = [str(severity)]
        for network in NETWORKS:
            chosen = grid(BENCHMARK_15, [severity])
            base = found[network, "longer", 1].mean(chosen)
            row.append(f"{base.estimate:.1f}")
            row += [(found[network, c, 1].mean(chosen) - base).signed for c in ("combined", "corrupted")]
        rows.append(row)
    heads = [
        f"{label}: {what}" for label, _ in NETWORKS.values() for what in ("longer", "combined", "corrupted †")
    ]
    return table(["severity", *heads], rows)


def at_three(found: dict[tuple[str, str, int], Trained], names: Sequence[str]) -> str:
    """What remedies gain under each corruption at severity 3: before the network, and by training."""
    cures = ("standard+clahe", "standard+nlm", "stylized", "combined")
    rows = []
    for label, chosen in {"clean": ["clean"], **{n.replace("_", " "): [f"{n}@3"] for n in names}}.items():
        rows.append([label, *_gains_over(found, cures, chosen)])
    rows.append(["mean without clean", *_gains_over(found, cures, grid(names, [3]))])
    short = ("standard", "CLAHE", "NLM", "stylized", "clean and stylized")
    return table(["", *(f"{label}: {what}" for label, _ in NETWORKS.values() for what in short)], rows)


def _gains_over(
    found: dict[tuple[str, str, int], Trained], cures: Sequence[str], conditions: Sequence[str]
) -> list[str]:
    cells = []
    for network in NETWORKS:
        cells.append(f"{found[network, 'standard', 1].mean(conditions).estimate:.1f}")
        for cure in cures:
            base = found[network, control(cure), 1].mean(conditions)
            cells.append((found[network, cure, 1].mean(conditions) - base).signed)
    return cells


def figure(found: dict[tuple[str, str, int], Trained]) -> Any:
    """Gains in P and mPC over the standard training of as many steps, with intervals."""
    panels = [panel(found, network) for network in NETWORKS]
    return altair.hconcat(*panels).configure_view(stroke="#dddddd").configure(font="sans-serif")


def panel(found: dict[tuple[str, str, int], Trained], network: str) -> Any:
    label, measure = NETWORKS[network]
    rows = []
    for cure in cures_of(found, network):
        against = "standard" if cure == "longer" else control(cure)
        for seed in seeds_of(found, network, cure):
            if cure == "standard" or (network, against, seed) not in found:
                continue
            for name in ("P", "mPC"):
                gain = COLUMNS[name](found[network, cure, seed]) - COLUMNS[name](
                    found[network, against, seed]
                )
                low, high = gain.interval
                told = {"cure": named(cure), "number": name, "gain": gain.estimate, "low": low, "high": high}
                rows.append(told)
    colours = altair.Scale(domain=["P", "mPC"], range=["#8a94a3", "#17407d"])
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y("cure:N", sort=list(map(named, LABELS)), title=None, axis=altair.Axis(labelLimit=260)),
        yOffset=altair.YOffset("number:N", sort=["P", "mPC"]),
        color=altair.Color("number:N", scale=colours, title=None),
    )
    title = "points more than the standard training of as many steps"
    return altair.layer(
        altair.Chart(altair.Data(values=[{"zero": 0}])).mark_rule(color="#bbbbbb").encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(x=altair.X("low:Q", title=title), x2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=altair.X("gain:Q", title=title)),
    ).properties(width=300, height=290, title=f"{label}, {measure}")


def parts(path: Path) -> dict[str, str]:
    found = read(path)
    three = read(ENHANCED) | found
    return {
        "detector": scores(found, "grid"),
        "detector gains": gains(found, "grid"),
        "segmenter": scores(found, "plain"),
        "segmenter gains": gains(found, "plain"),
        "sizes": sizes(path),
        "severities": severities(found),
        "carried": carried(found),
        "corruptions at three": at_three(three, BENCHMARK_15),
        "faults at three": at_three(three, list(SUITES["camera"].corruptions)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scores", type=Path, default=KEPT)
    parser.add_argument("--page", type=Path, default=PAGE, help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    renew(options.page, parts(options.scores), check=options.check)
    if not options.check:
        figure(read(options.scores)).save(options.page.with_name("figure.svg"))


if __name__ == "__main__":
    main()
