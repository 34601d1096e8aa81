"""Runs that estimate mPC from part of the grid: as many images per condition as a precision requires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stormproof.datasets.dataset import Dataset
from stormproof.engine.config import RunConfig
from stormproof.engine.plan import Plan, make_plan
from stormproof.engine.run import Summary
from stormproof.results.estimate import Estimate, estimate_run, next_share
from stormproof.results.run import Run
from stormproof.results.store.record import RECORD, read_record

# A condition starts with this many images, or this share of them: with fewer, intervals cover too little.
_FEWEST, _SHARE = 15, 0.02
Do = Callable[[Plan], Summary]


def run_to_precision(
    config: RunConfig, do: Do, *, data: Dataset | None = None
) -> tuple[Summary, Estimate | None]:
    """Run until the interval of mPC is within ± the precision, or the grid is full.

    `do` executes a plan; `data` is the dataset, if no spec can open it again. There is no estimate if cells
    failed or the grid became full.
    """
    out = Path(config.out)
    size = (read_record(out).quota if (out / RECORD).exists() else None) or 0
    while True:
        plan = make_plan(config, quota=size or None)
        images = plan.work.images
        if not size:
            size = first_share(images)
            continue
        summary = do(plan)
        if summary.failed or size >= images:
            return summary, None
        found = estimate_run(Run(plan.work.out, data=data))
        if 100 * found.mpc.half_width <= config.precision:
            return summary, found
        size = next_share(found, config.precision / 100)


def first_share(images: int) -> int:
    """How many images each condition starts with."""
    return min(images, max(_FEWEST, round(_SHARE * images)))
