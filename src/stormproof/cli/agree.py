"""`stormproof agree`: whether a synthetic grid ranks models or classes as a real set does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import Measure, Replicates


@app.command()
def agree(
    synthetic: Annotated[
        Path, typer.Argument(help="A run under corruption, or a folder of runs of several models.")
    ],
    real: Annotated[Path, typer.Argument(help="The same models on the real set, e.g. on ACDC.")],
    by: Annotated[
        str | None,
        typer.Option(help="The attribute that cuts the real set: condition, fog, domain, weather."),
    ] = None,
    measure: Measure = None,
    replicates: Replicates = 200,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Correlate synthetic corruption with real weather: do they rank models, or classes, alike?

    Spearman's rank correlation of the scores under each corruption with those on the real set, over models
    if there are three or more on both sides, else over the classes of the one model. The line of the clean
    score is what to beat. Intervals are for new images.

    Examples:

        stormproof agree runs/cityscapes-c runs/acdc --by condition

        stormproof agree runs/coco-c runs/coco-o --by domain --measure AP
    """
    from stormproof.results.agreement import agree as correlate
    from stormproof.results.run import Run
    from stormproof.results.store.folders import runs_in

    sides = [[Run(folder) for folder in runs_in([side]).values()] for side in (synthetic, real)]
    table = correlate(*sides, by=by, measure=measure, replicates=replicates).table()
    if as_csv:
        typer.echo(table.as_csv(), nl=False)
        return
    console.out.print(table.as_rich())
    console.note(table.note)
