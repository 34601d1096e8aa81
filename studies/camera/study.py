"""*liu*'s experiments: what helps against camera faults, and detectors side by side.

    python studies/camera/study.py            renews the tables of README.md from the kept scores
    python studies/camera/study.py --check    only compares them, and fails if they differ

The scores are those of detectors.py and, for trainings whose weights were not kept, those of ../cures.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from stormproof.corruptions.suites import LIU, SUITES
from stormproof.metrics.published import published

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parents[1] / "docs")]
from detectors import OF_PHOTOGRAPHS, OF_STREET, PLAIN, SETS
from parts import renew, table
from storms import Trained, Value, by_name, grid, mean, mean_network, read

CURES = HERE.parent / "cures" / "scores.npz"
FAULTS = list(SUITES["camera"].corruptions)
# Of these, the networks of ../cures were scored with version 1; the others are the same as today.
CHANGED = (
    "bad_pixel_damage", "lens_shading_damage", "white_balance_damage", "synchronization_exception",
    "memory_exception",
)  # fmt: skip
UNCHANGED = [name for name in FAULTS if name not in CHANGED]
SEVERITIES = (1, 3, 5)  # of those scores
# What differs from street-grid as shipped: a remedy for its images, or another training.
HELPS = {
    "CLAHE": f"{PLAIN}+clahe",
    "NLM, h = 3": f"{PLAIN}+nlm",
    "NLM, h = 20": f"{PLAIN}+nlm[h=20]",
    "street-grid-combined": "street-grid-combined",
    "street-grid-stylized": "street-grid-stylized",
}
# Networks of ../cures, and those of as many steps and the same seed that they are compared with.
TRAININGS = {
    "stylized": ("grid-stylized", "grid-standard"),
    "clean and stylized": ("grid-combined", "grid-longer"),
    "adversarial": ("grid-adversarial", "grid-longer"),
}
SEEDS = (1, 2)
# The paper's names of the faults, where they differ, and of the four methods.
PAPER_FAULTS = {"camera_fog": "fog"}
PAPER_METHODS = {"CLAHE": "CLAHE", "NL-means": "NLM", "ST": "stylized training", "AT": "adversarial training"}


def rows_of(faults: list[str], severities: tuple[int, ...]) -> dict[str, list[str]]:
    """The lines of a table and their conditions."""
    by_fault = {name.replace("_", " "): grid([name], severities) for name in faults}
    return {"clean": ["clean"], **by_fault, "mean of the faults": grid(faults, severities)}


def helps() -> str:
    """E of the shipped detector, and what remedies and other trainings change; *liu*, Table 5."""
    found, painted = read(HERE / "street.npz", "E"), read(HERE / "painted.npz", "E")
    rows = []
    for label, texts in rows_of(FAULTS, (3,)).items():
        base = found[PLAIN].mean(texts)
        changes = [(found[name].mean(texts) - base).signed for name in HELPS.values()]
        changes.append((painted[f"{PLAIN}+restyled"].mean(texts) - painted[PLAIN].mean(texts)).signed)
        rows.append([label, f"{base.estimate:.1f}", *changes])
    return table(["", f"{PLAIN}, E", *HELPS, "painted"], rows)


def trainings() -> str:
    """What trainings of as many steps change, over the faults that are the same as today."""
    found = read(CURES, "E")
    rows = []
    for label, texts in rows_of(UNCHANGED, SEVERITIES).items():
        rows.append([label])
        for one, other in TRAININGS.values():
            pairs = ((found[f"{one}-{seed}"], found[f"{other}-{seed}"]) for seed in SEEDS)
            rows[-1].append(mean(cured.mean(texts) - plain.mean(texts) for cured, plain in pairs).signed)
    return table(["", *TRAININGS], rows)


def in_the_paper() -> str:
    """The paper's mean ΔCE over its detectors, and for how many faults it falls."""
    rows = []
    for method, label in PAPER_METHODS.items():
        chosen = [row for row in published("liu").tables["enhancement"] if row["method"] == method]
        by_fault = {
            name: sum(float(row[PAPER_FAULTS.get(name, name)]) for row in chosen) / len(chosen)
            for name in FAULTS
        }
        best = min(by_fault, key=by_fault.__getitem__)
        rows.append([
            label, f"{sum(by_fault.values()) / len(by_fault):+.1f}",
            f"{sum(value < 0 for value in by_fault.values())} of {len(by_fault)}",
            f"{best.replace('_', ' ')} {by_fault[best]:+.1f}",
        ])  # fmt: skip
    return table(["", "mean ΔCE", "faults with less error", "helps most"], rows)


def side_by_side() -> str:
    """Every detector on photographs and on the street, by part of the camera; *liu*, Tables 2 and 4."""
    rows = []
    for tested in ("photographs", "street"):
        errors, precision = (read(HERE / f"{tested}.npz", measure) for measure in ("E", "AP"))
        for name in (label for label in SETS[tested].detectors if "+" not in label):
            clean, faults = errors[name].per_condition["clean"], errors[name].mean(grid(FAULTS, (3,)))
            cells = [
                str(precision[name].per_condition["clean"]),
                str(clean),
                str(faults),
                (faults - clean).signed,
            ]
            parts = [f"{errors[name].mean(grid(some, (3,))).estimate:.1f}" for some in LIU.values()]
            trained = "street" if name in OF_STREET else "photographs"
            rows.append([tested, name, trained, *cells, str(lost(clean, faults)), *parts])
    head = ["tested on", "detector", "trained on", "AP, clean", "E, clean", "E under faults", "added"]
    return table([*head, "% lost of 100 − E", *LIU], rows)


def lost(clean: Value, faults: Value) -> Value:
    """The added error in % of the most that could be added."""
    estimate = 100 * (faults.estimate - clean.estimate) / (100 - clean.estimate)
    return Value(estimate, 100 * (faults.drawn - clean.drawn) / (100 - clean.drawn), clean.images)


def by_training(measure: str) -> dict[str, Trained]:
    """The networks of ../cures, the mean of the seeds: two seeds of one training are not independent."""
    plain = {name: one for name, one in read(CURES, measure).items() if "+" not in name}
    return {name: mean_network(seeds) for name, seeds in by_name(plain).items()}


def ranks() -> str:
    """Whether a better detector suffers less; *liu*, Fig. 8."""
    photographs, street = HERE / "photographs.npz", HERE / "street.npz"
    groups = {
        "of photographs, in place": (partial(read, photographs), OF_PHOTOGRAPHS, grid(FAULTS, (3,))),
        "of the street, in place": (partial(read, street), OF_STREET, grid(FAULTS, (3,))),
        "trainings of [what helps](../cures/README.md), eleven faults": (
            by_training, by_training("E"), grid(UNCHANGED, SEVERITIES),
        ),
    }  # fmt: skip
    rows = []
    for label, (found, names, conditions) in groups.items():
        errors, precision = found("E"), found("AP")
        better = [precision[name].per_condition["clean"].estimate for name in names]
        suffered = [errors[name].mean(conditions).estimate for name in names]
        clean = [errors[name].per_condition["clean"].estimate for name in names]
        ranked = [spearmanr(better, suffered), spearmanr(better, np.subtract(suffered, clean))]
        cells = [f"{one.statistic:+.2f} (p = {one.pvalue:.1g})" for one in ranked]
        rows.append([label, str(len(names)), *cells])
    return table(["detectors", "how many", "AP with E under faults", "AP with what faults add"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parts = {
        "helps": helps(), "trainings": trainings(), "paper": in_the_paper(), "detectors": side_by_side(),
        "ranks": ranks(),
    }  # fmt: skip
    renew(HERE / "README.md", parts, check=parser.parse_args().check)


if __name__ == "__main__":
    main()
