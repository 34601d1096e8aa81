"""What does training on one corruption do against the others? (*kamann*, Section 6, Figs. 18 to 20)

python studies/corrupted/study.py            renews the tables and figures of README.md from the kept scores
python studies/corrupted/study.py --check    only compares the tables, and fails if they differ
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stormproof.corruptions.suites import KAMANN

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Spread, Trained, by_name, half_width, mean_network, read

CLEAN = "reference"  # trained on clean scenes only; that of the ablations
SEEN = {
    "blur": "gaussian_blur@5", "noise": "speckle_noise@3", "digital": "saturate@3", "weather": "spatter@3",
}  # fmt: skip
REAL = {"blur": "psf_blur", "noise": "intensity_noise"}  # Section 6.1: the paper's own corruptions
STRENGTHS = range(1, 6)
GREY, BLUE = "#8a94a3", "#17407d"
Found = Mapping[str, Sequence[Trained]]


def networks() -> Found:
    """Seeds by training."""
    return by_name(read(HERE / "scores.npz", "mIoU"))


def conditions_of(found: Found, names: Iterable[str]) -> list[str]:
    """Every severity that was run."""
    return [
        f"{name}@{s}" for name in names for s in STRENGTHS if f"{name}@{s}" in found[CLEAN][0].per_condition
    ]


def spread_of(found: Found, conditions: Sequence[str]) -> Spread:
    return Spread.of([[one.mean(conditions).estimate for one in seeds] for seeds in found.values()])


def gain(found: Found, training: str, conditions: Sequence[str]) -> str:
    """The difference to training on clean scenes only, with its interval for new scenes and seeds."""
    one, other = found[training], found[CLEAN]
    more = mean_network(one).mean(conditions) - mean_network(other).mean(conditions)
    wide = half_width(more, spread_of(found, conditions), len(one), len(other))
    return f"{more.estimate:+.1f} ± {wide:.1f}"


def categories(found: Found) -> str:
    """Fig. 19: the mean mIoU of every category, and what each training changes."""
    groups = {"clean": ["clean"], **{name: conditions_of(found, names) for name, names in KAMANN.items()}}
    first = mean_network(found[CLEAN])
    lines = [["clean scenes only", *(f"{first.mean(group).estimate:.1f}" for group in groups.values())]]
    for name, condition in SEEN.items():
        lines.append([f"and {condition}", *(gain(found, name, group) for group in groups.values())])
    return table(["trained on", *groups], lines)


def severities(found: Found, category: str) -> str:
    """Fig. 18: the corruptions of a category by severity, trained on clean scenes → on one corruption too."""
    plain, trained = mean_network(found[CLEAN]), mean_network(found[category])
    lines = []
    for name in KAMANN[category]:
        row = [
            f"{plain.per_condition[text].estimate:.1f} → {trained.per_condition[text].estimate:.1f}"
            if text in plain.per_condition
            else ""
            for text in (f"{name}@{s}" for s in STRENGTHS)
        ]
        seen = name == SEEN[category].split("@")[0]
        lines.append(
            [f"{name} *" if seen else name, *row, gain(found, category, conditions_of(found, [name]))]
        )
    return table(["", *(f"severity {s}" for s in STRENGTHS), "gain"], lines)


def real(found: Found) -> str:
    """Section 6.1: the paper's realistic corruptions, for every training."""
    names = ("psf_blur", "intensity_noise", "geometric_distortion")
    first = mean_network(found[CLEAN])
    columns = [conditions_of(found, [name]) for name in names]
    lines = [["clean scenes only", *(f"{first.mean(column).estimate:.1f}" for column in columns)]]
    for name, condition in SEEN.items():
        lines.append([f"and {condition}", *(gain(found, name, column) for column in columns)])
    return table(["trained on", *names], lines)


def ratios() -> dict[str, float]:
    """The mean signal-to-noise ratio of every blur and noise over six scenes, in dB."""
    kept: dict[str, float] = json.loads((HERE / "snr.json").read_text())
    return kept


def by_ratio(found: Found, category: str) -> str:
    """Fig. 20: conditions of about equal signal-to-noise ratio beside the paper's realistic one."""
    plain, trained, known = mean_network(found[CLEAN]), mean_network(found[category]), ratios()
    lines = []
    for text in conditions_of(found, [REAL[category]]):
        others = [t for t in conditions_of(found, KAMANN[category]) if not t.startswith(REAL[category])]
        near = min(others, key=lambda other: abs(known[other] - known[text]))
        row = [
            f"{known[one]:.1f} dB | {plain.per_condition[one].estimate:.1f} → "
            f"{trained.per_condition[one].estimate:.1f}"
            for one in (text, near)
        ]
        lines.append([text, row[0], near, row[1]])
    return table(["", "SNR", "mIoU", "nearest other", "SNR", "mIoU"], lines)


def panel(found: Found, category: str, places: Mapping[str, float], title: str) -> Any:
    """mIoU of a category over `places` (severities or dB); dashed: trained on clean scenes only."""
    import altair

    rows = [
        {"corruption": name, "trained": label, "x": places[text], "mIoU": one.per_condition[text].estimate}
        for label, one in (
            ("clean only", mean_network(found[CLEAN])),
            ("and corrupted", mean_network(found[category])),
        )
        for name in KAMANN[category]
        for text in conditions_of(found, [name])
    ]
    dash = altair.Scale(domain=["clean only", "and corrupted"], range=[[3, 3], [1, 0]])
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=altair.OverlayMarkDef(size=16))
        .encode(
            x=altair.X("x:Q", title=title, axis=altair.Axis(tickMinStep=1)),
            y=altair.Y("mIoU:Q", scale=altair.Scale(domain=[0, 75])),
            color=altair.Color("corruption:N", title=None),
            strokeDash=altair.StrokeDash("trained:N", title=None, scale=dash),
        )
        .properties(width=230, height=190, title=f"{category}: trained on {SEEN[category]}")
    )


def figures(found: Found) -> dict[str, Any]:
    import altair

    places = {t: float(t[-1]) for names in KAMANN.values() for t in conditions_of(found, names)}
    shown = [panel(found, category, places, "severity") for category in SEEN]
    real = [panel(found, category, ratios(), "signal-to-noise ratio, dB") for category in REAL]
    apart = [
        altair.hconcat(*pair).resolve_scale(color="independent") for pair in (shown[:2], shown[2:], real)
    ]
    return {
        "severities": altair.vconcat(*apart[:2]).resolve_scale(color="independent"),
        "snr": apart[2],
    }


def parts(found: Found) -> dict[str, str]:
    by_severity = {f"severities {name}": severities(found, name) for name in SEEN}
    by_strength = {f"snr {name}": by_ratio(found, name) for name in REAL}
    return {"categories": categories(found), **by_severity, "real": real(found), **by_strength}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check, found = parser.parse_args().check, networks()
    renew(HERE / "README.md", parts(found), check=check)
    if not check:
        for name, chart in figures(found).items():
            chart.configure(font="sans-serif").save(HERE / f"{name}.svg")


if __name__ == "__main__":
    main()
