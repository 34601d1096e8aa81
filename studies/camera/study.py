"""*liu*'s experiments on the street: what helps against camera faults, and detectors side by side.

    python studies/camera/study.py            renews the tables of README.md from the kept scores
    python studies/camera/study.py --check    only compares them, and fails if they differ

The scores are those of ../cures: the object error E of its detectors. CE is the mean of E over severities.
Detectors trained for one scenario of the street and tested on another are kept here, as are those of
photographs.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy.stats import spearmanr

from stormproof.corruptions.suites import LIU, SUITES
from stormproof.metrics.published import published

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from photographs import TESTED, TRAINED
from storms import Trained, Value, grid, mean, read

SCORES, NLM = HERE.parent / "cures" / "scores.npz", HERE.parent / "cures" / "nlm.npz"
FAULTS = list(SUITES["camera"].corruptions)
SEVERITIES = (1, 3, 5)
# Networks, and those they are compared with: of as many steps, and of the same seed.
CURES = {
    "CLAHE": [("grid-standard-1+clahe", "grid-standard-1")],
    "stylized training": [("grid-stylized-1", "grid-standard-1"), ("grid-stylized-2", "grid-standard-2")],
    "clean and stylized": [("grid-combined-1", "grid-longer-1"), ("grid-combined-2", "grid-longer-2")],
    "adversarial training": [
        ("grid-adversarial-1", "grid-longer-1"),
        ("grid-adversarial-2", "grid-longer-2"),
    ],
    "painted test images": [
        ("grid-standard-1+restyled", "grid-standard-1"),
        ("grid-standard-2+restyled", "grid-standard-2"),
    ],
}
SCENARIOS = {
    "town-by-day": "town",
    "outskirts-at-dusk": "outskirts",
}  # and the names of networks trained for them
SEEDS = (1, 2)
# The paper's names of the faults, where they differ, and of the four methods.
PAPER_FAULTS = {"camera_fog": "fog"}
PAPER_METHODS = {"CLAHE": "CLAHE", "NL-means": "NLM", "ST": "stylized training", "AT": "adversarial training"}


def change(found: Mapping[str, Trained], cure: str, conditions: Sequence[str]) -> Value:
    """ΔCE: the mean over seeds of the change of E; below 0 the cure helps."""
    return mean(found[one].mean(conditions) - found[other].mean(conditions) for one, other in CURES[cure])


def helps(found: Mapping[str, Trained]) -> str:
    """ΔCE of every fault and cure; *liu*, Table 5."""
    nlm = read(NLM, "E")
    rows = []
    for label, texts, at_three in _rows():
        base = found["grid-standard-1"].mean(texts)
        denoised = nlm["grid-standard-1+nlm"].mean(at_three) - nlm["grid-standard-1"].mean(at_three)
        cells = [change(found, cure, texts).signed for cure in CURES]
        rows.append([label, f"{base.estimate:.1f}", cells[0], denoised.signed, *cells[1:]])
    first, *rest = CURES
    return table(["", "standard, CE", first, "NLM, severity 3", *rest], rows)


def _rows() -> list[tuple[str, list[str], list[str]]]:
    """Each line's name, its conditions, and those at severity 3."""
    lines = [("clean", ["clean"], ["clean"])]
    lines += [(name.replace("_", " "), grid([name], SEVERITIES), grid([name], [3])) for name in FAULTS]
    return [*lines, ("mean of the faults", grid(FAULTS, SEVERITIES), grid(FAULTS, [3]))]


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


def side_by_side(found: Mapping[str, Trained], precision: Mapping[str, Trained]) -> str:
    """Every detector: AP, E, mCE and the means by part of the camera; *liu*, Table 2."""
    rows = []
    for name, one in sorted(found.items(), key=lambda item: item[1].mean(grid(FAULTS, SEVERITIES)).estimate):
        parts = [f"{one.mean(grid(members, SEVERITIES)).estimate:.1f}" for members in LIU.values()]
        every = one.mean(grid(FAULTS, SEVERITIES))
        first = [f"{precision[name].cells['clean'].estimate:.1f}", str(one.cells["clean"])]
        rows.append([name, *first, str(every), (every - one.cells["clean"]).signed, *parts])
    return table(["detector", "AP", "E, clean", "mCE", "mCE − clean", *LIU], rows)


def ranks(found: Mapping[str, Trained], precision: Mapping[str, Trained]) -> str:
    """Whether a better detector suffers less; *liu*, Fig. 8."""
    names = [name for name in found if "+" not in name]
    clean = [precision[name].cells["clean"].estimate for name in names]
    every = [found[name].mean(grid(FAULTS, SEVERITIES)).estimate for name in names]
    added = [m - found[name].cells["clean"].estimate for m, name in zip(every, names, strict=True)]
    with_mce, with_added = (float(spearmanr(clean, values).statistic) for values in (every, added))
    return (
        f"Over {len(names)} detectors the rank correlation of AP with mCE is {with_mce:.2f}, with what "
        f"corruption adds (mCE − clean E) {with_added:+.2f}."
    )


def crossed() -> str:
    """Detectors trained for one scenario and tested on each; *liu*, Table 4, and what its change hides."""
    rows = []
    for tested in SCENARIOS:
        errors, precision = (read(HERE / f"{tested}.npz", measure) for measure in ("E", "AP"))
        for trained, name in SCENARIOS.items():
            clean, faults = (
                mean(errors[f"{name}-{seed}"].mean(texts) for seed in SEEDS)
                for texts in (["clean"], grid(FAULTS, SEVERITIES))
            )
            found = mean(precision[f"{name}-{seed}"].cells["clean"] for seed in SEEDS)
            rows.append([trained, tested, str(found), str(clean), str(faults), (faults - clean).signed])
    return table(["trained for", "tested on", "AP, clean", "E, clean", "mCE", "change: mCE − clean"], rows)


def on_photographs() -> str:
    """Detectors of photographs and of the street on both, severity 3; and what finding nothing scores."""
    rows = []
    for tested, label in TESTED.items():
        errors, precision = (read(HERE / f"{tested}.npz", measure) for measure in ("E", "AP"))
        for name, trained in TRAINED.items():
            clean, faults = errors[name].cells["clean"], errors[name].mean(grid(FAULTS, [3]))
            found = precision[name].cells["clean"]
            cells = [str(found), str(clean), str(faults), (faults - clean).signed, str(lost(clean, faults))]
            rows.append([f"{trained} ({name})", label, *cells])
    rows.append(["nothing found", "either", "0.0", "100.0", "100.0", "+0.0", "–"])
    head = [
        "trained on",
        "tested on",
        "AP, clean",
        "E, clean",
        "E under faults",
        "change",
        "% lost of 100 − E",
    ]
    return table(head, rows)


def lost(clean: Value, faults: Value) -> Value:
    """The added error in % of the most that could be added."""
    estimate = 100 * (faults.estimate - clean.estimate) / (100 - clean.estimate)
    return Value(estimate, 100 * (faults.drawn - clean.drawn) / (100 - clean.drawn), clean.images)


def parts() -> dict[str, str]:
    found, precision = read(SCORES, "E"), read(SCORES, "AP")
    return {
        "helps": helps(found),
        "paper": in_the_paper(),
        "detectors": side_by_side(found, precision),
        "ranks": ranks(found, precision),
        "scenarios": crossed(),
        "photographs": on_photographs(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    renew(HERE / "README.md", parts(), check=parser.parse_args().check)


if __name__ == "__main__":
    main()
