"""Whether 95 % intervals hold on real runs: the images of a run are halved at random, again and again.

    python studies/confidence/interval_coverage.py RUN [RUN2] --trials 200 >> FILE
    python studies/confidence/interval_coverage.py --table FILE…

The gap between the halves should lie within the root of the sum of their squared half-widths in 95 % of the
splits. With two runs of the same images, so for their difference. A split does not see a bias that both
halves share: `false_passes.py` does. Clean and severity 3 of each corruption are scored. One line of JSON per
trial goes to standard output, so that pieces can be joined.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from estimator import first_images, whole_images

from stormproof.results.aggregates import MEAN, aggregates
from stormproof.results.estimate import score
from stormproof.results.interval import draws, interval_around
from stormproof.results.run import Run
from stormproof.results.sets import sets_of

REPLICATES = 200
NUMBERS = ("P", "mPC", "rPC")


def split(folders: list[Path], trials: range) -> None:
    """Halves of the images that every run has under every condition, of a fifth of the grid."""
    runs = [Run(folder) for folder in folders]
    images = min(whole_images(run) for run in runs)
    fifth = tuple(t for t in runs[0].conditions if t == "clean" or t.endswith("@3"))
    over = sets_of(fifth, None)[0]
    cells = [first_images(run, fifth, images) for run in runs]
    half = images // 2
    name = " − ".join(run.record.model.name for run in runs) + f", {runs[0].record.dataset.name}"
    for trial in trials:
        rng = np.random.default_rng([half, trial])
        order = rng.permutation(images)
        found = []
        for part in (order[:half], order[half : 2 * half]):
            weights = np.concatenate([np.ones((1, half)), rng.integers(0, 2, (REPLICATES, half))])
            each = []
            for of in cells:
                drawn = {t: score(cell, part, weights.astype(np.uint8)) for t, cell in of.items()}
                drawn = {t: np.concatenate([v[:1], draws(v)]) for t, v in drawn.items()}
                total = aggregates(of["clean"].measure.name, drawn, over)
                each.append({"P": drawn["clean"], "mPC": total[MEAN], "rPC": total[MEAN] / drawn["clean"]})
            found.append({key: each[0][key] - sum(one[key] for one in each[1:]) for key in NUMBERS})
        row = {}
        for key in NUMBERS:
            one, two = (interval_around(float(f[key][0]), f[key][1:], images=half) for f in found)
            gap, wide = one.estimate - two.estimate, float(np.hypot(one.half_width, two.half_width))
            row["Δ" * (len(runs) > 1) + key] = {"gap": gap, "within": wide}
        print(json.dumps({"run": name, "images": half, "trial": trial, "found": row}), flush=True)


def table(files: list[Path]) -> None:
    """How often each gap is within what the intervals say."""
    groups: dict[tuple[str, int], list[dict[str, dict[str, float]]]] = {}
    for row in (json.loads(line) for file in files for line in file.read_text().splitlines()):
        groups.setdefault((row["run"], row["images"]), []).append(row["found"])
    print(f"| run | images a half | splits | {' | '.join(NUMBERS)} |")
    print("|---" * (len(NUMBERS) + 3) + "|")
    for (run, images), found in sorted(groups.items()):
        rates = [
            f"{100 * np.mean([abs(row[name]['gap']) <= row[name]['within'] for row in found]):.1f}"
            for name in found[0]
        ]
        print(f"| {' | '.join((run, f'{images:,}', str(len(found)), *rates))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.table:
        table(given.files)
    else:
        split(given.files, range(given.first, given.first + given.trials))


if __name__ == "__main__":
    main()
