"""*theodoridis* on photographs and on the street: what detectors keep as texture is replaced.

    python studies/texture/study.py --runs photographs=DIR street=DIR    keeps the scores of the runs in DIR/*
    python studies/texture/study.py            renews the tables of README.md from the kept scores
    python studies/texture/study.py --check    only compares them, and fails if they differ

README.md says how the runs are made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.metrics.sequences import distance_matrix
from stormproof.results.run import Run

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "docs")]
from parts import renew, table
from storms import Trained, Value, mean, read

SETS = ("photographs", "street")
OTHERWISE = ("street-grid-combined", "street-grid-stylized")  # trained on stylized scenes
MEASURES = ("AP", "APs", "APm", "APl", "mask AP")
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
SPACES, PARTS = ("feature", "pixel"), ("image", "objects", "background")


def file(name: str) -> Path:
    return HERE / f"{name}.npz"


def keep(name: str, folder: Path) -> None:
    """Score every run of a folder, and keep scores and halves as `training storm` does."""
    arrays: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        run = Run(path)
        scores = run.score(interval=True)
        assert scores.replicates is not None
        arrays |= {"conditions": np.array(run.conditions), "ids": np.array(run.ids)}
        for measure in MEASURES:
            if measure in scores.per_condition:
                row, drawn = scores.per_condition[measure], scores.replicates.per_condition[measure]
                arrays[f"{path.name}/{measure}"] = np.array([row[t] for t in run.conditions], np.float32)
                # The first row of the draws is the score less its optimism.
                kept = [np.concatenate([[row[t] - drawn[t][0]], drawn[t][2:]]) for t in run.conditions]
                arrays[f"{path.name}/{measure}/drawn"] = np.array(kept, np.float16)
    np.savez_compressed(file(name), **arrays)


def condition(alpha: float, space: str, part: str) -> str:
    where = "" if part == "image" else f",on={part}"
    return f"style[alpha={alpha:g}{where},space={space}]"


def at(one: Trained, alpha: float, space: str, part: str) -> Value:
    """The score in % of the clean one. In pixel space, α = 0 is the image and α = 1 as in feature space."""
    if space == "pixel" and alpha in (0, 1):
        return one.relative([condition(alpha, "feature", part) if alpha else "clean"])
    return one.relative([condition(alpha, space, part)])


def clean_trained(name: str, measure: str) -> list[Trained]:
    """The networks that were trained on clean images alone."""
    return [one for network, one in read(file(name), measure).items() if network not in OTHERWISE]


def overall(name: str, measure: str, alpha: float, space: str = "feature", part: str = "image") -> Value:
    """The mean over the networks that were trained on clean images alone."""
    return mean(at(one, alpha, space, part) for one in clean_trained(name, measure))


def curves(name: str) -> str:
    """Whole images in feature space, by detector."""
    rows = [
        [
            network,
            f"{one.per_condition['clean'].estimate:.1f}",
            *(str(at(one, a, "feature", "image")) for a in ALPHAS),
        ]
        for network, one in read(file(name), "AP").items()
    ]
    return table(["detector", "clean AP", *_heads()], rows)


def _heads() -> list[str]:
    return [f"α = {a:g}" for a in ALPHAS]


def by_part(name: str, measures: Sequence[str]) -> str:
    """The mean over detectors by space, part and size of objects."""
    rows = [
        [space, part, measure, *(str(overall(name, measure, a, space, part)) for a in ALPHAS)]
        for space in SPACES
        for part in PARTS
        for measure in measures
    ]
    return table(["space", "stylized", "measure", *_heads()], rows)


def bend(name: str, measure: str) -> Value:
    """How much more is lost between α = 0.4 and 0.6 than between 0.2 and 0.4."""
    early, middle, late = (overall(name, measure, alpha) for alpha in (0.2, 0.4, 0.6))
    return (middle - late) - (early - middle)


def apart_at(name: str, alpha: float) -> Value:
    """How much more pixel space keeps than feature space."""
    return overall(name, "AP", alpha, "pixel") - overall(name, "AP", alpha)


def painted(name: str, part: str, measure: str = "AP") -> Value:
    """What is left when a part is fully painted."""
    return overall(name, measure, 1, part=part)


CLAIMS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("an initial loss at α = 0", "left at α = 0", lambda s: str(overall(s, "AP", 0))),
    ("", "of small objects", lambda s: str(overall(s, "APs", 0))),
    ("robust until near α = 0.4", "left at α = 0.4", lambda s: str(overall(s, "AP", 0.4))),
    ("", "lost from 0.4 to 0.6, less that from 0.2 to 0.4", lambda s: bend(s, "AP").signed),
    ("… for medium and large objects", "the same, medium objects", lambda s: bend(s, "APm").signed),
    ("", "large objects", lambda s: bend(s, "APl").signed),
    ("… not for small ones", "small objects", lambda s: bend(s, "APs").signed),
    ("a gap between the spaces", "pixel − feature space at α = 0.2", lambda s: apart_at(s, 0.2).signed),
    ("", "at α = 0.5", lambda s: apart_at(s, 0.5).signed),
    ("", "at α = 0.8", lambda s: apart_at(s, 0.8).signed),
    (
        "a dip in pixel space at α = 0.1 (Fig. 6)",
        "left there",
        lambda s: str(overall(s, "AP", 0.1, "pixel")),
    ),
    (
        "much better on objects alone than on whole images",
        "objects − whole image at α = 1",
        lambda s: (painted(s, "objects") - painted(s, "image")).signed,
    ),
    (
        "small objects rely on context",
        "small objects, background painted",
        lambda s: str(painted(s, "background", "APs")),
    ),
    ("… medium and large ones do not", "medium", lambda s: str(painted(s, "background", "APm"))),
    (
        "painted backgrounds appear to help large objects (Fig. 6)",
        "large",
        lambda s: str(painted(s, "background", "APl")),
    ),
    (
        "",
        "background − objects at α = 1",
        lambda s: (painted(s, "background") - painted(s, "objects")).signed,
    ),
)


def claims() -> str:
    """What the paper says (Section 4), and the number that speaks to it on each set of images."""
    rows = [[says, measured, *(found(name) for name in SETS)] for says, measured, found in CLAIMS]
    return table(["the paper, Section 4", "here, in % of the clean score", *SETS], rows)


def apart(name: str) -> str:
    """How far detectors lie apart (Fig. 15): Euclidean over α, the mean over spaces and parts."""
    series = {
        model: {
            f"{space} {part}": {a: at(one, a, space, part).estimate / 100 for a in ALPHAS}
            for space in SPACES
            for part in PARTS
        }
        for model, one in read(file(name), "AP").items()
    }
    found = distance_matrix(series)
    rows = [
        [m, *(f"{v:.2f}" for v in row)] for m, row in zip(found.models, found.matrix.tolist(), strict=True)
    ]
    return table(["", *found.models], rows)


def parts() -> dict[str, str]:
    made = {}
    for name in SETS:
        made[f"{name} curves"] = curves(name)
        made[f"{name} parts"] = by_part(name, ("AP", "APs", "APm", "APl"))
        made[f"{name} distances"] = apart(name)
    made["street masks"] = by_part("street", ("mask AP",))
    made["claims"] = claims()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", nargs="+", default=[], metavar="SET=DIR")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    for pair in given.runs:
        name, _, folder = pair.partition("=")
        keep(name, Path(folder))
    renew(HERE / "README.md", parts(), check=given.check)


if __name__ == "__main__":
    main()
