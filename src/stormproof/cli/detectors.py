"""`stormproof detectors` and `stormproof scenarios`: several runs side by side, as *liu* compares them."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Data, Runs
from stormproof.core.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.metrics.grid import Grid
    from stormproof.results.store.record import RunRecord


@app.command()
def detectors(
    runs: Runs,
    by: Annotated[
        str, typer.Option(help="The tag whose values are averaged, set by run --tag.")
    ] = "architecture",
    data: Data = None,
) -> None:
    """Compare detectors: CE per fault, means by part of the camera and tag, a t-test (liu, Table 2).

    Every run needs clean images and the same conditions on the same images.

    Examples:

        stormproof detectors runs/yolox runs/ssdlite runs/efficientdet --by architecture
    """
    from stormproof.core.errors import IncompleteGrid
    from stormproof.metrics.corruption_error import ce, ce_by_group, corruption_matters, mce

    found = [_errors(run, data) for run in runs]
    groups = dict.fromkeys(record.tags.get(by, "") for record, _ in found)
    tags = [f"{by} {name or 'none'}" for name in groups] if any(groups) else []
    table = console.table("CE (in %)", ["fault"], [*(record.model.name for record, _ in found), *tags])
    rows = {"clean": [grid.clean for _, grid in found]}
    rows |= {name: [ce(grid).get(name, math.nan) for _, grid in found] for name in ce(found[0][1])}
    rows["mean (mCE)"] = [mce(grid) for _, grid in found]
    try:
        parts = [ce_by_group(grid) for _, grid in found]
        rows |= {f"mean of {name}": [part[name] for part in parts] for name in parts[0]}
    except (IncompleteGrid, KeyError):
        pass  # other conditions than liu's faults: there are no parts of a camera
    for name, values in rows.items():
        means = [
            fmean(v for v, (record, _) in zip(values, found, strict=True) if record.tags.get(by, "") == group)
            for group in groups
        ]
        table.add_row(name, *(f"{100 * v:.1f}" for v in (*values, *(means if any(groups) else ()))))
    console.out.print(table)
    test = corruption_matters([grid for _, grid in found])
    alone = "" if math.isnan(test.t) else f" t = {test.t:.2f}, p = {test.p:.2g} as independent samples;"
    console.say(
        f"Corruption adds {100 * test.increase:.1f} points of error;{alone} "
        f"t = {test.paired:.2f}, p = {test.paired_p:.2g} paired with each detector's clean error."
    )


@app.command()
def scenarios(
    runs: Runs,
    trained: Annotated[str, typer.Option(help="The tag that says what a model was trained for.")] = "trained",
) -> None:
    """Change of mCE by the scenario trained for and the scenario tested on (liu, Table 4).

    Each run says what its model was trained for with run --tag trained=…; the scenario tested on is its
    dataset. Every model row needs every dataset.

    Examples:

        stormproof run … --tag trained=universal --out runs/coco

        stormproof scenarios runs/coco runs/street
    """
    from stormproof.metrics.corruption_error import cross_scenario

    grids = {}
    for run in runs:
        record, grid = _errors(run, None)
        key = (f"{record.model.name} ({record.tags.get(trained, 'not said')})", record.dataset.name)
        if key in grids:
            raise InvalidOption(f"{run} is a second run of {key[0]} on {key[1]}; give one.")
        grids[key] = grid
    changes = cross_scenario(grids)
    columns = dict.fromkeys(tested for _, tested in changes)
    table = console.table("Change of mCE against clean, in points", ["model (trained for)"], [*columns])
    for name in dict.fromkeys(name for name, _ in changes):
        table.add_row(name, *(f"{100 * changes[name, tested]:+.1f}" for tested in columns))
    console.out.print(table)


def _errors(run: Path, data: str | None) -> tuple[RunRecord, Grid]:
    """A run's record and its grid of object errors."""
    from stormproof.results.papers import averaged_grid
    from stormproof.results.score import score_run

    scores = score_run(run, data=data)
    if "E" not in scores.by_measure:
        raise InvalidOption(f"{run} has no object errors; give runs of detectors.")
    return scores.record, averaged_grid(scores.by_measure["E"], scores.record.conditions, scores.record)
