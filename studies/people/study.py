"""*pezzementi*'s experiments on the street: twelve person detectors, simple and contextual mutations.

python studies/people/study.py            renews tables and figure of README.md from the kept scores
python studies/people/study.py --check    only compares them, and fails if they differ
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair
import numpy as np

from stormproof.core.condition import Condition
from stormproof.metrics.prediction import PAIRS, Predicted, predict_pairs, r_squared

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Trained, mean, read

SCORES = HERE / "scores.npz"


def label(name: str) -> str:
    """`grid-standard-1` without its architecture, which is the same for all."""
    return name.removeprefix("grid-").replace("-", " ")


def normalised(found: Mapping[str, Trained]) -> str:
    """ADR on clean scenes, then under every mutation in % of it; *pezzementi*, Table IV."""
    names = sorted(found, key=lambda name: -found[name].per_condition["clean"].estimate)
    conditions = [text for text in found[names[0]].per_condition if text != "clean"]
    rows = [["clean, ADR", *(f"{found[name].per_condition['clean'].estimate:.1f}" for name in names), ""]]
    for text in conditions:
        values = [found[name].relative([text]).estimate for name in names]
        rows.append([text, *(f"{value:.0f}" for value in values), f"{np.mean(values):.0f}"])
    return table(["", *map(label, names), "mean"], rows)


def by_mutator(found: Mapping[str, Trained]) -> str:
    """The mean over systems under the settings that cost least and most, with intervals over scenes."""
    rows = []
    conditions = [text for text in next(iter(found.values())).per_condition if text != "clean"]
    for name in dict.fromkeys(Condition.parse(text).corruption for text in conditions):
        own = [text for text in conditions if Condition.parse(text).corruption == name]
        scored = {text: mean(one.relative([text]) for one in found.values()) for text in own}
        best, worst = (pick(scored, key=lambda t: scored[t].estimate) for pick in (max, min))
        rows.append([str(name), f"{best}: {scored[best]}", f"{worst}: {scored[worst]}"])
    return table(["mutator", "costs least", "costs most"], rows)


def predictions(found: Mapping[str, Trained]) -> dict[str, Predicted]:
    """Haze from blending and defocus from blur, one system left out; *pezzementi*, Fig. 7."""
    return predict_pairs(
        {
            name: {text: value.estimate for text, value in one.per_condition.items()}
            for name, one in found.items()
        }
    )


def predicted(found: Mapping[str, Trained]) -> str:
    rows = []
    for name, each in predictions(found).items():
        apart = np.abs(each.observed - each.predicted)
        others = [np.delete(each.observed, k, axis=0).mean(axis=0) for k in range(len(each.systems))]
        plain = r_squared(each.observed.ravel(), np.ravel(others))
        rows.append([
            f"{name} from {PAIRS[name]}", str(len(each.contextual)), f"{each.r2:.3f}",
            f"{min(each.r2_by_system.values()):.3f}", f"{plain:.3f}",
            f"{100 * apart.mean():.1f}", f"{100 * apart.max():.1f}",
        ])  # fmt: skip
    head = ["", "settings", "R²", "lowest R² of a system", "R² of the others' mean"]
    head += ["mean error, points", "largest error"]
    return table(head, rows)


def weights(found: Mapping[str, Trained]) -> str:
    """The weights of the fits on all systems; *pezzementi*, Fig. 8."""
    rows = []
    for name, each in predictions(found).items():
        for text, fit in zip(each.contextual, each.overall, strict=True):
            used = [f"{w:.2f} × {s}" for s, w in zip(each.simple, fit, strict=True) if w >= 0.005]
            rows.append([name, text, " + ".join(used)])
    return table(["", "setting", "is fitted by"], rows)


def figure(found: Mapping[str, Trained]) -> Any:
    """Observed against predicted normalised ADR, one point for every system and setting."""
    panels = []
    for name, each in predictions(found).items():
        rows = [
            {"observed": o, "predicted": p, "system": label(system)}
            for system, seen, guessed in zip(each.systems, each.observed, each.predicted, strict=True)
            for o, p in zip(seen.tolist(), guessed.tolist(), strict=True)
        ]
        axis = altair.Scale(domain=[0, 1.2])
        points = (
            altair.Chart(altair.Data(values=rows), title=f"{name} from {PAIRS[name]}, R² {each.r2:.2f}")
            .mark_point(filled=True, opacity=0.8, size=35)
            .encode(
                x=altair.X("predicted:Q", scale=axis, title="predicted, share of clean ADR"),
                y=altair.Y("observed:Q", scale=axis, title="observed"),
                color=altair.Color("system:N", scale=altair.Scale(scheme="category20"), title=None),
            )
        )
        line = altair.Chart(altair.Data(values=[{"v": 0}, {"v": 1.2}])).mark_line(color="#bbbbbb")
        panels.append((line.encode(x="v:Q", y="v:Q") + points).properties(width=280, height=280))
    return altair.hconcat(*panels).configure_view(stroke="#dddddd").configure(font="sans-serif")


def parts() -> dict[str, str]:
    found = read(SCORES, "ADR")
    return {
        "mutators": by_mutator(found),
        "predicted": predicted(found),
        "weights": weights(found),
        "normalised": normalised(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    renew(HERE / "README.md", parts(), check=check)
    if not check:
        figure(read(SCORES, "ADR")).save(HERE / "predicted.svg")


if __name__ == "__main__":
    main()
