"""*theodoridis* on photographs and on the street: what detectors keep as texture is replaced.

    python studies/texture/study.py --runs photographs=DIR street=DIR    keeps the scores of the runs in DIR/*
                                                                         (present=DIR: the present network)
    python studies/texture/study.py            renews the tables of README.md from the kept scores
    python studies/texture/study.py --check    only compares them, and fails if they differ

README.md says how the runs are made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
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
            if measure in scores.cells:
                row, drawn = scores.cells[measure], scores.replicates.cells[measure]
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


def along(found: Mapping[str, Trained], space: str, part: str) -> list[list[str]]:
    rows = [
        [name, f"{one.cells['clean'].estimate:.1f}", *(str(at(one, a, space, part)) for a in ALPHAS)]
        for name, one in found.items()
    ]
    means = [mean(at(one, a, space, part) for one in found.values()) for a in ALPHAS]
    return [*rows, ["mean", "", *map(str, means)]]


def curves(name: str) -> str:
    """Whole images in feature space, by detector."""
    return table(["detector", "clean AP", *_heads()], along(read(file(name), "AP"), "feature", "image"))


def _heads() -> list[str]:
    return [f"α = {a:g}" for a in ALPHAS]


def by_part(name: str, measures: Sequence[str]) -> str:
    """The mean over detectors by space, part and size of objects."""
    rows = []
    for space in SPACES:
        for part in PARTS:
            for measure in measures:
                found = read(file(name), measure)
                means = [mean(at(one, a, space, part) for one in found.values()) for a in ALPHAS]
                rows.append([space, part, measure, *map(str, means)])
    return table(["space", "stylized", "measure", *_heads()], rows)


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
    made["present curves"] = curves("present")
    made["present parts"] = by_part("present", ("AP", "APl"))
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
