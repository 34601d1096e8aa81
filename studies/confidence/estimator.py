"""The estimate of mPC from part of a grid, against full runs: how far off, and whether the interval knows.

    python studies/confidence/estimator.py RUN… [--sizes 10,15,25] [--page docs/confidence.md]

Every repetition takes the images of each condition in another rotation, as another seed would. Prints a line
of a Markdown table per size: images a condition, share of the inferences, bias and r.m.s. error of mPC in
points, how many are within ± 0.5, the mean standard error it gave itself, and how often its interval holds
the truth. An unfinished run is taken as far as every condition has its images. With --page, the table of that
page is renewed. A run of 500 images takes two to three minutes of one core.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stormproof.condition import Condition
from stormproof.confidence.estimate import estimate
from stormproof.confidence.partial import cells_of, coefficients
from stormproof.confidence.weights import poisson_weights
from stormproof.engine.quota import Quota
from stormproof.store.parts import held_cells, part_paths
from stormproof.store.record import RunRecord, read_record
from stormproof.store.reopen import dataset_of

HEAD = (
    "| run | images | truth | images a condition | inferences | bias | r.m.s. error | within ± 0.5 | "
    "its own s.e. | covered |"
)


def whole_images(run: Path, record: RunRecord) -> int:
    """How many images, from the first, every condition has."""
    held = Counter(index for path in part_paths(run) for index, _ in held_cells(path, record.key))
    return next(i for i in range(record.images + 1) if held[i] < len(record.conditions))


def lines(run: Path, sizes: Sequence[int], repetitions: int, images: int, replicates: int) -> Iterator[str]:
    """One line of the table for each number of images a condition."""
    record = read_record(run)
    n = min(images, whole_images(run, record))
    record = record.model_copy(update={"images": n})
    dataset = dataset_of(record)
    measure, cells = cells_of(run, record, dataset)
    clean = cells.pop("clean")
    rows, conditions = coefficients(tuple(cells)), [Condition.parse(text) for text in cells]
    weights = poisson_weights([dataset.ids[i] for i in range(n)], replicates=replicates)
    everything = {text: np.arange(n) for text in cells}
    options = {"images": n, "weights": weights, "coefficients": rows}
    true = estimate(clean, cells, everything, **options).mpc.estimate  # type: ignore[arg-type]
    for size in sizes:
        errors, spreads = [], []
        for seed in range(repetitions):
            quota = Quota.of(size, n, conditions, seed)
            shares = {t: np.array([i for i in range(n) if quota.wants(i, t)]) for t in cells}
            found = estimate(clean, cells, shares, **options)  # type: ignore[arg-type]
            errors.append(100 * (found.mpc.estimate - true))
            spreads.append(100 * found.mpc.se)
        off, se = np.array(errors), np.array(spreads)
        within, covered = int((abs(off) <= 0.5).sum()), 100 * np.mean(abs(off) <= 1.96 * se)
        line = (
            f"{record.model.name}, {record.dataset.name}", n, f"{measure} {100 * true:.2f}", size,
            f"{100 * found.inferences:.1f} %", f"{off.mean():+.2f}", f"{np.sqrt((off**2).mean()):.2f}",
            f"{within} of {repetitions}", f"{se.mean():.2f}", f"{covered:.0f} %",
        )  # fmt: skip
        yield f"| {' | '.join(map(str, line))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--sizes", default="10,15,25")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--images", type=int, default=10**9)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--page", type=Path, help="the page whose part 'estimator' is renewed")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    table = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for run in given.runs:
        for line in lines(run, sizes, given.repetitions, given.images, given.replicates):
            print(line, flush=True)
            table.append(line)
    if given.page is not None:
        sys.path.append(str(Path(__file__).parents[2] / "docs"))
        from parts import write_part

        write_part(given.page, "estimator", "\n".join(table))


if __name__ == "__main__":
    main()
