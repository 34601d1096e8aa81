"""The estimate of mPC from part of a grid, against full runs: how far off, and whether the interval knows.

    python studies/confidence/estimator.py RUN… [--sizes 10,15,25] [--page docs/checked.md]

Every repetition takes the images of each condition in another rotation, as another seed would. Prints a line
of a Markdown table per size: images a condition, share of the inferences, bias and r.m.s. error of mPC in
points, how many are within ± 0.5, the mean standard error it gave itself, and how often its interval holds
the truth. The last line of a run is for `run --precision`, which decides itself how many images it takes. An
unfinished run is taken as far as every condition has its images. With --page, the table of that page is
renewed. A run of 500 images takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stormproof.core.condition import Condition
from stormproof.engine.run import first_share
from stormproof.engine.work import Quota
from stormproof.results.estimate import (
    Estimate,
    EstimatedCondition,
    estimate,
    estimated_conditions,
    next_share,
)
from stormproof.results.run import Run
from stormproof.results.sets import ConditionSet, sets_of
from stormproof.results.weights import poisson_weights

HEAD = (
    "| run | images | truth | images a condition | inferences | bias | r.m.s. error | within ± 0.5 | "
    "its own s.e. | covered |"
)


def whole_images(run: Run) -> int:
    """How many readable images, from the first, every condition has."""
    complete = [all(index in held for held in run.held.values()) for index in run.readable]
    return [*complete, False].index(False)


def first_images(run: Run, conditions: Sequence[str], images: int) -> dict[str, EstimatedCondition]:
    """Conditions of a run on its first images, to be scored by the run's headline measure."""
    found = estimated_conditions(run, conditions)
    chosen = np.arange(images)
    return {text: cell._replace(content=cell.content.of_images(chosen)) for text, cell in found.items()}


@dataclass(frozen=True)
class Full:
    """A full run, to be estimated from parts of it."""

    name: str
    images: int
    clean: EstimatedCondition
    cells: dict[str, EstimatedCondition]
    over: ConditionSet
    weights: np.ndarray

    @classmethod
    def of(cls, folder: Path, images: int, replicates: int) -> Full:
        run = Run(folder)
        n = min(images, whole_images(run))
        over = sets_of(run.conditions, run.record.benchmark)[0]
        cells = first_images(run, ("clean", *over.covered), n)
        weights = poisson_weights(run.ids[:n], replicates=replicates)
        name = f"{run.record.model.name}, {run.record.dataset.name}"
        return cls(name, n, cells.pop("clean"), cells, over, weights)

    def estimate(self, size: int, seed: int) -> Estimate:
        """From `size` images a condition, those that a seed chooses."""
        quota = Quota.of(size, self.images, map(Condition.parse, self.cells), seed)
        shares = {t: np.array([i for i in range(self.images) if quota.wants(i, t)]) for t in self.cells}
        return estimate(
            self.clean, self.cells, shares, over=self.over, images=self.images, weights=self.weights,
        )  # fmt: skip

    def stopped(self, precision: float, seed: int) -> Estimate:
        """As `run --precision` goes on from share to share."""
        size = first_share(self.images)
        while True:
            found = self.estimate(size, seed)
            if size >= self.images or 100 * found.mpc.reach <= precision:
                return found
            size = next_share(found, precision / 100)


def lines(full: Full, sizes: Sequence[int], repetitions: int, precision: float) -> Iterator[str]:
    """A line of the table for each number of images a condition, and one for where the precision stops it."""
    true = full.estimate(full.images, seed=0).mpc.estimate
    for size in (*sizes, None):
        found = [
            full.stopped(precision, seed) if size is None else full.estimate(size, seed)
            for seed in range(repetitions)
        ]
        off = 100 * np.array([one.mpc.estimate - true for one in found])
        se = 100 * np.array([one.mpc.se for one in found])
        shares, done = (np.mean([getattr(one, name) for one in found]) for name in ("shares", "inferences"))
        within, covered = int((abs(off) <= 0.5).sum()), 100 * np.mean(abs(off) <= 1.96 * se)
        line = (
            full.name, full.images, f"{full.clean.measure.name} {100 * true:.2f}",
            size if size else f"until ± {precision:g}: {shares:.0f}",
            f"{100 * done:.1f} %", f"{off.mean():+.2f}", f"{np.sqrt((off**2).mean()):.2f}",
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
    parser.add_argument("--precision", type=float, default=0.5)
    parser.add_argument("--page", type=Path, help="the page whose part 'estimator' is renewed")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",") if size]
    table = [HEAD, "|---" * HEAD.count(" | ") + "|---|"]
    for run in given.runs:
        full = Full.of(run, given.images, given.replicates)
        for line in lines(full, sizes, given.repetitions, given.precision):
            print(line, flush=True)
            table.append(line)
    if given.page is not None:
        sys.path.append(str(Path(__file__).parents[2] / "docs"))
        from parts import write_part

        write_part(given.page, "estimator", "\n".join(table))


if __name__ == "__main__":
    main()
